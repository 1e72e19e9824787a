"""A record of all that SQLite and Python ask of the disk in one folder, in order.

SQLite is heard by a VFS. Of Python's own calls those that change names, and ``fsync``, are heard;
what Python wrote is found by looking at the files at each of these moments, since nothing that was
written between two of them is promised to be there. ``verify`` compares the record, played back,
with the folder: what was not heard would show.

SQLite syncs the folder itself with the first sync of a log or journal that it may have made
(``UNIXFILE_DIRSYNC`` in its ``os_unix.c``; seen with ``strace``); a VFS does not see that, so it is
taken for granted here. It does not sync the folder when it deletes a log. The ``-shm`` file is not
recorded: SQLite makes it anew from the log.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import apsw

from .cut_disks import ROOT, Event, Mark, Names, Sync, SyncFolder, Tree, Truncate, Write

_CHUNK: Final = 65_536
"""Bytes of a write of Python's: more than that the system may bring to the disk in parts."""
_MAGIC: Final = b"SQLite format 3\0"
_LOGS: Final = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
_VFS: Final = "recording"
_UNRECORDED: Final = "-shm"
_Signature = tuple[int, int, int]


class Record:
    """What happened in a folder since the record began.

    ``base`` is what was there before, taken to be on the disk; ``now`` is what is there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.events: list[Event] = []
        self.now = Tree()
        self._count = 0
        self._open: Counter[int] = Counter()
        self._by_sqlite: dict[int, _Signature | None] = {}
        self.look()
        self.base = self.now.copied()
        self.events.clear()

    def add(self, event: Event) -> None:
        """Write down what is asked of the disk."""
        self.events.append(event)
        if isinstance(event, (Write, Truncate, Names)):
            self.now.change(event)

    def begin(self, step: int) -> None:
        """A step begins."""
        self.look()
        self.add(Mark(step, is_done=False))

    def done(self, step: int) -> None:
        """A step returned."""
        self.look()
        self.add(Mark(step, is_done=True))

    # Looking at the folder --------------------------------------------------------------------

    def look(self, folder: int = ROOT, place: Path | None = None) -> None:
        """Find what was made, deleted or written by calls that are not heard."""
        place = place or self.root
        names = self.now.folders[folder]
        with os.scandir(place) as entries:
            there = {it.name: it for it in entries if not it.name.endswith(_UNRECORDED)}
        for name in sorted(names.keys() - there.keys()):
            self.add(Names(((folder, name, None),)))
        for name, entry in sorted(there.items()):
            is_folder = entry.is_dir(follow_symlinks=False)
            if name not in names:
                self._count += 1
                self.add(Names(((folder, name, -1 - self._count if is_folder else self._count),)))
            if is_folder:
                self.look(names[name], place / name)
            else:
                self._read(names[name], place / name)

    def _read(self, file: int, path: Path) -> None:
        """Find what Python wrote. What SQLite has open is not touched, for that drops its locks."""
        if self._open[file]:
            return
        if file in self._by_sqlite and self._by_sqlite[file] in (None, signature := _sign(path)):
            self._by_sqlite[file] = signature
            return
        before, content = bytes(self.now.contents[file]), path.read_bytes()
        if content.startswith(_MAGIC):
            self._by_sqlite[file] = _sign(path)
        begin = len(before) if content.startswith(before) else 0
        if len(content) < len(before):
            self.add(Truncate(file, len(content)))
        if content != before:
            for offset in range(begin, len(content), _CHUNK):
                self.add(Write(file, offset, content[offset : offset + _CHUNK]))

    def verify(self) -> None:
        """Compare the record with the folder, in which nobody may have a file open."""
        self.look()
        there = {
            path.relative_to(self.root): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file() and not path.name.endswith(_UNRECORDED)
        }
        recorded = self.now.files()
        differing = [
            str(place) for place in {*there, *recorded} if there.get(place) != recorded.get(place)
        ]
        assert not differing, f"what happened to {differing} was not recorded"

    # What SQLite does -------------------------------------------------------------------------

    def place(self, name: object) -> Path | None:
        """Return the path of a file of SQLite's in this folder, relative to it."""
        text = name.filename() if isinstance(name, apsw.URIFilename) else name
        if not isinstance(text, str) or not text or text.endswith(_UNRECORDED):
            return None
        path = Path(text).resolve()
        return path.relative_to(self.root) if path.is_relative_to(self.root) else None

    def opened(self, place: Path) -> int:
        """Return the number of a file that SQLite has opened, which may be new."""
        self.look()
        file = self.now.find(place)
        assert file is not None
        self._open[file] += 1
        return file

    def closed(self, file: int) -> None:
        """Notice that SQLite has closed a file, whose content is known."""
        self._open[file] -= 1
        self._by_sqlite[file] = None

    # What Python does -------------------------------------------------------------------------

    def synced(self, handle: int) -> None:
        """Write down that Python synced an open file or folder."""
        self.look()
        wanted = _inode(os.fstat(handle))
        if wanted == _inode(self.root.stat()):
            self.add(SyncFolder(ROOT))
        for place, number in self.now.walk():
            if _inode((self.root / place).lstat()) == wanted:
                self.add(SyncFolder(number) if number < 0 else Sync(number))
                return

    def named(self, old: Any, new: Any, *, keeps_old: bool) -> None:
        """Write down that Python gave a file or folder a new name, or another one."""
        source, target = (self._split(Path(os.fspath(it))) for it in (old, new))
        if source is None or target is None or source[1].endswith(_UNRECORDED):
            return
        number = self.now.folders[source[0]][source[1]]
        changes: tuple[tuple[int, str, int | None], ...] = ((*target, number),)
        self.add(Names(changes if keeps_old else (*changes, (*source, None))))

    def _split(self, path: Path) -> tuple[int, str] | None:
        """Return the folder's number, and the name in it, of a path in this folder."""
        whole = path.parent.resolve() / path.name
        if not whole.is_relative_to(self.root):
            return None
        folder = self.now.find(whole.parent.relative_to(self.root))
        return None if folder is None else (folder, whole.name)


def _sign(path: Path) -> _Signature:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


# SQLite -------------------------------------------------------------------------------------------


class _RecordingFile(apsw.VFSFile):
    def __init__(self, record: Record, base: str, name: Any, flags: list[int]) -> None:
        place = record.place(name)
        if place is not None:
            record.look()
        makes_log = flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & _LOGS
        super().__init__(base, name, flags)
        self._record = record
        self._file = None if place is None else record.opened(place)
        self._folder = record.now.find(place.parent) if place is not None and makes_log else None

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._file is not None:
            self._record.add(Write(self._file, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        if self._file is not None:
            self._record.add(Truncate(self._file, size))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        if self._file is not None:
            self._record.add(Sync(self._file))
        if self._folder is not None:
            self._record.add(SyncFolder(self._folder))
            self._folder = None

    def xClose(self) -> None:
        super().xClose()
        if self._file is not None:
            self._record.closed(self._file)
            self._file = None


class _RecordingVFS(apsw.VFS):
    def __init__(self, record: Record) -> None:
        self._record = record
        self._base = apsw.vfs_names()[0]
        super().__init__(_VFS, self._base)

    def xOpen(self, name: Any, flags: list[int]) -> _RecordingFile:
        return _RecordingFile(self._record, self._base, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        super().xDelete(name, sync)
        place = self._record.place(name)
        if place is not None:
            self._record.look()
            folder = self._record.now.find(place.parent)
            if sync and folder is not None:
                self._record.add(SyncFolder(folder))


@contextlib.contextmanager
def _sqlite_heard(record: Record) -> Iterator[None]:
    default = apsw.vfs_names()[0]
    vfs = _RecordingVFS(record)
    apsw.set_default_vfs(_VFS)
    try:
        yield
    finally:
        apsw.set_default_vfs(default)
        vfs.unregister()


# Python -------------------------------------------------------------------------------------------


def _looking(record: Record, call: Callable[..., Any]) -> Callable[..., Any]:
    def heard(*values: Any, **named: Any) -> Any:
        record.look()
        try:
            return call(*values, **named)
        finally:
            record.look()

    return heard


def _naming(record: Record, call: Callable[..., Any], *, keeps_old: bool) -> Callable[..., Any]:
    def heard(old: Any, new: Any, **named: Any) -> Any:
        record.look()
        call(old, new, **named)
        record.named(old, new, keeps_old=keeps_old)

    return heard


def _syncing(record: Record, call: Callable[[int], None]) -> Callable[[Any], None]:
    def heard(handle: Any) -> None:
        call(handle)
        record.synced(handle if isinstance(handle, int) else handle.fileno())

    return heard


@contextlib.contextmanager
def _python_heard(record: Record, *, syncs: bool) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in ("open", "unlink", "remove", "mkdir", "rmdir"):
            stack.enter_context(patch.object(os, name, _looking(record, getattr(os, name))))
        for name in ("rename", "replace", "link"):
            heard = _naming(record, getattr(os, name), keeps_old=name == "link")
            stack.enter_context(patch.object(os, name, heard))
        synced = _syncing(record, os.fsync) if syncs else lambda _handle: None
        stack.enter_context(patch.object(os, "fsync", synced))
        yield


@contextlib.contextmanager
def recording(folder: Path, *, syncs: bool = True) -> Iterator[Record]:
    """Record all that the body does in a folder; without ``syncs`` Python's are left out."""
    record = Record(folder)
    with _sqlite_heard(record), _python_heard(record, syncs=syncs):
        yield record
    record.verify()
