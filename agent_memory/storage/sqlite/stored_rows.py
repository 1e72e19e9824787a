"""Rows as they are stored in a file, table by table, for a move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.storage.records import Row
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.stored_rows import NUMBERED, Key, TableLayout

_NAMES: Final = {"place": "rowid"}
_LAST_CHANGE: Final = "SELECT coalesce(max(change_id), 0) FROM history"
_SELECT_NUMBERS: Final = "SELECT name, seq FROM sqlite_sequence"
_RECORDED: Final = frozenset({"memories"})
"""The tables whose changes are written to the history by triggers."""


class StoredRows(Table):
    """The rows of one file as they are stored."""

    def count(self, table: TableLayout) -> int:
        return int(self._db.value(f"SELECT count(*) FROM {table.name}"))

    def between(
        self, table: TableLayout, after: Key | None, until: Key | None, *, limit: int | None = None
    ) -> list[Row]:
        key, marks = _listed(table.key), _marks(table.key)
        conditions = ["1"]
        conditions += [f"({key}) > ({marks})"] if after is not None else []
        conditions += [f"({key}) <= ({marks})"] if until is not None else []
        sql = f"""SELECT {_listed(table.columns)} FROM {table.name}
WHERE {" AND ".join(conditions)} ORDER BY {key} LIMIT ?"""
        return self._db.rows(sql, (*(after or ()), *(until or ()), -1 if limit is None else limit))

    def put(self, table: TableLayout, rows: Sequence[Row]) -> None:
        settings = ", ".join(f"{name} = excluded.{name}" for name in table.others)
        sql = f"""INSERT INTO {table.name} ({_listed(table.columns)})
VALUES ({_marks(table.columns)}) ON CONFLICT ({_listed(table.key)}) DO UPDATE SET {settings}"""
        self._run_unrecorded(table, sql, rows)

    def remove(self, table: TableLayout, keys: Sequence[Key]) -> None:
        condition = f"({_listed(table.key)}) = ({_marks(table.key)})"
        self._run_unrecorded(table, f"DELETE FROM {table.name} WHERE {condition}", keys)

    def _run_unrecorded(self, table: TableLayout, sql: str, values: Sequence[Row]) -> None:
        last = self._db.value(_LAST_CHANGE) if table.name in _RECORDED else None
        self._db.run_many(sql, values)
        if last is not None:
            self._db.run("DELETE FROM history WHERE change_id > ?", (last,))

    def highest_numbers(self) -> dict[str, int]:
        numbers: dict[str, int] = dict(self._db.rows(_SELECT_NUMBERS))
        return {name: numbers.get(name, 0) for name in NUMBERED}

    def set_highest_numbers(self, numbers: dict[str, int]) -> None:
        self._db.run_many(
            "DELETE FROM sqlite_sequence WHERE name = ?", ((name,) for name in numbers)
        )
        self._db.run_many("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", numbers.items())

    def add_agent(self, agent_id: str, values: Mapping[str, Any], *, now: datetime) -> None:
        agent = AgentTable(self._db)
        agent.create(agent_id, now=now)
        agent.set_row(values)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(_NAMES.get(name, name) for name in names)


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))
