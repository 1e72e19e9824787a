"""Filters on the fields of a memory, in searches, lists and counts, and the lists themselves.

Filters on metadata are in test_custom_filters.py.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import NOW

from agent_memory import AgentMemory, SearchFilters, ValidationError

DAY = timedelta(days=1)


SEVERAL: dict[str, dict[str, Any]] = {
    "plain": {},
    "task": {"category": "task"},
    "decision": {"category": "decision"},
    "red": {"tags": ["red"]},
    "red-green": {"tags": ["Red", "green"]},
    "core": {"kind": "core"},
    "high": {"importance": "high"},
    "other-session": {"session_id": "session-2"},
    "user": {"user_id": "ursula"},
    "run": {"run_id": "run-7"},
    "graph": {"memory_type": "GRAPH"},
}


def in_order(value: object) -> str:
    """Name a parameter, the same in every process: a set is in no order of its own."""
    return str(sorted(value) if isinstance(value, set) else value)


@pytest.fixture
def several(memory: AgentMemory) -> AgentMemory:
    """Memories that all match "walnut", differ in one field each, and are a day apart."""
    memory.store_many(
        {"content": f"walnut {name}", "id": name, "timestamp": NOW - n * DAY, **fields}
        for n, (name, fields) in enumerate(SEVERAL.items())
    )
    return memory


def found(memory: AgentMemory, **options: Any) -> set[str]:
    hits = memory.search("walnut", 100, count_accesses=False, **options)
    return {hit.memory.id for hit in hits}


# One filter each: as an argument of search, and as filters everywhere -----------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"category": "task"}, {"task"}),
        ({"category": ["task", "decision"]}, {"task", "decision"}),
        ({"category": ("task",)}, {"task"}),
        ({"category": "TASK"}, {"task"}),
        ({"category": ["Task", "señal"]}, {"task"}),
        ({"category": "tas"}, set()),
        ({"category": "unheard-of"}, set()),
        ({"category": []}, set()),
        ({"tags": ["red"]}, {"red", "red-green"}),
        ({"tags": [" RED "]}, {"red", "red-green"}),
        ({"tags": ["red", "green"]}, {"red-green"}),
        ({"tags": ["red", "green"], "tags_match": "any"}, {"red", "red-green"}),
        ({"tags": ["green", "blue"], "tags_match": "any"}, {"red-green"}),
        ({"tags": ["green", "blue"]}, set()),
        ({"tags": ["re"]}, set()),
        ({"kind": "core"}, {"core"}),
        ({"kind": "task"}, set()),
        ({"importance": "high"}, {"high"}),
        ({"session_id": "session-2"}, {"other-session"}),
        ({"session_id": "' OR 1=1; --"}, set()),
        ({"user_id": "ursula"}, {"user"}),
        ({"user_id": ""}, set()),
        ({"run_id": "run-7"}, {"run"}),
        ({"run_id": "run-7", "user_id": "ursula"}, set()),
    ],
    ids=in_order,
)
def test_a_filter_leaves_only_what_it_describes(
    several: AgentMemory, options: dict[str, Any], expected: set[str]
) -> None:
    assert found(several, **options) == expected
    assert found(several, filters=options) == expected
    assert found(several, filters=SearchFilters(**options)) == expected
    assert {hit.id for hit in several.list_recent(100, filters=options)} == expected
    assert several.count(filters=options) == len(expected)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"memory_type": "GRAPH"}, {"graph"}),
        ({"memory_type": "PROCEDURAL"}, set()),
        ({"agent_id": "eve"}, set()),
        ({"agent_id": "bob", "kind": "core"}, {"core"}),
        ({"archived": True}, set()),
        ({"min_access_count": 1}, set()),
        ({"min_access_count": 0, "kind": "core"}, {"core"}),
    ],
    ids=in_order,
)
def test_filters_that_are_no_arguments_of_search(
    several: AgentMemory, filters: dict[str, Any], expected: set[str]
) -> None:
    assert found(several, filters=filters) == expected
    assert {hit.id for hit in several.list_recent(100, filters=filters)} == expected
    assert several.count(filters=filters) == len(expected)


def test_without_filters_all_are_found(several: AgentMemory) -> None:
    choices: list[Any] = [None, {}, SearchFilters()]
    for nothing in choices:
        assert len(found(several, filters=nothing)) == 11
        assert several.count(filters=nothing) == 11


def test_memories_accessed_often_enough_are_found(memory: AgentMemory) -> None:
    often, once = (memory.store(text, session_id=text) for text in ("walnut cake", "walnut tart"))
    for query in ("cake", "cake", "tart"):
        assert len(memory.search(query)) == 1
    memory.info()
    counted = [found(memory, filters={"min_access_count": least}) for least in (1, 2, 3)]
    assert counted == [{often, once}, {often}, set()]


def test_arguments_and_filters_must_all_hold(several: AgentMemory) -> None:
    assert found(several, category="note", filters={"tags": ["green"]}) == {"red-green"}
    assert found(several, category="task", filters={"tags": ["green"]}) == set()
    assert found(several, since=NOW - DAY, filters={"category": ["task", "decision"]}) == {"task"}


# Dates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (NOW, None, {"plain"}),
        (NOW + timedelta(microseconds=1), None, set()),
        (NOW - DAY, None, {"plain", "task"}),
        (NOW - DAY + timedelta(microseconds=1), None, {"plain"}),
        (None, NOW - 10 * DAY, {"graph"}),
        (None, NOW - 10 * DAY - timedelta(microseconds=1), set()),
        (NOW - 2 * DAY, NOW - DAY, {"task", "decision"}),
        (NOW, NOW, {"plain"}),
        # A naive time is UTC; another zone is the same moment.
        (datetime(2026, 1, 30, 16), None, {"plain"}),  # noqa: DTZ001
        (NOW.astimezone(timezone(timedelta(hours=-8))), None, {"plain"}),
        ("2026-01-30T16:00:00", None, {"plain"}),
        ("2026-01-30T16:00:00Z", None, {"plain"}),
        ("2026-01-30T18:00:00+02:00", None, {"plain"}),
        (" 2026-01-30 ", None, {"plain"}),
        ("20260130", None, {"plain"}),
        ("2026-01-29", "2026-01-30", {"task", "plain"}),
        ("2026-01-29", "2026-01-30T00:00:00Z", {"task"}),
        ("0001-01-02", "9999-12-30", None),
    ],
    ids=in_order,
)
def test_both_ends_of_a_span_are_included(
    several: AgentMemory, since: Any, until: Any, expected: set[str] | None
) -> None:
    spanned = found(several, since=since, until=until)
    assert spanned == expected or (expected is None and len(spanned) == 11)


def test_a_span_may_be_given_as_filters(several: AgentMemory) -> None:
    span = {"date_range": {"start": "2026-01-29T00:00:00", "end": NOW - DAY}}
    assert found(several, filters=span) == {"task"}
    assert several.count(filters=span) == 1
    assert several.count(filters={"date_range": {}}) == 11
    for day in ("2026-01-29", date(2026, 1, 29)):
        assert found(several, filters={"date_range": {"start": day, "end": day}}) == {"task"}
        assert found(several, since=day, until=day) == {"task"}


def test_a_span_that_ends_before_it_starts_is_refused(several: AgentMemory) -> None:
    """It matched nothing, as if there were no memories."""
    with pytest.raises(ValidationError, match=r"2026-01-30T.* until, 2026-01-29T23:59") as caught:
        found(several, since="2026-01-30", until="2026-01-29")
    assert caught.value.errors()[0]["loc"] == ("since",)
    for verb in (several.count, several.list_recent):
        with pytest.raises(ValidationError, match="swap the two"):
            verb(filters={"date_range": {"start": NOW, "end": NOW - DAY}})


@pytest.mark.parametrize("end", ["since", "until"])
@pytest.mark.parametrize(
    "text",
    ["someday", "", "2026-02-30", "2026-01-30T24:30:00", "10000-01-01", "1700000000",
     "0001-01-01T00:00:00+05:30", "2026-01-30T00:00:00+25:00", 5, True],
)  # fmt: skip
def test_what_is_not_a_time_is_refused(several: AgentMemory, end: str, text: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        found(several, **{end: text})
    assert caught.value.errors()[0]["loc"] == (end,)


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"categori": "task"}, "categori"),
        ({"category": 5}, "category"),
        ({"tags": "red"}, "tags"),
        ({"tags": ["red"], "tags_match": "some"}, "tags_match"),
        ({"kind": "eternal"}, "kind"),
        ({"importance": "extreme"}, "importance"),
        ({"memory_type": "graph"}, "memory_type"),
        ({"min_access_count": -1}, "min_access_count"),
        ({"date_range": {"start": "soon"}}, "date_range"),
        ({"date_range": {"from": NOW}}, "date_range"),
        ({"custom_filters": ["a"]}, "custom_filters"),
        (["category"], "SearchFilters"),
    ],
    ids=in_order,
)
def test_a_filter_that_cannot_be_understood_is_refused_and_named(
    several: AgentMemory, filters: Any, field: str
) -> None:
    for verb in (several.list_recent, several.count):
        with pytest.raises(ValidationError) as caught:
            verb(filters=filters)
        assert caught.value.errors()[0]["loc"][0] == field
    with pytest.raises(ValidationError) as caught:
        several.search("walnut", filters=filters)
    assert caught.value.errors()[0]["loc"][0] == field


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"category": "task", "filters": {"category": "note"}}, "category"),
        ({"category": "task", "filters": SearchFilters(category="task")}, "category"),
        ({"tags": ["red"], "filters": {"tags": ["green"]}}, "tags"),
        ({"since": NOW, "filters": {"date_range": {"end": NOW}}}, "date_range"),
        ({"session_id": "a", "filters": {"session_id": "b"}}, "session_id"),
    ],
    ids=in_order,
)
def test_the_same_filter_given_twice_is_refused(
    several: AgentMemory, options: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError, match="once") as caught:
        found(several, **options)
    assert caught.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"], ids=ascii)
@pytest.mark.parametrize("field", ["category", "session_id", "user_id", "run_id", "agent_id"])
def test_a_text_that_no_memory_can_have_finds_nothing_or_is_refused(
    several: AgentMemory, field: str, text: str
) -> None:
    try:
        assert several.count(filters={field: text}) == 0
    except ValidationError as error:
        assert error.errors()[0]["loc"][0] == field  # noqa: PT017 - either answer will do


# Filters come before the limit --------------------------------------------------------------------


def test_better_matches_that_the_filter_leaves_out_do_not_use_up_the_limit(
    memory: AgentMemory,
) -> None:
    weak = "a walnut among a great many other words about nothing in particular, it seems"
    wanted = memory.store(weak, category="task", session_id="other", timestamp=NOW - 300 * DAY)
    memory.store_many({"content": "walnut walnut"} for _ in range(600))
    assert found(memory, category="task") == {wanted}
    results = memory.search("walnut", 1, category="task")
    assert [hit.memory.id for hit in results] == [wanted]
    assert results.total_count == 1
    assert [hit.id for hit in memory.list_recent(1, filters={"category": "task"})] == [wanted]


# Lists and counts ---------------------------------------------------------------------------------


def test_the_newest_come_first_by_their_own_time(memory: AgentMemory) -> None:
    old = memory.store("stored first, happened last week", timestamp=NOW - 7 * DAY)
    new = memory.store("x", timestamp=NOW)
    ancient = memory.store("y", timestamp=datetime(1970, 1, 1, tzinfo=UTC))
    same = memory.store("z", timestamp=NOW)
    assert [hit.id for hit in memory.list_recent()] == [same, new, old, ancient]


def test_pages_of_a_list_together_are_the_list(several: AgentMemory) -> None:
    everything = several.list_recent(100)
    assert len(everything) == 11
    pages = [several.list_recent(4, offset=offset) for offset in (0, 4, 8, 12)]
    assert [len(page) for page in pages] == [4, 4, 3, 0]
    assert [hit for page in pages for hit in page] == everything
    tagged = {"tags": ["red"]}
    assert [hit.id for hit in several.list_recent(1, offset=1, filters=tagged)] == ["red-green"]


def test_a_list_has_10_unless_told_otherwise_and_may_be_long(memory: AgentMemory) -> None:
    memory.store_many({"content": f"text {n}"} for n in range(150))
    assert len(memory.list_recent()) == 10
    assert len(memory.list_recent(1_000)) == 150


@pytest.mark.parametrize(
    "place",
    [{"limit": 0}, {"limit": -1}, {"offset": -1}, {"limit": "5"}, {"limit": 10**20}],
    ids=in_order,
)
def test_a_list_that_cannot_be_is_refused(memory: AgentMemory, place: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        memory.list_recent(**place)


def test_an_empty_store_has_an_empty_list(memory: AgentMemory) -> None:
    assert memory.list_recent() == []
    assert memory.count() == 0
