"""The table ``fingerprints`` in SQLite: those read for a search are kept for the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from agent_memory.storage.sql import fingerprints
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.kept_rows import KeptRows

MOST_KEPT: Final = 20_000
"""Memories whose fingerprints are cached for the next search."""
_SELECT_PRESENT: Final = """
SELECT value FROM json_each(?)
WHERE EXISTS (SELECT 1 FROM fingerprints WHERE fingerprint = value)"""
_DROP_ORPHANS: Final = """
DELETE FROM fingerprints WHERE fingerprint IS NULL AND seq NOT IN (SELECT seq FROM memories)"""


class FingerprintTable(fingerprints.FingerprintTable):
    """The table of fingerprints: hashes used to find near duplicates."""

    _db: Database

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._kept: KeptRows[int, int] = KeptRows(MOST_KEPT)

    def put(self, fingerprints: Iterable[tuple[int, int]]) -> None:
        self._db.run_many("UPDATE fingerprints SET fingerprint = ? WHERE seq = ?", fingerprints)

    def present(self, fingerprints: Sequence[int]) -> set[int]:
        rows = self._db.rows(_SELECT_PRESENT, (self._db.listed(fingerprints),))
        return {value for (value,) in rows}

    def complete_page(self) -> list[int]:
        """Compute the fingerprints of a page of memories that lack one; return their row ids.

        A row without its memory, which a program can leave behind, is deleted.
        """
        completed = super().complete_page()
        if not completed:
            self._db.run(_DROP_ORPHANS)
        return completed

    def of_rows(self, row_ids: Sequence[int]) -> dict[int, int]:
        kept = self._kept.current(self._db.stamp())
        if missing := [row_id for row_id in row_ids if row_id not in kept]:
            kept.update(super().of_rows(missing))
        return {row_id: kept[row_id] for row_id in row_ids if row_id in kept}
