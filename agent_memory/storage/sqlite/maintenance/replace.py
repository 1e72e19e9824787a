"""Replaces a store by another state, completely or not at all, and keeps the previous content.

A file that can be opened gets the new content in one commit: whoever has it open goes on with that,
and no acknowledged write is lost in between. One that cannot be opened is replaced by renaming.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.errors import (
    NotAMemoryFile,
    StorageCorrupt,
    StorageError,
    StorageUnavailable,
    StorageUntrusted,
    ValidationError,
)
from agent_memory.models.agent import CheckReport
from agent_memory.models.times import format_time
from agent_memory.runtime.files import SIDE_FILES, beside, create_private_file, sync_to_disk
from agent_memory.storage.change_records import FileSummary, Purged, Replaced
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import PAGE_SIZE, ChangedMeanwhile, Database
from agent_memory.storage.sqlite.engine import SQLiteEngine
from agent_memory.storage.sqlite.maintenance.backup import STEP, copy_store, list_backups
from agent_memory.storage.sqlite.maintenance.check import check
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.sqlite.tables.history import OperationTable
from agent_memory.storage.sqlite.tables.rejections import RejectionTable
from agent_memory.storage.sqlite.tables.tombstones import TombstoneTable

if TYPE_CHECKING:
    from agent_memory.storage.engine import Engine

_TRIES: Final = 20
_HAS_TABLE: Final = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
_CHANGES: Final = "PRAGMA data_version"
_UNOPENABLE: Final = (StorageCorrupt, NotAMemoryFile)
"""What is raised for a file that is no longer a database."""


# Summaries ----------------------------------------------------------------------------------------


def summarize(place: Path) -> FileSummary | None:
    """Return the summary of a file to be replaced, or ``None`` if nothing can be read.

    Raises ``StorageError`` if another process holds the file, or it may not be read.
    """
    if not os.path.lexists(place):
        return None
    try:
        reader = Database(place, create=False, read_only=True)
    except _UNOPENABLE:
        return None
    try:
        return _summary(reader)
    except StorageError:  # damaged, empty, or without the agent's table
        return None
    finally:
        reader.close()


def find_backup(place: Path, backup: str) -> Path | None:
    """Return the backup in ``backups/`` with this name, or the newest for ``latest``.

    ``None`` if there is none with this name. Raises ``ValidationError`` if there is no latest one.
    """
    listed = [Path(backup_file.path) for backup_file in list_backups(place)]
    if backup == "latest":
        if not listed:
            message = f"there is no backup beside {place}: give the path of one"
            raise ValidationError.of("backup", message, backup)
        return listed[0]
    return next((path for path in listed if path.name == backup), None)


def _summary(database: Database) -> FileSummary:
    return FileSummary(
        AgentTable(database).identity(),
        schema.current_version(database),
        int(database.value("PRAGMA page_size")),
    )


# Preparing ----------------------------------------------------------------------------------------


def summarize_backup(backup: Path) -> FileSummary:
    """Return the summary of a backup. Raises ``NewerSchema``, ``NotAMemoryFile`` and others."""
    reader = Database(backup, create=False, read_only=True, refuse_version=schema.refuse_newer)
    with contextlib.closing(reader):
        schema.refuse_incomplete(reader)
        return _summary(reader)


def prepare(backup: Path, new: Path, *, now: datetime, page_size: int | None) -> CheckReport:
    """Copy a backup into a new private file, apply pending migrations there, and check it.

    ``page_size`` is that of the file to be replaced, in bytes.
    """
    copy_store(backup, new, page_size=page_size or PAGE_SIZE)
    database = schema.open_vetted(new, create=False)
    try:
        schema.upgrade(database, now=format_time(now), before_upgrade=lambda: None)
        with database.write():
            OperationTable(database).record_irreversible("restore", session_id="restore", now=now)
        return check(database, backup, repair=False)
    except StorageUntrusted as error:
        # The message names the copy, which is gone when someone reads it.
        reason = str(error).replace(str(new), str(backup))
        raise StorageUntrusted(f"nothing was restored: {reason}") from error
    finally:
        database.close()


# Replacing ----------------------------------------------------------------------------------------


def replace(
    place: Path, new: Path, *, now: datetime, keep: bool, purge: Callable[[Engine], Purged]
) -> Replaced:
    """Replace a store's content with that of a closed private file.

    With ``keep``, the previous content is kept beside it as ``memories.db.replaced-TIME``,
    including its log; a file that cannot be opened is always kept. The rejections and tombstones
    are carried over to the new content, from which ``purge`` removes what was erased. ``new`` may
    be gone afterwards; if the process is killed, a partial copy of the previous content may be left
    beside it, with ``-kept``. Raises ``StorageLocked`` if others keep writing, ``StorageFull`` and
    other storage errors; then nothing was replaced.
    """
    existed = os.path.lexists(place)
    if existed:
        with contextlib.suppress(*_UNOPENABLE):
            return _overwrite(place, new, now=now, keep=keep, purge=purge)
    aside = put_in_place(place, new, "replaced", now=now)
    return Replaced(aside, rejections_kept=not existed)


def put_in_place(place: Path, new: Path, word: str, *, now: datetime) -> Path | None:
    """Rename a closed file over a store that cannot be opened, or does not exist.

    The previous file is kept as ``memories.db.WORD-TIME``; that path is returned. The old log is
    moved first: SQLite would replay it into the new file. The name refers to a file at any moment:
    a process that found none would create an empty one.
    """
    aside = _free_name(place, word, now)
    existed = place.exists()
    logs = [suffix for suffix in SIDE_FILES if beside(place, suffix).exists()]
    try:
        if existed:
            os.link(place, aside)
        for suffix in logs:
            beside(place, suffix).rename(beside(aside, suffix))
        if logs:
            sync_to_disk(place.parent)  # a power cut may undo one rename and not the other
        new.replace(place)
        sync_to_disk(place.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            for suffix in logs:
                if beside(aside, suffix).exists():
                    beside(aside, suffix).rename(beside(place, suffix))
            aside.unlink(missing_ok=True)
        raise StorageUnavailable(f"{place} cannot be replaced: {error}") from error
    return aside if existed or logs else None


def _overwrite(
    place: Path, new: Path, *, now: datetime, keep: bool, purge: Callable[[Engine], Purged]
) -> Replaced:
    """Replace the content without losing an acknowledged write or an erasure in between."""
    purged, is_stale = Purged(0, 0), False
    for tries_left in reversed(range(_TRIES)):
        with _opened(place, new) as (old, reader, source):
            # Before the lock: others need not wait while the new content is rewritten.
            if _carry_over(reader, source) or is_stale:
                purged = purged.plus(purge(SQLiteEngine(source)))
            try:
                replaced = _overwrite_now(place, new, (old, reader, source), now=now, keep=keep)
            except ChangedMeanwhile:
                if not tries_left:
                    raise
                is_stale = True  # by now it may have tombstones that were not purged for
            else:
                return replaced._replace(purged=purged)
    raise AssertionError("the last try returns or raises")


def _overwrite_now(
    place: Path,
    new: Path,
    opened: tuple[Database, Database, Database],
    *,
    now: datetime,
    keep: bool,
) -> Replaced:
    """Replace the content under the write lock, or if nobody wrote meanwhile."""
    aside = _free_name(place, "replaced", now) if keep else None
    old, reader, source = opened
    with _dropped_on_error(aside, reader), old.overwritten_by(source):
        if aside is not None:
            _keep(reader, beside(new, "-kept"), aside)
        has_new_tombstones = _carry_over(reader, source)
        if has_new_tombstones:
            raise ChangedMeanwhile(
                f"{place}: something was erased meanwhile: try again in a moment"
            )
        return Replaced(aside, rejections_kept=has_new_tombstones is not None)


@contextlib.contextmanager
def _opened(place: Path, new: Path) -> Iterator[tuple[Database, Database, Database]]:
    """Open the store twice, since what is being overwritten cannot be read, and the new file."""
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(contextlib.closing(Database(place, create=False)))
        reader = Database(place, create=False, read_only=True)
        stack.enter_context(contextlib.closing(reader))
        source = schema.open_vetted(new, create=False)
        yield old, reader, stack.enter_context(contextlib.closing(source))


@contextlib.contextmanager
def _dropped_on_error(aside: Path | None, reader: Database) -> Iterator[None]:
    """Delete the copy of the previous content after an error.

    An error in a commit does not mean that nothing was committed: that is checked.
    """
    before = reader.value(_CHANGES)
    try:
        yield
    except BaseException as error:  # Ctrl-C too
        with contextlib.suppress(StorageError, OSError):
            if aside is not None and (
                isinstance(error, ChangedMeanwhile) or reader.value(_CHANGES) == before
            ):
                aside.unlink(missing_ok=True)
        raise


def _keep(reader: Database, unfinished: Path, aside: Path) -> None:
    """Copy a store as it is, page by page, into a private file that is complete and synced."""
    try:
        create_private_file(unfinished)
        reader.copy_pages_into(unfinished)
        sync_to_disk(unfinished)
        unfinished.replace(aside)
        sync_to_disk(aside.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def _carry_over(reader: Database, source: Database) -> bool | None:
    """Carry the old content's rejections and tombstones over to the new content.

    Return whether any tombstone is new; ``None`` if the old content cannot be read.
    """
    try:
        with reader.read():  # inside it, values that no sound file has are reported as damage
            has_rejections = reader.value(_HAS_TABLE, ("rejections",))
            rejections = RejectionTable(reader).all() if has_rejections else []
            has_tombstones = reader.value(_HAS_TABLE, ("tombstones",))
            tombstones = TombstoneTable(reader).all() if has_tombstones else []
    except StorageError:
        return None
    if not rejections and not tombstones:
        return False
    with source.write():
        for rejection in rejections:
            words_hash = bytes.fromhex(rejection.words_hash)
            RejectionTable(source).add(
                words_hash, rejection.word_count, rejection.reason, rejection.rejected_at
            )
        return sum(TombstoneTable(source).put(tombstone) for tombstone in tombstones) > 0


def _free_name(place: Path, word: str, now: datetime) -> Path:
    while True:
        name = place.with_name(f"{place.name}.{word}-{now:%Y%m%dT%H%M%S%f}")
        if not os.path.lexists(name):
            return name
        now += STEP
