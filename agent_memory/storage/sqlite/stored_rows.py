"""Rows as they are stored in a file, table by table, for a move."""

from __future__ import annotations

from typing import Final

from agent_memory.storage.sql import stored_rows
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.stored_rows import NUMBERED, TableLayout

_SELECT_TABLES: Final = """
SELECT name FROM pragma_table_list WHERE schema = 'main' AND type <> 'shadow'
AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"""
_SELECT_NUMBERS: Final = "SELECT name, seq FROM sqlite_sequence"


class StoredRows(stored_rows.StoredRows):
    """The rows of one file as they are stored."""

    _AGENT = AgentTable
    _SELECT_COLUMNS = "SELECT name FROM pragma_table_info(?)"

    def _on_conflict(self, table: TableLayout) -> str:
        settings = ", ".join(f"{name} = excluded.{name}" for name in table.others)
        return f"ON CONFLICT ({self._listed(table.key)}) DO UPDATE SET {settings}"

    def foreign_parts(self) -> list[str]:
        shipped = schema.shipped_schema(schema.latest_version())
        tables = [name for (name,) in self._db.rows(_SELECT_TABLES)]
        return super().foreign_parts() + [name for name in tables if not shipped.has(name)]

    def highest_numbers(self) -> dict[str, int]:
        numbers: dict[str, int] = dict(self._db.rows(_SELECT_NUMBERS))
        return {name: numbers.get(name, 0) for name in NUMBERED}

    def set_highest_numbers(self, numbers: dict[str, int]) -> None:
        self._db.run_many(
            "DELETE FROM sqlite_sequence WHERE name = ?", ((name,) for name in numbers)
        )
        self._db.run_many("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", numbers.items())
