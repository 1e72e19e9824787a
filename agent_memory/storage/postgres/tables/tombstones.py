"""The table ``tombstones`` in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable

from agent_memory.storage.change_records import Statement
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.tables.erasure import ErasureQueries
from agent_memory.storage.sql import tombstones


class TombstoneTable(tombstones.TombstoneTable):
    """The table of tombstones, by which erased things are recognized."""

    _db: Database

    def _statements(self) -> Iterable[Statement]:
        return ErasureQueries(self._db).statements()
