"""Moves new files into place, and old ones into ``.backup``; resumes after an interruption.

New files are written into a folder of their own. Once all of them are complete and on the disk,
that folder is renamed to ``.exported``: from then on they are the folder's files. If moving them is
interrupted, the next reader or writer of the folder completes it.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import stat
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agent_memory.errors import StorageError, ValidationError
from agent_memory.formats.directory.layout import (
    ARCHIVE,
    BACKUPS,
    BEYOND,
    FURTHER,
    INDEX,
    MAIN_FILES,
    MAX_BACKUPS,
    READY,
    STAGED,
    STAMP_FORMAT,
    archives_of,
    is_written_here,
    stamped_backups,
)
from agent_memory.formats.directory.lock import held
from agent_memory.models.times import now_utc
from agent_memory.runtime.files import make_private_folder, open_private, sync_to_disk

_LIST: Final = "files.txt"
"""The names of the new files, one a line, in the order in which they are put into place."""


def refuse_links(folder: Path) -> None:
    """Refuse a folder whose subfolders are links: we must not write where they lead."""
    for root in (folder, folder / READY):
        years = [] if (root / ARCHIVE).is_symlink() else (root / ARCHIVE).glob("*")
        for part in (root / BACKUPS, root / ARCHIVE, *years):
            if part.is_symlink():
                raise ValidationError(f"{part} is a symbolic link: put a folder in its place")


def stage(folder: Path) -> Path:
    """Create the folder for new files, empty and private. Call it after ``complete``.

    A folder of new files that is still there has lost its list and was already moved into place: a
    power cut came while it was deleted.
    """
    staged = folder / STAGED
    for left in (staged, folder / READY):
        if left.is_symlink():
            left.unlink()
        elif left.exists():
            shutil.rmtree(left)
    make_private_folder(staged)
    return staged


def is_half_export(staged: Path, *, remove: bool) -> bool:
    """Return whether a killed export left this folder behind, and remove it if asked to.

    A folder that a process is still working on does not count.
    """
    if staged.is_symlink() or staged.parent.is_symlink():
        return False
    with contextlib.suppress(StorageError), held(staged.parent, to_write=True):
        if remove:
            shutil.rmtree(staged, ignore_errors=True)
        return True
    return False


def commit(folder: Path, names: Iterable[str]) -> None:
    """Make the staged files the folder's: sync them to the disk, then move them into place."""
    staged = folder / STAGED
    listed = list(names)
    with open(staged / _LIST, "w", encoding="utf-8", opener=open_private) as file:
        file.writelines(f"{name}\n" for name in listed)
    for name in (*listed, _LIST):
        sync_to_disk(staged / name)
    for place in {staged / parent for name in listed for parent in Path(name).parents}:
        sync_to_disk(place)
    staged.rename(folder / READY)
    sync_to_disk(folder)
    complete(folder)


def complete(folder: Path) -> None:
    """Move files that are ready into place, if there are any. The folder's lock must be held.

    A file with the same content stays as it is. Any other old file, and one without a successor,
    goes into ``.backup``.
    """
    ready = folder / READY
    if ready.is_symlink() or not (ready / _LIST).is_file():
        return
    refuse_links(folder)
    names = _listed(ready)
    moment = now_utc()
    new = frozenset(names)
    for name in (*MAIN_FILES, FURTHER, BEYOND, *archives_of(folder)):
        if name not in new and os.path.lexists(folder / name):
            _set_aside(folder, name, moment)
            _remove_if_empty((folder / name).parent, folder)
    for name in names:
        if os.path.lexists(ready / name):
            _place(folder, name, moment)
    if (folder / STAGED).exists():
        shutil.rmtree(folder / STAGED)
    ready.rename(folder / STAGED)  # at once: half of it must not be taken for all
    sync_to_disk(folder)
    shutil.rmtree(folder / STAGED)
    sync_to_disk(folder)


def _listed(ready: Path) -> list[str]:
    """Return the names of the new files: none that leads out of the folder, if a stranger's."""
    names = (ready / _LIST).read_text(errors="replace").splitlines()
    for name in names:
        path = ready / name
        if not is_written_here(name) or (os.path.lexists(path) and not _is_plain(path)):
            raise ValidationError(
                f"{ready / _LIST} names {name!r:.80}, which no export writes: delete {ready}"
            )
    return names


def _place(folder: Path, name: str, moment: datetime) -> None:
    new, old = folder / READY / name, folder / name
    make_private_folder(old.parent)
    if os.path.lexists(old):
        filecmp.clear_cache()
        if _is_plain(old) and filecmp.cmp(new, old, shallow=False):
            old.chmod(0o600)
            new.unlink()
            return
        if name != INDEX:
            _set_aside(folder, name, moment, is_replaced=True)
    new.replace(old)
    for parent in Path(name).parents:
        sync_to_disk(folder / parent)


def _set_aside(folder: Path, name: str, moment: datetime, *, is_replaced: bool = False) -> None:
    """Move a file into ``.backup``; one that is replaced stays in its place until it is."""
    old = folder / name
    if not _is_plain(old):
        old.unlink()  # a symbolic link: what it leads to is not ours
        return
    backups = folder / BACKUPS
    make_private_folder(backups)
    target = backups / f"{old.name}.backup.{_stamp(folder, name, moment)}"
    try:
        target.hardlink_to(old)
    except OSError:  # not every file system has hard links
        old.replace(target)
    else:
        if not is_replaced:
            old.unlink()
    sync_to_disk(backups)
    for _, surplus in stamped_backups(folder, name)[MAX_BACKUPS:]:
        surplus.unlink()


def _stamp(folder: Path, name: str, moment: datetime) -> str:
    """Return the time of a new backup, in seconds: later than that of all others of its file."""
    for stamp, _ in stamped_backups(folder, name)[:1]:
        with contextlib.suppress(ValueError, OverflowError):
            newest = datetime.strptime(stamp, STAMP_FORMAT).replace(tzinfo=UTC)
            moment = max(moment, newest + timedelta(seconds=1))
    while os.path.lexists(folder / BACKUPS / f"{Path(name).name}.backup.{moment:{STAMP_FORMAT}}"):
        moment += timedelta(seconds=1)
    return f"{moment:{STAMP_FORMAT}}"


def _is_plain(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _remove_if_empty(place: Path, folder: Path) -> None:
    while place != folder and not any(place.iterdir()):
        place.rmdir()
        place = place.parent
