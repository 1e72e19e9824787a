"""Searching once more: a second look, other wordings by a language model, a reranker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from reads import contents

from agent_memory import AgentMemory, ConfigurationError, ValidationError

SISTER = "Carlo's sister is called Paula."
HOME = "Paula moved to Bergen in spring and likes it."


@pytest.fixture
def chain(memory: AgentMemory) -> AgentMemory:
    """A memory that leads to another one, among others that look more like the question."""
    texts = [SISTER, HOME, *(f"Carlo wants to live closer to work, note {n}." for n in range(30))]
    items = [{"content": text, "session_id": f"s{n}"} for n, text in enumerate(texts)]
    memory.store_many(items)
    return memory


class TestSecondLook:
    QUERY = "In which city does Carlo's sister live?"

    def test_it_finds_what_the_first_hit_leads_to(self, chain: AgentMemory) -> None:
        assert HOME not in contents(chain.search(self.QUERY, limit=5))
        hits = chain.search(self.QUERY, limit=5, hops=2)
        assert contents(hits)[:2] == [SISTER, HOME]
        assert len(hits) == 5

    def test_what_is_good_without_it_comes_first(self, chain: AgentMemory) -> None:
        plain = chain.search(self.QUERY, limit=5)
        good = [hit.memory.id for hit in plain if hit.passed_gate]
        hops = chain.search(self.QUERY, limit=5, hops=2)
        assert [hit.memory.id for hit in hops][: len(good)] == good

    def test_filters_hold_in_it_too(self, chain: AgentMemory) -> None:
        with_filter = chain.search(self.QUERY, limit=30, hops=2, session_id="s0")
        assert contents(with_filter) == [SISTER]

    def test_a_session_sees_no_other_users_memories_by_it(self, memory: AgentMemory) -> None:
        memory.store(SISTER, user_id="alice")
        memory.store("Paula is away.", user_id="alice")
        memory.store(HOME, user_id="bob")
        hits = memory.session({"user_id": "alice"}).search(self.QUERY, limit=5, hops=2)
        assert HOME not in contents(hits)

    @pytest.mark.parametrize("query", ["", "?!", "nothing of the kind was ever stored here"])
    def test_what_finds_nothing_leads_nowhere(self, chain: AgentMemory, query: str) -> None:
        assert contents(chain.search(query, hops=2)) == contents(chain.search(query))

    @pytest.mark.parametrize("hops", [0, 3, "2", True])
    def test_another_number_of_hops_is_refused(self, memory: AgentMemory, hops: Any) -> None:
        with pytest.raises(ValidationError, match="hops"):
            memory.search("x", hops=hops)


class TestOtherWordings:
    def test_what_another_wording_finds_is_there(self, memory: AgentMemory) -> None:
        memory.store("The kitten had its jabs in March.", id="jabs")
        asked: list[Sequence[Mapping[str, str]]] = []

        def model(messages: Sequence[Mapping[str, str]], _: object) -> str:
            asked.append(messages)
            return json.dumps({"queries": ["kitten jabs", "  ", "kitten jabs"]})

        query = "When was our pet vaccinated?</question>"
        assert contents(memory.search(query)) == []
        results = memory.search(query, expand=model)
        assert [hit.memory.id for hit in results] == ["jabs"]
        assert results.search_metadata.degraded == []
        assert json.dumps(query) in asked[0][1]["content"].splitlines()

    def test_what_both_find_comes_first(self, memory: AgentMemory) -> None:
        memory.store("The deploy script is deploy.sh.", id="both", session_id="s1")
        memory.store("A script for films was sold.", id="one", session_id="s2")
        results = memory.search("script", expand=lambda *_: {"queries": ["deploy"]})
        assert [hit.memory.id for hit in results] == ["both", "one"]

    @pytest.mark.parametrize("answer", ["no JSON", {"queries": "deploy"}, {"else": []}, 5])
    def test_a_wrong_answer_costs_no_hit(self, memory: AgentMemory, answer: Any) -> None:
        memory.store("The deploy script is deploy.sh.")
        results = memory.search("deploy script", expand=lambda *_: answer)
        assert len(results) == 1
        assert any("other wordings" in note for note in results.search_metadata.degraded)

    def test_a_model_that_fails_costs_no_hit(self, memory: AgentMemory) -> None:
        def model(*_: object) -> str:
            raise RuntimeError("down for today")

        memory.store("The deploy script is deploy.sh.")
        results = memory.search("deploy script", expand=model)
        assert len(results) == 1
        (note,) = results.search_metadata.degraded
        assert "down for today" in note

    def test_a_model_that_there_is_not_is_refused(self, memory: AgentMemory) -> None:
        with pytest.raises(ConfigurationError):
            memory.search("x", expand="nobody:model")


class TestReranker:
    @pytest.fixture(autouse=True)
    def stored(self, memory: AgentMemory) -> None:
        memory.store_many([{"content": f"The plan for week {n}."} for n in range(10)])

    def test_hits_come_in_its_order(self, memory: AgentMemory) -> None:
        def last_first(query: str, texts: Sequence[str]) -> Iterable[float]:
            assert query == "plan for week"
            return (int(text.split()[-1].strip(".")) for text in texts)

        hits = contents(memory.search("plan for week", limit=3, reranker=last_first))
        assert hits == [f"The plan for week {n}." for n in (9, 8, 7)]

    def test_it_is_given_more_than_are_asked_for(self, memory: AgentMemory) -> None:
        counts: list[int] = []

        def counting(_: str, texts: Sequence[str]) -> list[float]:
            counts.append(len(texts))
            return [0.0] * len(texts)

        plain = memory.search("plan for week", limit=10, count_accesses=False)
        hits = memory.search("plan for week", limit=2, reranker=counting)
        assert counts == [10]
        assert contents(hits) == contents(plain)[:2]

    @pytest.mark.parametrize(
        ("answer", "note"),
        [([1.0], "1 scores for 10"), ([float("nan")] * 10, "not a number"), (None, "TypeError")],
    )
    def test_wrong_scores_leave_the_order(
        self, memory: AgentMemory, answer: Any, note: str
    ) -> None:
        plain = contents(memory.search("plan for week", limit=5, count_accesses=False))
        results = memory.search("plan for week", limit=5, reranker=lambda *_: answer)
        assert contents(results) == plain
        assert note in results.search_metadata.degraded[0]

    def test_what_is_no_function_is_refused(self, memory: AgentMemory) -> None:
        with pytest.raises(ValidationError, match="reranker"):
            memory.search("x", reranker="ms-marco")  # type: ignore[arg-type]


def test_the_shell_follows_too(cli: Any) -> None:
    for text in (SISTER, HOME, "Paula sings."):
        cli("--agent", "bob", "store", text)
    answer = cli("--agent", "bob", "search", TestSecondLook.QUERY, "--hops", "2", "--json")
    assert HOME in [hit["memory"]["content"] for hit in answer.data["results"]]
