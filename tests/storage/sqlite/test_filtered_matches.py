"""The ways to the best matches under a filter: each finds the same, in the same order."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from conftest import engine_of

from agent_memory import AgentMemory, SearchFilters
from agent_memory.storage.filters import (
    EVERYTHING,
    NOTHING,
    All,
    AnyOf,
    Archived,
    Filter,
    HasTag,
    Not,
    filter_of,
)
from agent_memory.storage.query_terms import scan_budget
from agent_memory.storage.sqlite import keyword_index
from agent_memory.storage.sqlite.filters import match_of_tags
from agent_memory.storage.sqlite.tables import memories
from agent_memory.storage.sqlite.tables.memories import SHORT_SESSION, MemoryTable
from bench.workload import NOW, Workload

FILTERS = {
    "category": {"category": "decision"},
    "tag": {"tags": ["kafka"]},
    "tags": {"tags": ["kafka", "redis"], "tags_match": "any"},
    "rare tag": {"tags": ["seldom"]},
    "no tag": {"tags": ["nosuchtag"]},
    "metadata": {"custom_filters": {"confidence": {"gte": 0.5}}},
    "narrow": {"custom_filters": {"confidence": {"gte": 0.99}}},
    "both": {"category": "decision", "tags": ["kafka"]},
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> AgentMemory:
    memory = AgentMemory("bob", root=tmp_path_factory.mktemp("filled"), clock=lambda: NOW)
    memory.store_many(list(Workload().memories(1_500)))
    memory.store_many(
        [{"content": f"Decided to use Kafka {n}", "tags": ["seldom"]} for n in range(3)]
    )
    return memory


@pytest.mark.parametrize("name", FILTERS)
def test_whichever_way_is_taken_the_same_is_found(
    filled: AgentMemory, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = SearchFilters.model_validate(FILTERS[name])
    found = []
    for many, share in ((10**9, 0.0), (0, 0.0), (0, 1.0)):
        monkeypatch.setattr(keyword_index, "MANY_MATCHES", many)
        monkeypatch.setattr(keyword_index, "MANY_TAGGED", many)
        monkeypatch.setattr(MemoryTable, "share_passing", lambda *_, share=share: share)
        results = filled.search(
            "decided to use Kafka",
            filters=filters,
            limit=30,
            count_accesses=False,
        )
        found.append([(hit.memory.id, hit.relevance_score) for hit in results])
    assert found[0] == found[1] == found[2]
    assert bool(found[0]) == (name != "no tag")


@pytest.mark.parametrize("filters", [None, SearchFilters(archived=None)], ids=["most", "all"])
def test_what_is_archived_is_left_out_the_same_way_be_it_much_or_little(
    root: Path, monkeypatch: pytest.MonkeyPatch, filters: SearchFilters | None
) -> None:
    with AgentMemory("bob", root=root, clock=lambda: NOW) as memory:
        ids = memory.store_many(list(Workload().memories(400)))
        memory.archive(ids[::5])
        found = []
        for many in (0, 10**9):
            monkeypatch.setattr(keyword_index, "MANY_ARCHIVED", many)
            results = memory.search(
                "decided to use Kafka", 50, filters=filters, count_accesses=False
            )
            found.append([(hit.memory.id, hit.relevance_score) for hit in results])
    assert found[0] == found[1]
    assert bool({each for each, _ in found[0]} & {*ids[::5]}) == (filters is not None)


@pytest.mark.parametrize("listed", [0, 10**9], ids=["read", "listed"])
def test_rows_of_a_user_among_some_are_the_same_read_or_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch, listed: int
) -> None:
    monkeypatch.setattr(memories, "LISTED_FOR_A_ROW", listed)
    with AgentMemory("bob", root=root) as memory:
        ids = memory.store_many(
            {"content": f"note {n}", "user_id": (None, "ann", "ben")[n % 3], "tags": [f"t{n % 2}"]}
            for n in range(60)
        )
        memory.archive(ids[1])
        engine = engine_of(memory)
        of_ann = filter_of(SearchFilters(user_id="ann", tags=["t1"]), agent_id="bob")
        among = [*range(40, 0, -1), 4, 4, 1_000]
        with engine.read():
            found = engine.memories.row_ids(of_ann, among=among)
            assert engine.memories.row_ids(of_ann, among=among, limit=2) == found[:2]
    assert found == [n + 1 for n in range(40) if n % 3 == 1 and n % 2 == 1 and n != 1]


KAFKA, NODE = HasTag("kafka"), HasTag("node.js")
K, N = (f'{{tags}} : ("{tag}" OR "u00" *)' for tag in ("kafka", "node.js"))
GREAT, GREATER = HasTag("größe"), HasTag("a > b")


@pytest.mark.parametrize(
    ("filters", "match"),
    [
        (KAFKA, f"{K}"),
        (All((Archived(archived=False), KAFKA, NODE)), f"{K} AND {N}"),
        (AnyOf((KAFKA, NODE)), f"({K} OR {N})"),
        (AnyOf((KAFKA, Archived(archived=False))), ""),
        (AnyOf((KAFKA, GREATER)), ""),
        (All((KAFKA, GREATER)), f"{K}"),
        (All((KAFKA, AnyOf((NODE, GREAT)), Not(NODE))), f"{K}"),
        *((tag, "") for tag in (GREAT, GREATER, HasTag('say "a"'), HasTag("--"), HasTag("r&d"))),
        *((other, "") for other in (Not(KAFKA), AnyOf(()), All(()), EVERYTHING)),
    ],
)
def test_the_index_is_asked_for_tags_that_all_have_and_that_it_has_as_they_are(
    filters: Filter, match: str
) -> None:
    assert match_of_tags(filters) == match


@pytest.mark.parametrize("many", [0, 10**9], ids=["looked up", "in the index"])
@pytest.mark.parametrize("tag", ["node.js", "a_b/c", "c++", "größe", "r&d", "naïve bayes", "--"])
def test_whatever_a_tag_is_written_like_it_is_found(
    root: Path, tag: str, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_index, "MANY_TAGGED", many)
    escaped = (
        json.dumps([tag])
        .replace("&", "\\u0026")
        .replace("+", "\\u002B")
        .replace("/", "\\/")
        .replace("js", "j\\u0073")
    )
    with AgentMemory("bob", root=root) as memory:
        memory.store("the walnut of the library", tags=[tag, "other"])
        memory.store_many({"content": f"the walnut {n}", "tags": ["node", "js"]} for n in range(5))
        with closing(sqlite3.connect(memory.path)) as visitor, visitor:
            visitor.execute(
                "INSERT INTO memories (id, content, tags) VALUES ('v', 'a visitor''s walnut', ?)",
                (escaped,),
            )
        hits = memory.search("walnut", tags=[tag])
    assert sorted(hit.memory.content for hit in hits) == [
        "a visitor's walnut",
        "the walnut of the library",
    ]


NOBODYS = HasTag("nosuchtag")
SOMEBODYS = HasTag("kafka")


@pytest.mark.parametrize(
    ("filters", "is_told"),
    [
        (NOBODYS, True),
        (SOMEBODYS, False),
        (All((Archived(archived=False), NOBODYS)), True),
        (All((Archived(archived=False), SOMEBODYS)), False),
        (AnyOf((NOBODYS, SOMEBODYS)), False),
        (AnyOf((NOBODYS, HasTag("another"))), True),
        (Not(NOBODYS), False),
        (HasTag("größe"), False),  # which another program may have written otherwise
        (NOTHING, True),
        (EVERYTHING, False),
    ],
)
def test_that_nothing_passes_is_told_of_tags_that_nothing_has(
    filled: AgentMemory, filters: Filter, *, is_told: bool
) -> None:
    table = engine_of(filled).memories
    assert isinstance(table, MemoryTable)
    assert table.passes_nothing(filters) == is_told
    assert not (is_told and table.count(filters))


def test_what_passes_among_many_of_an_owner_is_found_however_far_down(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the walnut", user_id="bob")
        memory.store_many(
            {"content": f"the walnut {n}", "user_id": "ann", "tags": ["first"] if n < 3 else []}
            for n in range(1_100)
        )
        hits = memory.search("walnut", 20, user_id="ann", tags=["first"])
    assert sorted(hit.memory.content for hit in hits) == [f"the walnut {n}" for n in range(3)]


def test_neighbours_at_the_end_of_what_is_listed_of_a_session(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store_many(
            [
                {"content": f"turn {n}", "session_id": "long", "timestamp": NOW}
                for n in range(SHORT_SESSION + 6)
            ]
        )
        engine = memory._store._engine
        with engine.read():
            table = engine.memories
            assert isinstance(table, MemoryTable)
            rows = [row_id for row_id, _ in enumerate(range(SHORT_SESSION + 6), start=1)]
            around = table.neighbours(rows)
    assert list(around) == rows
    for row_id in rows:
        expected = {d: row_id + d for d in (-1, -2, 1, 2) if row_id + d in rows}
        assert around[row_id] == expected, row_id


@pytest.mark.parametrize(
    ("share", "matches", "scanned"),
    [
        (1.0, 10**6, 5_000),
        (0.1, 10**6, 7_680),  # six times 128 pass
        (0.01, 10**6, 15_000),
        (0.0, 10**6, 15_000),
        (0.01, 4_000, 5_000),  # nor is it asked how many pass
    ],
)
def test_the_fewer_pass_a_filter_the_more_matches_are_scanned(
    filled: AgentMemory, monkeypatch: pytest.MonkeyPatch, share: float, matches: int, scanned: int
) -> None:
    table = engine_of(filled).memories
    monkeypatch.setattr(MemoryTable, "share_passing", lambda *_: share)
    assert scan_budget(table, HasTag("kafka"), [matches], 128) == scanned
    assert scan_budget(table, EVERYTHING, [matches], 128) == 5_000
