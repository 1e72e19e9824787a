"""The cells of a vector index: an ordinary table of their centres for each model.

Every code is in one cell. Cell 0 has no centre, and holds codes that are not sorted yet. A retired
cell accepts no more codes, and is removed once its codes are in others. One more row, which is not
a cell, describes an index that is being built: its kind as the centre, and its last row as
``made_of``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from agent_memory.storage.code_search import UNSORTED, Cell
from agent_memory.storage.quantization import as_number
from agent_memory.storage.sqlite.tables import Table

Kind = Literal["vec0", "table"]

_BUILD: Final = -1


class Build(NamedTuple):
    """The progress of an index being built: the ``kind`` of table, and the last row in it."""

    kind: Kind
    last_row_id: int


class CellTable(Table):
    """The tables of cells."""

    def name(self, model_id: int) -> str:
        """Return the name of a model's table."""
        return f"embedding_cells_{model_id}"

    def is_own(self, name: str, sql: str) -> bool:
        """Return whether a table is ours, letter by letter."""
        return sql == _create(name)

    def create(self, model_id: int) -> None:
        """Create a model's table, with only cell 0, replacing an existing one."""
        self._db.run(f"DROP TABLE IF EXISTS {self.name(model_id)}")
        self._db.run(_create(self.name(model_id)))
        self._db.run(f"INSERT INTO {self.name(model_id)} VALUES ({UNSORTED}, x'', 0, 0)")

    def all(self, model_id: int) -> list[Cell]:
        """Return a model's cells."""
        sql = f"SELECT cell, centre, retired FROM {self.name(model_id)} WHERE cell >= 0"
        rows = self._db.rows(sql)
        return [
            Cell(number, as_number(centre), bool(is_retired)) for number, centre, is_retired in rows
        ]

    def made_of(self, model_id: int) -> int:
        """Return how many vectors there were when the cells were made."""
        sql = f"SELECT max(made_of) FROM {self.name(model_id)} WHERE cell >= 0"
        return int(self._db.value(sql) or 0)

    def is_unsorted(self, model_id: int) -> bool:
        """Return whether there is a retired cell."""
        return self._db.row(f"SELECT 1 FROM {self.name(model_id)} WHERE retired <> 0") is not None

    def replace(self, model_id: int, centres: Sequence[bytes], *, made_of: int) -> None:
        """Retire all cells, and add new ones."""
        name = self.name(model_id)
        self._db.run(f"UPDATE {name} SET retired = 1 WHERE cell >= 0")
        self._db.run_many(
            f"INSERT INTO {name} (centre, made_of, retired) VALUES (?, ?, 0)",
            ((centre, made_of) for centre in centres),
        )

    def remove(self, model_id: int, cell: int) -> None:
        """Remove a cell."""
        self._db.run(f"DELETE FROM {self.name(model_id)} WHERE cell = ?", (cell,))

    # An index that is being built --------------------------------------------------------------

    def build(self, model_id: int) -> Build | None:
        """Return the progress of the index, if one is being built."""
        sql = f"SELECT CAST(centre AS TEXT), made_of FROM {self.name(model_id)} WHERE cell = ?"
        row = self._db.row(sql, (_BUILD,))
        return None if row is None else Build(*row)

    def set_build(self, model_id: int, build: Build) -> None:
        """Record the progress of an index."""
        sql = f"INSERT OR REPLACE INTO {self.name(model_id)} VALUES (?, CAST(? AS BLOB), ?, 0)"
        self._db.run(sql, (_BUILD, *build))

    def end_build(self, model_id: int) -> None:
        """Delete the record of a build: it is complete, or useless."""
        self.remove(model_id, _BUILD)


def _create(name: str) -> str:
    return (
        f"CREATE TABLE {name} (cell INTEGER PRIMARY KEY, centre BLOB NOT NULL,"
        " made_of INTEGER NOT NULL, retired INTEGER NOT NULL) STRICT"
    )
