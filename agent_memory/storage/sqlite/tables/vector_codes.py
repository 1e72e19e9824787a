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
from agent_memory.storage.sqlite.tables.vector_cells import Build, CellTable

Kind = Literal["vec0", "table"]

_SELECT: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name"


class CodeTable(Protocol):
    """One kind of index table; each method says of which model."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""

    def is_own(self, sql: str) -> bool:
        """Return whether a table made by this statement is one of this kind."""

    def is_older(self, sql: str) -> bool:
        """Return whether it is one that an earlier version made, which had no cells."""

    def create(self, model_id: int, dimensions: int) -> None:
        """Make a model's table, empty, in place of the one that is there."""

    def drop(self, name: str) -> None:
        """Drop a table, by its name, if there is one."""

    def put(self, model_id: int, codes: Sequence[tuple[int, int, bytes]]) -> None:
        """Insert or replace codes: row id, cell, code."""

    def remove(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Remove rows."""

    def nearest(
        self,
        model_id: int,
        code: bytes,
        *,
        cells: Sequence[int],
        limit: int,
        within: int,
    ) -> list[tuple[int, int]]:
        """Return the rows whose codes differ least, nearest first, with the bits that differ.

        They are looked for in some cells; no more than ``within`` bits may differ.
        """

    def some_of(
        self, model_id: int, cell: int, *, limit: int, size: int
    ) -> list[tuple[int, bytes]]:
        """Return rows and codes that are in a cell; a code has ``size`` bytes."""

    def codes(self, model_id: int) -> dict[int, tuple[int, bytes]]:
        """Return all that is in a model's table: cells and codes by row."""


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
        self.cells = CellTable(database)

    def kind_of(self, model_id: int) -> Kind | None:
        """Return the kind of the table that a model's index is in, or ``None`` without one.

        Without the table of its cells there is none. One that is being built is none yet.
        """
        kinds, build = self._state(model_id)
        return next((kind for kind in kinds if build is None or kind != build.kind), None)

    def build_of(self, model_id: int) -> tuple[Kind, int] | None:
        """Return the kind of a table that is being built, and the last row in it."""
        kinds, build = self._state(model_id)
        return next(
            ((kind, build.last_row_id) for kind in kinds if build and kind == build.kind), None
        )

    def _state(self, model_id: int) -> tuple[list[Kind], Build | None]:
        """Return the kinds of a model's tables, and how far one is that is being built."""
        cells = self.cells.name(model_id)
        names = [cells, *(table.name(model_id) for table in self.kinds.values())]
        sql_by_name: dict[str, str] = dict(self._db.rows(f"{_SELECT} IN (?, ?, ?)", names))
        if not self.cells.is_own(cells, str(sql_by_name.get(cells))):
            return [], None
        kinds = [
            kind
            for kind, table in self.kinds.items()
            if table.is_own(str(sql_by_name.get(table.name(model_id))))
        ]
        return kinds, self.cells.build(model_id)

    def names(self) -> dict[str, Kind]:
        """Return the names of the index tables in the file, of whatever model, and their kinds.

        The tables of cells are among them.
        """
        names: dict[str, Kind] = {}
        for name, sql in self._db.rows(f"{_SELECT} GLOB 'embedding_*'"):
            if self.cells.is_own(name, str(sql)):
                names[name] = "table"
            for kind, table in self.kinds.items():
                if name.startswith(table.name(0)[:-1]) and _is_known(table, str(sql)):
                    names[name] = kind
        return names


def _is_known(table: CodeTable, sql: str) -> bool:
    return table.is_own(sql) or table.is_older(sql)
