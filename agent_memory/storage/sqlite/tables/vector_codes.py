"""The index tables of short codes, one a model: searched before the vectors are.

They hold what a search may find: the memories that are not archived. There are two kinds: a virtual
table of sqlite-vec (``vec0``), and an ordinary one (``table``), which any program can read. Either
can be dropped and built again at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol

from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.plain_codes import PlainCodes
from agent_memory.storage.sqlite.tables.vec0_codes import Vec0Codes

Kind = Literal["vec0", "table"]

_SELECT: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name"


class CodeTable(Protocol):
    """One kind of index table; each method says of which model."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""

    def is_own(self, sql: str) -> bool:
        """Return whether a table made by this statement is one of this kind."""

    def create(self, model_id: int, dimensions: int) -> None:
        """Make a model's table, empty, in place of the one that is there."""

    def drop(self, name: str) -> None:
        """Drop a table, by its name, if there is one."""

    def put(self, model_id: int, codes: Sequence[tuple[int, bytes]]) -> None:
        """Insert or replace codes, by row id."""

    def remove(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Remove rows."""

    def nearest(
        self, model_id: int, code: bytes, *, limit: int, within: Sequence[int] | None = None
    ) -> list[tuple[int, int]]:
        """Return the rows whose codes differ least, nearest first, with the bits that differ.

        ``within``: of these rows only.
        """

    def codes(self, model_id: int) -> dict[int, bytes]:
        """Return all that is in a model's table: codes by row."""


class CodeTables(Table):
    """The index tables of a file, of both kinds."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        # An ordinary table goes before: where there is no sqlite-vec, one of vec0 beside it, which
        # cannot be dropped there, no longer follows the memories.
        self.kinds: dict[Kind, CodeTable] = {
            "table": PlainCodes(database),
            "vec0": Vec0Codes(database),
        }

    def kind_of(self, model_id: int) -> Kind | None:
        """Return the kind of the table that a model's index is in, or ``None`` without one."""
        names = [table.name(model_id) for table in self.kinds.values()]
        sql_by_name: dict[str, str] = dict(self._db.rows(f"{_SELECT} IN (?, ?)", names))
        for kind, table in self.kinds.items():
            if table.is_own(str(sql_by_name.get(table.name(model_id)))):
                return kind
        return None

    def names(self) -> dict[str, Kind]:
        """Return the names of the index tables in the file, of whatever model, and their kinds."""
        rows = self._db.rows(f"{_SELECT} GLOB 'embedding_*'")
        return {
            name: kind
            for name, sql in rows
            for kind, table in self.kinds.items()
            if name.startswith(table.name(0)[:-1]) and table.is_own(str(sql))
        }
