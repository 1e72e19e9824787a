"""Indexes that somebody else put on our tables: those that run or refuse are told from the rest."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from agent_memory import AgentMemory
from agent_memory.errors import StorageUntrusted


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE UNIQUE INDEX e ON recalls (1)",
        "CREATE UNIQUE INDEX e ON memories (category)",
        "CREATE INDEX e ON memories (printf('%0900000d', seq))",
        'CREATE INDEX "an odd name" ON "memories" (content || content)',
        "CREATE INDEX e ON memories (upper(content)) WHERE archived = 0",
        'CREATE INDEX "x ON own (a" ON memories (lower(content))',
        "CREATE INDEX e ON memories(lower(content))WHERE(content)",
        "CREATE INDEX e ON memories (user_id) WHERE lower(content) = 'x'",
        "CREATE INDEX e ON memories (user_id) WHERE user_id IS NULL OR content LIKE 'x'",
        "CREATE INDEX e ON memories (user_id) WHERE archived = (1 + 1)",
        "CREATE INDEX e ON memory_index_data (block)",
        "CREATE UNIQUE INDEX e ON 'MEMORY_index_docsize' (sz)",
        "CREATE INDEX e ON embedding_index_1_vector_chunks00 (vectors)",
        "CREATE INDEX e ON embedding_index_1_chunks (partition00, size)",
    ],
)
def test_a_foreign_index_that_runs_or_refuses_is_named_and_dropped(
    root: Path, visitor: Callable[[Path, str], str], sql: str
) -> None:
    """Every store became a ValidationError, or took 900 MB, and `check` called the file sound.

    One on a table of FTS5 ended in a segmentation fault.
    """
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain tea", id="first")
        if "embedding" in sql:
            memory.migrate(embedder="wordllama")
        path = memory.path
    visitor(path, sql)
    with AgentMemory("bob", root=root) as memory:
        with pytest.raises(
            StorageUntrusted, match=r"the index .* is not agent-memory's.*check --repair`"
        ):
            memory.store("more tea", tags=["new"])
        assert [found.content for found in memory.list_recent()] == ["plain tea"]
        assert [hit.memory.id for hit in memory.search("tea")] == ["first"]
        assert "foreign_index" in {problem.kind for problem in memory.check().problems}
        assert memory.check(repair=True).ok
        assert memory.backups()[0].reason == "repair"
        memory.store("more tea")
        assert memory.check().problems == []


def test_a_plain_index_of_a_visitor_is_left_alone(
    root: Path, visitor: Callable[[Path, str], str]
) -> None:
    with AgentMemory("bob", root=root) as memory:
        visitor(
            memory.path,
            "CREATE INDEX by_user ON memories (user_id, timestamp DESC);;"
            'CREATE INDEX quoted ON [memories] ("user_id" desc, [kind], `run_id`);;'
            'CREATE INDEX folded ON memories (content COLLATE nocase, tags collate "RTRIM" ASC);;'
            'CREATE INDEX some ON memories("user_id"COLLATE BINARY DESC)WHERE"archived"=0 AND'
            " user_id IS NOT NULL OR kind <> 'it''s' AND importance>=-0.5 and run_id not null;;"
            "CREATE INDEX größe$ ON memories (user_id);;"
            "CREATE TABLE own (a, b);;CREATE UNIQUE INDEX own_a ON own (a);;"
            "CREATE INDEX own_b ON own (lower(b))",
        )
        memory.store("plain tea")
        assert memory.check(repair=True).problems == []
    names = visitor(memory.path, "SELECT name FROM sqlite_schema")
    assert all(name in names for name in ("by_user", "quoted", "folded", "some", "größe$"))


@pytest.mark.parametrize("collation", ["NOCAſE", "BıNARY"])
def test_a_collation_is_not_taken_for_one_of_sqlite_that_looks_alike(
    root: Path, visitor: Callable[[Path, str], str], collation: str
) -> None:
    """Every store failed for want of it, and `check` called the file sound."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain tea")
    with contextlib.closing(apsw.Connection(str(memory.path))) as connection:
        connection.create_collation(collation, lambda one, other: (one > other) - (one < other))
        connection.execute(f"CREATE INDEX e ON memories (user_id COLLATE {collation})")
    with AgentMemory("bob", root=root) as memory:
        with pytest.raises(StorageUntrusted, match=r'the index e is not.*DROP INDEX "e"'):
            memory.store("more tea")
        assert "foreign_index" in {problem.kind for problem in memory.check().problems}
    visitor(memory.path, 'DROP INDEX "e"')
    with AgentMemory("bob", root=root) as memory:
        memory.store("more tea")


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
def test_the_advised_command_runs(tmp_path: Path) -> None:
    """An index may be named by a keyword, and a folder have any name."""
    path = tmp_path / "bob's own.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store("plain tea")
    sql = 'CREATE INDEX "order" ON memories (lower(id));CREATE INDEX e ON memories (1 + 1)'
    subprocess.run(["sqlite3", path, sql], check=True)
    with AgentMemory.open(path) as memory, pytest.raises(StorageUntrusted) as refused:
        memory.store("more tea")
    command = str(refused.value).split("`")[1]
    subprocess.run(["sh", "-c", command], check=True)
    with AgentMemory.open(path) as memory:
        memory.store("more tea")
        assert memory.check().problems == []


@pytest.mark.parametrize("names", [["e", "an odd name"], ["a", "b", "c", "d"]], ids=["odd", "many"])
def test_no_command_is_advised_that_would_not_drop_all(
    root: Path, visitor: Callable[[Path, str], str], names: list[str]
) -> None:
    """It was 'DROP INDEX ...', which is no SQL, or left the fourth."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain tea")
    visitor(
        memory.path, ";;".join(f'CREATE INDEX "{name}" ON memories (lower(id))' for name in names)
    )
    with AgentMemory("bob", root=root) as memory:
        with pytest.raises(StorageUntrusted, match="`agent-memory check --repair` rem") as refused:
            memory.store("more tea")
        assert "DROP" not in str(refused.value)
        assert memory.check(repair=True).ok
        memory.store("more tea")
