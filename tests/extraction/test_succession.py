"""A statement is held against the latest value of its slot: not against each that was said before.

Each of 26 statements of a date opened a review of all before it, 325 in all; and a change replaced
a memory that had long been corrected, so that the value in between was found first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Clock, engine_of

from agent_memory import AgentMemory, Review
from agent_memory.models.decision import Decision
from agent_memory.storage.records import Row, review_of_row
from agent_memory.storage.sql import reviews
from agent_memory.storage.sqlite.engine import SQLiteEngine


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, clock=clock, embedder=None) as opened:
        yield opened
        assert opened.check().problems == []


def add(memory: AgentMemory, clock: Clock, *texts: str) -> None:
    for text in texts:
        clock.forward(days=7)
        memory.add(text, user_id="u")


def asked(memory: AgentMemory) -> list[tuple[str, str]]:
    """Return which text is in question because of which."""
    text_of = {each.id: each.content for each in memory.get_all()}
    return [(each.content, text_of[str(each.replaced_by)]) for each in memory.reviews()]


def dates(form: str, count: int) -> list[str]:
    return [form.format(f"{month} {day}") for month in ("March", "May") for day in range(1, 14)][
        :count
    ]


REPEATED = [
    "The deploy is on {}.",
    "My next flight to London is on {}.",
    "I have a dentist appointment on {}.",
    "I'm on call on {}.",
]


@pytest.mark.parametrize("form", REPEATED)
def test_each_new_value_is_held_against_the_last(
    memory: AgentMemory, clock: Clock, form: str
) -> None:
    said = dates(form, 26)
    add(memory, clock, *said)
    assert asked(memory) == list(pairwise(said))
    hits = memory.search(form.format("").rstrip(" ."), limit=30)
    assert hits[0].memory.content == said[-1]


@pytest.mark.parametrize("form", REPEATED)
def test_what_may_stand_beside_others_is_not_asked_about_again(
    memory: AgentMemory, clock: Clock, form: str
) -> None:
    said = dates(form, 6)
    add(memory, clock, said[0])
    for old, new in pairwise(said):
        add(memory, clock, new)
        assert asked(memory) == [(old, new)]
        memory.dismiss(memory.reviews()[0].review_id)


def test_the_last_value_is_asked_about_although_no_word_finds_it(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, "I live in Oslo.", "I moved to Bergen.")
    add(memory, clock, *(f"I read book number {number} about pots." for number in range(30)))
    add(memory, clock, "I live in Rome now.")
    assert asked(memory) == [
        ("I live in Oslo.", "I moved to Bergen."),
        ("I moved to Bergen.", "I live in Rome now."),
    ]


CHAINS = [
    (
        "When is our standup?",
        "Our standup is at 9:00.",
        "The standup moved to 9:30.",
        "Our standup is at 10:15 from now on, not at 9:30.",
        "The standup moved to 8:45.",
    ),
    (
        "What is my favourite colour?",
        "My favourite colour is green.",
        "I like teal best now, my favourite colour is no longer green.",
        "My favourite colour is navy now.",
    ),
]


@pytest.mark.parametrize("chain", CHAINS)
def test_a_change_is_about_what_was_said_last(
    memory: AgentMemory, clock: Clock, chain: tuple[str, ...]
) -> None:
    """The third replaced the first, as if the second had never been said."""
    question, *said = chain
    add(memory, clock, *said)
    assert sorted(asked(memory)) == sorted(pairwise(said))
    assert [hit.memory.content for hit in memory.search(question)] == said[::-1]


@pytest.mark.parametrize(
    ("said", "pairs"),
    [
        (  # each is about another part of the first
            ("I like tea and coffee.", "I no longer like tea.", "I no longer like coffee."),
            [(0, 1), (0, 2)],
        ),
        (("My boss is Ann.", "I live in Oslo.", "My new boss is Ben."), [(0, 2)]),
        (  # the first says more than the slot of the second
            ("I live in Oslo and my boss is Ann.", "I moved to Rome.", "My new boss is Ben."),
            [(0, 1), (0, 2)],
        ),
        (  # what says as much as the last one asks nothing again
            ("I live in Oslo.", "I moved to Rome.", "I live in Rome now, near the harbour."),
            [(0, 1)],
        ),
        (("My weight is 80 kg.", "My boss weighs 90 kg.", "The van weighs 900 kg."), []),
    ],
)
def test_what_another_part_says_is_asked_of_it(
    memory: AgentMemory, clock: Clock, said: tuple[str, ...], pairs: list[tuple[int, int]]
) -> None:
    add(memory, clock, *said)
    assert asked(memory) == [(said[old], said[new]) for old, new in pairs]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "The deadline for the Falcon report is March 14.",
            "The Falcon report deadline has been pushed from March 14 to April 11.",
        ),
        (
            "The deadline is March 14.",
            "The deadline was moved from the 14th of March to April 11.",
        ),
        ("The launch date of the app is May 2.", "The app launch date is May 9 now."),
        ("Our budget is 5000 euros.", "Our budget has been reduced from 5000 euros to 4000 euros."),
        ("My birthday is May 4.", "Sorry, I typed that wrong: my birthday is May 5, not May 4."),
        ("My birthday is May 4.", "My mistake: my birthday is May 5."),
        ("My email is a@x.org.", "I mistyped it: my email is b@x.org."),
    ],
)
def test_a_slot_is_known_in_other_words(
    memory: AgentMemory, clock: Clock, old: str, new: str
) -> None:
    """The new value stood beside the old one, and nothing was asked."""
    add(memory, clock, old, new)
    assert [each.content for each in memory.get_all()] == [new]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "The deadline for the Falcon report is March 14.",
            "The deadline for the Orion report has been pushed from March 14 to April 11.",
        ),
        ("The budget for the party is 500 euros.", "The trip budget is 600 euros now."),
        ("The father of Tom is Jim.", "The father of Ann is Bob."),
        ("My boss is Ann.", "I got it wrong, my boss is angry."),
        ("My birthday is May 4.", "Ann: My birthday is May 5."),
        ("I live in Oslo.", "We moved the servers from Bonn to Rome."),
    ],
)
def test_another_slot_is_left_alone(
    memory: AgentMemory, clock: Clock, first: str, second: str
) -> None:
    add(memory, clock, first, second)
    assert {each.content for each in memory.get_all()} == {first, second}
    assert memory.reviews() == []


@pytest.mark.parametrize(
    "said",
    [
        ("The standup is at 9:45.", "The standup was moved from 9:00 to 9:30."),
        ("The price is 10 euros.", "The price went down from 12 euros to 9 euros."),
        ("The deadline is March 20.", "The deadline has been moved from March 14 to April 11."),
        ("My weight is 80 kg.", "My weight has changed from 82 kg to 78 kg."),
    ],
)
def test_what_had_another_value_before_is_asked_about(
    memory: AgentMemory, clock: Clock, said: tuple[str, str]
) -> None:
    add(memory, clock, *said)
    assert asked(memory) == [said]


MOVES = ("I live in Oslo.", "I moved to Bergen.", "I moved to Rome.")


@pytest.mark.parametrize("by", ["approve", "delete", "delete_many"])
def test_what_is_left_of_a_chain_is_asked_because_of_the_next(
    memory: AgentMemory, clock: Clock, by: str
) -> None:
    """Without Bergen, Oslo was in question no more, and stood beside Rome."""
    add(memory, clock, *MOVES)
    asked_before = memory.reviews()
    middle = next(each for each in asked_before if each.content == "I moved to Bergen.")
    if by == "approve":
        memory.approve(middle.review_id)
    elif by == "delete":
        memory.delete(middle.memory_id)
    else:
        memory.delete_many([middle.memory_id])
    assert asked(memory) == [("I live in Oslo.", "I moved to Rome.")]
    assert next(hit.memory.content for hit in memory.search("Where do I live?")) == MOVES[2]
    clock.forward(days=1)
    memory.undo()
    assert sorted(asked(memory)) == [(MOVES[0], MOVES[1]), (MOVES[1], MOVES[2])]
    kept = [(each.memory_id, each.replaced_by, each.proposed_at) for each in memory.reviews()]
    before = [(each.memory_id, each.replaced_by, each.proposed_at) for each in asked_before]
    assert sorted(map(str, kept)) == sorted(map(str, before))


@pytest.mark.parametrize("by", ["approve", "delete"])
def test_what_was_kept_beside_a_deleted_memory_is_asked_because_of_what_was_said_later(
    memory: AgentMemory, clock: Clock, by: str
) -> None:
    """Oslo, kept beside Bergen, stood beside Rome, and nobody had been asked about the two."""
    add(memory, clock, *MOVES[:2])
    memory.dismiss(memory.reviews()[0].review_id)
    add(memory, clock, MOVES[2])
    (middle,) = memory.reviews()
    if by == "approve":
        memory.approve(middle.review_id)
    else:
        memory.delete(middle.memory_id)
    assert asked(memory) == [(MOVES[0], MOVES[2])]
    clock.forward(days=1)
    memory.undo()
    assert asked(memory) == [MOVES[1:]]


@pytest.mark.parametrize("at_once", [False, True])
def test_what_is_kept_although_all_was_said_is_not_asked_about_again(
    memory: AgentMemory, clock: Clock, at_once: bool
) -> None:
    """Decided at once, Oslo was asked about, because of Rome; and nothing could be undone."""
    add(memory, clock, *MOVES)
    first, second = (each.review_id for each in memory.reviews())
    if at_once:
        memory.decide(approve=[second], dismiss=[first])
    else:
        memory.dismiss(first)
        clock.forward(days=1)
        memory.approve(second)
    assert asked(memory) == []
    clock.forward(days=1)
    memory.undo()
    assert asked(memory) == ([MOVES[:2], MOVES[1:]] if at_once else [MOVES[1:]])


def test_what_stands_behind_is_asked_because_of_although_it_was_kept(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, *MOVES)
    middle = memory.reviews()[1]
    memory.dismiss(middle.review_id)
    memory.delete(middle.memory_id)
    assert asked(memory) == [(MOVES[0], MOVES[2])]


def test_what_all_was_kept_is_not_asked_about_when_some_of_it_goes(
    memory: AgentMemory, clock: Clock
) -> None:
    for text in dates("The deploy is on {}.", 4):
        add(memory, clock, text)
        for review in memory.reviews():
            memory.dismiss(review.review_id)
    memory.delete(memory.list_recent()[1].id)
    assert asked(memory) == []


def test_what_a_model_deletes_leaves_the_rest_of_a_chain_asked_about(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, *MOVES)
    middle = next(each for each in memory.get_all() if each.content == MOVES[1])
    clock.forward(days=1)
    deletion = Decision("DELETE", memory_id=middle.id, seen=middle.content)
    memory._store.decisions.apply([deletion], session_id="s")
    assert asked(memory) == [(MOVES[0], MOVES[2])]
    clock.forward(days=1)
    memory.undo()
    assert sorted(asked(memory)) == [MOVES[:2], MOVES[1:]]


def test_what_a_merged_memory_put_in_question_stays_so(memory: AgentMemory, clock: Clock) -> None:
    """Merged into the same words, Bergen put Oslo in question no more."""
    add(memory, clock, *MOVES[:2])
    (before,) = memory.reviews()
    kept = memory.store("I moved to Bergen!", user_id="u")
    other = memory.store("I like tea.", user_id="u")
    memory.merge(other, [str(before.replaced_by)])  # says nothing of Oslo
    assert memory.reviews() == []
    clock.forward(days=1)
    memory.undo()
    memory.merge(kept, [str(before.replaced_by)])
    assert asked(memory) == [(MOVES[0], "I moved to Bergen!")]
    clock.forward(days=1)
    memory.undo()
    assert asked(memory) == [MOVES[:2]]
    memory.delete(str(before.replaced_by))
    assert asked(memory) == [(MOVES[0], "I moved to Bergen!")]


def test_what_is_merged_into_what_it_put_in_question_leaves_no_question(
    memory: AgentMemory, clock: Clock
) -> None:
    add(memory, clock, "I live in Oslo, not Rome.", "I live in Rome.")
    (before,) = memory.reviews()
    memory.merge(before.memory_id, [str(before.replaced_by)])
    assert memory.reviews() == []


@pytest.mark.parametrize("by", ["approve", "delete", "undo"])
def test_a_deletion_that_is_done_again_does_what_it_did(
    memory: AgentMemory, clock: Clock, by: str
) -> None:
    """A redo deleted Bergen alone: Oslo was in question no more."""
    add(memory, clock, *MOVES)
    before = sorted(asked(memory))
    middle = next(each for each in memory.reviews() if each.content == MOVES[1])
    if by == "approve":
        memory.approve(middle.review_id)
    elif by == "delete":
        memory.delete(middle.memory_id)
    else:
        memory.undo(memory.history(middle.memory_id)[-1].change_id)
    handed_on = [(MOVES[0], MOVES[2])]
    assert asked(memory) == handed_on
    for left in (before, handed_on, before):
        clock.forward(days=1)
        memory.undo()
        assert sorted(asked(memory)) == left


def test_a_chain_is_answered_from_either_end(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, *MOVES)
    first, second = (each.review_id for each in memory.reviews())
    memory.approve(first)
    assert asked(memory) == [MOVES[1:]]
    clock.forward(days=1)
    memory.undo()
    memory.dismiss(second)
    assert asked(memory) == [MOVES[:2]]
    add(memory, clock, "I moved to Paris.")
    assert asked(memory) == [MOVES[:2], ("I moved to Rome.", "I moved to Paris.")]


@pytest.mark.file_only("PostgreSQL has a plan of its own")
def test_what_an_approval_left_out_is_found_through_the_reviews(memory: AgentMemory) -> None:
    """The whole history was read, 15 ms of 20,000 changes."""
    engine = engine_of(memory)
    assert isinstance(engine, SQLiteEngine)
    sql = f"EXPLAIN QUERY PLAN {reviews._SELECT_SHORTENED}"
    plan = [row[3] for row in engine.database.rows(sql, ("mem-1",))]
    assert [step for step in plan if step.startswith("SCAN h")] == []


def test_what_is_deleted_together_comes_back_as_it_was(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, *MOVES)
    before = sorted(asked(memory))
    of_text = {each.content: each.id for each in memory.get_all()}
    memory.delete_many([of_text[text] for text in MOVES[1:]])
    assert memory.reviews() == []
    clock.forward(days=1)
    memory.undo()
    assert sorted(asked(memory)) == before


def test_a_deletion_reads_the_reviews_of_one_memory(
    memory: AgentMemory, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read all reviews: to delete 400 memories under review took 2.6 seconds."""
    said = dates("The deploy is on {}.", 10)
    add(memory, clock, *said)
    middle = [each.memory_id for each in memory.reviews()[1:]]
    read: list[Row] = []

    def counted(row: Row) -> Review:
        read.append(row)
        return review_of_row(row)

    monkeypatch.setattr(reviews, "review_of_row", counted)
    memory.delete_many(middle)
    assert len(read) < 3 * len(said)
    assert asked(memory) == [(said[0], said[-1])]
