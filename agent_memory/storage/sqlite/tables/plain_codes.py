"""Index tables that any program can read: an ordinary table of short codes for each model.

They are searched with a function of sqlite-vec if it loads, else in Python.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from operator import itemgetter

from agent_memory.models.fields import to_json
from agent_memory.storage.quantization import distance
from agent_memory.storage.sqlite.tables import Table


class PlainCodes(Table):
    """The ordinary tables of codes."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""
        return f"embedding_codes_{model_id}"

    def is_own(self, sql: str) -> bool:
        """Return whether the statement is ours, letter by letter.

        Another's table could compute or refuse anything with each write.
        """
        return sql == _create(_name_in(sql))

    def is_older(self, sql: str) -> bool:
        """Return whether the statement is ours, of a version without cells."""
        columns = "(seq INTEGER PRIMARY KEY, code BLOB NOT NULL) STRICT, WITHOUT ROWID"
        return sql == f"CREATE TABLE {_name_in(sql)} {columns}"

    def create(self, model_id: int, dimensions: int) -> None:  # noqa: ARG002 - vec0 needs it
        """Create a model's table, empty, replacing an existing one."""
        self.drop(self.name(model_id))
        self._db.run(_create(self.name(model_id)))

    def drop(self, name: str) -> None:
        """Drop a table by its name, if it exists."""
        self._db.run(f"DROP TABLE IF EXISTS {name}")

    def put(self, model_id: int, codes: Sequence[tuple[int, int, bytes]]) -> None:
        """Insert or replace codes: row id, cell, code."""
        sql = f"INSERT OR REPLACE INTO {self.name(model_id)} (seq, cell, code) VALUES (?, ?, ?)"
        self._db.run_many(sql, codes)

    def remove(self, model_id: int, row_ids: Iterable[int]) -> None:
        """Remove rows."""
        sql = f"DELETE FROM {self.name(model_id)} WHERE seq = ?"
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
        """Return the rows whose codes differ least, with the number of differing bits."""
        source = f"""FROM {self.name(model_id)}
WHERE cell IN (SELECT value FROM json_each(?)) AND length(code) = ?"""
        values: tuple[object, ...] = (to_json(list(cells)), len(code))
        if self._db.load_vectors():
            # OFFSET keeps SQLite from computing each distance twice.
            sql = f"""SELECT seq, far FROM
  (SELECT seq, vec_distance_hamming(vec_bit(code), vec_bit(?)) AS far {source} LIMIT -1 OFFSET 0)
WHERE far <= ? ORDER BY far LIMIT ?"""
            named = self._db.rows(sql, (code, *values, within, limit))
            return [(row_id, int(far)) for row_id, far in named]
        rows = self._db.rows(f"SELECT seq, code {source}", values)
        distances = ((row_id, distance(other, code)) for row_id, other in rows)
        near = (entry for entry in distances if entry[1] <= within)
        return heapq.nsmallest(limit, near, key=itemgetter(1))

    def some_of(
        self,
        model_id: int,
        cell: int,
        *,
        limit: int,
        size: int,  # noqa: ARG002 - vec0 needs it
    ) -> list[tuple[int, bytes]]:
        """Return rows and codes that are in a cell."""
        sql = f"SELECT seq, code FROM {self.name(model_id)} WHERE cell = ? LIMIT ?"
        return self._db.rows(sql, (cell, limit))

    def codes(self, model_id: int) -> dict[int, tuple[int, bytes]]:
        """Return the whole content of a model's table: cells and codes by row."""
        rows = self._db.rows(f"SELECT seq, cell, code FROM {self.name(model_id)}")
        return {row_id: (cell, code) for row_id, cell, code in rows}


def _name_in(sql: str) -> str:
    return sql.removeprefix("CREATE TABLE ").partition(" ")[0]


def _create(name: str) -> str:
    return (
        f"CREATE TABLE {name} (cell INTEGER NOT NULL, seq INTEGER NOT NULL UNIQUE,"
        " code BLOB NOT NULL, PRIMARY KEY (cell, seq)) STRICT, WITHOUT ROWID"
    )
