"""The requirements for filters: what each one matches, in every engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from agent_memory import DateRange, SearchFilters, TaskStatus
from agent_memory.conformance.engine_contract.cases import AGENT, NOW, memory_of, stored
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import (
    EVERYTHING,
    NOT_ARCHIVED,
    NOTHING,
    AmongIds,
    Archived,
    Filter,
    NoRepeatOf,
    Not,
    all_of,
    any_of,
    filter_of,
)

MEMORIES: list[Mapping[str, Any]] = [
    {"tags": ["red", "big"], "category": "note", "user_id": "ann"},
    {"tags": ["red"], "category": "task", "kind": "task", "task_metadata": {"status": "blocked"}},
    {"tags": [], "metadata": {"n": 1, "deep": {"word": "Tea"}, "list": ["a", 2]}},
    {"metadata": {"n": 1.5, "flag": True, "none": None}, "access_count": 7},
    {"metadata": {"n": "1", "flag": 1, "deep.word": "tea"}, "run_id": "r", "archived": True},
]
CASES: list[tuple[dict[str, Any], set[int]]] = [
    ({}, {0, 1, 2, 3}),
    ({"archived": None}, {0, 1, 2, 3, 4}),
    ({"archived": True}, {4}),
    ({"ids": ["mem-1", "mem-3", "mem-4", "mem-9"]}, {1, 3}),
    ({"ids": []}, set()),
    ({"user_id": "ann"}, {0}),
    ({"run_id": "r", "archived": None}, {4}),
    ({"category": ["note", "task"]}, {0, 1, 2, 3}),
    ({"category": "task"}, {1}),
    ({"category": "Task"}, {1}),
    ({"category": ["TASK", "señal"]}, {1}),
    ({"tags": ["red"]}, {0, 1}),
    ({"tags": ["red", "big"]}, {0}),
    ({"tags": ["big", "none"], "tags_match": "any"}, {0}),
    ({"kind": "task"}, {1}),
    ({"task_status": TaskStatus.BLOCKED}, {1}),
    ({"min_access_count": 5}, {3}),
    ({"date_range": DateRange(start=NOW + timedelta(minutes=3))}, {3}),
    ({"date_range": DateRange(end=NOW + timedelta(minutes=1))}, {0, 1}),
    ({"agent_id": "alice"}, set()),
    ({"custom_filters": {"n": 1}}, {2}),
    ({"custom_filters": {"n": {"gt": 1}}}, {3}),
    ({"custom_filters": {"n": {"gte": 1, "lte": 1.5}}}, {2, 3}),
    ({"custom_filters": {"n": "1"}, "archived": None}, {4}),
    ({"custom_filters": {"n": {"in": [1, "1"]}}, "archived": None}, {2, 4}),
    ({"custom_filters": {"n": {"nin": [1, 1.5]}}}, {0, 1}),
    ({"custom_filters": {"n": {"ne": 1}}}, {0, 1, 3}),
    ({"custom_filters": {"flag": True}, "archived": None}, {3}),
    ({"custom_filters": {"none": None}}, {3}),
    ({"custom_filters": {"deep.word": {"icontains": "TEA"}}, "archived": None}, {2, 4}),
    ({"custom_filters": {"deep": {"eq": {"word": "Tea"}}}}, {2}),
    ({"custom_filters": {"list": {"contains": 2}}}, {2}),
    ({"custom_filters": {"OR": [{"n": 1}, {"flag": True}]}}, {2, 3}),
    ({"custom_filters": {"NOT": {"n": 1}}}, {0, 1, 3}),
]


def numbers(engine: Engine, filters: Filter) -> set[int]:
    """Return the numbers of the memories that a filter matches."""
    ids = engine.memories.ids(filters)
    assert engine.memories.count(filters) == len(ids)
    return {int(memory_id.removeprefix("mem-")) for memory_id in ids}


class FilterContract:
    """Each filter matches exactly the memories that its name and values say."""

    @pytest.fixture
    def filled(self, engine: Engine) -> Engine:
        stored(engine, *(memory_of(number, **fields) for number, fields in enumerate(MEMORIES)))
        return engine

    @pytest.mark.parametrize(("fields", "expected"), CASES, ids=lambda case: str(case)[:60])
    def test_filters_pass_what_they_say(
        self, filled: Engine, fields: dict[str, Any], expected: set[int]
    ) -> None:
        filters = SearchFilters.model_validate(fields)
        assert numbers(filled, filter_of(filters, agent_id=AGENT)) == expected

    def test_the_tree_is_what_logic_says(self, filled: Engine) -> None:
        first, second = AmongIds(("mem-0",)), AmongIds(("mem-1",))
        assert numbers(filled, EVERYTHING) == {0, 1, 2, 3, 4}
        assert numbers(filled, NOTHING) == set()
        assert numbers(filled, any_of(first, second)) == {0, 1}
        assert numbers(filled, all_of(first, second)) == set()
        assert numbers(filled, all_of(NOT_ARCHIVED, Not(first))) == {1, 2, 3}
        assert numbers(filled, EVERYTHING.and_also(Archived(archived=True))) == {4}

    def test_repeats_are_left_out(self, engine: Engine) -> None:
        rows = stored(engine, memory_of(1, "I like tea"), memory_of(2, "I like tea"), memory_of(3))
        with engine.write():
            engine.fingerprints.complete_page()
        prints = engine.fingerprints.of_rows(rows[:1])
        assert numbers(engine, NoRepeatOf(tuple(prints.items()))) == {1, 3}
