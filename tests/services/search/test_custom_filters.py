"""Filters on metadata: what each operator means, for any key and any value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_memory import AgentMemory, ValidationError

Json = dict[str, Any]

MIXED: list[Any] = [None, [], {}, True, 1, 1.0, "1", [None, 1]]
MEMORIES: dict[str, Json] = {
    "empty": {},
    "int": {"v": 5},
    "float": {"v": 5.5},
    "text": {"v": "5"},
    "word": {"v": "Straße café"},
    "true": {"v": True},
    "false": {"v": False},
    "null": {"v": None},
    "list": {"v": ["red", "Green", 5]},
    "object": {"v": {"w": {"x": 1}}},
    "dotted": {"v.w": 7},
    "quoted": {'it\'s "so"': "a'b\"c"},
    "sql": {"'; DROP TABLE memories; --": "'; DROP TABLE memories; --"},
    "unicode": {"键": "数据库"},
    "operator": {"AND": 1},
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemory]:
    root: Path = tmp_path_factory.mktemp("shared")
    with AgentMemory("bob", root=root, clock=Clock()) as memory:
        memory.store_many(
            {"content": f"walnut {name}", "id": name, "metadata": metadata}
            for name, metadata in MEMORIES.items()
        )
        yield memory


def found(memory: AgentMemory, custom: Any) -> set[str]:
    return {hit.id for hit in memory.list_recent(100, filters={"custom_filters": custom})}


# What each operator means -------------------------------------------------------------------------

NUMBERS = {"int", "float"}


@pytest.mark.parametrize(
    ("custom", "expected"),
    [
        ({}, set(MEMORIES)),
        # equal
        ({"v": 5}, {"int"}),
        ({"v": 5.0}, {"int"}),
        ({"v": "5"}, {"text"}),
        ({"v": {"eq": 5}}, {"int"}),
        ({"v": 5.5}, {"float"}),
        ({"v": "straße café"}, set()),
        ({"v": ["red", "Green", 5]}, {"list"}),
        ({"v": ["red"]}, set()),
        ({"v": {"eq": {"w": {"x": 1}}}}, {"object"}),
        ({"nothing": 5}, set()),
        # not equal: also for those that have no such key
        ({"v": {"ne": 5}}, set(MEMORIES) - {"int"}),
        ({"nothing": {"ne": 5}}, set(MEMORIES)),
        # order: numbers with numbers, texts with texts
        ({"v": {"gt": 5}}, {"float"}),
        ({"v": {"gte": 5}}, NUMBERS),
        ({"v": {"lt": 5.5, "gt": 0}}, {"int"}),
        ({"v": {"lte": 5.5, "gt": 1}}, NUMBERS),
        ({"v": {"gt": 10**15}}, set()),
        ({"v": {"gt": "4"}}, {"text", "word"}),
        ({"v": {"lte": "5"}}, {"text"}),
        ({"v": {"gte": "T"}}, set()),
        # one of
        ({"v": {"in": [5, "5"]}}, {"int", "text"}),
        ({"v": {"in": []}}, set()),
        ({"v": {"in": (5.5,)}}, {"float"}),
        ({"v": {"nin": [5, 5.5, "5"]}}, set(MEMORIES) - {"int", "float", "text"}),
        ({"v": {"nin": []}}, set(MEMORIES)),
        # contains: part of a text, member of a list
        ({"v": {"contains": "caf"}}, {"word"}),
        ({"v": {"contains": "CAF"}}, set()),
        ({"v": {"contains": "red"}}, {"list"}),
        ({"v": {"contains": "re"}}, set()),
        ({"v": {"contains": "green"}}, set()),
        ({"v": {"contains": 5}}, {"list", "text"}),
        ({"v": {"icontains": "STRASSE"}}, {"word"}),
        ({"v": {"icontains": "CAFÉ"}}, {"word"}),
        ({"v": {"icontains": "GREEN"}}, {"list"}),
        ({"v": {"contains": "%"}}, set()),
        ({"v": {"contains": "_"}}, set()),
        # nested
        ({"v.w.x": 1}, {"object"}),
        ({"v.w.x": {"gte": 0}}, {"object"}),
        ({"v.w": {"eq": {"x": 1}}}, {"object"}),
        ({"v.w.y": 1}, set()),
        ({"v.w.x.z": 1}, set()),
        ({"v.w.x": {"ne": 1}}, set(MEMORIES) - {"object"}),
        ({"v.w": 7}, {"dotted"}),
        ({"v.": 5}, set()),
        ({".": 5}, set()),
        # keys and values that SQL or JSON paths would trip over
        ({'it\'s "so"': "a'b\"c"}, {"quoted"}),
        ({'it\'s "so"': {"contains": "'b\""}}, {"quoted"}),
        ({"'; DROP TABLE memories; --": "'; DROP TABLE memories; --"}, {"sql"}),
        ({"v": "' OR '1'='1"}, set()),
        ({"$": 5}, set()),
        ({"$.v": 5}, set()),
        ({"v[0]": "red"}, set()),
        ({"v.0": "red"}, set()),
        ({"": 5}, set()),
        ({"键": "数据库"}, {"unicode"}),
        ({"键": {"contains": "据"}}, {"unicode"}),
        ({"?": 5}, set()),
        # groups
        ({"AND": [{"v": {"gte": 5}}, {"v": {"lt": 5.2}}]}, {"int"}),
        ({"OR": [{"v": 5}, {"v": "5"}]}, {"int", "text"}),
        ({"NOT": {"v": {"ne": 5}}}, {"int"}),
        ({"NOT": {"OR": [{"v": {"ne": 5}}, {"v": "5"}]}}, {"int"}),
        ({"NOT": {}}, set()),
        ({"AND": []}, set(MEMORIES)),
        ({"OR": []}, set()),
        ({"OR": [{}]}, set(MEMORIES)),
        ({"v": 5, "OR": [{"v": 5}, {"v": 6}]}, {"int"}),
        ({"v": 6, "OR": [{"v": 5}, {"v": 6}]}, set()),
    ],
    ids=lambda value: repr(value)[:50] if isinstance(value, dict) else "",
)
def test_a_filter_on_metadata_leaves_only_what_it_describes(
    shared: AgentMemory, custom: Json, expected: set[str]
) -> None:
    assert found(shared, custom) == expected
    filters = {"custom_filters": custom}
    assert shared.count(filters=filters) == len(expected)
    hits = shared.search("walnut", 100, filters=filters, count_accesses=False)
    assert {hit.memory.id for hit in hits} == expected
    assert shared.count() == len(MEMORIES)


@pytest.mark.parametrize("value", [True, False])
def test_true_and_false_are_found(shared: AgentMemory, value: bool) -> None:
    assert found(shared, {"v": value}) == {str(value).lower()}
    assert found(shared, {"v": {"in": [value]}}) == {str(value).lower()}


def test_null_is_a_value_and_not_a_missing_key(shared: AgentMemory) -> None:
    assert found(shared, {"v": None}) == {"null"}
    assert found(shared, {"v": {"in": [None]}}) == {"null"}
    assert found(shared, {"nothing": None}) == set()
    with_key = {name for name, metadata in MEMORIES.items() if "v" in metadata}
    assert found(shared, {"v": {"ne": None}}) == set(MEMORIES) - {"null"}
    assert with_key - {"null"} < found(shared, {"v": {"ne": None}})


def test_numbers_and_truth_values_are_not_mixed_up(memory: AgentMemory) -> None:
    memory.store("one", id="one", metadata={"v": 1})
    memory.store("true", id="true", metadata={"v": True})
    assert found(memory, {"v": 1}) == {"one"}
    assert found(memory, {"v": True}) == {"true"}
    assert found(memory, {"v": {"gte": 1}}) == {"one"}


def test_objects_are_equal_whatever_the_order_of_their_keys(memory: AgentMemory) -> None:
    memory.store("x", id="x", metadata={"v": {"a": 1, "b": [1, {"c": "ü"}]}})
    assert found(memory, {"v": {"eq": {"a": 1, "b": [1, {"c": "ü"}]}}}) == {"x"}
    assert found(memory, {"v": {"eq": {"b": [1, {"c": "ü"}], "a": 1}}}) == {"x"}
    assert found(memory, {"v": {"eq": {"a": 1}}}) == set()
    assert found(memory, {"v": {"ne": {"a": 1}}}) == {"x"}


# What is refused ----------------------------------------------------------------------------------


def nested(depth: int) -> Json:
    filters: Json = {"v": 5}
    for _ in range(depth):
        filters = {"NOT": filters}
    return filters


@pytest.mark.parametrize(
    ("custom", "key"),
    [
        ({"v": {"like": "x"}}, "v"),
        ({"v": {"EQ": 5}}, "v"),
        ({"v": {"$gt": 5}}, "v"),
        ({"v": {"> 0 OR 1=1 --": 5}}, "v"),
        ({"v": {}}, "v"),
        ({"v": {"gt": None}}, "v"),
        ({"v": {"lt": [1]}}, "v"),
        ({"v": {"in": 5}}, "v"),
        ({"v": {"in": "text"}}, "v"),
        ({"v": {"nin": None}}, "v"),
        ({"v": {"in": [[1]]}}, "v"),
        ({"v": {"contains": ["x"]}}, "v"),
        ({"v": {"icontains": {"x": 1}}}, "v"),
        ({"v": {"gt": float("nan")}}, "v"),
        ({"v": float("inf")}, "v"),
        ({"v": 2**63}, "v"),
        ({"v": "\ud800"}, "v"),
        ({"v": {"in": ["\ud800"]}}, "v"),
        ({"v": ...}, "v"),
        ({"v": {"eq": [...]}}, "v"),
        ({"\ud800": 1}, "\ud800"),
        ({"AND": {"v": 5}}, "AND"),
        ({"OR": 5}, "OR"),
        ({"OR": ["v"]}, "OR"),
        ({"NOT": [{"v": 5}]}, "NOT"),
        ({"OR": [{"v": {"like": 1}}]}, "v"),
        (nested(10), "filters"),
        (nested(400), "filters"),
        ({f"key{n}": n for n in range(101)}, "filters"),
        ({"OR": [{"v": {"gt": n, "lt": n + 1}} for n in range(51)]}, "filters"),
    ],
    ids=lambda value: ascii(value)[:50] if isinstance(value, dict) else "",
)
def test_a_filter_that_cannot_be_understood_is_refused_and_named(
    shared: AgentMemory, custom: Json, key: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        found(shared, custom)
    assert caught.value.errors()[0]["loc"][0].endswith((key, ascii(key)))
    with pytest.raises(ValidationError):
        shared.search("walnut", filters={"custom_filters": custom})


def test_filters_up_to_the_limits_are_taken(shared: AgentMemory) -> None:
    assert found(shared, nested(8)) == {"int"}
    assert found(shared, {"AND": [{"v": {"gt": n / 100}} for n in range(100)]}) == NUMBERS
    assert found(shared, {"v": {"in": list(range(5_000))}}) >= {"int"}


# Against the same rules in plain Python -----------------------------------------------------------


def same_kind(one: object, other: object) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return numbers or (isinstance(one, str) and isinstance(other, str))


def equal(one: object, other: object) -> bool:
    return (type(one) is type(other) or same_kind(one, other)) and one == other


def has(value: object, part: str, fold: Callable[[str], str]) -> bool:
    if isinstance(value, str):
        return fold(part) in fold(value)
    members = value if isinstance(value, list) else []
    return any(isinstance(member, str) and fold(part) == fold(member) for member in members)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": equal,
    "gt": lambda value, operand: same_kind(value, operand) and value > operand,
    "gte": lambda value, operand: same_kind(value, operand) and value >= operand,
    "lt": lambda value, operand: same_kind(value, operand) and value < operand,
    "lte": lambda value, operand: same_kind(value, operand) and value <= operand,
    "in": lambda value, operand: any(equal(value, one) for one in operand),
    "contains": lambda value, operand: has(value, operand, lambda text: text),
    "icontains": lambda value, operand: has(value, operand, str.casefold),
}


def holds(custom: Mapping[str, Any], metadata: Json) -> bool:
    """Evaluate filters by the book: all entries must hold."""

    def entry(key: str, value: Any) -> bool:
        if key == "AND":
            return all(holds(part, metadata) for part in value)
        if key == "OR":
            return any(holds(part, metadata) for part in value)
        if key == "NOT":
            return not holds(value, metadata)
        return all(operation(key, name, operand) for name, operand in value.items())

    def operation(key: str, name: str, operand: Any) -> bool:
        if name in ("ne", "nin"):
            return not operation(key, "eq" if name == "ne" else "in", operand)
        places = [metadata[key]] if key in metadata else []
        outer, dot, inner = key.partition(".")
        if dot and isinstance(metadata.get(outer), dict) and inner in metadata[outer]:
            places.append(metadata[outer][inner])
        return any(OPERATORS[name](value, operand) for value in places)

    return all(entry(key, value) for key, value in custom.items())


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.5, 1.0, -1.5]),
    st.sampled_from(["", "1", "a", "A", "ab", "ß", "'", '"', "数据"]),
)
KEYS = st.sampled_from(["a", "b", "a.b", "a'b", 'a"b', "数"])
METADATA = st.dictionaries(
    KEYS, SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, SCALARS, max_size=2),
    max_size=3,
)  # fmt: skip
ORDERED = st.integers(-2, 2) | st.sampled_from([0.5, "", "1", "a", "ab"])
TEXTS = st.sampled_from(["1", "a", "A", "ab", "SS", "'", "据"])
CONDITIONS = st.one_of(
    st.fixed_dictionaries({}, optional={"eq": SCALARS, "ne": SCALARS}),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("gt", "gte", "lt", "lte"), ORDERED)),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("in", "nin"), st.lists(SCALARS, max_size=3))),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("contains", "icontains"), TEXTS)),
).filter(bool)
FILTERS = st.recursive(
    st.dictionaries(KEYS, CONDITIONS, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"AND": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"OR": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries({"NOT": inner}),
    ),
    max_leaves=5,
)


@pytest.mark.file_only("its stores are files")
@settings(max_examples=80, deadline=None)
@given(
    stored=st.lists(METADATA, min_size=1, max_size=6),
    asked=st.lists(FILTERS, min_size=1, max_size=8),
)
@example(
    stored=[{"a": value} for value in MIXED],
    asked=[
        {"a": {operator: value}}
        for operator, values in (("eq", (None, True, 1, "1")), ("gte", (1, "1")))
        for value in values
    ],
)
def test_filters_find_what_plain_python_finds(
    tmp_path_factory: pytest.TempPathFactory, stored: list[Json], asked: list[Json]
) -> None:
    root = tmp_path_factory.mktemp("random")
    with AgentMemory("bob", root=root, synchronous="NORMAL") as memory:
        ids = memory.store_many({"content": "x", "metadata": metadata} for metadata in stored)
        by_id = dict(zip(ids, stored, strict=True))
        for custom in asked:
            expected = {of for of, metadata in by_id.items() if holds(custom, metadata)}
            assert found(memory, custom) == expected, custom
