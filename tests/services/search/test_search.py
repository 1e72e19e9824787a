"""What a search gives back: order, limits, reasons, and the accesses that it counts.

Which texts find which memories is in test_search_texts.py, filters are in test_filters.py.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Clock, Visitor
from reads import stored

from agent_memory import AgentMemory, ValidationError
from agent_memory.storage import query_terms


def ids(memory: AgentMemory, query: str, **options: Any) -> list[str]:
    return [hit.memory.id for hit in memory.search(query, count_accesses=False, **options)]


def store_apart(memory: AgentMemory, *contents: str, **fields: Any) -> list[str]:
    """Store memories in a session each, so that none is near another."""
    return [memory.store(text, session_id=f"alone with {text}", **fields) for text in contents]


@pytest.fixture
def walnuts(memory: AgentMemory) -> list[str]:
    return store_apart(memory, *(f"walnut number {n} of many" for n in range(120)))


# The result and its limits ------------------------------------------------------------------------


def test_a_result_is_a_sequence_that_says_how_the_search_went(memory: AgentMemory) -> None:
    store_apart(memory, "red walnut", "green walnut", "blue walnut", "an elephant")
    results = memory.search("walnut", 2, category="note")
    assert len(results) == 2
    assert [hit.memory.content for hit in results] == ["blue walnut", "green walnut"]
    assert results[1] is list(results)[1]
    assert results[:1] == [results[0]]
    assert results.total_count == 3
    how = results.search_metadata
    assert how.query_time == NOW
    assert how.filters_applied == {"category": "note"}
    assert (how.backend, how.degraded, how.reason, how.near_misses) == ("file", [], None, [])


def test_the_better_match_comes_first(memory: AgentMemory) -> None:
    best, worse, _ = store_apart(memory, "walnut bread recipe", "walnut tree", "an elephant")
    assert ids(memory, "recipe for walnut bread") == [best, worse]
    hits = memory.search("recipe for walnut bread", count_accesses=False)
    assert hits[0].similarity == pytest.approx(1.0)
    assert 0 < hits[1].similarity < hits[0].similarity


def test_a_search_gives_5_hits_unless_told_otherwise(
    memory: AgentMemory, walnuts: list[str], root: Path
) -> None:
    assert ids(memory, "walnut") == walnuts[:-6:-1]
    with AgentMemory("bob", root=root, config={"default_search_limit": 2}) as other:
        assert len(ids(other, "walnut")) == 2
        assert len(ids(other, "walnut", limit=3)) == 3


def test_a_limit_of_1_to_100_is_kept(memory: AgentMemory, walnuts: list[str]) -> None:
    for limit in (1, 7, 100):
        results = memory.search("walnut", limit, count_accesses=False)
        assert [hit.memory.id for hit in results] == walnuts[: -limit - 1 : -1]
        assert results.total_count == 100  # of 120: no more are ranked


@pytest.mark.parametrize("limit", [0, -1, 101, True, "5", 5.0])
def test_any_other_limit_is_refused(memory: AgentMemory, limit: Any) -> None:
    memory.store("walnut")
    with pytest.raises(ValidationError) as caught:
        memory.search("walnut", limit)
    assert str(caught.value) == f"limit: must be a whole number from 1 to 100, not {limit!r}"
    assert caught.value.errors()[0]["loc"] == ("limit",)


# Why little or nothing was found ------------------------------------------------------------------


def test_without_memories_it_says_that_nothing_is_stored(memory: AgentMemory) -> None:
    choices: list[dict[str, Any]] = [{}, {"category": "task"}]
    for options in choices:
        how = memory.search("walnut", **options).search_metadata
        assert how.reason == "nothing_stored"
        assert how.explanation


def test_for_an_empty_query_it_says_so(memory: AgentMemory) -> None:
    memory.store("walnut")
    assert memory.search("...").search_metadata.reason == "empty_query"


def test_without_a_match_it_names_the_words(memory: AgentMemory) -> None:
    memory.store("walnut")
    how = memory.search("what about elephants?").search_metadata
    assert how.reason == "no_match"
    assert how.explanation is not None
    assert "eleph" in how.explanation


def test_a_long_word_that_nobody_stored_is_not_repeated_whole(memory: AgentMemory) -> None:
    memory.store("The office plants need water")
    how = memory.search("x" * 100_000).search_metadata
    assert how.reason == "no_match"
    assert len(how.explanation or "") < 200


def test_when_filters_leave_all_out_it_shows_what_they_left_out(memory: AgentMemory) -> None:
    store_apart(memory, *(f"walnut {n}" for n in range(5)))
    results = memory.search("walnut", category="task")
    assert list(results) == []
    how = results.search_metadata
    assert how.reason == "filtered_out"
    assert len(how.near_misses) == 3
    assert all("walnut" in miss.content and "filter" in miss.reason for miss in how.near_misses)
    assert stored(memory, how.near_misses[0].memory_id).content == how.near_misses[0].content


def test_when_filters_leave_some_out_it_shows_them_beside_the_hits(memory: AgentMemory) -> None:
    (kept,) = store_apart(memory, "walnut cake", category="task")
    (left_out,) = store_apart(memory, "walnut tart")
    results = memory.search("walnut", category="task")
    assert [hit.memory.id for hit in results] == [kept]
    assert results.search_metadata.reason == "few_matches"
    assert [miss.memory_id for miss in results.search_metadata.near_misses] == [left_out]


def test_below_the_threshold_of_the_caller_nothing_is_returned_but_shown(
    memory: AgentMemory,
) -> None:
    (memory_id,) = store_apart(memory, "walnut")
    results = memory.search("walnut elephant", similarity_threshold=0.9)
    assert list(results) == []
    how = results.search_metadata
    assert how.reason == "below_similarity_threshold"
    (miss,) = how.near_misses
    assert (miss.memory_id, miss.content) == (memory_id, "walnut")
    assert 0.1 < miss.similarity < 0.9
    assert "0.9" in miss.reason


def test_fewer_hits_than_asked_for_are_explained(memory: AgentMemory) -> None:
    store_apart(memory, "walnut", "an elephant")
    how = memory.search("walnut").search_metadata
    assert how.reason == "few_matches"
    assert how.explanation is not None
    assert "1" in how.explanation


MANY_WORDS = " ".join(f"word{n}" for n in range(40))


@pytest.mark.parametrize("others", [0, 40])
@pytest.mark.parametrize("count", [3, 4, 5, 12, 50])
def test_notes_on_one_subject_are_found_by_it(memory: AgentMemory, count: int, others: int) -> None:
    """From the fourth on, none was: "tea" stood in all of them, and the other word in none."""
    store_apart(memory, *(f"Ann drank the tea number {n} at home" for n in range(count)))
    store_apart(memory, *(f"Ben parked the car {n} downtown" for n in range(others)))
    for question in ("tea preferences", "which tea should I serve?"):
        assert len(memory.search(question, limit=3)) == 3
    assert not memory.search("quarterly revenue forecast")


def test_one_common_word_of_very_many_is_no_answer(memory: AgentMemory) -> None:
    ids = store_apart(memory, *(f"walnut {n}" for n in range(1_100)))
    results = memory.search(f"walnut {MANY_WORDS}")
    assert list(results) == []
    assert results.search_metadata.reason == "below_floor"
    assert {miss.memory_id for miss in results.search_metadata.near_misses} <= set(ids)
    reason = results.search_metadata.near_misses[0].reason
    assert reason.startswith("matches too little of the query"), "and not 0% of it"


def test_two_rare_words_are_an_answer_to_a_whole_message(memory: AgentMemory) -> None:
    (memory_id,) = store_apart(memory, "Prefer PostgreSQL for new projects")
    assert memory.search(f"PostgreSQL projects {MANY_WORDS}")[0].memory.id == memory_id


def test_a_rare_word_does_not_keep_those_with_a_common_one_out(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_terms, "SCAN_BUDGET", 50)
    monkeypatch.setattr(query_terms, "FILTERED_SCAN_BUDGET", 50)
    store_apart(memory, *(f"project status item {n}" for n in range(300)), "zebra crossing")
    results = memory.search("zebra project", limit=5)
    assert len(results) == 5
    assert results[0].memory.content == "zebra crossing"
    assert "project" in results.search_metadata.degraded[0]
    wanted = memory.get(memory.store("project of one user", user_id="ann"))
    assert [hit.memory for hit in memory.search("one project", user_id="ann")] == [wanted]


# The threshold of the user ------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["call", "handle", "file"])
def test_a_similarity_threshold_may_be_set_in_the_call_the_handle_or_the_file(
    memory: AgentMemory, root: Path, place: str
) -> None:
    best, worse = store_apart(memory, "walnut bread recipe", "walnut tree")
    assert ids(memory, "walnut bread recipe") == [best, worse]
    if place == "file":
        memory.configure(similarity_threshold=0.8)
    config = {"similarity_threshold": 0.8} if place == "handle" else None
    options = {"similarity_threshold": 0.8} if place == "call" else {}
    with AgentMemory("bob", root=root, config=config) as other:
        assert ids(other, "walnut bread recipe", **options) == [best]
        assert ids(other, "walnut bread recipe", similarity_threshold=0.0) == [best, worse]


def test_a_threshold_in_the_call_takes_the_place_of_the_floor(
    memory: AgentMemory, root: Path
) -> None:
    stored_ids = store_apart(memory, *(f"walnut {n}" for n in range(1_100)))
    question = f"walnut {MANY_WORDS}"
    results = memory.search(question, 7, similarity_threshold=0.0)
    assert len(results) == 7
    assert {hit.memory.id for hit in results} <= set(stored_ids)
    assert not any(hit.passed_gate for hit in results), "so that none is counted as accessed"
    assert ids(memory, question, similarity_threshold=0.5) == []
    assert ids(memory, question, similarity_threshold=0.0, include_weak=False) == []
    filtered = memory.search(question, similarity_threshold=0.0, category="task")
    assert filtered.search_metadata.reason == "filtered_out"
    with AgentMemory("bob", root=root, config={"similarity_threshold": 0.0}) as other:
        assert ids(other, question) == []
    memory.configure(similarity_threshold=0.0)
    assert ids(memory, question) == [], "a setting only drops hits"


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "high"])
def test_a_threshold_outside_0_to_1_is_refused(memory: AgentMemory, threshold: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        memory.search("walnut", similarity_threshold=threshold)
    assert caught.value.errors()[0]["loc"] == ("similarity_threshold",)


def test_hits_of_too_little_confidence_are_left_out_and_shown(memory: AgentMemory) -> None:
    store_apart(memory, "walnut bread recipe", "walnut tree")
    best, worse = memory.search("walnut bread recipe", count_accesses=False)
    assert 1 > best.confidence > worse.confidence > 0
    between = (best.confidence + worse.confidence) / 2
    (kept,) = results = memory.search("walnut bread recipe", min_confidence=between)
    assert kept.memory.id == best.memory.id
    assert [miss.memory_id for miss in results.search_metadata.near_misses] == [worse.memory.id]
    none = memory.search("walnut bread recipe", min_confidence=1.0)
    assert (list(none), none.search_metadata.reason) == ([], "below_confidence")
    assert "1.00" in none.search_metadata.near_misses[0].reason
    with pytest.raises(ValidationError) as caught:
        memory.search("walnut", min_confidence=2)
    assert caught.value.errors()[0]["loc"] == ("min_confidence",)


def test_weak_hits_are_left_out_where_they_are_not_wanted(memory: AgentMemory) -> None:
    best, worse = store_apart(memory, "walnut bread recipe", "walnut tree")
    results = memory.search("walnut bread recipe", include_weak=False)
    assert [hit.memory.id for hit in results] == [best]
    assert results.search_metadata.reason == "few_matches"
    (miss,) = results.search_metadata.near_misses
    assert miss.memory_id == worse
    assert "gate" in miss.reason
    assert memory.get(worse).access_count == 0  # type: ignore[union-attr]


# Neighbours in the session ------------------------------------------------------------------------


def test_what_was_said_around_a_hit_is_found_after_it(memory: AgentMemory, clock: Clock) -> None:
    texts = ["far before", "two before", "just before", "walnut", "after", "two after", "far after"]
    made = []
    for text in texts:
        made.append(memory.store(text, session_id="s"))
        clock.forward(minutes=1)
    (other,) = store_apart(memory, "walnut tart")
    results = memory.search("walnut", 20, count_accesses=False)
    found = [hit.memory.id for hit in results]
    assert set(found[:2]) == {made[3], other}
    assert set(found[2:4]) == {made[2], made[4]}
    assert set(found[4:]) == {made[1], made[5]}
    assert results.total_count == len(results) == 6  # never fewer than are given
    assert [hit.passed_gate for hit in results][2:] == [False] * 4


def test_memories_of_another_session_are_no_neighbours(memory: AgentMemory) -> None:
    memory.store("before", session_id="a")
    hit = memory.store("walnut", session_id="b")
    memory.store("after", session_id="a")
    assert ids(memory, "walnut") == [hit]


def test_notes_of_a_session_without_a_name_are_no_neighbours(root: Path) -> None:
    """Notes of one process lent each other their words: the milk was the second hit."""
    notes = [
        "Office plants need water on Mondays",
        "The Postgres password rotates every ninety days",
        "Buy oat milk",
    ]
    with AgentMemory("unnamed", root=root) as memory:
        memory.store_many([{"content": note} for note in notes])
        (hit,) = memory.search("when does the Postgres password rotate?")
    assert hit.memory.content == notes[1]
    with AgentMemory("named", root=root, session_id="planning the week") as memory:
        memory.store_many([{"content": note} for note in notes])
        assert len(memory.search("when does the Postgres password rotate?")) == 3


def test_what_a_user_says_comes_before_a_long_reply_in_general(memory: AgentMemory) -> None:
    """A message that tells and asks, and the reply to it that has all its words and many more."""
    told = (
        "My Flask app keeps its sessions in Redis 7 with a timeout of 45 minutes."
        " Can you suggest how to test that?"
    )
    reply = (
        "Testing a timeout is mostly a matter of time. First, make the clock a parameter of your"
        " app, so that a test can move it forward without waiting. Then log in with a client, move"
        " the clock to one second before the end, and ask for a page: it must still be served."
        " Move it two seconds on and ask again: the answer must be the login page. Repeat both with"
        " two workers, since each must see what the other wrote. Next, kill the store while a"
        " session is open and look at what people see; a plain message is better than a trace."
        " Flask keeps a signed cookie by itself, so test too that an old cookie is refused after"
        " the key was changed. Last, measure: a session that ends early annoys people, one that"
        " never ends is a risk, and only figures of your own visitors tell which you have. A"
        " dashboard with the number of logins an hour shows both at a glance, before anybody writes"
        " to you about them."
    )
    memory.store_many(
        [
            {"content": f"Note {n} about deploys, invoices and the garden", "session_id": "talk"}
            for n in range(40)
        ]
        + [{"content": text, "session_id": "talk"} for text in (told, reply)]
    )
    first = memory.search("What is the session timeout of my Flask app?")[0]
    assert first.memory.content == told


def test_a_neighbour_that_the_filters_leave_out_is_not_found(memory: AgentMemory) -> None:
    memory.store("just before", category="task")
    hit = memory.store("walnut")
    assert ids(memory, "walnut", category="note") == [hit]


# Gate, age and use --------------------------------------------------------------------------------


def test_a_fresh_memory_that_hardly_matches_does_not_come_before_the_answer(
    memory: AgentMemory,
) -> None:
    (answer,) = store_apart(memory, "walnut bread recipe", timestamp=NOW - timedelta(days=2_400))
    (fresh,) = store_apart(memory, "walnut tree")
    first, second = memory.search("walnut bread recipe", count_accesses=False)
    assert (first.memory.id, second.memory.id) == (answer, fresh)
    assert (first.passed_gate, second.passed_gate) == (True, False)
    assert second.relevance_score > first.relevance_score


def test_of_two_equal_memories_the_fresh_one_comes_first(memory: AgentMemory, root: Path) -> None:
    (fresh,) = store_apart(memory, "fresh walnut", timestamp=NOW)
    (old,) = store_apart(memory, "older walnut", timestamp=NOW - timedelta(days=10))
    assert ids(memory, "walnut") == [fresh, old]
    by_age = {hit.memory.id: hit for hit in memory.search("walnut", count_accesses=False)}
    assert by_age[fresh].relevance_score == pytest.approx(by_age[fresh].similarity)
    assert by_age[old].relevance_score == pytest.approx(by_age[old].similarity / 2)
    # Without decay only the order of storing is left: the later stored first.
    config = {"freshness_decay_rate": 0}
    with AgentMemory("bob", root=root, clock=Clock(), config=config) as other:
        assert ids(other, "walnut") == [old, fresh]


@pytest.mark.parametrize(
    ("now", "score"),
    [
        (NOW, 1.0),
        (NOW + timedelta(days=10, hours=23), 0.5),
        (NOW - timedelta(days=10), 1.0),  # before its time it is not younger than new
        ((NOW + timedelta(days=30)).replace(tzinfo=None), 0.25),
    ],
)
def test_ages_are_counted_from_the_moment_that_is_given(
    memory: AgentMemory, now: datetime, score: float
) -> None:
    memory.store("walnut")
    (hit,) = memory.search("walnut", now=now)
    assert hit.relevance_score == pytest.approx(score)


def test_of_two_equal_memories_the_one_found_before_comes_first(
    memory: AgentMemory, root: Path
) -> None:
    used, later = store_apart(memory, "walnut cake", "walnut tart")
    assert ids(memory, "walnut") == [later, used]
    assert len(memory.search("cake")) == 1
    assert ids(memory, "walnut") == [used, later]  # counts even before it is written
    memory.info()
    assert ids(memory, "walnut") == [used, later]
    with AgentMemory("bob", root=root, config={"access_boost_rate": 0}) as other:
        assert ids(other, "walnut") == [later, used]


# How it was found ---------------------------------------------------------------------------------


def test_the_match_type_tells_whether_a_memory_is_in_the_scratchpad_and_why(
    memory: AgentMemory,
) -> None:
    def match_type() -> str:
        (hit,) = memory.search("walnut", count_accesses=False)
        return hit.match_type

    memory_id = memory.store("walnut")
    assert match_type() == "scratchpad"
    memory.demote(memory_id)
    assert match_type() == "keyword"
    memory.promote(memory_id)
    assert match_type() == "promoted"


def test_archived_memories_are_not_found(memory: AgentMemory, visitor: Visitor) -> None:
    archived, kept = store_apart(memory, "walnut cake", "walnut tart")
    visitor(memory.path, f"UPDATE memories SET archived = 1 WHERE id = '{archived}'")
    assert ids(memory, "walnut") == [kept]
    assert ids(memory, "walnut", filters={"archived": True}) == [archived]
    assert set(ids(memory, "walnut", filters={"archived": None})) == {archived, kept}
    assert [found.id for found in memory.list_recent()] == [kept]
    assert memory.count() == 1
    assert memory.info().archived_count == 1
    assert stored(memory, archived).archived


# Counting accesses --------------------------------------------------------------------------------


def test_only_good_answers_count_as_accessed(memory: AgentMemory, clock: Clock) -> None:
    answer, other = store_apart(memory, "walnut bread recipe", "walnut tree")
    clock.forward(hours=3)
    results = memory.search("walnut bread recipe")
    assert [hit.passed_gate for hit in results] == [True, False]
    info = memory.info()  # writes what was counted
    assert info.stats.total_queries == 1
    assert stored(memory, answer).access_count == 1
    assert stored(memory, answer).last_accessed == NOW + timedelta(hours=3)
    assert stored(memory, other).access_count == 0
    assert stored(memory, other).last_accessed is None


def test_counting_can_be_left_out(memory: AgentMemory) -> None:
    memory_id = memory.store("walnut")
    assert len(memory.search("walnut", count_accesses=False)) == 1
    assert memory.info().stats.total_queries == 1
    assert stored(memory, memory_id).access_count == 0


def test_reading_by_other_means_is_no_access(memory: AgentMemory) -> None:
    memory_id = memory.store("walnut")
    memory.get(memory_id)
    memory.list_recent()
    memory.scratchpad()
    memory.context()
    memory.info()
    assert stored(memory, memory_id).access_count == 0


def test_accesses_through_several_handles_add_up(memory: AgentMemory, root: Path) -> None:
    memory_id = memory.store("walnut")
    for _ in range(2):
        with AgentMemory("bob", root=root) as other:
            assert len(other.search("walnut")) == 1
    assert len(memory.search("walnut")) == 1
    assert memory.info().stats.total_queries == 3
    assert stored(memory, memory_id).access_count == 3


def test_what_was_counted_for_a_memory_since_deleted_is_dropped(memory: AgentMemory) -> None:
    memory_id = memory.store("walnut")
    assert len(memory.search("walnut")) == 1
    memory.delete(memory_id)
    assert memory.info().memory_count == 0


def test_three_accesses_bring_a_memory_into_the_scratchpad(memory: AgentMemory) -> None:
    memory_id = memory.store("walnut")
    memory.demote(memory_id)
    for expected in ([], [], [memory_id]):
        assert len(memory.search("walnut")) == 1
        assert [entry.id for entry in memory.scratchpad().memories] == expected
    assert memory.info().stats.scratchpad_promotions == 1
    assert memory.search("walnut")[0].match_type == "promoted"


def test_how_many_accesses_it_takes_can_be_configured(memory: AgentMemory, root: Path) -> None:
    memory_id = memory.store("walnut")
    memory.demote(memory_id)
    with AgentMemory("bob", root=root, context_config={"promotion_access_threshold": 1}) as other:
        assert len(other.search("walnut")) == 1
        assert [entry.id for entry in other.scratchpad().memories] == [memory_id]


def test_a_read_only_store_is_searched_without_counting(memory: AgentMemory, root: Path) -> None:
    memory_id = memory.store("walnut")
    with AgentMemory("bob", root=root, read_only=True) as reader:
        for _ in range(3):
            assert ids(reader, "walnut") == [memory_id]
            assert len(reader.search("walnut")) == 1
        assert reader.info().stats.total_queries == 0
    assert stored(memory, memory_id).access_count == 0


@contextlib.contextmanager
def locked_by_another_process(path: Path) -> Iterator[None]:
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
        "c.execute('COMMIT')\n"
        "c.close()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield
        process.communicate()


def test_a_search_works_while_another_process_writes_and_counts_later(memory: AgentMemory) -> None:
    memory_id = memory.store("walnut")
    with locked_by_another_process(memory.path):
        assert len(memory.search("walnut")) == 1
        assert len(memory.search("walnut")) == 1
        assert memory.info().stats.total_queries == 0
        assert stored(memory, memory_id).access_count == 0
    assert memory.info().stats.total_queries == 2
    assert stored(memory, memory_id).access_count == 2
