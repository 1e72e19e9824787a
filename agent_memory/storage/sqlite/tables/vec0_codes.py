"""Index tables of sqlite-vec: a virtual table ``vec0`` of short codes for each model.

Without sqlite-vec they cannot be read, changed or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.quantization import code_bits
from agent_memory.storage.sqlite.tables import Table

_CHUNK_SIZE: Final = 256
"""Vectors of one cell that vec0 stores together: the last chunk of each cell is half empty on
average."""
_MOST: Final = 4096
"""The most neighbours that vec0 returns."""


class Vec0Codes(Table):
    """The virtual tables of codes."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""
        return f"embedding_index_{model_id}"

    def is_own(self, sql: str) -> bool:
        """Return whether a table created by this statement is one of sqlite-vec, with cells."""
        return self.is_older(sql) and "vec0(cell integer partition key" in sql

    def is_older(self, sql: str) -> bool:
        """Return whether it is a table of sqlite-vec at all."""
        return sql.startswith("CREATE VIRTUAL TABLE") and "vec0" in sql

    def create(self, model_id: int, dimensions: int) -> None:
        """Create a model's table, empty, replacing an existing one."""
        self.drop(self.name(model_id))
        self._db.run(
            f"CREATE VIRTUAL TABLE {self.name(model_id)}"
            f" USING vec0(cell integer partition key, code bit[{code_bits(dimensions)}],"
            f" chunk_size={_CHUNK_SIZE})"
        )
        self._index_chunks(model_id)

    def _index_chunks(self, model_id: int) -> None:
        """Let vec0 find the chunks of a cell by an index; without it, it reads all of them.

        With 60,000 codes in 400 cells, a search of 40 cells then takes a tenth of the time, and an
        insert a sixth.
        """
        chunks = f"{self.name(model_id)}_chunks"
        self._db.run(f"CREATE INDEX IF NOT EXISTS {chunks}_by_cell ON {chunks} (partition00)")

    def drop(self, name: str) -> None:
        """Drop a table by its name, if it exists, and its shadow tables.

        sqlite3's ``.clone`` leaves out a virtual table but copies its shadow tables.
        """
        self._db.run(f"DROP TABLE IF EXISTS {name}")
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?"
        for (part,) in self._db.rows(sql, (f"{name}_*",)):
            self._db.run(f"DROP TABLE IF EXISTS {part}")

    def put(self, model_id: int, codes: Sequence[tuple[int, int, bytes]]) -> None:
        """Insert or replace codes: row id, cell, code."""
        self._index_chunks(model_id)  # a table of an earlier version lacks it
        self.remove(model_id, [row_id for row_id, *_ in codes])  # vec0 has no INSERT OR REPLACE
        self._db.run_many(
            f"INSERT INTO {self.name(model_id)} (rowid, cell, code) VALUES (?, ?, vec_bit(?))",
            codes,
        )

    def remove(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Remove rows."""
        sql = f"DELETE FROM {self.name(model_id)} WHERE rowid = ?"
        self._db.run_many(sql, ((row_id,) for row_id in row_ids))

    def nearest(
        self,
        model_id: int,
        code: bytes,
        *,
        cells: Sequence[int],
        limit: int,
        within: int,
    ) -> list[tuple[int, int]]:
        """Return the rows whose codes differ least, with the number of differing bits.

        vec0 searches one cell at a time, and takes longer the more it returns from it. So the
        nearest cells are searched first: they bound the distance for the next. With 29 cells of
        1,500 codes each, that takes a third of the time.
        """
        nearest: list[tuple[int, int]] = []
        bound, start = within, 0
        while start < len(cells):
            end = 2 * start or 1
            nearest += self._nearest_in(model_id, code, cells[start:end], limit, bound)
            nearest = sorted(nearest, key=itemgetter(1))[:limit]
            bound = nearest[-1][1] if len(nearest) == limit else bound
            start = end
        return nearest

    def _nearest_in(
        self, model_id: int, code: bytes, cells: Sequence[int], limit: int, bound: int
    ) -> list[tuple[int, int]]:
        """Return the nearest rows of each cell, with the differing bits, at most ``bound``."""
        sql = f"""SELECT rowid, CAST(distance AS INTEGER) FROM {self.name(model_id)}
WHERE code MATCH vec_bit(?) AND k = ? AND distance <= ?
AND cell IN (SELECT value FROM json_each(?))"""
        return self._db.rows(sql, (code, min(limit, _MOST), bound, to_json(list(cells))))

    def some_of(
        self, model_id: int, cell: int, *, limit: int, size: int
    ) -> list[tuple[int, bytes]]:
        """Return rows and codes that are in a cell; a code has ``size`` bytes.

        Queried as neighbours: otherwise vec0 would read its whole table for the rows of a cell.
        """
        sql = f"""SELECT rowid, code FROM {self.name(model_id)}
WHERE code MATCH vec_bit(?) AND k = ? AND cell = ?"""
        return self._db.rows(sql, (bytes(size), min(limit, _MOST), cell))

    def codes(self, model_id: int) -> dict[int, tuple[int, bytes]]:
        """Return the whole content of a model's table: cells and codes by row."""
        rows = self._db.rows(f"SELECT rowid, cell, code FROM {self.name(model_id)}")
        return {row_id: (cell, code) for row_id, cell, code in rows}
