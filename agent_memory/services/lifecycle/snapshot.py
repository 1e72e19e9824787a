"""A store as it stood at a moment: a copy of the file, taken back along its history."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from agent_memory.errors import StorageError, StorageUntrusted
from agent_memory.runtime.files import locked, system_told
from agent_memory.services.lifecycle import undo as undoing
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.maintenance import backup as backups
from agent_memory.storage.sqlite.maintenance import check_indexes as integrity
from agent_memory.storage.sqlite.tables import graph_maintenance as graph_upkeep
from agent_memory.storage.sqlite.tables import history
from agent_memory.storage.sqlite.tables import memory_columns as memory_rows
from agent_memory.storage.sqlite.tables.memory_columns import RowValues

_PREFIX: Final = "agent-memory-copy-"
_IN_USE: Final = "in-use"
_MOMENT: Final = 60.0
"""Seconds in which a new folder gets its lock."""
_MANY: Final = 500
"""Changes from which on it is quicker to build the indexes anew than to keep them up to date."""


@contextlib.contextmanager
def private_copy(source: Path) -> Iterator[Path]:
    """Make a copy of a store in a private folder; it goes with the body."""
    sweep_copies()
    with system_told(Path(tempfile.gettempdir())):
        # What cannot be deleted is swept another time.
        folder = tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)
    with (
        folder,
        # Held for as long as the copy is in use: the lock of a process that was killed is free.
        locked(Path(folder.name) / _IN_USE, busy="this copy is in use"),
    ):
        copy = Path(folder.name) / source.name
        with system_told(copy):
            backups.copy(source, copy)
            _disarm(copy)
        yield copy


def _disarm(copy: Path) -> None:
    """Take out of a copy whatever would run by itself and is not ours; nothing of it runs here.

    Where that is not enough, the copy can be read, but not written.
    """
    database = schema.opened(copy, create=False)
    try:
        if not database.can_write:
            with contextlib.suppress(StorageUntrusted), database.write(vetted=False):
                schema.mend(database)
    finally:
        database.close()


def sweep_copies() -> None:
    """Delete the copies that processes left which were killed."""
    folders: list[Path] = []
    with contextlib.suppress(OSError):
        folders += Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")
    for folder in folders:
        with contextlib.suppress(OSError, StorageError):
            status = folder.lstat()
            is_ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
            is_new = status.st_mtime > time.time() - _MOMENT and not (folder / _IN_USE).exists()
            if stat.S_ISDIR(status.st_mode) and is_ours and not is_new:
                with locked(folder / _IN_USE, busy="this copy is in use"):
                    shutil.rmtree(folder)


@contextlib.contextmanager
def copy_as_of(source: Path, moment: datetime) -> Iterator[Path]:
    """Make a private copy of a store that is as the store was at a moment; it goes with the body.

    Memories that were changed since are what they were, those that were stored since are gone,
    those that were deleted since are there. Accesses, the scratchpad and the settings are those of
    now, for they have no history.
    """
    with private_copy(source) as copy:
        database = schema.opened(copy, create=False, synchronous="NORMAL")
        try:
            _go_back(database, moment)
        finally:
            database.close()
        yield copy


def _go_back(database: Database, moment: datetime) -> None:
    with database.write(durable=False):
        newest = history.last_change(database)
        changed = history.changed_after(database, moment)
        born = history.born_after(database, moment)
        others = set(changed) - set(born)
        rows = [(it, undoing.row_at(database, it, moment)) for it in changed if it in others]
        # Triggers would keep the indexes in step row by row: 15 s for 100,000 of them.
        triggers = integrity.drop_triggers(database) if len(changed) >= _MANY else []
        memory_rows.delete_many(database, born)
        _replace(database, rows)
        if triggers:
            integrity.forget_derived(database, sorted(others))
            integrity.rebuild_indexes(database)
        for trigger in triggers:
            database.run(trigger)
        history.forget_after(database, moment, newest)
        graph_upkeep.go_back(database, moment)


def _replace(database: Database, rows: Iterable[tuple[str, RowValues | None]]) -> None:
    for memory_id, row in rows:
        there = memory_rows.get(database, memory_id)
        if row is None:
            memory_rows.delete(database, memory_id)
        elif there is None:
            kept = {name: value for name, value in row.items() if value is not None}
            kept.pop("scratchpad", None)
            if "seq" in kept and not memory_rows.is_free(database, kept["seq"]):
                del kept["seq"]  # of another store, from which the history was imported
            memory_rows.insert(database, kept)
        else:
            memory_rows.set_values(database, memory_id, row)
