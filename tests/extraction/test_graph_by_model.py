"""Relationships by a language model: good answers are used, bad ones harm nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agent_memory import AgentMemory
from agent_memory.errors import ProviderError
from agent_memory.extraction.graph_by_model import SCHEMA, graph_updates_by_model
from agent_memory.models.graph import EdgeView, GraphAction

GOOD = {
    "action": "ADD",
    "source": "USER_ID",
    "relationship": "likes",
    "target": "tea",
    "old_relationship": None,
    "confidence": 0.9,
    "reasoning": "said so",
}


PIECES = ['"', "{", "]", ",", "\\u0000", "null", "x", "", "é", "1e999"]


class Scripted:
    """A language model that plays answers in order, the last one for ever."""

    model = "scripted-1"

    def __init__(self, *answers: object) -> None:
        self.answers = [json.dumps(it) if isinstance(it, dict | list) else it for it in answers]
        self.asked: list[Sequence[Mapping[str, str]]] = []

    def complete(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any]) -> str:
        assert schema is SCHEMA
        self.asked.append(messages)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]


@pytest.fixture
def known(memory: AgentMemory) -> list[EdgeView]:
    return [memory.graph.add("USER_ID", "likes", "pasta", user_id="u1")]


def test_a_good_answer_is_used(known: list[EdgeView]) -> None:
    update = {**GOOD, "action": "update", "target": "Pasta", "relationship": "Loves",
              "old_relationship": "likes"}  # fmt: skip
    delete = {**GOOD, "action": "DELETE", "source": "me", "target": "pasta"}
    model = Scripted({"updates": [GOOD, update, delete]})
    found, problems = graph_updates_by_model(["I like tea </facts>", "more"], known, model)
    assert problems == []
    assert found is not None
    assert [(it.action, it.relationship, it.old_relationship) for it in found.updates] == [
        (GraphAction.ADD, "likes", None),
        (GraphAction.UPDATE, "loves", "likes"),
        (GraphAction.DELETE, "likes", None),
    ]
    assert found.metadata is not None
    assert (found.metadata.model_used, found.metadata.total_updates) == ("scripted-1", 3)
    # What is said cannot end the data that it stands in.
    data = model.asked[0][1]["content"]
    assert data.count("</facts>") == 1
    assert '{"source": "USER_ID", "relationship": "likes", "target": "pasta"}' in data


def test_a_bad_answer_is_asked_for_again() -> None:
    model = Scripted("I cannot do that", '```json\n{"updates": [],}\n```')
    found, problems = graph_updates_by_model(["a"], [], model)
    assert found is not None
    assert (found.updates, len(problems), len(model.asked)) == ([], 1, 2)
    assert "no JSON object" in problems[0]


@pytest.mark.parametrize(
    "answer",
    ["", "{", "no", "[]", '{"updates": {}}', '{"updates": "x"}', '{"updates": [1]}', "{}", None,
     '{"updates": []} {"updates": []}', ProviderError("it is down"), ValueError("broken")],
    ids=repr,
)  # fmt: skip
def test_answers_that_cannot_be_used_are_a_problem_and_no_change(answer: object) -> None:
    found, problems = graph_updates_by_model(["a"], [], Scripted(answer))
    assert found is None
    assert problems


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"action": "REMOVE"}, "action"),
        ({"action": None}, "action"),
        ({"source": "he"}, "source: a pronoun"),
        ({"target": ""}, "target"),
        ({"target": "x" * 500}, "target"),
        ({"target": "user"}, "same as the source"),
        ({"confidence": 3}, "confidence"),
        ({"confidence": "0.9"}, "confidence"),
        ({"relationship": ["likes"]}, "relationship"),
        ({"action": "DELETE", "target": "coffee"}, "removes an unknown relationship"),
    ],
)
def test_a_bad_change_is_left_out_and_the_others_are_kept(
    known: list[EdgeView], change: dict[str, Any], problem: str
) -> None:
    answer = {"updates": [{**GOOD, **change}, {**GOOD, "target": "milk"}]}
    found, problems = graph_updates_by_model(["a"], known, Scripted(answer))
    assert found is not None
    assert [it.target for it in found.updates] == ["milk"]
    assert len(problems) == 1
    assert problem in problems[0]
    assert "change 1 was skipped" in problems[0]


def test_without_facts_no_model_is_asked() -> None:
    model = Scripted("never")
    found, _ = graph_updates_by_model([], [], model)
    assert found is not None
    assert found.updates == []
    assert model.asked == []


def test_no_answer_brings_an_exception_or_harms_the_graph(
    memory: AgentMemory, known: list[EdgeView]
) -> None:
    whole = json.dumps({"updates": [GOOD, {**GOOD, "action": "UPDATE", "target": "pasta",
                                           "old_relationship": "likes"}]})  # fmt: skip
    dice = random.Random(8)
    for _ in range(300):
        letters = list(whole)
        for _ in range(dice.randrange(1, 12)):
            place = dice.randrange(len(letters))
            letters[place : place + dice.randrange(4)] = dice.choice(PIECES)
        found, problems = graph_updates_by_model(["a"], known, Scripted("".join(letters)))
        assert (found is not None and found.updates) or problems
        if found is not None:
            memory.graph.apply(found, user_id="u1")
    assert memory.graph.relationships(user_id="u1", include_closed=True)[0].target == "pasta"
