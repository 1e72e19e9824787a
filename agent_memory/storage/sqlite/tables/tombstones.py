"""The table ``tombstones``: keyed hashes of the memories that were erased, so that none comes back.

A tombstone holds while the store has nothing of what it is of. ``erase`` makes one, and what is
said anew removes it; a row that another program wrote stands beside it until ``check`` is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.storage.change_records import Tombstone, contradictions
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.erasure import ErasureQueries

if TYPE_CHECKING:
    from agent_memory.models.agent import Problem

# A row of each key, without reading all rows: one store has few keys.
_SELECT_KEYS: Final = """
WITH RECURSIVE each (key) AS (
  SELECT min(key) FROM tombstones
  UNION ALL
  SELECT (SELECT min(key) FROM tombstones WHERE key > each.key) FROM each WHERE key IS NOT NULL)
SELECT key FROM each WHERE key IS NOT NULL"""
_SELECT: Final = """
SELECT key, hash, kind, erased_at FROM tombstones ORDER BY erased_at, kind, hash, key"""
_INSERT: Final = """
INSERT INTO tombstones (key, hash, kind, erased_at) VALUES (?, ?, ?, ?)
ON CONFLICT (key, hash) DO NOTHING"""


class TombstoneTable(Table):
    """The table of tombstones, by which what was erased is known."""

    def keys(self) -> list[bytes]:
        return [key for (key,) in self._db.rows(_SELECT_KEYS)]

    def erased_at(self, key: bytes, digest: bytes) -> str | None:
        sql = "SELECT erased_at FROM tombstones WHERE key = ? AND hash = ?"
        moment = self._db.value(sql, (key, digest))
        return None if moment is None else str(moment)

    def all(self) -> list[Tombstone]:
        return [Tombstone(*row) for row in self._db.rows(_SELECT)]

    def put(self, tombstone: Tombstone) -> bool:
        return self._db.run(_INSERT, tombstone) > 0

    def remove(self, key: bytes, digest: bytes) -> bool:
        sql = "DELETE FROM tombstones WHERE key = ? AND hash = ?"
        return self._db.run(sql, (key, digest)) > 0

    def latest(self) -> str | None:
        moment = self._db.value("SELECT max(erased_at) FROM tombstones")
        return None if moment is None else str(moment)

    def contradicted(self) -> list[tuple[str, Tombstone]]:
        tombstones = self.all()
        statements = ErasureQueries(self._db).statements() if tombstones else ()
        return contradictions(tombstones, statements)

    # Checking ------------------------------------------------------------------------------------
    def find_problems(self) -> list[Problem]:
        """Return which memories were erased, or say what was erased, and are there all the same."""
        from agent_memory.models.agent import Problem  # noqa: PLC0415 - to store takes no model

        memory_ids = dict.fromkeys(memory_id for memory_id, _ in self.contradicted())
        advice = "another program wrote it: erase it again, or keep it with `check --repair`"
        return [
            Problem(
                kind="erased_is_back",
                detail=f"memory {memory_id!r} was erased, or says what was erased; {advice}",
            )
            for memory_id in memory_ids
        ]

    def repair(self) -> None:
        """Delete the tombstones of what is there: nothing that somebody wrote is thrown away.

        Must run inside ``write()``.
        """
        for _, tombstone in self.contradicted():
            self.remove(tombstone.key, tombstone.hash)
