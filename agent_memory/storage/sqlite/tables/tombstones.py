"""The table ``tombstones`` in SQLite: finds and repairs what contradicts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.storage.change_records import Tombstone, contradictions
from agent_memory.storage.sql import tombstones
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.erasure import ErasureQueries

if TYPE_CHECKING:
    from agent_memory.models.agent import Problem


class TombstoneTable(tombstones.TombstoneTable):
    """The table of tombstones, by which erased things are recognized."""

    _db: Database

    def _contradicted(self) -> list[tuple[str, Tombstone]]:
        return contradictions(self.all(), ErasureQueries(self._db).statements())

    def find_problems(self) -> list[Problem]:
        """Report memories that were erased, or say what was erased, and exist all the same."""
        from agent_memory.models.agent import Problem  # noqa: PLC0415 - storing needs no model

        memory_ids = dict.fromkeys(memory_id for memory_id, _ in self._contradicted())
        advice = "another program wrote it: erase it again, or keep it with `check --repair`"
        return [
            Problem(
                kind="erased_is_back",
                detail=f"memory {memory_id!r} was erased, or contains erased content; {advice}",
            )
            for memory_id in memory_ids
        ]

    def repair(self) -> None:
        """Delete the tombstones of existing memories: nothing that someone wrote is thrown away.

        Must run inside ``write()``.
        """
        for _, tombstone in self._contradicted():
            self.remove(tombstone.key, tombstone.hash)
