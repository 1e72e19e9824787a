"""Two conversations of one user at the same time: nothing is overwritten, contradictions are asked.

Two threads or processes call the clock in lockstep until one of them is done: it is called when the
memories were read and when a transaction begins, so neither can know what the other says.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AddMemoryResponse, AgentMemory, Review
from agent_memory.services.newcomers import _READ

ROUNDS = 4
_WAITS = 2.0
"""Seconds: if one calls the clock inside its transaction, the other waits for that to end."""


class Lockstep:
    """A clock at which a thread waits for the other, while it has a barrier."""

    def __init__(self) -> None:
        self.own = threading.local()

    def __call__(self) -> datetime:
        if barrier := getattr(self.own, "barrier", None):
            with suppress(threading.BrokenBarrierError):
                barrier.wait(_WAITS)
        return datetime.now(UTC)


def opened(root: Path) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=None, clock=Lockstep())


def add_in_rounds(
    memory: AgentMemory, barriers: list[Any], text: str, user: str, model: Any = None
) -> list[AddMemoryResponse]:
    """Add a text for another user in each round."""
    clock: Any = memory._clock
    answers = []
    for number, barrier in enumerate(barriers):
        clock.own.barrier = barrier
        answers.append(memory.add(text, user_id=f"{user}{number}", llm=model))
        barrier.abort()
    return answers


def in_threads(
    root: Path, *texts: str, users: tuple[str, str] = ("ann", "ann"), model: Any = None
) -> list[AddMemoryResponse]:
    """Add two texts in two threads, which share one memory."""
    barriers = [threading.Barrier(2) for _ in range(ROUNDS)]
    with opened(root) as memory, ThreadPoolExecutor(2) as threads:
        answers = [
            threads.submit(add_in_rounds, memory, barriers, text, user, model)
            for text, user in zip(texts, users, strict=True)
        ]
        return [answer for each in answers for answer in each.result()]


def in_processes(root: Path, *texts: str) -> None:
    """Add two texts in two processes."""
    context = multiprocessing.get_context("fork")
    barriers = [context.Barrier(2) for _ in range(ROUNDS)]

    def work(text: str) -> None:
        with opened(root) as memory:
            add_in_rounds(memory, barriers, text, "ann")

    processes = [context.Process(target=work, args=(text,)) for text in texts]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


def texts_and_reviews(memory: AgentMemory, user: str) -> tuple[list[str], list[Review]]:
    texts = sorted(each.content for each in memory.get_all(user_id=user))
    return texts, [review for review in memory.reviews() if review.user_id == user]


CONTRADICTIONS = [
    ("", "My birthday is May 5.", "My birthday is May 6."),
    ("I am 34 years old.", "I am 35 years old.", "I am 36 years old."),
    ("I live in Oslo.", "I moved to Bergen.", "I moved to Rome."),
    ("I like tea.", "I work at Siemens.", "I work at Bosch now."),
    ("", "I smoke.", "I quit smoking."),
]


@pytest.mark.parametrize("add", [in_threads, in_processes])
@pytest.mark.parametrize(("known", "first", "second"), CONTRADICTIONS)
def test_what_two_say_at_once_is_kept_and_asked(
    root: Path, add: Any, known: str, first: str, second: str
) -> None:
    with opened(root) as memory:
        for number in range(ROUNDS):
            if known:
                memory.add(known, user_id=f"ann{number}")
    add(root, first, second)
    with opened(root) as memory:
        for number in range(ROUNDS):
            texts, reviews = texts_and_reviews(memory, f"ann{number}")
            assert {first, second} <= {*texts}
            ids = {each.content: each.id for each in memory.get_all(user_id=f"ann{number}")}
            asked = [{review.memory_id, review.replaced_by} for review in reviews]
            assert {ids[first], ids[second]} in asked
        assert memory.check().problems == []


@pytest.mark.parametrize("add", [in_threads, in_processes])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I like tea.", "My dog is called Bello."),
        ("My sister lives in Rome.", "My brother lives in Oslo."),
        ("I am allergic to nuts.", "I am allergic to nuts."),
        ("My birthday is May 5.", "My birthday is 5 May 1990."),
    ],
)
def test_nothing_is_asked_of_what_may_both_be_true(
    root: Path, add: Any, first: str, second: str
) -> None:
    add(root, first, second)
    with opened(root) as memory:
        for number in range(ROUNDS):
            texts, reviews = texts_and_reviews(memory, f"ann{number}")
            assert (texts, reviews) == (sorted({first, second}), [])


def test_what_others_say_contradicts_nothing(root: Path) -> None:
    in_threads(root, "My birthday is May 5.", "My birthday is May 6.", users=("ann", "ben"))
    with opened(root) as memory:
        assert memory.count() == 2 * ROUNDS
        assert memory.reviews() == []


def test_what_a_model_decided_stands_and_it_is_not_asked_again(root: Path) -> None:
    calls: list[str] = []

    def model(messages: Any, _schema: Any) -> str:
        said = str(messages)
        calls.append(said)
        day = "5" if "May 5" in said else "6"
        fact = {"text": f"User's birthday is May {day}", "sources": [1], "confidence": 0.9}
        return json.dumps({"facts": [fact | {"about": None}]})

    in_threads(root, "My birthday is May 5.", "My birthday is May 6.", model=model)
    assert len(calls) == 2 * ROUNDS
    with opened(root) as memory:
        for number in range(ROUNDS):
            texts, reviews = texts_and_reviews(memory, f"ann{number}")
            assert texts == ["User's birthday is May 5", "User's birthday is May 6"]
            assert len(reviews) == 1


def test_all_reviews_are_in_the_answer_of_an_add_and_undone_with_it(root: Path) -> None:
    with opened(root) as memory:
        for number in range(ROUNDS):
            memory.add("I live in Oslo.", user_id=f"ann{number}")
    answers = in_threads(root, "I moved to Bergen.", "I moved to Rome.")
    told = [number for answer in answers for number in answer.metadata.reviews or ()]
    with opened(root) as memory:
        assert sorted(told) == sorted(review.review_id for review in memory.reviews())
        assert len(told) == 2 * ROUNDS  # Oslo because of one, and that because of the other
        memory.undo()
        assert len(memory.reviews()) == 2 * ROUNDS - 1


@pytest.mark.parametrize("place", range(1, 6))
def test_what_is_stored_at_any_time_meanwhile_is_asked_about_once(root: Path, place: int) -> None:
    left: list[int] = []

    def clock() -> datetime:
        if left and left.pop() == place:
            other.store("My birthday is May 5.", user_id="ann")
        return datetime.now(UTC)

    with opened(root) as other, AgentMemory("bob", root=root, embedder=None, clock=clock) as memory:
        left += range(place, 0, -1)
        answer = memory.add("My birthday is May 6.", user_id="ann")
        assert not left
        assert answer.metadata.reviews == [each.review_id for each in memory.reviews()]
        assert len(memory.reviews()) == 1


@pytest.mark.parametrize(("others", "asked"), [(_READ - 1, 1), (_READ, 0)])
def test_only_the_last_changes_are_compared(root: Path, others: int, asked: int) -> None:
    calls: list[Any] = []

    def model(messages: Any, _schema: Any) -> str:
        calls.append(messages)
        if len(calls) == 1:
            return json.dumps({"facts": [{"text": "My zip code is 1020."}]})
        if len(calls) == 2:  # the memories were read
            memory.store("My zip code is 1010.", user_id="ann")
            memory.store_many([{"content": f"Note {n}", "user_id": "ben"} for n in range(others)])
        return ""  # no decision: the fact is added as it is

    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store("I like tea.", user_id="ann")
        memory.add("My zip code is 1020.", user_id="ann", llm=model)
        assert len(calls) > 1
        assert len(memory.reviews()) == asked
