"""Backups: consistent copies of a file in use, made by hand or before something destructive.

Backups made by hand stay until someone deletes them. Of the others the newest stay. Their names
distinguish them: ``memories-TIME.db`` and ``memories-TIME.before-REASON.db``.
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
from agent_memory.models.limits import BACKUPS_FOLDER
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

_REASON: Final = r"[a-z][a-z0-9_-]{0,39}"
_TIME: Final = r"(?P<time>\d{8}T\d{12}Z)"
_ENDING: Final = rf"-{_TIME}(?:\.before-(?P<reason>{_REASON}))?"
_UNFINISHED: Final = rf"(?:-\d{{8}}T\d{{12}}Z|\.before-{_REASON})"
STEP: Final = timedelta(microseconds=1)
_TRIES: Final = 1_000
"""Names tried while other processes take them."""
_MOST_AHEAD: Final = timedelta(days=3_653)
"""How far a clock can have been ahead: no backup was made at a later time."""


def back_up(source: Path, destination: Path | None, *, now: datetime) -> Path:
    """Copy a store in its present state into a new file of mode 0600, and return its path.

    Others may write meanwhile. The copy is made beside its destination and moved there once it is
    complete and synced: an existing file stays until then. A symbolic link there is replaced, never
    followed. The default destination is ``backups/memories-TIME.db`` beside the source, with a time
    later than any such backup even if the clock is not: none is replaced.
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

    Once the copy is complete and synced, the oldest backups made this way are deleted, so that
    ``keep`` are left. ``keep=0`` makes none and returns ``None``. The time in a name is always
    later than that of any backup before, even if the clock is not: the names sort in the order in
    which they were made. ``reason`` has up to 40 letters, digits, ``_`` and ``-``, all in lower
    case.
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
    another store in the same folder are left out as far as their names reveal them.
    """
    files = [path for path in plain_files(_folder(source)) if _may_be_of(source, path.name)]
    backups = [_described(path, source) for path in files]
    return sorted(
        (backup for backup in backups if backup is not None),
        key=lambda backup: (backup.made_at, backup.path),
        reverse=True,
    )


def copy_store(source: Path, target: Path, *, page_size: int | None = None) -> None:
    """Copy a store into a new file of mode 0600, complete and synced; ``page_size`` in bytes."""
    # SQLite would create the file with the rights of the umask: create it first, empty.
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
    """Return the directory of a store's backups, resolving links: SQLite follows none."""
    folder = source.parent / BACKUPS_FOLDER
    try:
        return folder.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise StorageUnavailable(f"{folder} cannot be resolved: {error}") from error


def _made_folder(source: Path) -> Path:
    """Return the directory of a store's backups, created if needed.

    The target of a link must exist: otherwise it is a drive that is not mounted, or a place that
    nobody chose.
    """
    folder, own = _folder(source), source.parent / BACKUPS_FOLDER
    with translated_errors(folder, "made"):
        if own.is_symlink() and not folder.exists():
            raise StorageUnavailable(
                f"{own} is a link to {folder}, which does not exist: create it"
            )
        make_private_folder(folder)
    tighten_folder(source.parent / BACKUPS_FOLDER)
    return folder


@contextlib.contextmanager
def _copied(source: Path, destination: Path) -> Iterator[Path]:
    """Make a complete copy beside its destination, for the body to move it there."""
    with translated_errors(destination), unfinished_file(destination) as (unfinished, handle):
        os.close(handle)  # before SQLite opens it: closing it later would drop its locks
        refuse_long_path(unfinished)
        try:
            # Errors name the destination: the unfinished copy is gone when someone reads them.
            _fill(source, unfinished, named=destination)
            yield unfinished
        finally:
            remove_files([beside(unfinished, "-journal")])


def _refuse_destination(destination: Path) -> None:
    if destination.is_dir():
        raise ValidationError.of("destination", "is a directory: name a file", str(destination))
    if not destination.parent.is_dir():
        message = f"the directory {str(destination.parent)!r:.300} does not exist"
        raise ValidationError.of("destination", message, str(destination))


def _named(unfinished: Path, source: Path, reason: str | None, now: datetime) -> Path:
    """Give a copy a free name, later than those of the backups before it."""
    ending = "" if reason is None else f".before-{reason}"
    time = now
    for _ in range(_TRIES):
        earlier = _named_by_time(source, now)
        time = max([time, *(shifted(made_at, STEP) for made_at, *_ in earlier)])
        made = unfinished.with_name(f"{source.stem}-{_stamp(time)}{ending}{source.suffix}")
        refuse_long_path(made)  # it could not be restored
        if _moved(unfinished, made):
            return made
        time = shifted(time, STEP)
    raise StorageUnavailable(f"{made} already exists, and no later name is free: move it away")


def _moved(unfinished: Path, made: Path) -> bool:
    """Move a file to a name if it is free, and return whether it was."""
    try:
        os.link(unfinished, made)  # replaces nothing, unlike a rename
    except FileExistsError:
        return False
    except OSError:  # the file system does not support links
        if os.path.lexists(made):
            return False
        unfinished.replace(made)
    return True


def _rotate(source: Path, keep: int, now: datetime) -> None:
    """Delete the oldest automatic backups, but none that is in use.

    A folder that is a link may also belong to another store: nothing in it is deleted. A failure to
    delete is ignored: it must not stop what comes after the backup.
    """
    folder = source.parent / BACKUPS_FOLDER
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
    """Return partial backups left in ``backups/`` by processes killed while making them."""
    name = f"{re.escape(source.stem)}{_UNFINISHED}{re.escape(source.suffix)}"
    return abandoned(source.parent / BACKUPS_FOLDER, UNFINISHED.format(name), remove=remove)


# Names --------------------------------------------------------------------------------------------


def _stamp(now: datetime) -> str:
    return re.sub("[-:.]", "", format_time(now))


def _match(source: Path, name: str) -> re.Match[str] | None:
    """Parse the name of a backup of this store."""
    pattern = re.escape(source.stem) + _ENDING + re.escape(source.suffix)
    return re.fullmatch(pattern, name, re.ASCII)


def _may_be_of(source: Path, name: str) -> bool:
    """Return whether a file may be a backup of this store, that is, not named as another's."""
    if _match(source, name):
        return True
    is_others = re.fullmatch(f".*{_ENDING}{re.escape(source.suffix)}", name, re.ASCII)
    return not is_others and not name.startswith(".") and Path(name).suffix == source.suffix


def _parsed(stamp: str) -> datetime:
    """Parse the time in a name. Raises ``ValueError`` if it is invalid, such as a 13th month."""
    return parse_time(f"{stamp[:-7]}.{stamp[-7:]}")


def _named_by_time(source: Path, now: datetime) -> list[tuple[datetime, str, str | None]]:
    """Return the times, names and reasons of the backups of a store. Only plain files.

    A time far ahead of ``now`` is made up, and ignored: no later name might be free.
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
    """Describe a backup; return ``None`` if it was deleted meanwhile."""
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
