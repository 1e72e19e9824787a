"""The vec0 tables of short codes, one a model: searched before the vectors are.

It can be dropped and built again at any time. It holds what a search may find: the memories that
are not archived.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.quantization import code_bits, code_of
from agent_memory.storage.sqlite.tables import Table

_CHUNK_SIZE: Final = 4096
"""Vectors that vec0 keeps together, its most: with 1,024 a search took a fifth longer."""


def table_name(model_id: int) -> str:
    """Return the name of a model's index."""
    return f"embedding_index_{model_id}"


class CodeTable(Table):
    """The vec0 tables of short codes, one a model."""

    def exists(self, model_id: int) -> bool:
        """Return whether a model's index is in the file."""
        sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
        return self._db.row(sql, (table_name(model_id),)) is not None

    def create(self, model_id: int, dimensions: int) -> None:
        """Make a model's index, empty, in place of the one that is there."""
        self.drop(table_name(model_id))
        self._db.run(
            f"CREATE VIRTUAL TABLE {table_name(model_id)}"
            f" USING vec0(code bit[{code_bits(dimensions)}], chunk_size={_CHUNK_SIZE})"
        )

    def drop(self, name: str) -> None:
        """Drop an index, by its table's name, if there is one.

        sqlite3's ``.clone`` leaves a virtual table out and copies the tables that it is made of.
        """
        self._db.run(f"DROP TABLE IF EXISTS {name}")
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?"
        for (part,) in self._db.rows(sql, (f"{name}_*",)):
            self._db.run(f"DROP TABLE IF EXISTS {part}")

    def put(self, model_id: int, vectors: Iterable[tuple[int, bytes]]) -> None:
        """Insert or replace vectors, by row id."""
        entries = [(row_id, code_of(data)) for row_id, data in vectors]
        self.remove(model_id, [row_id for row_id, _ in entries])  # vec0 knows no INSERT OR REPLACE
        self._db.run_many(
            f"INSERT INTO {table_name(model_id)} (rowid, code) VALUES (?, vec_bit(?))", entries
        )

    def remove(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Remove rows."""
        sql = f"DELETE FROM {table_name(model_id)} WHERE rowid = ?"
        self._db.run_many(sql, ((row_id,) for row_id in row_ids))

    def nearest(
        self,
        model_id: int,
        query: bytes,
        *,
        limit: int,
        within: Sequence[int] | None = None,
    ) -> list[tuple[int, int]]:
        """Return the rows whose codes are nearest to the query's, nearest first, with the distance.

        ``within``: of these rows only.
        """
        sql = f"""SELECT rowid, CAST(distance AS INTEGER) FROM {table_name(model_id)}
WHERE code MATCH vec_bit(?) AND k = ?"""
        values: tuple[object, ...] = (code_of(query), limit)
        if within is not None:
            sql += " AND rowid IN (SELECT value FROM json_each(?))"
            values += (to_json(list(within)),)
        return self._db.rows(sql, values)

    def codes(self, model_id: int) -> dict[int, bytes]:
        """Return all that is in a model's index: codes by row."""
        return dict(self._db.rows(f"SELECT rowid, code FROM {table_name(model_id)}"))

    def tables(self) -> list[str]:
        """Return the names of the indexes in the file, of whatever model."""
        sql = """SELECT name FROM sqlite_schema
WHERE name GLOB 'embedding_index_*' AND sql LIKE '%vec0%'"""
        return [name for (name,) in self._db.rows(sql)]
