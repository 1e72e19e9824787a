"""Indexes that somebody else put on our tables: those that run or refuse are told from the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
    ],
)
def test_a_foreign_index_that_runs_or_refuses_is_named_and_dropped(
    root: Path, visitor: Callable[[Path, str], str], sql: str
) -> None:
    """Every store became a ValidationError, or took 900 MB, and `check` called the file sound."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain tea", id="first")
        path = memory.path
    visitor(path, sql)
    with AgentMemory("bob", root=root) as memory:
        with pytest.raises(
            StorageUntrusted, match=r"the index .* is not agent-memory's.*DROP INDEX.*--repair"
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
            "CREATE TABLE own (a, b);;CREATE UNIQUE INDEX own_a ON own (a);;"
            "CREATE INDEX own_b ON own (lower(b))",
        )
        memory.store("plain tea")
        assert memory.check(repair=True).problems == []
    names = visitor(memory.path, "SELECT name FROM sqlite_schema")
    assert all(name in names for name in ("by_user", "quoted", "folded", "some"))
