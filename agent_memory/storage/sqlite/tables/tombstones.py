"""The table ``tombstones``: keyed hashes of the memories that were erased, so that none comes back.

A tombstone holds while the store has nothing of what it is of. ``erase`` makes one, and what is
said anew removes it; a row that another program wrote stands beside it until ``check`` is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.models.agent import Problem
from agent_memory.storage.records import Tombstone
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.erasure import ErasureQueries

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

    def contains(self, key: bytes, digest: bytes) -> bool:
        sql = "SELECT 1 FROM tombstones WHERE key = ? AND hash = ?"
        return self._db.row(sql, (key, digest)) is not None

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

    # Checking ------------------------------------------------------------------------------------
    def find_problems(self) -> list[Problem]:
        """Return which memories are there although they were erased, or say what was."""
        return [
            Problem(
                kind="erased_is_back",
                detail=f"memory {memory_id!r} was erased, or says what was, and another program"
                " wrote it anew: erase it again, or keep it with `check --repair`",
            )
            for memory_id in dict.fromkeys(memory_id for memory_id, _, _ in self._contradicted())
        ]

    def repair(self) -> None:
        """Delete the tombstones of what is there: nothing that somebody wrote is thrown away.

        Must run inside ``write()``.
        """
        for _, key, digest in list(self._contradicted()):
            self.remove(key, digest)

    def _contradicted(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the tombstones of what is there: memory id, key and hash."""
        keys = self.keys()
        if not keys:
            return
        for statement in ErasureQueries(self._db).statements():
            for key in keys:
                for digest in statement.hashes(key):
                    if self.contains(key, digest):
                        yield statement.memory_id, key, digest
