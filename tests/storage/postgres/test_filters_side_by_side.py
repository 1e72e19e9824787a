"""Filters of PostgreSQL let the same memories pass as those of SQLite, whatever is asked."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from postgres_server import PostgresServer
from side_by_side import Pair, memory_of, opened_pair

from agent_memory import SearchFilters, ValidationError
from agent_memory.storage.filters import (
    EVERYTHING,
    NOT_ARCHIVED,
    AmongIds,
    Equals,
    Filter,
    HasTag,
    InCategories,
    InMetadata,
    NoRepeatOf,
    Not,
    any_of,
    filter_of,
)

UNICODE_OF_THE_TABLE = "14.0.0"


@pytest.fixture(scope="module")
def pair(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with opened_pair(postgres, tmp_path_factory.mktemp("pair")) as opened:
        yield opened


def passing(pair: Pair, filters: Filter) -> set[str]:
    """Return the ids that pass in both, which must be the same."""
    of_file, of_server = (engine.memories.ids(filters) for engine in pair.both)
    assert of_server == of_file
    for engine in pair.both:
        assert engine.memories.count(filters) == len(of_file)
    return set(of_file)


TEXTS = st.text(st.sampled_from("abAB1. ßÄäİ東%_\\'\"$[]{}?é"), max_size=6)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, 1.5, -0.0, 1e300, 0.1 + 0.2, 2**53, 2**53 + 1, -(2**63)]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
KEYS = st.sampled_from(["a", "b", "a.b", "a.b.a", "0", "", "$", "a'"])
OPERATORS = st.sampled_from(
    ["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains"]
)


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    operator = draw(OPERATORS)
    operand = st.lists(SCALARS, max_size=3) if operator in ("in", "nin") else VALUES
    return {draw(KEYS): {operator: draw(operand)}}


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "a.b", "0", "", "$"]), VALUES), max_size=6),
    st.lists(conditions(), min_size=1, max_size=4),
)
@example([{"a": [1]}, {"a": [1.0]}, {"a": 1}, {"a": True}], [{"a": {"eq": [1]}}, {"a": {"eq": 1}}])
@example([{"a": "x"}], [{"a": {"contains": "\x00"}}, {"a": {"eq": "\x00"}}, {"\x01": {"eq": 1}}])
def test_any_condition_on_any_metadata(
    pair: Pair, metadata: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    for engine in pair.both:
        with engine.write():
            engine.memory_rows.delete_many(engine.memories.ids(EVERYTHING))
    pair.store([memory_of(n, f"fact {n}", metadata=one) for n, one in enumerate(metadata)])
    for custom in [*asked, {"OR": asked}, {"NOT": {"AND": asked}}]:
        try:
            filters = filter_of(SearchFilters(custom_filters=custom), agent_id="bob")
        except ValidationError:  # such as the order of lists
            continue
        passing(pair, filters)


def test_columns_tags_and_categories(pair: Pair) -> None:
    for engine in pair.both:
        with engine.write():
            engine.memory_rows.delete_many(engine.memories.ids(EVERYTHING))
    rows = pair.store(
        [
            memory_of(
                1, "tea", tags=["straße"], user_id="ann", metadata={"original_category": "x"}
            ),
            memory_of(2, "tea", tags=["red"], category="task", kind="task", user_id="ben"),
            memory_of(3, "coffee", archived=True),
            memory_of(4, "cocoa", archived=True, metadata={"original_category": "Straße"}),
        ]
    )
    for engine in pair.both:
        with engine.write():
            engine.fingerprints.complete_page()
    repeated = engine.fingerprints.of_rows(rows[:1])
    expected: list[tuple[Filter, set[str]]] = [
        (HasTag("STRASSE"), set()),
        (HasTag("Straße"), {"mem-1"}),
        (HasTag("red"), {"mem-2"}),
        (Equals("user_id", "ann"), {"mem-1"}),
        (Equals("user_id", "ann\x00"), set()),
        (Not(Equals("user_id", "ann")), {"mem-2"}),
        (AmongIds(("mem-1", "mem-9", "\x00")), {"mem-1"}),
        (any_of(), set()),
        (InCategories(("task", "x"), ("x",)), {"mem-1", "mem-2"}),
        (InCategories(("TASK", "X"), ("X",)), {"mem-1", "mem-2"}),
        (InCategories(("Señal", "X"), ("SEÑAL", "X")), {"mem-1"}),
        (InCategories(("task\x00",), ()), set()),
        (InCategories(("STRASSE",), ("STRASSE",)), set()),
        (InCategories(("straße",), ("straße",)), {"mem-4"}),
        (NoRepeatOf(tuple(repeated.items())), {"mem-1", "mem-2", "mem-3", "mem-4"}),
        (NOT_ARCHIVED, {"mem-1", "mem-2"}),
    ]
    for filters, ids in expected:
        assert passing(pair, filters) == ids, filters


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'{"a": "x\u0000y", "b": 1}', "x\ufffdy"),
        (r'{"a": "\ud800", "b": 1}', "\ufffd"),
        (r'{"a": "\\u0000", "b": 1}', r"\u0000"),
        (r'{"a": "\ud83d\ude00", "b": 1}', "\U0001f600"),
        ('{"a": 1e999999, "b": 1}', None),
    ],
)
def test_what_jsonb_cannot_hold_keeps_nobody_from_finding(
    pair: Pair, written: str, value: str | None
) -> None:
    database = pair.server.database
    with pair.server.write():
        database.run("DELETE FROM memories")
        database.run("INSERT INTO memories (content, id) VALUES ('sound', 'sound')")
        sql = "INSERT INTO memories (content, id, metadata) VALUES ('odd', 'odd', %s)"
        database.run(sql, (written,))
    assert database.value("SELECT metadata FROM memories WHERE id = 'odd'") == written
    of_b = pair.server.memories.ids(InMetadata("b", "eq", 1))
    assert of_b == (["odd"] if value is not None else [])
    if value is not None:
        assert pair.server.memories.ids(InMetadata("a", "eq", value)) == ["odd"]
    assert pair.server.memories.ids(Not(InMetadata("a", "eq", "x"))) == ["sound", "odd"]


def test_texts_are_folded_as_python_folds_them(pair: Pair) -> None:
    letters = [chr(code) for code in range(1, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    folded = pair.server.database.rows(
        "SELECT letter, folded(letter) FROM unnest(%s::text[]) AS letter"
        " WHERE folded(letter) <> letter",
        (letters,),
    )
    expected = {letter: letter.casefold() for letter in letters if letter.casefold() != letter}
    if unicodedata.unidata_version == UNICODE_OF_THE_TABLE:
        assert dict(folded) == expected
    else:  # letters that came later, or were not there yet
        assert len(dict(folded).items() ^ expected.items()) < 200
    text = "Straße ΑΣ ǅ İ ﬀ Ångström"
    assert pair.server.database.value("SELECT folded(%s)", (text,)) == text.casefold()
