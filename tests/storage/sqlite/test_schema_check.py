"""What a file may have beside the shipped schema, and what it may not."""

from __future__ import annotations

from pathlib import Path

from agent_memory import AgentMemory
from agent_memory.storage.sqlite.connection import SELECT_CODE, Database
from agent_memory.storage.sqlite.schema import _shipped_schema, latest_version, shipped_schema
from agent_memory.storage.sqlite.schema_check import ShippedSchema

CREATED = "CREATE TABLE memories (\n  id TEXT\n) STRICT;"
ALTERED = "ALTER TABLE memories ADD COLUMN source TEXT;"
IN_FILE = "CREATE TABLE memories (\n  id TEXT\n, source TEXT) STRICT"


def faults(sql: str) -> list[str]:
    """Return what is wrong with a file that has this table, after both migrations."""
    return [
        str(fault)
        for fault in ShippedSchema([CREATED, ALTERED]).faults([("table", "memories", sql)])
    ]


def test_a_table_that_a_later_migration_altered_is_as_it_must_be() -> None:
    assert faults(IN_FILE) == []


def test_a_column_beside_those_of_the_migrations_is_no_harm() -> None:
    assert faults(IN_FILE.replace(") STRICT", ", mood TEXT) STRICT")) == []


def test_a_table_that_is_neither_is_told() -> None:
    assert faults(IN_FILE.replace("id TEXT", "id BLOB")) == ["the table memories is changed"]
    assert faults(IN_FILE.replace("source", "(source")) == ["the table memories is changed"]


def test_a_sound_file_is_judged_without_making_the_schema(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        rows = list(Database(memory.path).rows(SELECT_CODE))
    _shipped_schema.cache_clear()
    shipped = shipped_schema(latest_version())
    assert shipped.faults(rows) == []
    assert "objects" not in vars(shipped)
