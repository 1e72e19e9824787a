"""The index tables of short codes, one per model, searched before the vectors are.

They hold what a search may return: the memories that are not archived. There are two kinds: a
virtual table of sqlite-vec (``vec0``), and an ordinary one (``table``), which any program can read.
Either can be dropped and rebuilt at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.plain_codes import PlainCodes
from agent_memory.storage.sqlite.tables.vec0_codes import Vec0Codes
from agent_memory.storage.sqlite.tables.vector_cells import Build, CellTable, Kind

_SELECT: Final = "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name"


class CodeTable(Protocol):
    """One kind of index table; each method is given the model."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""

    def is_own(self, sql: str) -> bool:
        """Return whether a table created by this statement is of this kind."""

    def is_older(self, sql: str) -> bool:
        """Return whether an earlier version created it, which had no cells."""

    def create(self, model_id: int, dimensions: int) -> None:
        """Create a model's table, empty, replacing an existing one."""

    def drop(self, name: str) -> None:
        """Drop a table by its name, if it exists."""

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
        """Return the rows whose codes differ least, nearest first, with the differing bits.

        Only the given cells are searched, and at most ``within`` bits may differ.
        """

    def some_of(
        self, model_id: int, cell: int, *, limit: int, size: int
    ) -> list[tuple[int, bytes]]:
        """Return rows and codes that are in a cell; a code has ``size`` bytes."""

    def codes(self, model_id: int) -> dict[int, tuple[int, bytes]]:
        """Return the whole content of a model's table: cells and codes by row."""


class IndexTables(NamedTuple):
    """The tables of a model's index: the kind of the complete one, and the one that is built."""

    kind: Kind | None
    build: Build | None


class CodeTables(Table):
    """The index tables of a file, of both kinds."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        # An ordinary table takes precedence: without sqlite-vec, a vec0 table beside it cannot be
        # dropped, and no longer follows the memories.
        self.kinds: dict[Kind, CodeTable] = {
            "table": PlainCodes(database),
            "vec0": Vec0Codes(database),
        }
        self.cells = CellTable(database)

    def of(self, model_id: int) -> IndexTables:
        """Return which tables a model has: read once for each snapshot of a read.

        Without the table of its cells it has none.
        """
        return self._db.once(("index tables", model_id), lambda: self._read(model_id))

    def _read(self, model_id: int) -> IndexTables:
        cells = self.cells.name(model_id)
        names = [cells, *(table.name(model_id) for table in self.kinds.values())]
        sql_by_name: dict[str, str] = dict(self._db.rows(f"{_SELECT} IN (?, ?, ?)", names))
        if not self.cells.is_own(cells, str(sql_by_name.get(cells))):
            return IndexTables(None, None)
        kinds = [
            kind
            for kind, table in self.kinds.items()
            if table.is_own(str(sql_by_name.get(table.name(model_id))))
        ]
        build = self.cells.build(model_id)
        begun = None if build is None else build.kind
        return IndexTables(
            next((kind for kind in kinds if kind != begun), None),
            build if begun in kinds else None,
        )

    def older_of(self, model_id: int) -> str | None:
        """Return the table of an earlier version, if it is all that a model has of an index."""
        names = {table.name(model_id): table for table in self.kinds.values()}
        rows = [] if any(self.of(model_id)) else self._db.rows(f"{_SELECT} IN (?, ?)", tuple(names))
        return next((name for name, sql in rows if _is_older(names[name], str(sql))), None)

    def names(self) -> dict[str, Kind]:
        """Return the names of the file's index tables, of any model, and their kinds.

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


def _is_older(table: CodeTable, sql: str) -> bool:
    return table.is_older(sql) and not table.is_own(sql)


def _is_known(table: CodeTable, sql: str) -> bool:
    return table.is_own(sql) or table.is_older(sql)
