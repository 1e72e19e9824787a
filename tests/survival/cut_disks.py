"""What a disk is asked to do, and what it may have done of that when the power fails.

Files and names are kept apart, as a file system keeps them: a file has a number, and a folder says
which name stands for which number. What may be lost is the same for both: all that no sync of the
file, or of the folder, followed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

ROOT: Final = -1
"""The number of the folder itself. Those of folders are negative, those of files are not."""

SECTORS: Final = (512, 4096)
_PAGE: Final = 4096
_Fate = Literal["kept", "lost", "torn"]
_FATES: Final[tuple[_Fate, ...]] = ("kept", "lost", "torn")
_WEIGHTS: Final = ((45, 35, 20),) * 8 + ((100, 0, 0), (0, 100, 0))
"""How often a write that was not synced is kept, lost and torn; now and then all or nothing is."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes that were written into a file."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    """A file that was cut to a length in bytes."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """A file of which all that came before is on the disk."""

    file: int


@dataclass(frozen=True, slots=True)
class Names:
    """Names that now stand for a file or a folder, or for nothing: all of them at once.

    A renaming is one of these. It is on the disk when the folder of its first name is.
    """

    changes: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True, slots=True)
class SyncFolder:
    """A folder of which all names are on the disk."""

    folder: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A step that begins, or that returned: from then on what it did is acknowledged."""

    step: int
    is_done: bool


Event = Write | Truncate | Sync | Names | SyncFolder | Mark
_Change = Write | Truncate | Names


@dataclass
class Tree:
    """Folders, and what is in the files."""

    folders: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    contents: dict[int, bytearray] = field(default_factory=dict)
    _own: set[int] = field(default_factory=set)
    """The files whose content no other tree shares."""

    def copied(self) -> Tree:
        """Return another one that says the same. What neither changes they share."""
        self._own.clear()
        folders = {number: dict(names) for number, names in self.folders.items()}
        return Tree(folders, dict(self.contents))

    def change(self, event: _Change) -> None:
        """Do what was asked."""
        if isinstance(event, Names):
            self._name(event)
            return
        if event.file not in self._own:
            self.contents[event.file] = bytearray(self.contents.get(event.file, b""))
            self._own.add(event.file)
        content = self.contents[event.file]
        if isinstance(event, Truncate):
            del content[event.size :]
        else:
            content.extend(bytes(max(0, event.offset - len(content))))
            content[event.offset : event.offset + len(event.data)] = event.data

    def _name(self, event: Names) -> None:
        for folder, name, number in event.changes:
            names = self.folders.setdefault(folder, {})
            if number is None:
                names.pop(name, None)
                continue
            names[name] = number
            if number < 0:
                self.folders.setdefault(number, {})
            else:
                self.contents.setdefault(number, bytearray())

    def find(self, place: Path) -> int | None:
        """Return the number of what has a path, which is relative; ``None`` for nothing."""
        number = ROOT
        for part in place.parts:
            found = self.folders.get(number, {}).get(part)
            if found is None:
                return None
            number = found
        return number

    def walk(self, folder: int = ROOT, place: Path = Path()) -> Iterator[tuple[Path, int]]:
        """Yield the relative path and the number of all that can be reached."""
        for name, number in sorted(self.folders.get(folder, {}).items()):
            yield place / name, number
            if number < 0:
                yield from self.walk(number, place / name)

    def files(self) -> dict[Path, bytearray]:
        """Return what is in each file, by its relative path."""
        return {place: self.contents[number] for place, number in self.walk() if number >= 0}

    def write_to(self, folder: Path) -> None:
        """Make these files and folders in a folder, which is made as well."""
        folder.mkdir(mode=0o700)
        for place, number in self.walk():
            if number < 0:
                (folder / place).mkdir(mode=0o700)
                continue
            (folder / place).write_bytes(self.contents[number])
            (folder / place).chmod(0o600)


class Disk:
    """A disk that takes events one after the other; at any moment the power can fail."""

    def __init__(self, base: Tree) -> None:
        self._durable = base.copied()
        self._pending: list[_Change] = []

    def take(self, event: Event) -> None:
        """Do, or for now only remember, what is asked."""
        if isinstance(event, Sync):
            file = event.file
            self._settle(lambda it: not isinstance(it, Names) and it.file == file)
        elif isinstance(event, SyncFolder):
            folder = event.folder
            self._settle(lambda it: isinstance(it, Names) and it.changes[0][0] == folder)
        elif not isinstance(event, Mark):
            self._pending.append(event)

    def _settle(self, is_meant: Callable[[_Change], bool]) -> None:
        for event in self._pending:
            if is_meant(event):
                self._durable.change(event)
        self._pending = [event for event in self._pending if not is_meant(event)]

    def after_cut(self, dice: random.Random) -> Tree:
        """Return what may be there if the power fails now.

        Of the writes that no sync followed each is kept, lost, or torn at the borders of sectors.
        Of the names either those up to a moment are kept, as file systems with a journal do it; or
        each by itself, which is all that POSIX promises; or all but one; or one.
        """
        weights = dice.choice(_WEIGHTS)
        sector = dice.choice(SECTORS)
        kept = _kept_names(len(self.names), weights, dice)
        return self.with_names(
            kept,
            lambda event: _parts(event, dice.choices(_FATES, weights)[0], sector, dice),
        )

    @property
    def names(self) -> list[Names]:
        """The new names that no sync followed."""
        return [event for event in self._pending if isinstance(event, Names)]

    def with_names(
        self,
        kept: Collection[int],
        parts: Callable[[Write | Truncate], Iterable[Write | Truncate]] = lambda event: [event],
    ) -> Tree:
        """Return what is there if, of the new names, these are kept, and these parts of writes."""
        tree, number = self._durable.copied(), -1
        for event in self._pending:
            if isinstance(event, Names):
                number += 1
                if number in kept:
                    tree.change(event)
                continue
            for part in parts(event):
                tree.change(part)
        return tree


def some_names(count: int) -> Iterator[Collection[int]]:
    """Yield which of so many new names may be kept: those up to a moment, all but one, or one."""
    for number in range(count):
        yield range(number)
        yield {*range(count)} - {number}
        yield {number}
    yield range(count)


def _kept_names(count: int, weights: tuple[int, int, int], dice: random.Random) -> Collection[int]:
    if not 0 < weights[0] < 100:
        return range(count if weights[0] else 0)
    if dice.random() < 0.3:
        return {number for number in range(count) if dice.choices(_FATES, weights)[0] == "kept"}
    return dice.choice(list(some_names(count)))


def _parts(
    event: Write | Truncate, fate: _Fate, sector: int, dice: random.Random
) -> list[Write | Truncate]:
    """Return what is on the disk of a write: all, nothing, or some of its sectors."""
    if fate == "kept":
        return [event]
    if fate == "lost" or isinstance(event, Truncate):
        return []
    pieces = list(_sectors(event, sector))
    if dice.random() < 0.5:
        return [*pieces[: dice.randrange(len(pieces) + 1)]]
    return [piece for piece in pieces if dice.random() < 0.5]


def _sectors(event: Write, sector: int) -> Iterator[Write]:
    """Cut a write where the sectors of its file meet."""
    begin, end = event.offset, event.offset + len(event.data)
    while begin < end:
        stop = min(end, (begin // sector + 1) * sector)
        yield Write(event.file, begin, event.data[begin - event.offset : stop - event.offset])
        begin = stop
