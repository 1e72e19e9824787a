"""Simulates what a power cut may leave of a file, as far as a program can.

SQLite's writes are observed: what was written and synced is on the disk; without a sync, each write
may be there, be missing, or be torn at a sector. At chosen moments such a disk is written beside
the file. What no program can detect is a disk that reports a sync it has not done.

``main`` runs in its own process, with a file, the number of texts to store, and how to wait for the
disk. It cuts the power once for each text: after storing it, or in the middle. It prints the folder
of the cut and how many texts had been acknowledged by then, and continues when it reads a line.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import click

from agent_memory import AgentMemory

_Path = apsw.URIFilename | str | None
_VFS: Final = "power-cut"
_SECTOR: Final = 512
_IN_MEMORY: Final = "-shm"
"""SQLite rebuilds its shared-memory file from the log, whatever a cut leaves of it."""


def text_of(number: int) -> str:
    """Return the text that is stored with this number."""
    return f"power cut: note {number}" + f" word{number}" * 60


class _Change(NamedTuple):
    """A change of a file: bytes at an offset, a new length, or deletion (a negative offset)."""

    file: str
    offset: int
    data: bytes | None = None


class Disk:
    """The files of a folder as they are on the disk, and the changes that are not yet synced."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._durable = {
            path.name: bytearray(path.read_bytes())
            for path in self.folder.iterdir()
            if path.is_file() and not path.name.endswith(_IN_MEMORY)
        }
        self._pending: list[_Change] = []
        self.watch: Callable[[], None] = lambda: None
        """Called after each change."""

    def place(self, path: object) -> str | None:
        """Return the name of a file of SQLite's in this folder, or ``None`` for any other."""
        text = path.filename() if isinstance(path, apsw.URIFilename) else path
        if not isinstance(text, str) or not text or text.endswith(_IN_MEMORY):
            return None
        whole = Path(text).resolve()
        return whole.name if whole.parent == self.folder else None

    def change(self, file: str, offset: int, data: bytes | None = None) -> None:
        """Record a write, or without ``data`` a new length; a negative offset deletes the file."""
        self._pending.append(_Change(file, offset, data))
        self.watch()

    def sync(self, file: str) -> None:
        """Write all changes of a file to the disk."""
        for change in self._pending:
            if change.file == file:
                _make(self._durable, change)
        self._pending = [change for change in self._pending if change.file != file]

    def cut(self, target: Path, dice: random.Random) -> None:
        """Write to a new folder what may be left if the power fails now."""
        files = {name: bytearray(content) for name, content in self._durable.items()}
        gone: set[str] = set()  # files whose deletion was lost: the new file was never created
        kept = dice.choice((0.0, 0.5, 0.5, 1.0))
        for change in self._pending:
            if change.file in gone:
                continue
            if dice.random() < kept:
                _make(files, change)
            elif change.data and dice.random() < 0.3:
                whole = dice.randrange(len(change.data) // _SECTOR + 1) * _SECTOR
                _make(files, change._replace(data=change.data[:whole]))
            elif change.offset < 0:
                gone.add(change.file)
        target.mkdir(mode=0o700)
        for name, content in files.items():
            (target / name).write_bytes(content)
            (target / name).chmod(0o600)


def _make(files: dict[str, bytearray], change: _Change) -> None:
    if change.offset < 0:
        files.pop(change.file, None)
        return
    content = files.setdefault(change.file, bytearray())
    if change.data is None:
        del content[change.offset :]
        return
    content.extend(bytes(max(0, change.offset - len(content))))
    content[change.offset : change.offset + len(change.data)] = change.data


class _File(apsw.VFSFile):
    def __init__(
        self, disk: Disk, base: str, path: apsw.URIFilename | str | None, flags: list[int]
    ) -> None:
        super().__init__(base, path, flags)
        self._disk, self._place = disk, disk.place(path)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's names
        super().xWrite(data, offset)
        if self._place is not None:
            self._disk.change(self._place, offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        if self._place is not None:
            self._disk.change(self._place, size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        if self._place is not None:
            self._disk.sync(self._place)


class _Listening(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk, self._base = disk, apsw.vfs_names()[0]
        super().__init__(_VFS, self._base, makedefault=True)

    def xOpen(self, name: _Path, flags: list[int]) -> _File:  # noqa: N802
        return _File(self._disk, self._base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802
        super().xDelete(filename, syncdir)
        if (place := self._disk.place(filename)) is not None:
            self._disk.change(place, -1)
            if syncdir:
                self._disk.sync(place)


@contextlib.contextmanager
def _heard(disk: Disk) -> Iterator[None]:
    """Let a disk observe everything that SQLite does in this process inside the body."""
    vfs = _Listening(disk)
    try:
        yield
    finally:
        vfs.unregister()


def main() -> None:
    """Store texts, and cut the power once for each: after storing it, or in the middle."""
    path, count, synchronous = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dice, disk = random.Random(3), Disk(path.parent)
    acknowledged = changes_left = 0

    def cut() -> None:
        target = path.parent / "cut"
        disk.cut(target, dice)
        click.echo(json.dumps({"folder": str(target), "acknowledged": acknowledged}))
        sys.stdin.readline()

    def count_down() -> None:
        nonlocal changes_left
        changes_left -= 1
        if changes_left == 0:
            cut()

    disk.watch = count_down
    with (
        _heard(disk),
        AgentMemory.open(path, create=False, embedder=None, synchronous=synchronous) as memory,
    ):
        for number in range(count):
            changes_left = dice.randrange(1, 30) if number % 2 else 0
            memory.store(text_of(number))
            acknowledged += 1
            if changes_left > 0 or number % 2 == 0:  # not cut in the middle
                changes_left = 0
                cut()
