"""500 wild answers: no fact is lost, no other memory is touched, and every failure is told."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from decision_cases import ALL_ADDED, BANK, FACTS, HOME, PASTA, RELATED, op, shortly

from agent_memory.extraction.decisions import decide
from agent_memory.extraction.facts import extract
from agent_memory.extraction.llm.registry import FunctionModel
from agent_memory.extraction.types import OperationPlan
from agent_memory.models.conversation import Message, MessageRole, OperationEvent
from agent_memory.text.stems import stems

_WORDS = (
    "pasta pizza Paris Lisbon cats bank two User likes lives forget 我喜欢猫 \U0001f600 <b> NULL"
).split()


class Wild:
    """Makes answers that are nearly right, wrong, or nothing at all; a seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> Any:
        words = " ".join(self.random.choices(_WORDS, k=self.random.randint(0, 8)))
        odd = [None, 7, "", " ", "\x00", "\ud800", "x" * 10_001, ["a"], {"b": 1}]
        return self.random.choice(odd) if self.random.random() < 0.15 else words

    def number(self) -> Any:
        likely = ["0", "1", "2", "3", "99", "-1", 0, 1, None]
        return self.random.choice([*likely, "", "mem-x", True, PASTA.id, [], 1e300])

    def operation(self) -> Any:
        written: dict[str, Any] = {
            "event": self.random.choice(
                ["ADD", "UPDATE", "DELETE", "NONE", "delete", "DROP", None]
            ),
            "id": self.number(),
            "text": self.text(),
            "facts": self.random.choice([[0], [1], [2], [0, 1, 2], [9], [], None, "0", [None]]),
            "confidence": self.random.choice([0, 0.5, 1, -1, 2, "high", None, float("inf")]),
            "reasoning": self.text(),
            "sources": [self.random.randint(-3, 5)],
        }
        for name in self.random.sample(list(written), self.random.randint(0, 4)):
            del written[name]
        return self.random.choice([written] * 12 + [None, "ADD", 5, [], [written]])

    def answer(self) -> str:
        count = self.random.randint(0, 5)
        items = [self.operation() for _ in range(count)]
        if self.random.random() < 0.6:  # nearly right
            items = [
                op(
                    self.random.choice(["ADD", "UPDATE", "DELETE", "NONE"]),
                    " ".join(self.random.choices(_WORDS, k=5)),
                    self.random.choice([[0], [1], [2], [0, 1], [0, 1, 2], [7], [], None]),
                    self.random.choice(["0", "1", "2", "3", "99", 0, 1, None]),
                )
                for _ in range(count)
            ]
        key = self.random.choice(["memory", "memory", "memory", "facts", "memories", ""])
        return self.broken(json.dumps({key: items}))

    def broken(self, text: str) -> str:
        place = self.random.randint(0, len(text))
        return self.random.choice(
            [
                *[text] * 8,
                f"```json\n{text}\n```",
                f"Sure: {text} done",
                text.replace("}]", "},]"),
                text[:place],
                text[:place] + self.random.choice('"{}[],:\\ x') + text[place:],
                f"[{text}]",
                text + text,
                "",
                "null",
                "I will not.",
            ]
        )


TOLD = (stems("pasta pizza"), stems("Lisbon Paris"), stems("two cats"))
"""Of each fact, the words that must not be lost."""


def holds(found: OperationPlan, place: int) -> bool:
    """Return whether what an operation leaves behind has to do with a fact, or was asked away."""
    pairs = zip(found.operations, found.covers, strict=True)
    about = [it for it, covers in pairs if place in covers]
    return any(
        it.event is OperationEvent.DELETE or not TOLD[place].isdisjoint(stems(it.text))
        for it in about
    )


@pytest.mark.parametrize("seed", range(10))
def test_fifty_wild_answers_lose_no_fact_and_touch_no_other_memory(seed: int) -> None:
    wild = Wild(seed)
    given = {memory.id: memory for memory in (PASTA, HOME, BANK)}
    outcomes = set()
    for _ in range(50):
        answers: list[str] = []

        def model(*_: Any, answers: list[str] = answers) -> str:
            answers.append(wild.answer())
            return answers[-1]

        found = decide(FACTS, RELATED, FunctionModel(model))
        for place in range(len(FACTS)):
            assert holds(found, place), answers
        touched = [it.id for it in found.operations if it.event in ("UPDATE", "DELETE")]
        assert len(touched) == len(set(touched)), answers
        assert {it.id for it in found.operations} <= {*given, None}, answers
        for it in found.operations:
            assert it.event is not OperationEvent.UPDATE or it.old_memory == given[it.id or ""].text
            # Nothing goes unless what is said instead is there.
            assert it.event is not OperationEvent.DELETE or any(
                other.event in ("ADD", "UPDATE") for other in found.operations
            ), answers
        refusals = [it for it in found.problems if "attempt" in it]
        assert len(refusals) == len(answers) - (found.by == "model"), answers
        if found.by == "raw":
            assert shortly(found) == ALL_ADDED
        found.to_model()
        outcomes.add(found.by)
    assert outcomes == {"model", "raw"}


@pytest.mark.parametrize("seed", range(5))
def test_fifty_wild_answers_to_the_question_for_facts(seed: int) -> None:
    wild = Wild(seed)
    said = ["I like pasta.", "I live in Paris.", "I have two cats."]
    chat = [Message(role=MessageRole.USER, content=" ".join(said))]
    for _ in range(50):
        answers: list[str] = []

        def model(*_: Any, answers: list[str] = answers) -> str:
            answers.append(wild.answer().replace('"memory"', '"facts"'))
            return answers[-1]

        extraction = extract(chat, FunctionModel(model))
        assert (extraction.by == "raw") == (len(extraction.problems) > 3), answers
        if extraction.by == "raw":
            assert [fact.text for fact in extraction.facts] == said
        assert all(
            0 < len(fact.text) <= 10_000 and fact.sources == (0,) for fact in extraction.facts
        )
        extraction.to_model()
