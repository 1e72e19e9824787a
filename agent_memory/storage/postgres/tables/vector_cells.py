"""The cells of a vector index, by model.

Every code is in one cell. Cell 0 has no centre, and holds codes that are not sorted yet. A retired
cell accepts no more codes, and is removed once its codes are in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.storage.code_search import UNSORTED, Cell
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.quantization import as_number

_ADD: Final = """
INSERT INTO embedding_cells (model_id, cell, centre, made_of, retired)
SELECT %s, made.place + (SELECT coalesce(max(cell), 0) FROM embedding_cells WHERE model_id = %s),
  made.centre, %s, 0
FROM unnest(%s::bytea[]) WITH ORDINALITY AS made (centre, place)"""
_ADD_UNSORTED: Final = f"""
INSERT INTO embedding_cells (model_id, cell, centre, made_of, retired)
VALUES (%s, {UNSORTED}, '', 0, 0)"""


class CellTable(Table):
    """The table of cells."""

    def create(self, model_id: int) -> None:
        """Give a model cell 0, replacing its existing cells."""
        self.drop(model_id)
        self._db.run(_ADD_UNSORTED, (model_id,))

    def drop(self, model_id: int) -> None:
        """Remove a model's cells."""
        self._db.run("DELETE FROM embedding_cells WHERE model_id = %s", (model_id,))

    def all(self, model_id: int) -> list[Cell]:
        """Return a model's cells."""
        sql = "SELECT cell, centre, retired FROM embedding_cells WHERE model_id = %s ORDER BY cell"
        return [
            Cell(number, as_number(centre), bool(is_retired))
            for number, centre, is_retired in self._db.rows(sql, (model_id,))
        ]

    def made_of(self, model_id: int) -> int:
        """Return how many vectors there were when the cells were made."""
        sql = "SELECT max(made_of) FROM embedding_cells WHERE model_id = %s"
        return int(self._db.value(sql, (model_id,)) or 0)

    def is_unsorted(self, model_id: int) -> bool:
        """Return whether there is a retired cell."""
        sql = "SELECT 1 FROM embedding_cells WHERE model_id = %s AND retired <> 0 LIMIT 1"
        return self._db.row(sql, (model_id,)) is not None

    def replace(self, model_id: int, centres: Sequence[bytes], *, made_of: int) -> None:
        """Retire all cells, and add new ones."""
        self._db.run("UPDATE embedding_cells SET retired = 1 WHERE model_id = %s", (model_id,))
        self._db.run(_ADD, (model_id, model_id, made_of, list(centres)))

    def remove(self, model_id: int, cell: int) -> None:
        """Remove a cell."""
        sql = "DELETE FROM embedding_cells WHERE model_id = %s AND cell = %s"
        self._db.run(sql, (model_id, cell))
