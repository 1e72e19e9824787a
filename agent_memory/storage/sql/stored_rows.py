"""Rows as they are stored, table by table, for a move."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from agent_memory.storage.records import NO_LIMIT, Row
from agent_memory.storage.sql import Table
from agent_memory.storage.sql.agent import AgentTable
from agent_memory.storage.stored_rows import TABLES, Key, TableLayout

_LAST_CHANGE: Final = "SELECT coalesce(max(change_id), 0) FROM history"
_RECORDED: Final = frozenset({"memories"})
"""The tables whose changes are written to the history by triggers."""

_DERIVED: Final = ("scratchpad.user_id", "embedding_models.is_indexed", "embeddings.embedding_id")
"""Columns of ours that are not carried."""


class StoredRows(Table):
    """The rows of one agent as they are stored."""

    _AGENT: ClassVar[type[AgentTable]]
    _SELECT_COLUMNS: ClassVar[str]
    """The query for the names of a table's columns."""

    def count(self, table: TableLayout) -> int:
        return int(self._db.value(f"SELECT count(*) FROM {table.name}"))

    def between(
        self, table: TableLayout, after: Key | None, until: Key | None, *, limit: int | None = None
    ) -> list[Row]:
        key, marks = self._listed(table.key), _marks(table.key)
        conditions = [f"({key}) > ({marks})"] if after is not None else []
        conditions += [f"({key}) <= ({marks})"] if until is not None else []
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        sql = f"""SELECT {self._listed(table.columns)} FROM {table.name} {where}
ORDER BY {key} LIMIT ?"""
        values = (*(after or ()), *(until or ()), NO_LIMIT if limit is None else limit)
        return self._db.rows(sql, values)

    def put(self, table: TableLayout, rows: Sequence[Row]) -> None:
        sql = f"""INSERT INTO {table.name} ({self._listed(table.columns)})
VALUES ({_marks(table.columns)}) {self._on_conflict(table)}"""
        self._run_unrecorded(table, sql, rows)

    @abstractmethod
    def _on_conflict(self, table: TableLayout) -> str:
        """Return the clause of an ``INSERT`` by which a row takes the place of an existing one."""

    def remove(self, table: TableLayout, keys: Sequence[Key]) -> None:
        condition = f"({self._listed(table.key)}) = ({_marks(table.key)})"
        self._run_unrecorded(table, f"DELETE FROM {table.name} WHERE {condition}", keys)

    def _run_unrecorded(self, table: TableLayout, sql: str, values: Sequence[Row]) -> None:
        if not values:
            return
        last = self._db.value(_LAST_CHANGE) if table.name in _RECORDED else None
        self._db.run_many(sql, values)
        if last is not None:
            self._db.run("DELETE FROM history WHERE change_id > ?", (last,))

    def foreign_parts(self) -> list[str]:
        ours = {f"{table.name}.{self._column(name)}" for table in TABLES for name in table.columns}
        columns = [
            f"{table.name}.{name}"
            for table in TABLES
            for (name,) in self._db.rows(self._SELECT_COLUMNS, (table.name,))
        ]
        return [column for column in columns if column not in {*ours, *_DERIVED}]

    def add_agent(self, agent_id: str, values: Mapping[str, Any], *, now: datetime) -> None:
        agent = self._AGENT(self._db)
        agent.create(agent_id, now=now)
        agent.set_row(values)

    def _listed(self, names: Sequence[str]) -> str:
        return ", ".join(map(self._column, names))

    def _column(self, name: str) -> str:
        return self._db.SOURCE_NUMBER if name == "place" else name


def _marks(names: Sequence[str]) -> str:
    return ", ".join("?" * len(names))
