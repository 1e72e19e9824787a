"""What was corrected, perhaps, and is said again: it was known already, and was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Clock

from agent_memory import AgentMemory

BERGEN, OSLO = "I live in Bergen.", "I moved to Oslo."
FIRST = datetime.fromisoformat("2026-03-01T09:00:00+00:00")


@pytest.fixture
def clock() -> Clock:
    return Clock(FIRST)


@pytest.fixture
def memory(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, clock=clock, embedder="none") as opened:
        yield opened


def add(memory: AgentMemory, clock: Clock, *texts: str, at: Sequence[str] = ()) -> list[str]:
    """Add a conversation, and return what it stored."""
    clock.forward(days=1)
    messages = [{"role": "user", "content": text} for text in texts]
    for message, moment in zip(messages, at, strict=False):
        message["timestamp"] = moment
    answer = memory.add(messages, user_id="alice", graph=True)
    return [change.memory for change in answer.data if change.event == "ADD"]


def asked(memory: AgentMemory) -> list[tuple[str, str]]:
    """Return the open reviews: what a memory says, and what may replace it."""
    texts = {each.id: each.content for each in memory.list_recent(100)}
    return [(review.content, texts[review.replaced_by or ""]) for review in memory.reviews()]


def homes(memory: AgentMemory) -> list[str]:
    return [edge.target for edge in memory.graph.relationships()]


@pytest.mark.parametrize("again", [BERGEN, "I live in Bergen", "I moved to Bergen."])
def test_it_is_kept_and_asked_about(memory: AgentMemory, clock: Clock, again: str) -> None:
    for text in (BERGEN, OSLO, again):
        assert add(memory, clock, text) == [text]
    assert asked(memory) == [(BERGEN, OSLO), (OSLO, again)]
    assert homes(memory) == ["Bergen"]
    best = memory.search("Where do I live?", user_id="alice")[0]
    assert best.memory.content == again
    assert best.memory.timestamp == clock.now

    assert add(memory, clock, again) == []  # until something is said against it again
    memory.undo()
    assert asked(memory) == [(BERGEN, OSLO)]
    assert homes(memory) == ["Oslo"]


def test_both_answers_leave_what_was_said_last(memory: AgentMemory, clock: Clock) -> None:
    for text in (BERGEN, OSLO, BERGEN):
        add(memory, clock, text)
    for review in memory.reviews():
        memory.approve(review.review_id)
    assert [each.content for each in memory.list_recent()] == [BERGEN]
    assert memory.list_recent()[0].timestamp == clock.now
    assert homes(memory) == ["Bergen"]


def test_what_was_kept_on_purpose_is_no_news(memory: AgentMemory, clock: Clock) -> None:
    for text in (BERGEN, OSLO):
        add(memory, clock, text)
    memory.dismiss(memory.reviews()[0].review_id)
    assert add(memory, clock, BERGEN) == []


def test_a_taste_comes_back_too(memory: AgentMemory, clock: Clock) -> None:
    for text in ("I like tea.", "I don't like tea anymore.", "I like tea."):
        assert add(memory, clock, text) == [text]
    assert asked(memory)[1:] == [("I don't like tea anymore.", "I like tea.")]


@pytest.mark.parametrize(
    "turns",
    [
        [[BERGEN], [BERGEN, OSLO], [BERGEN, OSLO, BERGEN]],  # the whole conversation, each time
        [[BERGEN], [OSLO], [OSLO, BERGEN]],  # the last two turns
        [[BERGEN], [OSLO, BERGEN]],
    ],
    ids=["whole", "window", "together"],
)
def test_a_conversation_that_is_added_again_says_nothing_new(
    memory: AgentMemory, clock: Clock, turns: list[list[str]]
) -> None:
    for turn in turns:
        add(memory, clock, *turn)
    assert asked(memory) == [(BERGEN, OSLO), (OSLO, BERGEN)]
    assert homes(memory) == ["Bergen"]
    for turn in turns[-1:] * 2:
        assert add(memory, clock, *turn) == []


def test_in_one_conversation_the_last_of_what_is_repeated_counts(
    memory: AgentMemory, clock: Clock
) -> None:
    assert add(memory, clock, BERGEN, OSLO, BERGEN) == [OSLO, BERGEN]
    assert asked(memory) == [(OSLO, BERGEN)]
    assert homes(memory) == ["Bergen"]


def test_what_was_said_before_the_correction_is_not_said_again(
    memory: AgentMemory, clock: Clock
) -> None:
    moments = ["2025-01-01T09:00:00Z", "2025-02-01T09:00:00Z"]
    add(memory, clock, BERGEN, OSLO, at=moments)
    assert add(memory, clock, BERGEN, at=moments[:1]) == []
    assert add(memory, clock, BERGEN, at=["2025-01-31T09:00:00Z"]) == []
    assert add(memory, clock, BERGEN, at=["2025-02-02T09:00:00Z"]) == [BERGEN]


def test_it_is_stored_once_however_many_memories_it_may_correct(
    memory: AgentMemory, clock: Clock
) -> None:
    both = "I live in Bergen and my boss is Ann."
    for text in (both, OSLO, "My boss is Ben now."):
        add(memory, clock, text)
    assert add(memory, clock, both) == [both]
    assert asked(memory)[2:] == [("My boss is Ben now.", both), (OSLO, both)]


@pytest.mark.parametrize(
    "said",
    [
        (BERGEN, OSLO),
        ("I smoke.", "I quit smoking."),
        (BERGEN, OSLO, "I live in Bergen now.", "I moved to Oslo!"),
    ],
)
def test_what_is_said_in_turn_is_held_against_the_last(
    memory: AgentMemory, clock: Clock, said: tuple[str, ...]
) -> None:
    """Each was held against all that was ever said against it: 12 opened 36 reviews."""
    said = (said * 6)[:12]
    for text in said:
        add(memory, clock, text)
    assert asked(memory) == list(pairwise(said))


@pytest.mark.parametrize("gone", [(1,), (2,), (2, 1), (1, 2), (3,)])
def test_what_was_said_in_turn_stays_in_question_without_a_link(
    memory: AgentMemory, clock: Clock, gone: Sequence[int]
) -> None:
    for text in (BERGEN, OSLO) * 3:
        add(memory, clock, text)
    memories = sorted(memory.get_all(), key=lambda each: each.timestamp)
    for place in gone:
        memory.delete(memories[place].id)
    left = {each.content for each in memory.get_all()}
    in_question = {review.memory_id for review in memory.reviews()}
    of_bergen = {each.id for each in memory.get_all() if each.content == BERGEN}
    assert (left, of_bergen - in_question) == ({BERGEN, OSLO}, set())


def test_what_it_corrects_is_read_anew_from_an_export(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    for text in (BERGEN, OSLO, BERGEN):
        add(memory, clock, text)
    memory.export(tmp_path / "all.jsonl", format="store")
    with AgentMemory("copy", root=tmp_path, clock=clock, embedder="none") as copy:
        copy.import_(tmp_path / "all.jsonl", format="store")
        assert asked(copy) == asked(memory)
        assert add(copy, clock, BERGEN) == []


@pytest.mark.parametrize(
    ("first", "correction", "again"),
    [
        ("I smoke.", "I quit smoking.", "I smoke again."),
        ("I work at Siemens.", "I quit Siemens.", "I work at Siemens again."),
        ("We use Postgres.", "We switched to MySQL.", "We use Postgres."),
        ("Ich wohne in Berlin.", "Ich bin nach Hamburg gezogen.", "Ich wohne wieder in Berlin."),
    ],
)
def test_the_correction_is_asked_about_although_no_rule_sees_a_conflict_with_it(
    memory: AgentMemory, clock: Clock, first: str, correction: str, again: str
) -> None:
    for text in (first, correction, again):
        assert add(memory, clock, text) == [text]
    assert asked(memory) == [(first, correction), (correction, again)]
    for _ in range(2):  # the whole conversation, once more
        assert add(memory, clock, first, correction, again) == []


def test_a_correction_of_something_else_is_not_asked_about(
    memory: AgentMemory, clock: Clock
) -> None:
    for text in ("I smoke.", "I quit smoking.", "I smoke if I am drunk.", "Ann smokes again."):
        add(memory, clock, text)
    assert asked(memory) == [("I smoke.", "I quit smoking.")]


@pytest.mark.parametrize(
    "texts",
    [
        ["I am 34 years old.", "I am 35 years old."],
        ["I weigh 80 kg.", "I weigh 78 kg.", "I weigh 80 kg."],
        ["My name is Jon.", "My name is John, not Jon."],
        ["I like tea.", "I love tea."],
        [
            "The deadline is Friday.",
            "The deadline moved to Monday.",
            "The deadline is Friday again.",
        ],
    ],
)
@pytest.mark.parametrize("window", [2, 100])
def test_what_was_surely_replaced_does_not_come_back(
    memory: AgentMemory, clock: Clock, texts: list[str], window: int
) -> None:
    for end in range(1, len(texts) + 1):
        add(memory, clock, *texts[max(0, end - window) : end])
    stored = sorted(each.content for each in memory.list_recent())
    assert texts[-1] in stored
    assert texts[-2] not in stored
    for _ in range(2):
        assert add(memory, clock, *texts[-window:]) == []
        assert sorted(each.content for each in memory.list_recent()) == stored


def test_what_is_replaced_by_something_new_is_kept(memory: AgentMemory, clock: Clock) -> None:
    add(memory, clock, "I am 33 years old.")
    add(memory, clock, "I am 34 years old.", "I am 35 years old.")
    assert [review.content for review in memory.reviews()] == ["I am 34 years old."]


def test_a_memory_is_not_asked_about_for_what_says_the_same(
    memory: AgentMemory, clock: Clock
) -> None:
    npm, yarn = "Use npm instead of yarn.", "Use yarn instead of npm."
    for text in (npm, yarn, npm):
        add(memory, clock, text)
    assert asked(memory) == [(npm, yarn), (yarn, npm)]


@pytest.mark.parametrize(
    "correction", ["No, I live in Bergen.", "Sorry, I live in Bergen, not Oslo."]
)
def test_a_correction_moves_the_edge_too(
    memory: AgentMemory, clock: Clock, correction: str
) -> None:
    for text in ("I live in Oslo.", correction):
        add(memory, clock, text)
    assert homes(memory) == ["Bergen"]


def test_messages_that_come_newest_first_are_read_in_their_order(
    memory: AgentMemory, clock: Clock
) -> None:
    """What replaced a known age was dropped: the older message behind it says what was known."""
    older, newer = "2026-01-01T09:00:00Z", "2026-02-01T09:00:00Z"
    add(memory, clock, "I am 35 years old.", at=[older])
    add(memory, clock, "I am 36 years old.", "I am 35 years old.", at=[newer, older])
    assert [each.content for each in memory.list_recent()] == ["I am 36 years old."]


def test_what_is_asked_for_comes_right_behind_its_newest_correction(
    memory: AgentMemory, clock: Clock
) -> None:
    """All corrections of corrections came before it, and it was not among the first ten."""
    add(memory, clock, *(f"I like sushi number {number}." for number in range(40)))
    assert len(memory.reviews()) > 20
    hits = memory.search("I like sushi number 3.", user_id="alice", limit=3)
    assert "I like sushi number 3." in [hit.memory.content for hit in hits]


FRENCH, NO_GERMAN = "I speak French and German.", "I no longer speak German."
OSLO_HOME, NO_OSLO = "I live in Oslo.", "I no longer live in Oslo."


def approve_all(memory: AgentMemory) -> None:
    while reviews := memory.reviews():
        memory.approve(reviews[0].review_id)


def contents(memory: AgentMemory) -> list[str]:
    return sorted(each.content for each in memory.list_recent())


@pytest.mark.parametrize(
    "turns",
    [
        [OSLO_HOME, NO_OSLO],
        [FRENCH, NO_GERMAN],
        ["I smoke.", "I quit smoking.", "I smoke again."],
        [BERGEN, OSLO, "I moved to Rome."],
        ["I speak French, German and Dutch.", NO_GERMAN, "I no longer speak Dutch."],
        [FRENCH, NO_GERMAN, "I no longer speak French."],
    ],
)
@pytest.mark.parametrize("is_asked_each_time", [True, False])
def test_what_was_approved_stays_so_when_the_conversation_is_added_again(
    memory: AgentMemory, clock: Clock, turns: list[str], is_asked_each_time: bool
) -> None:
    for end in range(1, len(turns) + 1):
        add(memory, clock, *turns[:end])
        if is_asked_each_time or end == len(turns):
            approve_all(memory)
    left = contents(memory)
    assert turns[-1] in left
    assert turns[0] not in left
    tea = "I like tea."
    for turn in ([], [tea], [tea]):
        assert add(memory, clock, *turns, *turn) == [text for text in turn if text not in left]
        left = sorted({*left, *turn})
        assert (contents(memory), memory.reviews()) == (left, [])
    assert add(memory, clock, turns[-1], tea) == []


@pytest.mark.parametrize("turns", [[OSLO_HOME, NO_OSLO], [FRENCH, NO_GERMAN]])
def test_what_was_not_approved_in_the_end_is_as_before(
    memory: AgentMemory, clock: Clock, turns: list[str]
) -> None:
    for turn in turns:
        add(memory, clock, turn)
    approve_all(memory)
    clock.forward(days=1)
    memory.undo()
    before = contents(memory), asked(memory)
    assert before == (sorted(turns), [(turns[0], turns[1])])
    assert add(memory, clock, *turns) == []
    assert (contents(memory), asked(memory)) == before
    memory.dismiss(memory.reviews()[0].review_id)
    assert add(memory, clock, *turns) == []
    (kept_id,) = [each.id for each in memory.list_recent() if each.content == turns[0]]
    memory.delete(kept_id)  # not as a review's answer
    assert turns[0] in add(memory, clock, *turns)


def test_what_was_approved_may_be_said_again(memory: AgentMemory, clock: Clock) -> None:
    turns = [OSLO_HOME, NO_OSLO]
    for turn in turns:
        add(memory, clock, turn)
    approve_all(memory)
    for _ in range(2):
        assert add(memory, clock, *turns) == []
    assert add(memory, clock, *turns, OSLO_HOME) == [OSLO_HOME]
    assert asked(memory) == [(NO_OSLO, OSLO_HOME)]
    assert add(memory, clock, *turns, OSLO_HOME) == []
    approve_all(memory)
    for _ in range(2):
        assert add(memory, clock, *turns, OSLO_HOME) == []
        assert contents(memory) == [OSLO_HOME]


def test_one_user_decides_for_nobody_else(memory: AgentMemory, clock: Clock) -> None:
    turns, others = [OSLO_HOME, NO_OSLO], [("ann", None), ("alice", "r")]
    for user_id, run_id in others:
        memory.add(NO_OSLO, user_id=user_id, run_id=run_id)
    for turn in turns:
        add(memory, clock, turn)
    approve_all(memory)
    messages = [{"role": "user", "content": text} for text in turns]
    for user_id, run_id in others:
        memory.add(messages, user_id=user_id, run_id=run_id)
        stored = memory.get_all(user_id=user_id, run_id=run_id)
        assert OSLO_HOME in [each.content for each in stored]
    assert add(memory, clock, *turns) == []


TALK, NEXT_TALK = "I'm giving a talk in Krakow on May 3.", "I'm giving a talk in Krakow on June 8."
CALLED_OFF = "The talk in Krakow has been called off."


@pytest.mark.parametrize(
    ("first", "over", "second"),
    [
        (TALK, CALLED_OFF, NEXT_TALK),
        (
            "We're flying to Rome on May 3.",
            "The trip to Rome is cancelled.",
            "We fly to Rome in June.",
        ),
        ("Dinner with Ann on May 3.", "Dinner with Ann is off.", "Dinner with Ann on June 8."),
        ("I smoke.", "I quit smoking.", "I smoke a pipe."),
        ("I bought a kayak.", "I sold the kayak.", "I own a kayak again."),
    ],
)
@pytest.mark.parametrize("is_asked_each_time", [True, False])
def test_the_same_words_about_what_was_said_since_are_news(
    memory: AgentMemory,
    clock: Clock,
    first: str,
    over: str,
    second: str,
    is_asked_each_time: bool,
) -> None:
    for text in (first, over, second):
        assert add(memory, clock, text) == [text]
        if is_asked_each_time:
            approve_all(memory)
    assert add(memory, clock, over) == [over]
    assert (second, over) in asked(memory)
    reviews = len(memory.reviews())
    assert add(memory, clock, over) == []  # until something is said against it again
    assert len(memory.reviews()) == reviews


@pytest.mark.parametrize("first", [[], [TALK]])
def test_they_are_in_one_conversation_too(
    memory: AgentMemory, clock: Clock, first: list[str]
) -> None:
    add(memory, clock, *first, CALLED_OFF)
    assert add(memory, clock, NEXT_TALK, CALLED_OFF) == [NEXT_TALK, CALLED_OFF]
    assert (NEXT_TALK, CALLED_OFF) in asked(memory)
    assert add(memory, clock, NEXT_TALK, CALLED_OFF) == []


def test_a_conversation_added_again_after_each_turn_calls_off_nothing_said_later(
    memory: AgentMemory, clock: Clock
) -> None:
    turns = [TALK, CALLED_OFF, NEXT_TALK]
    for end in (1, 2, 3, 3):
        add(memory, clock, *turns[:end])
    assert NEXT_TALK not in [review.content for review in memory.reviews()]
    turns.append(CALLED_OFF)
    assert add(memory, clock, *turns) == [CALLED_OFF]
    assert (NEXT_TALK, CALLED_OFF) in asked(memory)
    assert add(memory, clock, *turns) == []


def test_what_was_said_before_the_new_talk_does_not_call_it_off(
    memory: AgentMemory, clock: Clock
) -> None:
    moments = ["2025-01-01T09:00:00Z", "2025-01-02T09:00:00Z", "2025-02-01T09:00:00Z"]
    for text, moment in zip((TALK, CALLED_OFF, NEXT_TALK), moments, strict=True):
        add(memory, clock, text, at=[moment])
    assert add(memory, clock, CALLED_OFF, at=["2025-01-03T09:00:00Z"]) == []
    assert add(memory, clock, CALLED_OFF, at=["2025-02-02T09:00:00Z"]) == [CALLED_OFF]


def test_a_talk_that_was_kept_on_purpose_is_not_called_off_by_the_same_words(
    memory: AgentMemory, clock: Clock
) -> None:
    for text in (NEXT_TALK, CALLED_OFF):
        add(memory, clock, text)
    memory.dismiss(memory.reviews()[0].review_id)
    assert add(memory, clock, CALLED_OFF) == []
