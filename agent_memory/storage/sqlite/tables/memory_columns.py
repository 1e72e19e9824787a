"""Rows of the table of memories as they are, by column: for undoing, and for going in and out.

``records`` makes models of them. Here nothing is read or written but what the columns hold, so that
what another program wrote stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.sqlite.connection import Database, further

HISTORIC: Final = (
    "content", "category", "tags", "kind", "importance", "memory_type", "timestamp",
    "created_by_session", "user_id", "run_id", "archived", "task_metadata", "metadata",
)  # fmt: skip
"""The columns whose changes the history records."""
USAGE: Final = ("updated_at", "last_accessed", "access_count", "version")
"""Those that tell of changes and accesses themselves."""
_COLUMNS: Final = ("seq", "id", *HISTORIC, *USAGE)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM memories"

RowValues = dict[str, Any]
"""A row: by column, what it holds."""


def get(database: Database, memory_id: str) -> RowValues | None:
    """Return the row of a memory, or ``None``."""
    row = database.row(f"{_SELECT} WHERE id = ?", (memory_id,))
    return None if row is None else dict(zip(_COLUMNS, row, strict=True))


def get_many(database: Database, memory_ids: Sequence[str]) -> dict[str, RowValues]:
    """Return the rows of several memories, by id."""
    sql = f"{_SELECT} WHERE id IN (SELECT value FROM json_each(?))"
    rows = database.rows(sql, (to_json(list(memory_ids)),))
    return {row[1]: dict(zip(_COLUMNS, row, strict=True)) for row in rows}


def every(database: Database, *, page: int = 1_000) -> Iterator[RowValues]:
    """Yield all rows in the order in which they were stored, read by the page."""
    after = 0
    while rows := database.rows(f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?", (after, page)):
        yield from (dict(zip(_COLUMNS, row, strict=True)) for row in rows)
        after = further(rows[-1][0], than=after)


def insert(database: Database, values: Mapping[str, Any]) -> int:
    """Add a row of the columns that are given, and return its ``seq``."""
    # What comes from the history is only as sound as who wrote it: nothing but columns is SQL here.
    told = {name: values[name] for name in _COLUMNS if name in values}
    marks = ", ".join("?" * len(told))
    sql = f"INSERT INTO memories ({', '.join(told)}) VALUES ({marks})"
    database.run(sql, tuple(told.values()))
    return int(database.value("SELECT last_insert_rowid()"))


def update(
    database: Database, memory_id: str, values: Mapping[str, Any], *, updated_at: str
) -> None:
    """Change columns of a row; its version goes up by one."""
    told = {name: values[name] for name in HISTORIC if name in values}
    settings = "".join(f"{name} = ?, " for name in told)
    sql = f"UPDATE memories SET {settings}updated_at = ?, version = version + 1 WHERE id = ?"
    database.run(sql, (*told.values(), updated_at, memory_id))


def set_values(database: Database, memory_id: str, row: Mapping[str, Any]) -> None:
    """Make a row what it is to be, its version and its times too; all columns must be given."""
    names = (*HISTORIC, *USAGE)
    settings = ", ".join(f"{name} = ?" for name in names)
    sql = f"UPDATE memories SET {settings} WHERE id = ?"
    database.run(sql, (*(row[name] for name in names), memory_id))


def delete(database: Database, memory_id: str) -> None:
    """Remove a row; its history stays."""
    database.run("DELETE FROM memories WHERE id = ?", (memory_id,))


def delete_many(database: Database, memory_ids: Sequence[str]) -> None:
    """Remove several rows; their history stays."""
    sql = "DELETE FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    database.run(sql, (to_json(list(memory_ids)),))


def is_free(database: Database, seq: int) -> bool:
    """Return whether no memory has this row number."""
    return database.row("SELECT 1 FROM memories WHERE seq = ?", (seq,)) is None


def archive(database: Database, memory_ids: Sequence[str], *, archived: bool, now: datetime) -> int:
    """Archive memories, or bring them back; return how many were not so before."""
    sql = """UPDATE memories SET archived = ?, updated_at = ?, version = version + 1
WHERE archived IS NOT ? AND id IN (SELECT value FROM json_each(?))"""
    values = (int(archived), format_time(now), int(archived), to_json(list(memory_ids)))
    return database.run(sql, values)


def last_use(database: Database) -> str | None:
    """Return when a memory was last changed or accessed, as it is stored."""
    sql = "SELECT max(max(updated_at), coalesce(max(last_accessed), '')) FROM memories"
    found = database.value(sql)
    return None if found is None else str(found)
