"""Backups: consistent copies of a file in use, by hand or before something destructive.

Those made by hand stay until somebody deletes them. Of those made before something destructive the
newest stay. Their names tell them apart: ``memories-TIME.db``, ``memories-TIME.before-REASON.db``.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from agent_memory.errors import StorageError, StorageUnavailable, ValidationError
from agent_memory.models.reports import BackupFile
from agent_memory.models.times import format_time, from_epoch, parse_time, shifted
from agent_memory.runtime.files import (
    UNFINISHED,
    abandoned,
    beside,
    make_private_folder,
    open_private,
    plain_files,
    remove_files,
    sync_to_disk,
    tighten_folder,
    translated_errors,
    unfinished_file,
)
from agent_memory.storage.sqlite.connection import Database, refuse_long_path

_FOLDER: Final = "backups"
_REASON: Final = r"[a-z][a-z0-9_-]{0,39}"
_TIME: Final = r"(?P<time>\d{8}T\d{12}Z)"
_ENDING: Final = rf"-{_TIME}(?:\.before-(?P<reason>{_REASON}))?"
_UNFINISHED: Final = rf"(?:-\d{{8}}T\d{{12}}Z|\.before-{_REASON})"
_STEP: Final = timedelta(microseconds=1)
_TRIES: Final = 1_000
"""Names that are tried while other processes take them."""
_MOST_AHEAD: Final = timedelta(days=3_653)
"""How far a clock can have been ahead: no backup was made at a time that is later still."""


def back_up(source: Path, destination: Path | None, *, now: datetime) -> Path:
    """Copy a store as it stands into a new file of mode 0600 and return its path.

    Others may write meanwhile. The copy is made beside its destination and moved there when it is
    whole and on the disk: what stands there before stays until then. A symbolic link there is
    replaced, never followed. Without a destination it is ``backups/memories-TIME.db`` beside the
    source, later than any such backup before, even when the clock is not: none is replaced.
    """
    made = destination
    if made is None:
        made = _made_folder(source) / f"{source.stem}-{_stamp(now)}{source.suffix}"
    else:
        with translated_errors(made):
            _refuse_destination(made)
    with _copied(source, made) as unfinished:
        if destination is None:
            made = _named(unfinished, source, None, now)
        else:
            unfinished.replace(made)
        sync_to_disk(made.parent)
    return made


def back_up_before(source: Path, reason: str, *, now: datetime, keep: int) -> Path | None:
    """Copy a store into ``backups/memories-TIME.before-REASON.db`` and return that path.

    When the copy is whole and on the disk, the oldest of those that were made in this way are
    deleted, so that ``keep`` of them are left. ``keep=0`` makes none and returns ``None``. The time
    in a name is always later than that of any backup before, even when the clock is not: the order
    of the names is that in which they were made. ``reason`` has up to 40 letters, digits,
    ``_`` and ``-``, all in lower case.
    """
    if keep <= 0:
        return None
    if re.fullmatch(_REASON, reason) is None:
        raise ValidationError.of("reason", "must be like tidy or import-yaml", reason)
    folder = _made_folder(source)
    with _copied(source, folder / f"{source.stem}.before-{reason}{source.suffix}") as unfinished:
        made = _named(unfinished, source, reason, now)
        sync_to_disk(folder)
    with contextlib.suppress(OSError):
        _rotate(source, keep, now)
    return made


def list_backups(source: Path) -> list[BackupFile]:
    """Return the backups in ``backups/`` beside a store, newest first.

    Each is opened to count its memories, which takes a millisecond and changes nothing. Backups of
    another store that has the same folder are left out as far as their names tell.
    """
    files = [path for path in plain_files(_folder(source)) if _may_be_of(source, path.name)]
    backups = [_described(path, source) for path in files]
    return sorted(
        (backup for backup in backups if backup is not None),
        key=lambda backup: (backup.made_at, backup.path),
        reverse=True,
    )


def copy_store(source: Path, target: Path, *, page_size: int | None = None) -> None:
    """Copy a store into a new file of mode 0600, whole and on the disk; ``page_size`` in bytes."""
    # SQLite would make the file with the rights that the umask gives: make it first, empty.
    os.close(open_private(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    _fill(source, target, page_size=page_size)


def _fill(
    source: Path, target: Path, *, named: Path | None = None, page_size: int | None = None
) -> None:
    with contextlib.closing(Database(source, create=False, read_only=True)) as reader:
        reader.copy_into(target, named=named, page_size=page_size)
    sync_to_disk(target)  # VACUUM INTO does not


# Making -------------------------------------------------------------------------------------------


def _folder(source: Path) -> Path:
    """Return the directory of a store's backups. Links to it are followed: SQLite follows none."""
    folder = source.parent / _FOLDER
    try:
        return folder.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise StorageUnavailable(f"{folder} leads nowhere: {error}") from error


def _made_folder(source: Path) -> Path:
    """Return the directory of a store's backups, made if need be.

    What a link leads to must be there: a drive that is not mounted, or a place that nobody chose.
    """
    folder, own = _folder(source), source.parent / _FOLDER
    with translated_errors(folder, "made"):
        if own.is_symlink() and not folder.exists():
            raise StorageUnavailable(f"{own} is a link to {folder}, which is not there: make it")
        make_private_folder(folder)
    tighten_folder(source.parent / _FOLDER)
    return folder


@contextlib.contextmanager
def _copied(source: Path, destination: Path) -> Iterator[Path]:
    """Make a whole copy beside its destination, for the body to move it there."""
    with translated_errors(destination), unfinished_file(destination) as (unfinished, handle):
        os.close(handle)  # before SQLite opens it: to close it later would drop its locks
        refuse_long_path(unfinished)
        try:
            # The unfinished copy is gone by the time that somebody reads of it.
            _fill(source, unfinished, named=destination)
            yield unfinished
        finally:
            remove_files([beside(unfinished, "-journal")])


def _refuse_destination(destination: Path) -> None:
    if destination.is_dir():
        raise ValidationError.of("destination", "is a directory: name a file", str(destination))
    if not destination.parent.is_dir():
        raise ValidationError.of("destination", "its directory does not exist", str(destination))


def _named(unfinished: Path, source: Path, reason: str | None, now: datetime) -> Path:
    """Give a copy a name that is free, later than those of the backups before it."""
    ending = "" if reason is None else f".before-{reason}"
    time = now
    for _ in range(_TRIES):
        earlier = _named_by_time(source, now)
        time = max([time, *(shifted(made_at, _STEP) for made_at, *_ in earlier)])
        made = unfinished.with_name(f"{source.stem}-{_stamp(time)}{ending}{source.suffix}")
        refuse_long_path(made)  # it could not be restored
        if _moved(unfinished, made):
            return made
        time = shifted(time, _STEP)
    raise StorageUnavailable(f"{made} exists, and no later name is free: move it away")


def _moved(unfinished: Path, made: Path) -> bool:
    """Move a file to a name that is free, and return whether it was."""
    try:
        os.link(unfinished, made)  # which replaces nothing, unlike a renaming
    except FileExistsError:
        return False
    except OSError:  # the file system knows no links
        if os.path.lexists(made):
            return False
        unfinished.replace(made)
    return True


def _rotate(source: Path, keep: int, now: datetime) -> None:
    """Delete the oldest of the automatic backups, but none that somebody uses.

    A folder that is a link may be that of another store, too: nothing in it is deleted. What
    cannot be deleted stays: it must not stop what comes after the backup.
    """
    folder = source.parent / _FOLDER
    if folder.is_symlink():
        return
    automatic = sorted((at, name) for at, name, reason in _named_by_time(source, now) if reason)
    for _, name in automatic[:-keep]:
        path = folder / name
        if not any(beside(path, suffix).exists() for suffix in ("-wal", "-journal")):
            with contextlib.suppress(OSError):
                path.unlink()
    abandoned_in_backups(source, remove=True)


def abandoned_in_backups(source: Path, *, remove: bool) -> list[Path]:
    """Return what those left in ``backups/`` that were killed while they made a backup."""
    name = f"{re.escape(source.stem)}{_UNFINISHED}{re.escape(source.suffix)}"
    return abandoned(source.parent / _FOLDER, UNFINISHED.format(name), remove=remove)


# Names --------------------------------------------------------------------------------------------


def _stamp(now: datetime) -> str:
    return re.sub("[-:.]", "", format_time(now))


def _match(source: Path, name: str) -> re.Match[str] | None:
    """Take the name of a backup of this store apart."""
    pattern = re.escape(source.stem) + _ENDING + re.escape(source.suffix)
    return re.fullmatch(pattern, name, re.ASCII)


def _may_be_of(source: Path, name: str) -> bool:
    """Return whether a file can be a backup of this store: not with the name of another's."""
    if _match(source, name):
        return True
    is_others = re.fullmatch(f".*{_ENDING}{re.escape(source.suffix)}", name, re.ASCII)
    return not is_others and not name.startswith(".") and Path(name).suffix == source.suffix


def _parsed(stamp: str) -> datetime:
    """Read the time in a name. Raises ``ValueError`` for one that is none, as of a 13th month."""
    return parse_time(f"{stamp[:-7]}.{stamp[-7:]}")


def _named_by_time(source: Path, now: datetime) -> list[tuple[datetime, str, str | None]]:
    """Return the times, names and reasons of the backups of a store. Only plain files.

    A time that is far ahead of ``now`` is somebody's invention: no later name might be free.
    """
    backups = []
    latest = shifted(now, _MOST_AHEAD)
    with os.scandir(_folder(source)) as entries:
        for entry in entries:
            match = _match(source, entry.name)
            if match and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(ValueError):
                    made_at = _parsed(match["time"])
                    if made_at <= latest:
                        backups.append((made_at, entry.name, match["reason"]))
    return backups


# Listing ------------------------------------------------------------------------------------------


def _described(path: Path, source: Path) -> BackupFile | None:
    """Say what is known of a backup; ``None`` when it was deleted meanwhile."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    made_at = from_epoch(status.st_mtime)
    match = _match(source, path.name)
    if match:
        with contextlib.suppress(ValueError):
            made_at = _parsed(match["time"])
    count, problem = None, None
    try:
        count = _count(path)
    except StorageError as error:
        problem = str(error)
    return BackupFile(
        path=str(path),
        made_at=made_at,
        reason=match["reason"] if match else None,
        size_bytes=status.st_size,
        memory_count=count,
        problem=problem,
    )


def _count(path: Path) -> int:
    with contextlib.closing(Database(path, create=False, read_only=True)) as reader:
        return int(reader.value("SELECT count(*) FROM memories"))
