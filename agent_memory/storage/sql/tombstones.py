"""The table ``tombstones``: keyed hashes of erased memories, so that none comes back.

A tombstone holds while the store has nothing that it matches. ``erase`` makes it, and storing the
same again removes it; a row that another program wrote exists beside it.
"""

from __future__ import annotations

from typing import Final

from agent_memory.storage.change_records import Tombstone
from agent_memory.storage.sql import Table

# One row per key, without reading all rows: a store has few keys. (PostgreSQL has min(bytea) only
# since version 18.)
_SELECT_KEYS: Final = """
WITH RECURSIVE each (key) AS (
  SELECT (SELECT key FROM tombstones ORDER BY key LIMIT 1)
  UNION ALL
  SELECT (SELECT t.key FROM tombstones AS t WHERE t.key > each.key ORDER BY t.key LIMIT 1)
  FROM each WHERE each.key IS NOT NULL)
SELECT key FROM each WHERE key IS NOT NULL"""
_SELECT: Final = """
SELECT key, hash, kind, erased_at FROM tombstones ORDER BY erased_at, kind, hash, key"""
_INSERT: Final = """
INSERT INTO tombstones (key, hash, kind, erased_at) VALUES (?, ?, ?, ?)
ON CONFLICT DO NOTHING"""


class TombstoneTable(Table):
    """The table of tombstones, by which erased things are recognized."""

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
