"""Rows as they are stored in a database, table by table, for a move."""

from __future__ import annotations

from typing import Final

from agent_memory.storage.postgres.tables.agent import AgentTable
from agent_memory.storage.sql import stored_rows
from agent_memory.storage.stored_rows import NUMBERED, TABLES, TableLayout

_SET_NUMBER: Final = """
INSERT INTO numbers (of_table, highest) VALUES (?, ?)
ON CONFLICT (agent_id, of_table) DO UPDATE SET highest = excluded.highest"""
_SELECT_HIGHEST: Final = {
    table.name: f"SELECT coalesce(max({table.key[0]}), 0) FROM {table.name}"
    for table in TABLES
    if table.name in NUMBERED
}
_UNIQUE: Final = {
    "entity_sources": ("entity_id", "memory_id"),
    "relationship_sources": ("relationship_id", "memory_id"),
}
"""The unique columns of a table, if they are not its key."""


class StoredRows(stored_rows.StoredRows):
    """The rows of one agent as they are stored."""

    _AGENT = AgentTable
    _SELECT_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = (?)::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'agent_id'
ORDER BY attnum"""

    def _on_conflict(self, table: TableLayout) -> str:
        columns = map(self._column, table.columns)
        settings = ", ".join(f"{name} = excluded.{name}" for name in columns)
        unique = self._listed(_UNIQUE.get(table.name, table.key))
        return f"ON CONFLICT (agent_id, {unique}) DO UPDATE SET {settings}"

    def highest_numbers(self) -> dict[str, int]:
        highest: dict[str, int] = dict(self._db.rows("SELECT of_table, highest FROM numbers"))
        return {
            name: max(highest.get(name, 0), self._db.value(_SELECT_HIGHEST[name]))
            for name in NUMBERED
        }

    def set_highest_numbers(self, numbers: dict[str, int]) -> None:
        self._db.run_many(_SET_NUMBER, list(numbers.items()))
