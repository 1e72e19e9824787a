"""Index tables of sqlite-vec: a virtual table ``vec0`` of short codes, one a model.

Without sqlite-vec they cannot be read, changed or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.quantization import code_bits
from agent_memory.storage.sqlite.tables import Table

_CHUNK_SIZE: Final = 4096
"""Vectors that vec0 keeps together, its most: with 1,024 a search took a fifth longer."""


class Vec0Codes(Table):
    """The virtual tables of codes."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""
        return f"embedding_index_{model_id}"

    def is_own(self, sql: str) -> bool:
        """Return whether a table made by this statement is one of sqlite-vec."""
        return sql.startswith("CREATE VIRTUAL TABLE") and "vec0" in sql

    def create(self, model_id: int, dimensions: int) -> None:
        """Make a model's table, empty, in place of the one that is there."""
        self.drop(self.name(model_id))
        self._db.run(
            f"CREATE VIRTUAL TABLE {self.name(model_id)}"
            f" USING vec0(code bit[{code_bits(dimensions)}], chunk_size={_CHUNK_SIZE})"
        )

    def drop(self, name: str) -> None:
        """Drop a table, by its name, if there is one, and its parts.

        sqlite3's ``.clone`` leaves a virtual table out and copies the tables that it is made of.
        """
        self._db.run(f"DROP TABLE IF EXISTS {name}")
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?"
        for (part,) in self._db.rows(sql, (f"{name}_*",)):
            self._db.run(f"DROP TABLE IF EXISTS {part}")

    def put(self, model_id: int, codes: Sequence[tuple[int, bytes]]) -> None:
        """Insert or replace codes, by row id."""
        self.remove(model_id, [row_id for row_id, _ in codes])  # vec0 knows no INSERT OR REPLACE
        self._db.run_many(
            f"INSERT INTO {self.name(model_id)} (rowid, code) VALUES (?, vec_bit(?))", codes
        )

    def remove(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Remove rows."""
        sql = f"DELETE FROM {self.name(model_id)} WHERE rowid = ?"
        self._db.run_many(sql, ((row_id,) for row_id in row_ids))

    def nearest(
        self, model_id: int, code: bytes, *, limit: int, within: Sequence[int] | None = None
    ) -> list[tuple[int, int]]:
        """Return the rows whose codes differ least, with the bits that differ."""
        sql = f"""SELECT rowid, CAST(distance AS INTEGER) FROM {self.name(model_id)}
WHERE code MATCH vec_bit(?) AND k = ?"""
        values: tuple[object, ...] = (code, limit)
        if within is not None:
            sql += " AND rowid IN (SELECT value FROM json_each(?))"
            values += (to_json(list(within)),)
        return self._db.rows(sql, values)

    def codes(self, model_id: int) -> dict[int, bytes]:
        """Return all that is in a model's table: codes by row."""
        return dict(self._db.rows(f"SELECT rowid, code FROM {self.name(model_id)}"))
