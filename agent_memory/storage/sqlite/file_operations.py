"""Operations on the open file that only a file allows: backups, raw bytes, compaction."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from agent_memory.models.reports import BackupFile
from agent_memory.storage.sqlite.maintenance import backup, check_indexes
from agent_memory.storage.sqlite.tables import Table

_MANY: Final = 500
"""From this many changes on, rebuilding the indexes is faster than keeping them up to date."""


class FileOperations(Table):
    """Operations on one open file that only a file allows."""

    @property
    def path(self) -> Path:
        return self._db.path

    @property
    def journal(self) -> Literal["wal", "rollback"]:
        return self._db.journal

    @property
    def warning(self) -> str | None:
        return self._db.warning

    # Backups ----------------------------------------------------------------------------------

    def back_up(self, destination: Path | None, *, now: datetime) -> Path:
        return backup.back_up(self.path, destination, now=now)

    def back_up_before(self, reason: str, *, now: datetime, keep: int) -> Path | None:
        return backup.back_up_before(self.path, reason, now=now, keep=keep)

    def abandoned_backups(self, *, remove: bool) -> list[Path]:
        return backup.abandoned_in_backups(self.path, remove=remove)

    def list_backups(self) -> list[BackupFile]:
        return backup.list_backups(self.path)

    # Raw bytes --------------------------------------------------------------------------------

    def raw_parts(self) -> list[Path]:
        return self._db.raw_parts()

    def raw(self, part: Path, length: int) -> Iterator[bytes]:
        return self._db.raw(part, length)

    def refuse_readers(self) -> None:
        self._db.refuse_readers()

    def compact(self) -> None:
        self._db.compact()

    # Rewriting --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def rewriting(self, changed: Sequence[str], *, kept: Sequence[str]) -> Iterator[None]:
        """Let the body rewrite many memories, then rebuild indexes. Must run inside ``write()``.

        ``changed`` are the ids of all of them, ``kept`` of those that exist afterwards.
        """
        # Triggers would update the indexes row by row: 15 s for 100,000 rows.
        triggers = check_indexes.drop_triggers(self._db) if len(changed) >= _MANY else []
        yield
        if triggers:
            check_indexes.forget_derived(self._db, sorted(kept))
            check_indexes.rebuild_indexes(self._db)
        for trigger in triggers:
            self._db.run(trigger)
