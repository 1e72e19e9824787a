"""Conversations become memories: by a model's answers, by rules, or as they are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Said
from conftest import Clock

from agent_memory import (
    AddMemoryRequest,
    AgentMemory,
    InvalidSession,
    SearchMemoryRequest,
    SearchMemoryResponse,
    StorageReadOnly,
    ValidationError,
)
from agent_memory.models.decision import Decision

PASTA = "Alice likes pasta"
BOTH = "Alice loves pasta and pizza"
WHEAT = "Alice eats no pasta and no pizza, being allergic to wheat"
Answer = Mapping[str, Any] | str


class Scripted:
    """A model that gives prepared answers in turn, and keeps what it was asked."""

    model = "scripted"

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        self.asked.append("\n".join(it["content"] for it in messages))
        assert schema["title"]
        answer = self.answers.pop(0)
        return answer if isinstance(answer, str) else json.dumps(answer)


def facts(*texts: str) -> dict[str, Any]:
    return {
        "facts": [
            {"text": text, "sources": [place], "confidence": 0.9, "about": None}
            for place, text in enumerate(texts)
        ]
    }


def operation(event: str, text: str, *, number: str | None = None, **more: Any) -> dict[str, Any]:
    told = {"confidence": 0.95, "reasoning": "it says so", "facts": [0], **more}
    return {"event": event, "id": number, "text": text, **told}


def decisions(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"memory": list(operations)}


def user(text: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, embedder=None, clock=clock, session_id="s-1") as memory:
        yield memory


def contents(memory: AgentMemory) -> set[str]:
    return {it.content for it in memory.list_recent(100)}


# With a model ---------------------------------------------------------------------------------


def test_a_taste_that_changes_is_one_truth_each_time(memory: AgentMemory, clock: Clock) -> None:
    first = memory.add(
        [user("I like pasta")],
        user_id="alice",
        llm=Scripted(facts(PASTA)),
    )
    assert [(it.event, it.memory) for it in first.data] == [("ADD", PASTA)]
    memory_id = first.data[0].id
    last_week = clock.now
    clock.forward(days=7)
    model = Scripted(facts(BOTH), decisions(operation("UPDATE", BOTH, number="0")))
    second = memory.add([user("I love pasta, and pizza!")], user_id="alice", llm=model)
    assert [(it.id, it.event, it.previous_memory) for it in second.data] == [
        (memory_id, "UPDATE", PASTA)
    ]
    assert str(memory_id) not in "".join(model.asked)  # the model sees small numbers alone
    clock.forward(days=1)
    model = Scripted(facts(WHEAT), decisions(operation("UPDATE", WHEAT, number="0")))
    memory.add([user("The doctor says I am allergic to wheat")], user_id="alice", llm=model)
    assert contents(memory) == {WHEAT}
    assert [it.event for it in memory.history(memory_id)] == ["UPDATE", "UPDATE", "ADD"]
    (then,) = memory.list_recent(as_of=last_week)
    assert then.content == PASTA
    memory.undo()
    assert contents(memory) == {BOTH}
    assert memory.check().problems == []


def test_a_memory_has_the_time_of_its_message_and_what_was_said_of_all(memory: AgentMemory) -> None:
    said_at = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
    answer = memory.add(
        [user("Hello"), user("I like pasta", timestamp=said_at)],
        user_id="user_123",
        run_id="conversation-456",
        metadata={"category": "preferences", "tags": ["Food"], "origin": "chat"},
        llm=Scripted(
            {"facts": [{"text": PASTA, "sources": [1], "confidence": 0.9, "about": None}]}
        ),
    )
    found = memory.get(str(answer.data[0].id))
    assert found is not None
    assert (found.timestamp, found.user_id, found.run_id) == (
        said_at,
        "user_123",
        "conversation-456",
    )
    assert found.created_by_session == "conversation-456"
    assert found.tags == ["food"]
    assert found.metadata == {
        "origin": "chat",
        "original_category": "preferences",
        "confidence": 0.9,
    }
    hits = memory.search("pasta", filters={"user_id": "user_123", "category": "preferences"})
    assert [hit.memory.id for hit in hits] == [found.id]


def test_the_answer_has_the_shape_of_the_document(memory: AgentMemory) -> None:
    answer = memory.add([user("I like pasta")], user_id="alice", llm=Scripted(facts(PASTA)))
    told = json.loads(answer.model_dump_json())
    assert list(told) == ["success", "data", "metadata"]
    assert list(told["data"][0]) == ["id", "event", "memory"]
    assert told["metadata"]["facts_extracted"] == told["metadata"]["operations_performed"] == 1


def edges(memory: AgentMemory, **more: Any) -> set[tuple[str, str]]:
    return {(it.relationship, it.target) for it in memory.graph.relationships(**more)}


def test_the_graph_follows_and_goes_back(memory: AgentMemory, clock: Clock) -> None:
    said = [PASTA, BOTH, WHEAT]
    updates = [
        [],
        [operation("UPDATE", said[1], number="0")],
        [operation("UPDATE", said[2], number="0")],
    ]
    graphs: list[list[tuple[str, str, str, str | None]]] = [
        [("ADD", "likes", "pasta", None)],
        [("UPDATE", "loves", "pasta", "likes"), ("ADD", "loves", "pizza", None)],
        [("ADD", "is_allergic_to", "wheat", None)],
    ]
    times = []
    for text, decided, drawn in zip(said, updates, graphs, strict=True):
        told = [
            {
                "action": a,
                "source": "USER_ID",
                "relationship": r,
                "target": t,
                "old_relationship": o,
            }
            for a, r, t, o in drawn
        ]
        answers = [facts(text), *([decisions(*decided)] if decided else []), {"updates": told}]
        memory.add([user(text)], user_id="alice", llm=Scripted(*answers), graph=True)
        times.append(clock.now)
        clock.forward(days=7)
    assert edges(memory) == {("is_allergic_to", "wheat")}
    assert edges(memory, as_of=times[0]) == {("likes", "pasta")}
    assert edges(memory, as_of=times[1]) == {("loves", "pasta"), ("loves", "pizza")}
    memory.undo()
    assert edges(memory) == {("loves", "pasta"), ("loves", "pizza")}
    assert memory.check().problems == []
    memory_id = memory.list_recent()[0].id
    memory.erase(memory_id)
    assert memory.graph.relationships(include_closed=True) == []


@pytest.mark.parametrize("answers", [(), ("I cannot do that", "{}")], ids=["fails", "babbles"])
def test_what_the_model_does_not_read_for_the_graph_the_rules_do(
    memory: AgentMemory, answers: tuple[str, ...]
) -> None:
    model = Scripted(facts("User lives in Oslo."), *answers)
    told = memory.add([user("I live in Oslo.")], user_id="alice", llm=model, graph=True).metadata
    edges = {(it.relationship, it.target) for it in memory.graph.relationships()}
    assert edges == {("lives_in", "Oslo")}
    assert told.problems is not None
    assert told.problems[-1] == "graph: the model failed: rules read it"
    assert all(problem.startswith("graph: ") for problem in told.problems)


def test_by_rules_the_graph_follows_too(memory: AgentMemory) -> None:
    memory.add([user("I live in Oslo.")], user_id="alice", graph=True)
    assert edges(memory) == {("lives_in", "Oslo")}
    memory.add([user("I moved to Lisbon.")], user_id="alice", graph=True)
    assert edges(memory) == {("lives_in", "Lisbon")}
    assert memory.graph.relationships(user_id="ben") == []


@pytest.mark.parametrize(
    ("relationship", "first", "then"),
    [
        ("lives_in", "I live in Berlin.", "I live in Paris during the summer."),
        ("lives_in", "I live in Berlin.", "I live in Paris on weekends."),
        ("lives_in", "I live in Berlin.", "I live in Paris for now."),
        ("lives_in", "I live in Berlin.", "I live in Paris too."),
        ("works_at", "I work at Acme.", "I also work at Beta."),
        ("works_as", "I work as a nurse.", "I work as a teacher as well."),
        ("is_named", "My name is Robert.", "My name is Bob to my friends."),
    ],
)
@pytest.mark.parametrize("in_one", [False, True])
def test_what_no_memory_contradicts_stays_in_the_graph(
    memory: AgentMemory, clock: Clock, relationship: str, first: str, then: str, in_one: bool
) -> None:
    """Another value closed the first, though nobody was asked whether it holds no more."""
    for texts in [[first, then]] if in_one else [[first], [then]]:
        memory.add([user(text) for text in texts], user_id="alice", graph=True)
        clock.forward(days=1)
    assert memory.reviews() == []
    assert [kind for kind, _ in edges(memory)] == [relationship] * 2


def test_what_was_added_by_hand_is_closed_by_hand(memory: AgentMemory) -> None:
    memory.graph.add("I", "lives_in", "Oslo", user_id="alice")
    memory.add([user("I live in Rome.")], user_id="alice", graph=True)
    assert edges(memory) == {("lives_in", "Oslo"), ("lives_in", "Rome")}


def test_all_that_one_fact_contradicts_is_closed(memory: AgentMemory, clock: Clock) -> None:
    memory.add([user("I live in Oslo.")], user_id="alice", graph=True)
    clock.forward(days=1)
    texts = ("I live in Bergen.", "I live in Rome, not Oslo.")
    memory.add([user(text) for text in texts], user_id="alice", graph=True)
    assert edges(memory) == {("lives_in", "Rome")}


def test_a_name_that_means_the_user_is_not_closed_as_unsaid(memory: AgentMemory) -> None:
    """What the changed memory says now was closed as what it says no more."""
    for place in ("Oslo", "Rome"):
        said = user(f"I live in {place}.", name="Alice")
        memory.add([said], user_id="alice", graph=True)
        assert edges(memory) == {("lives_in", place)}


def test_a_search_finds_what_the_graph_has_beside_what_is_asked(memory: AgentMemory) -> None:
    ingrid = memory.store("My sister is called Ingrid", user_id="alice", session_id="a")
    bakery = memory.store("She found a job at Sol", user_id="alice", session_id="b")
    secret = memory.store("Ingrid of Ben", user_id="ben")
    memory.graph.add("USER_ID", "has_sister", "Ingrid", memory_id=ingrid)
    memory.graph.add("Ingrid", "works_at", "Sol", memory_id=bakery)
    memory.graph.add("Ingrid", "knows", "Zoe", memory_id=secret)
    scope = {"user_id": "alice"}
    assert bakery not in {it.memory.id for it in memory.search("Ingrid", filters=scope)}
    found = memory.search("Ingrid", filters=scope, graph=True)
    assert [(it.memory.id, it.match_type) for it in found] == [
        (ingrid, "scratchpad"),
        (bakery, "graph"),
    ]
    assert found.total_count == 2
    assert [it.memory.id for it in memory.search("Ingrid", 1, filters=scope, graph=True)] == [
        ingrid
    ]
    tagged = memory.search("Ingrid", filters={**scope, "tags": ["none"]}, graph=True)
    assert len(tagged) == 0
    assert len(memory.search("nobody ever", filters=scope, graph=True)) == 0
    with pytest.raises(ValidationError, match="graph"):
        memory.search("Ingrid", graph=True, as_of="2026-01-01")


BAD: dict[str, Answer] = {
    "no JSON": "I would rather not.",
    "cut off": '{"facts": [{"text": "Alice li',
    "a list": "[]",
    "wrong types": {"facts": [{"text": 7, "sources": "x"}]},
    "empty": "",
    "another shape": {"memories": []},
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_cannot_be_used_loses_nothing_and_is_told(
    memory: AgentMemory, name: str
) -> None:
    model = Scripted(*[BAD[name]] * 3)
    answer = memory.add([user("My sister's name is Ingrid.")], user_id="alice", llm=model)
    assert any("Ingrid" in text for text in contents(memory))
    assert answer.metadata.problems


@pytest.mark.parametrize("name", BAD)
def test_a_decision_that_cannot_be_used_adds_the_facts(memory: AgentMemory, name: str) -> None:
    memory.store(PASTA, user_id="alice")
    model = Scripted(facts(BOTH), *[BAD[name]] * 3)
    answer = memory.add([user("I love pasta and pizza")], user_id="alice", llm=model)
    assert contents(memory) == {PASTA, BOTH}
    assert answer.metadata.problems


def test_an_invented_id_touches_no_memory(memory: AgentMemory) -> None:
    memory_id = memory.store(PASTA, user_id="alice")
    for number in ("7", memory_id, "-1", "mem-000000000000"):
        model = Scripted(facts(BOTH), *[decisions(operation("DELETE", PASTA, number=number))] * 3)
        memory.add([user("I love pasta and pizza")], user_id="alice", llm=model)
        assert PASTA in contents(memory)
    assert BOTH in contents(memory)


def test_another_users_memories_are_not_even_shown_to_the_model(memory: AgentMemory) -> None:
    memory.store("Ben likes pasta with walnuts", user_id="ben")
    memory.store("Everybody likes pasta")
    mine = memory.store("Alice likes pasta a lot", user_id="alice")
    model = Scripted(facts(BOTH), decisions(operation("UPDATE", BOTH, number="0")))
    memory.add([user("I love pasta and pizza")], user_id="alice", llm=model)
    assert "walnuts" not in model.asked[1]
    assert "Everybody" not in model.asked[1]
    changed = memory.get(mine)
    assert changed is not None
    assert changed.content == BOTH


def test_what_is_not_sure_is_asked_and_not_deleted(memory: AgentMemory) -> None:
    memory_id = memory.store(PASTA, user_id="alice")
    unsure = operation("DELETE", PASTA, number="0", confidence=0.3)
    model = Scripted(facts("Forget about the pasta"), decisions(unsure))
    answer = memory.add([user("Forget about the pasta")], user_id="alice", llm=model)
    assert memory.get(memory_id) is not None
    (review,) = memory.reviews()
    assert answer.metadata.reviews == [review.review_id]
    assert (review.memory_id, review.confidence) == (memory_id, 0.3)


def test_a_session_that_may_not_delete_only_asks(memory: AgentMemory) -> None:
    memory_id = memory.store(PASTA, user_id="alice")
    context = {"user_id": "alice", "permissions": {"read": True, "write": True, "delete": False}}
    sure = operation("DELETE", PASTA, number="0", confidence=1.0)
    model = Scripted(facts("Forget about the pasta"), decisions(sure))
    memory.session(context).add([user("Forget about the pasta")], llm=model)
    assert memory.get(memory_id) is not None
    assert [it.memory_id for it in memory.reviews()] == [memory_id]


def test_a_dry_run_tells_and_changes_nothing(memory: AgentMemory) -> None:
    memory.store(PASTA, user_id="alice")
    before = memory.history()
    model = Scripted(facts(BOTH), decisions(operation("UPDATE", BOTH, number="0")))
    words: dict[str, Any] = {"user_id": "alice", "llm": model, "dry_run": True}
    answer = memory.add([user("I love pasta and pizza")], **words)
    assert [(it.event, it.memory) for it in answer.data] == [("UPDATE", BOTH)]
    assert memory.history() == before
    assert contents(memory) == {PASTA}


def test_a_dry_run_gives_what_is_new_no_id(memory: AgentMemory) -> None:
    memory.add("I live in Oslo.", user_id="alice")
    foreseen = memory.add("I moved to Bergen.", user_id="alice", dry_run=True)
    assert [(it.event, it.id) for it in foreseen.data] == [("ADD", None)]
    assert foreseen.metadata.problems
    said = [user("The deadline is Monday."), user("The deadline is now Friday.")]
    (problem,) = memory.add(said, user_id="alice", dry_run=True).metadata.problems or []
    assert "UPDATE of 'The deadline is Monday.' would be put under review" in problem
    said = [user("I live in Berlin."), user("Forget that I live in Berlin.")]
    words: dict[str, Any] = {"may_delete": True, "min_confidence": 0.3, "dry_run": True}
    foreseen = memory.add(said, user_id="alice", **words)
    assert [(it.event, it.id) for it in foreseen.data] == [("ADD", None), ("DELETE", None)]


def test_a_model_that_fails_leaves_it_to_rules(memory: AgentMemory) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("out of order")

    answer = memory.add([user("I live in Oslo with my dog Rex.")], user_id="alice", llm=broken)
    assert any("Rex" in text for text in contents(memory))
    assert any("out of order" in problem for problem in answer.metadata.problems or [])


def test_the_prompts_can_be_replaced(memory: AgentMemory) -> None:
    memory.store(PASTA, user_id="alice")
    model = Scripted(facts(BOTH), decisions(operation("NONE", PASTA, number="0")))
    memory.add(
        [user("I love pasta and pizza")],
        user_id="alice",
        llm=model,
        extraction_prompt="Only tastes in food matter.",
        update_prompt="Be slow to change anything.",
    )
    assert "Only tastes in food matter." in model.asked[0]
    assert "Be slow to change anything." in model.asked[1]


def test_a_secret_in_a_fact_is_masked_where_the_file_says_so(memory: AgentMemory) -> None:
    memory.configure(on_secret="mask")
    key = "AKIA" + "IOSFODNN7EXAMPL3"
    memory.add([user("x")], user_id="alice", llm=Scripted(facts(f"The key is {key}")))
    assert all(key not in text for text in contents(memory))


FULL = {"limits": {"learning": {"max_memories": 1, "enforcement": "hard"}}}


def test_what_a_limit_kept_out_is_no_success(memory: AgentMemory) -> None:
    memory.configure(retention=FULL)
    for adder in (memory, memory.session({"user_id": "ben"})):
        assert adder.add([user("Thanks, bye!")]).success, "there was nothing to store"
    assert memory.add([user("The tea is in the cupboard.")], user_id="alice").success
    for user_id, llm in (("alice", None), ("ben", Scripted(facts("Ben has a cat")))):
        answer = memory.add([user("The cat is in the garden.")], user_id=user_id, llm=llm)
        assert (answer.success, answer.data) == (False, [])
        assert "was not stored" in (answer.metadata.problems or [""])[0]
    assert memory.add([user("The tea is in the cupboard.")], user_id="alice").success, "it is known"
    assert contents(memory) == {"The tea is in the cupboard."}


def test_a_refused_fact_beside_a_stored_one_is_a_success(memory: AgentMemory) -> None:
    memory.configure(on_secret="refuse")
    key = "My key is AKIAIOSFODNN7EXAMPL3."
    said = [user("My cat is called Tom."), user(key)]
    answer = memory.add(said, user_id="alice")
    assert answer.success
    assert answer.metadata.problems
    for dry_run in (True, False):
        assert not memory.add([user(key)], user_id="alice", dry_run=dry_run).success


def test_a_secret_that_was_stored_is_told_with_its_memory(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPL3"
    said = [user("My cat is called Tom."), user(f"My key is {key}.")]
    foreseen = memory.add(said, user_id="alice", dry_run=True)
    assert foreseen.metadata.secrets
    assert not caplog.text, "nothing was stored"
    answer = memory.add(said, user_id="alice")
    (found,) = answer.metadata.secrets or []
    (stored,) = (made for made in answer.data if "key" in made.memory)
    assert (found.memory_id, found.kinds) == (stored.id, ["AWS access key"])
    assert f"memory {stored.id} seems to contain a secret" in caplog.text
    caplog.clear()
    assert memory.add(said, user_id="alice").metadata.secrets is None
    assert not caplog.text, "it is known: nothing was stored"
    model = Scripted(
        facts(f"Tom's key is {key}"),
        decisions(operation("UPDATE", f"Tom's key is {key}", number="0")),
    )
    changed = memory.add("x", user_id="alice", llm=model)
    assert [each.memory_id for each in changed.metadata.secrets or ()] == [changed.data[0].id]


def test_a_secret_that_was_left_out_with_a_rejected_value_is_not_told_as_stored(
    memory: AgentMemory,
) -> None:
    memory.reject("Paris")
    said = "My password is hunter2Xq9!zz in Paris and I work at Acme."
    answer = memory.add([{"role": "user", "content": said}], user_id="u")
    assert [it.content for it in memory.list_recent()] == ["I work at Acme."]
    assert answer.metadata.secrets is None
    assert memory.secrets() == []


def test_a_secret_keeps_out_its_sentence_and_not_its_neighbours(memory: AgentMemory) -> None:
    memory.configure(on_secret="refuse")
    key = "AKIA" + "IOSFODNN7EXAMPL3"
    told = f"My cat is called Tom. My key is {key}. My dog is called Rex."
    answer = memory.add(told, user_id="alice")
    assert contents(memory) == {"My cat is called Tom.", "My dog is called Rex."}
    assert answer.metadata.problems
    assert key not in repr(answer)


KEY = "AKIA" + "IOSFODNN7EXAMPL3"


@pytest.mark.parametrize("rejected", ["8841", None])
@pytest.mark.parametrize("by_model", [False, True])
def test_an_update_keeps_what_stands_beside_what_may_not_be_stored(
    memory: AgentMemory, rejected: str | None, by_model: bool
) -> None:
    said = f"My birthday is March 4, and my PIN is {rejected}."
    if rejected:
        memory.reject(rejected)
    else:
        memory.configure(on_secret="refuse")
        said = f"My birthday is March 4. My key is {KEY}."
    old = memory.add("My birthday is March 3.", user_id="u").data[0].id
    update = decisions(operation("UPDATE", said, number="0"))
    answer = memory.add(said, user_id="u", llm=Scripted(facts(said), update) if by_model else None)
    assert {text.rstrip(".") for text in contents(memory)} - {"My birthday is March 3"} == {
        "My birthday is March 4"
    }
    assert answer.metadata.problems
    assert (rejected or KEY) not in repr((answer.data, answer.metadata.problems))
    if "My birthday is March 3." in contents(memory):
        assert [review.memory_id for review in memory.reviews()] == [old]


# Without one ----------------------------------------------------------------------------------


def test_by_rules_statements_are_kept_and_chatter_is_not(memory: AgentMemory) -> None:
    answer = memory.add(
        [
            user("Hi! How are you?", name="Alice"),
            {"role": "assistant", "content": "Fine, thanks! What is new?"},
            user("I moved to Lisbon in March and work at a bakery now.", name="Alice"),
            user("Thanks, bye!", name="Alice"),
        ],
        user_id="alice",
    )
    assert answer.metadata.decided_by == "rules"
    (kept,) = contents(memory)
    assert "Lisbon" in kept
    again = memory.add(
        [user("I moved to Lisbon in March and work at a bakery now.", name="Alice")],
        user_id="alice",
    )
    assert again.data == []
    assert memory.count() == 1


def test_as_they_are_all_messages_but_the_systems_are_stored(memory: AgentMemory) -> None:
    messages = [
        {"role": "system", "content": "You are helpful."},
        user("Hi", name="Alice"),
        {"role": "assistant", "content": "Hi"},
        user(
            [
                {"type": "text", "text": "Look"},
                {"type": "image", "image_url": {"url": "https://x.test/a.jpg"}},
            ]
        ),
        user("  "),
    ]
    answer = memory.add(messages, user_id="alice", infer=False)
    assert [it.memory for it in answer.data] == ["Hi", "Hi", "Look\n[image: https://x.test/a.jpg]"]
    roles = [it.metadata["role"] for it in reversed(memory.list_recent())]
    assert roles == ["user", "assistant", "user"]
    assert memory.undo().verb == "add"
    assert memory.count() == 0


def test_a_message_that_is_too_long_for_a_memory_is_stored_in_parts(memory: AgentMemory) -> None:
    sentences = [f"The crate number {number} holds tea." for number in range(600)]
    answer = memory.add([user(" ".join(sentences)), user("Hi")], user_id="alice", infer=False)
    *parts, last = [entry.memory for entry in answer.data]
    assert (" ".join(parts), last) == (" ".join(sentences), "Hi")
    assert len(parts) == 2
    memory.undo()
    assert memory.count() == 0


# What is given --------------------------------------------------------------------------------


def test_a_text_is_what_the_user_says(memory: AgentMemory) -> None:
    memory.add("My favourite tree is the walnut.", user_id="alice")
    assert any("walnut" in text for text in contents(memory))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        {},
        7,
        None,
        [7],
        [{"role": "robot", "content": "x"}],
        [{"content": "x"}],
        [{"role": "user"}],
    ],
    ids=repr,
)
def test_what_is_no_conversation_is_refused(memory: AgentMemory, messages: Any) -> None:
    with pytest.raises(ValidationError, match=r"messages|role|content"):
        memory.add(messages)
    assert memory.count() == 0


def call(**words: Any) -> Callable[[AgentMemory], object]:
    return lambda memory: memory.add([user("I like tea")], **words)


WRONG: dict[str, tuple[Callable[[AgentMemory], object], type[Exception], str]] = {
    "user": (call(user_id="al\nice"), InvalidSession, "user_id"),
    "run": (call(user_id="alice", run_id="a" * 129), InvalidSession, "run_id"),
    "agent": (call(agent_id="carol"), InvalidSession, "carol"),
    "confidence": (call(min_confidence=2), ValidationError, "min_confidence"),
    "reserved": (call(metadata={"user_id": "eve"}), ValidationError, "user_id"),
    "long": (call(metadata={"note": "x" * 1001}), ValidationError, "metadata"),
    "metadata": (call(metadata=[1]), ValidationError, "metadata"),
    "tags": (call(metadata={"tags": "food"}), ValidationError, "tags"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_and_nothing_is_stored(memory: AgentMemory, name: str) -> None:
    verb, kind, said = WRONG[name]
    with pytest.raises(kind, match=said):
        verb(memory)
    assert memory.count() == 0


# All at once ----------------------------------------------------------------------------------


def test_a_scope_is_deleted_whole_and_comes_back(memory: AgentMemory) -> None:
    kept = memory.store("of Ben", user_id="ben")
    for number in range(3):
        memory.store(f"of Alice {number}", user_id="alice")
    memory.archive(memory.list_recent(1)[0].id)
    assert len(memory.delete_all(user_id="alice")) == 3
    assert [it.id for it in memory.get_all()] == [kept]
    memory.undo()
    assert len(memory.get_all(user_id="alice", filters={"archived": None})) == 3
    with pytest.raises(ValidationError, match="reset"):
        memory.delete_all()


def test_all_are_all_however_many(memory: AgentMemory) -> None:
    """It returned the newest 100, and nothing showed that there are more."""
    ids = memory.store_many(
        [{"content": f"Fact {number}", "user_id": "ann"} for number in range(120)]
    )
    assert [it.id for it in memory.get_all()] == ids[::-1]
    assert [it.id for it in memory.get_all(limit=2, offset=1)] == ids[-2:-4:-1]
    session = memory.session({"user_id": "ann"})
    assert [it.id for it in session.get_all()] == ids[::-1]
    assert [it.id for it in session.get_all(limit=2, offset=118)] == ids[1::-1]
    with pytest.raises(ValidationError, match="limit"):
        memory.get_all(limit=0)


def test_a_reset_asks_for_the_name_and_can_be_undone(memory: AgentMemory) -> None:
    memory.store("one")
    memory.archive(memory.store("two"))
    for wrong in ("", "alice", None):
        with pytest.raises(ValidationError, match="bob"):
            memory.reset(confirm=wrong)  # type: ignore[arg-type]
    assert memory.reset(confirm="bob") == 2
    assert memory.count() == 0
    assert [it.reason for it in memory.backups()] == ["reset"]
    memory.undo()
    assert memory.count(filters={"archived": None}) == 2
    assert memory.check().problems == []


def test_filters_that_leave_nothing_out_are_no_scope(memory: AgentMemory) -> None:
    memory.store("one", user_id="alice")
    memory.store("two", user_id="ben")
    wide: dict[str, Any]
    for wide in ({"custom_filters": {"AND": []}}, {"agent_id": "bob"}, {"min_access_count": 0}):
        with pytest.raises(ValidationError, match="reset"):
            memory.delete_all(filters=wide)
    assert memory.count() == 2


def test_what_was_said_before_does_not_correct_what_was_said_later(memory: AgentMemory) -> None:
    for text, year in (("I live in Lisbon.", 2025), ("I live in Berlin.", 2019)):
        said = user(text, timestamp=datetime(year, 6, 1, tzinfo=UTC))
        memory.add([said], user_id="alice", graph=True)
    assert {it.content: it.timestamp.year for it in memory.list_recent()} == {
        "I live in Lisbon.": 2025,
        "I live in Berlin.": 2019,
    }
    assert edges(memory) == {("lives_in", "Lisbon")}


def test_nobodys_conversation_shows_nobodys_graph(memory: AgentMemory) -> None:
    memory.add("I work at Walnutcorp.", user_id="ben", graph=True)
    model = Scripted(facts("The office is in Oslo"), {"updates": []})
    memory.add("The office is in Oslo.", llm=model, graph=True)
    assert "Walnutcorp" not in "".join(model.asked)


def test_a_read_only_memory_asks_no_model(memory: AgentMemory) -> None:
    model = Scripted(facts("x"))
    with (
        AgentMemory.open(memory.path, read_only=True, embedder=None) as reader,
        pytest.raises(StorageReadOnly),
    ):
        reader.add("The office is in Oslo.", llm=model)
    assert model.asked == []


# Document C, 15 -------------------------------------------------------------------------------


def test_the_documents_requests_are_answered_in_its_shape(root: Path) -> None:
    request = AddMemoryRequest.model_validate(
        {
            "messages": [user("I love Italian food")],
            "user_id": "user_123",
            "agent_id": "assistant_001",
            "run_id": "conversation_456",
            "metadata": {"category": "preferences", "tags": ["food", "cuisine"]},
        }
    )
    with AgentMemory("assistant_001", root=root, embedder=None) as memory:
        answer = memory.session(request.session()).add(
            request.messages,
            metadata=request.metadata,
            llm=Scripted(facts("User loves Italian food")),
        )
        told = answer.model_dump(mode="json")
        assert told.keys() == {"success", "data", "metadata"}
        assert [one.keys() for one in told["data"]] == [{"id", "event", "memory"}]
        known = {"timestamp", "processing_time_ms", "facts_extracted", "operations_performed"}
        assert told["metadata"].keys() == known | {"decided_by"}
        asked = SearchMemoryRequest.model_validate(
            {
                "query": "What food does the user like? Italian?",
                "user_id": "user_123",
                "limit": 5,
                "filters": {"category": "preferences"},
            }
        )
        session = memory.session(asked.session())
        found = session.search(asked.query, asked.limit, filters=asked.filters)
        response = SearchMemoryResponse.from_results(found, now=datetime.now(UTC))
        told = response.model_dump(mode="json")
    assert told.keys() == {"success", "data", "metadata"}
    assert told["data"]["total_count"] == 1
    (record,) = told["data"]["results"]
    assert (record["content"], record["metadata"]["category"]) == (
        "User loves Italian food",
        "preferences",
    )
    assert told["metadata"]["search_metadata"].keys() == {
        "embedding_time_ms",
        "vector_search_time_ms",
    }


# A provider that fails ------------------------------------------------------------------------

TIMEOUT, RETRIES, HANGS = 0.6, 2, 30.0


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("graph", [False, True])
def test_a_provider_that_hangs_is_waited_for_once(
    memory: AgentMemory, provider: str, graph: bool
) -> None:
    pytest.importorskip(provider)  # before the clock runs: it takes a second
    memory.store("I live in Lisbon.", user_id="ann")
    with ChatServer(Said(delay_seconds=HANGS)) as server:
        settings = {
            "provider": provider, "model": "m", "api_key": "k", "base_url": server.url,
            "timeout": TIMEOUT, "max_retries": RETRIES,
        }  # fmt: skip
        started = time.monotonic()
        answer = memory.add(
            "I have a severe peanut allergy.\nMy cat is called Tom.",
            user_id="ann",
            llm=settings,
            graph=graph,
        )
        took = time.monotonic() - started
        assert len(server.requests) <= RETRIES + 1
    assert took < HANGS
    said = contents(memory)
    assert "I have a severe peanut allergy." in said
    assert "My cat is called Tom." in said
    assert any("did not answer" in problem for problem in answer.metadata.problems or ())


def test_a_provider_that_fails_filters_nothing(memory: AgentMemory) -> None:
    def model(*_: Any) -> str:
        raise TimeoutError("slow")

    said = ["Hm, the usual.", "Peanuts, severe.", "Thanks!"]
    answer = memory.add([user(text) for text in said], user_id="ann", llm=model)
    assert sorted(contents(memory)) == sorted(said)
    assert answer.metadata.decided_by == "raw"


# What an answer leaves --------------------------------------------------------------------------


def moved(text: str, **more: Any) -> dict[str, Any]:
    return decisions(operation("UPDATE", text, number="0", confidence=0.9, **more))


def test_an_update_makes_a_memory_as_new_as_what_it_says(memory: AgentMemory) -> None:
    """What was said in March was ranked and filtered as if it had been said in January."""
    memory_id = memory.store("User lives in Oslo", user_id="ann", timestamp="2026-01-01")
    said = [("User lives in Rome", "2026-03-01"), ("User lives in Bonn", "2026-02-01")]
    for text, day in said:
        model = Scripted(facts(text), moved(text))
        message = {**user(text), "timestamp": day}
        memory.add([message], user_id="ann", llm=model)
    found = memory.get(memory_id)
    assert found is not None
    assert found.content == "User lives in Rome"  # what was said before does not correct it
    assert found.timestamp == datetime(2026, 3, 1, tzinfo=UTC)
    hits = memory.search("Where does she live? Rome?", since="2026-02-15")
    assert [hit.memory.id for hit in hits] == [memory_id]
    memory.undo(memory.history(memory_id)[0].change_id)
    found = memory.get(memory_id)
    assert found is not None
    assert (found.content, found.timestamp) == (
        "User lives in Oslo",
        datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_undo_takes_back_an_add_that_only_asked(memory: AgentMemory) -> None:
    before = memory.store("User plays the harp", user_id="ann")
    memory_id = memory.store("User likes pasta", user_id="ann")
    step = Decision("DELETE", memory_id=memory_id, seen="User likes pasta", in_review=True)
    memory._apply_decisions([step], keep_copies=False)
    assert [review.memory_id for review in memory.reviews()] == [memory_id]
    assert memory.undo().verb == "add"
    assert memory.reviews() == []
    assert memory.get(memory_id) is not None
    with pytest.raises(ValidationError, match="nothing left to undo"):
        memory.undo()
    assert memory.get(before) is not None
