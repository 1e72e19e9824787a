"""Whatever is put, got, searched, deleted and listed: as LangGraph's own InMemoryStore does it.

Where that one counts ``True`` as 1, or fails to compare, this one differs, and is not asked.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langgraph.store.memory")

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from agent_memory import AgentMemory
from agent_memory.integrations.langgraph import AgentMemoryStore

LABELS = st.sampled_from(["a", "b", "A", "a_%", "é", "a b", "*x"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(["k", "l", "K", "k.l", "", "日本"])
LEAVES = st.one_of(
    st.none(),
    st.integers(2, 5),
    st.sampled_from([2.0, 2.5, -1e300]),
    st.text("ab \n猫", max_size=4),
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=5,
)
VALUES = st.fixed_dictionaries(
    {"n": st.integers(0, 4)}, optional={"x": JSON, "y": LEAVES, "t": st.sampled_from(["a", "b"])}
)
FILTERS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"n": st.integers(0, 4)}),
    st.dictionaries(st.sampled_from(["x", "y", "t", "no"]), JSON, max_size=2),
    st.builds(
        lambda name, number: {"n": {name: number}},
        st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
        st.integers(0, 4) | st.just(2.5),
    ),
    st.builds(lambda name, leaf: {"y": {name: leaf}}, st.sampled_from(["$eq", "$ne"]), LEAVES),
)
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)
CONDITIONS = st.none() | st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2
).map(tuple)
PUTS: st.SearchStrategy[Op] = st.tuples(NAMESPACES, KEYS, VALUES).map(lambda it: PutOp(*it))
SEARCHES = st.tuples(PREFIXES, FILTERS).map(lambda it: SearchOp(*it, limit=1_000))
OPS: st.SearchStrategy[Op] = st.one_of(
    PUTS,
    PUTS,
    st.tuples(NAMESPACES, KEYS).map(lambda it: PutOp(*it, None)),
    st.tuples(NAMESPACES, KEYS).map(lambda it: GetOp(*it)),
    SEARCHES,
    st.tuples(CONDITIONS, st.none() | st.integers(1, 3)).map(
        lambda it: ListNamespacesOp(*it, limit=1_000)
    ),
)


def told(result: Result) -> Any:
    """Return what both stores must agree on: the order of a search is each one's own."""
    if isinstance(result, Item):
        return result.namespace, result.key, result.value
    if isinstance(result, list):
        return sorted((told(item) if isinstance(item, Item) else item for item in result), key=repr)
    return result


def in_memory(store: InMemoryStore, batch: list[Op]) -> list[Any]:
    """Return what a batch gives with the reference: each read on its own, then the puts.

    It lists namespaces that have no item any more, or that were only asked for, until they go.
    """
    results = []
    for op in batch:
        for namespace in [name for name, items in store._data.items() if not items]:
            del store._data[namespace]
        results.append(None if isinstance(op, PutOp) else told(store.batch([op])[0]))
    store.batch([op for op in batch if isinstance(op, PutOp)])
    return results


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(OPS, min_size=1, max_size=5), min_size=1, max_size=8))
def test_batches_have_the_results_that_they_have_in_memory(batches: list[list[Op]]) -> None:
    reference = InMemoryStore()
    with (
        tempfile.TemporaryDirectory() as root,
        AgentMemoryStore("bob", root=root, synchronous="NORMAL", embedder=None) as store,
    ):
        for batch in batches:
            expected = in_memory(reference, batch)
            assert [told(result) for result in store.batch(batch)] == expected
        assert isinstance(store.memory, AgentMemory)
        assert store.memory.check().problems == []


@settings(max_examples=20, deadline=None)
@given(
    puts=st.lists(PUTS, min_size=1, max_size=12),
    limit=st.integers(1, 4),
    op=SEARCHES,
)
def test_pages_put_together_are_the_whole(puts: list[Op], limit: int, op: SearchOp) -> None:
    with (
        tempfile.TemporaryDirectory() as root,
        AgentMemoryStore("bob", root=root, synchronous="NORMAL", embedder=None) as store,
    ):
        store.batch(puts)
        search: Callable[..., Any] = store.search
        whole = search(op.namespace_prefix, filter=op.filter, limit=100)
        pages = [
            search(op.namespace_prefix, filter=op.filter, limit=limit, offset=offset)
            for offset in range(0, len(whole) + limit, limit)
        ]
        assert [item for page in pages for item in page] == whole
