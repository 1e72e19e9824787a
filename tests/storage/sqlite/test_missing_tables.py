"""Files that another program took a table out of: that is told, and the table is made anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Clock, Ran, Visitor, database_of
from embedding_server import WordEmbedder

from agent_memory import AgentMemory, ValidationError
from agent_memory.models.agent import Problem
from agent_memory.storage.sqlite import schema

KEPT = ("agent", "memories")
"""Without these a file is no memory, or holds none."""
TABLES = [name for kind, name, _ in schema.objects() if kind == "table" and name not in KEPT]
ADVICE = {
    **dict.fromkeys(
        ("memory_tags", "memory_index", "memory_words", "fingerprints"), "from the memories"
    ),
    "schema_migrations": "rewrites it",
    "embedding_models": "until `migrate` is run",
    "entities": "the rest of the graph with it",
}
GO_WITH = {
    "embedding_models": {"embeddings"},
    "entities": {"entity_aliases", "entity_sources", "relationships", "relationship_sources"},
    "relationships": {"relationship_sources"},
}
"""By table, those whose rows are of its rows, and mean nothing without them."""
REVIEW = """
INSERT INTO reviews (seq, version, replaced_by, proposed_at)
SELECT seq, version, id, timestamp FROM memories"""
WRONG_SETTING = "UPDATE agent SET config = '{\"backups_kept\": -1}'"


@pytest.fixture
def path(root: Path) -> Path:
    """A closed file of three memories, stored at once."""
    with AgentMemory("bob", root=root, clock=Clock()) as memory:
        memory.store_many(
            [
                {"content": "Prefer walnut wood", "tags": ["carpentry"]},
                {"content": "An elephant at the zoo"},
                {"content": "Thunder at night"},
            ]
        )
    return memory.path


@pytest.fixture
def full(path: Path) -> Path:
    """The same file with vectors, a graph that the memories tell of, questions and a refusal."""
    with AgentMemory.open(path, clock=Clock(), embedder=WordEmbedder()) as memory:
        memory.migrate()
        one, another, _ = [it.id for it in memory.list_recent()]
        memory.graph.add("Alice", "works_at", "Acme", memory_id=one)
        memory.graph.add_entity("Zoo", aliases=["Tiergarten"], memory_id=another)
        memory.reject("hunter2")
        database_of(memory).run(REVIEW)
        assert memory.check().problems == []
    return path


def opened(path: Path, *, read_only: bool = False) -> AgentMemory:
    return AgentMemory.open(path, clock=Clock(), read_only=read_only)


def missing(problems: list[Problem]) -> str:
    (problem,) = (it for it in problems if it.kind == "missing_table")
    return problem.detail


def rows(memory: AgentMemory) -> dict[str, int]:
    """Return how many rows each table has, and how much of the graph can be seen."""
    database = database_of(memory)
    counted = [*TABLES, *KEPT, "graph_entities", "graph_edges"]
    with database.read():
        return {name: database.value(f"SELECT count(*) FROM {name}") for name in counted}


@pytest.mark.parametrize("table", TABLES)
def test_nothing_is_lost_with_a_table_but_what_is_of_its_rows(
    full: Path, visitor: Visitor, table: str
) -> None:
    with opened(full) as memory:
        before = rows(memory)
    visitor(full, f"DROP TABLE {table}")
    with opened(full) as memory:
        assert memory.check(repair=True).ok
        after = rows(memory)
    lost = {name for name in before if after[name] < before[name]}
    seen = {name for name in lost if name.startswith("graph_")}
    assert lost - seen <= {table} | GO_WITH.get(table, set())
    assert not seen or table in ("entities", "relationships")


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_table_is_told_and_made_anew(path: Path, visitor: Visitor, table: str) -> None:
    visitor(path, f"DROP TABLE {table};;{WRONG_SETTING}")
    for read_only in (True, False):
        with opened(path, read_only=read_only) as memory:
            report = memory.check()
        advice = ADVICE.get(table, "empty; what it contained is only in")
        assert f"table {table} is missing: `check --repair` " in missing(report.problems)
        assert advice in missing(report.problems)
        assert "wrong_settings" in {problem.kind for problem in report.problems}
    with opened(path) as memory:
        report = memory.check(repair=True)
        assert report.ok, report
        assert missing(report.problems)
        assert list((path.parent / "backups").glob("*repair*"))
        assert memory.check().problems == []
        assert [hit.memory.content for hit in memory.search("elephant")] == [
            "An elephant at the zoo"
        ]
        assert memory.count(filters={"tags": ["carpentry"]}) == 1
        assert memory.duplicates("Prefer walnut wood")
        assert memory.count() == 3
        memory.store("Oak is hard")


def test_without_its_model_a_memory_is_one_that_never_moved(full: Path, visitor: Visitor) -> None:
    visitor(full, "DROP TABLE embedding_models;;INSERT INTO embedding_queue (seq) VALUES (1)")
    with AgentMemory.open(full, clock=Clock(), embedder=WordEmbedder()) as memory:
        assert memory.check(repair=True).ok
        info = memory.info()
        assert (info.storage_backend, info.vector_model, info.migration) == ("file", None, None)
        assert info.pending_embeddings == 0
        memory.migrate()
        assert memory.info().storage_backend == "vector"
        assert memory.check().problems == []


def test_without_the_memories_there_is_nothing_to_mend(path: Path, visitor: Visitor) -> None:
    visitor(path, "DROP TABLE memories")
    with opened(path) as memory:
        for repair in (False, True):
            report = memory.check(repair=repair)
            assert not report.ok
            assert report.memory_count is None
            assert "`restore` brings a backup back" in missing(report.problems)


def test_without_its_agent_a_file_is_not_opened_and_a_backup_is_advised(
    path: Path, visitor: Visitor, cli: Callable[..., Ran]
) -> None:
    with opened(path) as memory:
        memory.backup()
    visitor(path, "DROP TABLE agent")
    for words in (["check"], ["check", "--repair"], ["search", "elephant"]):
        ran = cli("--agent", "bob", *words)
        assert ran.err.strip().endswith("no such table: agent; restore a backup"), ran
    AgentMemory.restore(path, "latest")
    assert cli("--agent", "bob", "check").code == 0


def test_undo_in_a_history_made_anew_takes_nothing_else_back(path: Path, visitor: Visitor) -> None:
    visitor(path, "DROP TABLE history")
    with opened(path) as memory:
        assert memory.check(repair=True).ok
        memory_id = memory.store("Oak is hard")
        assert memory.undo().memory_ids == [memory_id]
        memory.undo()
        assert memory.undo().memory_ids == [memory_id]
        assert memory.count() == 3


@pytest.mark.parametrize("table", ["history", "operations"])
def test_what_was_done_before_a_table_was_made_anew_is_not_undone(
    path: Path, visitor: Visitor, table: str
) -> None:
    visitor(path, f"DROP TABLE {table}")
    with opened(path) as memory:
        assert memory.check(repair=True).ok
        with pytest.raises(ValidationError, match=r"`check --repair`, has nothing left"):
            memory.undo()
        assert [len(memory.history(it.id)) for it in memory.list_recent()] == [1, 1, 1]


def test_the_command_line_says_so_and_mends_it(
    path: Path, visitor: Visitor, cli: Callable[..., Ran]
) -> None:
    visitor(path, "DROP TABLE history")
    looked = cli("--agent", "bob", "check")
    assert (looked.code, "the table history is missing" in looked.out) == (6, True), looked
    assert cli("--agent", "bob", "check", "--repair").code == 0
    assert cli("--agent", "bob", "check").code == 0
