"""Rows as they are stored in a database, table by table, for a move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.postgres.tables.agent import AgentTable
from agent_memory.storage.records import Row
from agent_memory.storage.stored_rows import NUMBERED, TABLES, Key, TableLayout

_NAMES: Final = {"place": "seq"}
_LAST_CHANGE: Final = "SELECT coalesce(max(change_id), 0) FROM history"
_SET_NUMBER: Final = """
INSERT INTO numbers (of_table, highest) VALUES (%s, %s)
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
_RECORDED: Final = frozenset({"memories"})
"""The tables whose changes are written to the history by triggers."""


class StoredRows(Table):
    """The rows of one agent as they are stored."""

    def count(self, table: TableLayout) -> int:
        return int(self._db.value(f"SELECT count(*) FROM {table.name}"))

    def between(
        self, table: TableLayout, after: Key | None, until: Key | None, *, limit: int | None = None
    ) -> list[Row]:
        key, marks = _listed(table.key), _marks(table.key)
        conditions = ["true"]
        conditions += [f"({key}) > ({marks})"] if after is not None else []
        conditions += [f"({key}) <= ({marks})"] if until is not None else []
        sql = f"""SELECT {_listed(table.columns)} FROM {table.name}
WHERE {" AND ".join(conditions)} ORDER BY {key} LIMIT %s"""
        return self._db.rows(sql, (*(after or ()), *(until or ()), limit))

    def put(self, table: TableLayout, rows: Sequence[Row]) -> None:
        columns = [_NAMES.get(name, name) for name in table.columns]
        settings = ", ".join(f"{name} = excluded.{name}" for name in columns)
        unique = _listed(_UNIQUE.get(table.name, table.key))
        sql = f"""INSERT INTO {table.name} ({", ".join(columns)}) VALUES ({_marks(columns)})
ON CONFLICT (agent_id, {unique}) DO UPDATE SET {settings}"""
        self._run_unrecorded(table, sql, rows)

    def remove(self, table: TableLayout, keys: Sequence[Key]) -> None:
        condition = f"({_listed(table.key)}) = ({_marks(table.key)})"
        self._run_unrecorded(table, f"DELETE FROM {table.name} WHERE {condition}", keys)

    def _run_unrecorded(self, table: TableLayout, sql: str, values: Sequence[Row]) -> None:
        if not values:
            return
        last = self._db.value(_LAST_CHANGE) if table.name in _RECORDED else None
        self._db.run_many(sql, values)
        if last is not None:
            self._db.run("DELETE FROM history WHERE change_id > %s", (last,))

    def highest_numbers(self) -> dict[str, int]:
        highest: dict[str, int] = dict(self._db.rows("SELECT of_table, highest FROM numbers"))
        return {
            name: max(highest.get(name, 0), self._db.value(_SELECT_HIGHEST[name]))
            for name in NUMBERED
        }

    def set_highest_numbers(self, numbers: dict[str, int]) -> None:
        self._db.run_many(_SET_NUMBER, list(numbers.items()))

    def add_agent(self, agent_id: str, values: Mapping[str, Any], *, now: datetime) -> None:
        agent = AgentTable(self._db)
        agent.create(agent_id, now=now)
        agent.set_row(values)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_NAMES.get(name, name) for name in names)


def _marks(names: Sequence[str]) -> str:
    return ", ".join(["%s"] * len(names))
