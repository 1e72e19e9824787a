"""Reads document E's folder line by line, with E's repairs, each of which is reported."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent_memory.errors import ValidationError
from agent_memory.formats.directory.index import StoredIndex
from agent_memory.formats.directory.layout import (
    ARCHIVE,
    BACKUPS,
    BEYOND,
    FURTHER,
    INDEX,
    MAIN_FILES,
    MAX_BACKUPS,
    SHELVES,
    archives_of,
    backups_of,
    kind_in,
)
from agent_memory.formats.directory.lines import (
    MAX_FURTHER_BYTES,
    LinesById,
    RawLine,
    digest_of,
    id_of,
    raw_lines,
)
from agent_memory.formats.directory.repair import entry_of
from agent_memory.formats.jsonl import MAX_LINE_BYTES
from agent_memory.models.enums import MemoryKind
from agent_memory.models.portable import Entry, Section
from agent_memory.runtime.files import read_steadily

# The id in a line that is broken elsewhere.
_ID: Final = re.compile(rb'"id"\s*:\s*"([^"\\]{1,128})"')


def read_folder(folder: Path) -> Iterator[Entry]:
    """Yield the memories of E's files, of the archive, and of those beyond E's limits."""
    index = StoredIndex(folder)
    counted = Counter({kind.value: 0 for kind in MemoryKind})
    last: Entry | None = None
    with _Reader.opened(folder) as reader:
        for entry in reader.entries(index):
            if last is not None:
                yield last
            is_memory = entry.error is None and entry.section is Section.MEMORY
            if is_memory and reader.is_in_main_file:
                counted[entry.fields["kind"]] += 1
            last = entry
    if last is not None:
        # Only now it is known what the index should say.
        wrong = index.wrong(counted)
        yield last._replace(repairs=(*last.repairs, wrong)) if wrong else last


def read_file(path: Path) -> Iterator[Entry]:
    """Yield the memories of one of E's files; if it is in a folder, the files beside it help."""
    kind = next((kind for kind, shelf in SHELVES.items() if shelf.name == path.name), None)
    with _Reader.opened(path.parent) as reader:
        if kind is None or path.is_symlink():
            yield from reader.lines(path.name)
        else:
            count = StoredIndex(path.parent).counts.get(kind.value)
            yield from reader.file(path.name, count)


class _Restored(NamedTuple):
    """A memory whose line is broken, as its newest backup has it."""

    place: str
    item: dict[str, Any]
    digest: bytes
    repair: str


class _Reader:
    """The reading of a folder. ``is_in_main_file`` is of the entry that was yielded last."""

    def __init__(self, folder: Path, further: LinesById | None) -> None:
        self.is_in_main_file = False
        self._folder = folder
        self._further = further
        self._seen: set[bytes] = set()
        self._kind = MemoryKind.LEARNING
        self._is_in_archive = False

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: Path) -> Iterator[_Reader]:
        """Open the folder's file of what E has no place for, if there is one."""
        path = folder / FURTHER
        if path.is_symlink() or not path.exists():
            yield cls(folder, None)
            return
        with read_steadily(path) as file:
            yield cls(folder, LinesById(file))

    def entries(self, index: StoredIndex) -> Iterator[Entry]:
        """Yield what all files of the folder tell."""
        if (self._folder / FURTHER).is_symlink():
            yield _unread(FURTHER, "is a symbolic link, and is not followed")
        for kind, shelf in SHELVES.items():
            if os.path.lexists(self._folder / shelf.name):
                yield from self.file(shelf.name, index.counts.get(kind.value))
            else:
                yield from self._missing(shelf.name, index.counts.get(kind.value))
        for name in archives_of(self._folder):
            yield from self.file(name)
        if os.path.lexists(self._folder / BEYOND):
            yield from self.file(BEYOND)

    def _missing(self, name: str, count: object) -> Iterator[Entry]:
        backup = self._newest_backup(name)
        if backup is not None:
            yield from self.lines(name, backup, f"{name} is missing: imported {backup} instead")
        elif count:
            reason = f"{INDEX} counts {count!r:.20} memories in it"
            yield _unread(name, f"is missing: {reason}, and {BACKUPS} has no copy")

    def file(self, name: str, count: object = 0) -> Iterator[Entry]:
        """Yield the memories of a file. ``count`` is what the index says of it, ``None`` nothing.

        A file without a line is empty if the index does not say otherwise, nor, where there is no
        index, a backup: a file that was cut to nothing looks the same. A backup that was not read
        is named.
        """
        if (self._folder / name).is_symlink():
            yield _unread(name, "is a symbolic link, and is not followed")
            return
        is_of_use = _is_of_use(self._folder / name)
        if is_of_use:
            yield from self.lines(name)
            return
        fault = "is empty" if is_of_use is None else "cannot be read"
        backup = self._newest_backup(name)
        if is_of_use is None and count == 0:
            if backup is not None:
                advice = f"{backup} was not read: import it separately if you want it"
                repair = f"is empty, and {INDEX} counts none in it: {advice}"
                yield Entry(Section.AGENT, {}, name, repairs=(repair,))
            yield from self.lines(name)
        elif backup is not None:
            yield from self.lines(name, backup, f"{name} {fault}: imported {backup} instead")
        elif is_of_use is False:
            yield _unread(name, f"has no readable line, and no backup in {BACKUPS}")
        elif not count:
            yield from self.lines(name)
        else:
            yield _unread(name, f"{fault}: {INDEX} counts {count!r:.20} memories in it")

    def _newest_backup(self, name: str) -> str | None:
        """Return the newest backup that has a memory, relative to the folder."""
        for path in backups_of(self._folder, name):
            if _is_of_use(path):
                return path.relative_to(self._folder).as_posix()
        return None

    # Lines ------------------------------------------------------------------------------------

    def lines(self, name: str, source: str | None = None, repair: str = "") -> Iterator[Entry]:
        """Yield the memories of a file, or of another that stands for it; its repair is told once.

        A broken line whose id can be seen is taken from a backup when the others were read: one
        of them may have the same memory.
        """
        repairs = (repair,) if repair else ()
        self._kind = kind_in(Path(name).name) or MemoryKind.LEARNING
        self._is_in_archive = name.startswith(f"{ARCHIVE}/")
        self.is_in_main_file = name in MAIN_FILES
        max_bytes = MAX_FURTHER_BYTES if name == BEYOND else MAX_LINE_BYTES
        yield from self._faults_of_further()
        with contextlib.ExitStack() as stack:
            backups = _Backups(self._folder, name, stack)
            restored: dict[bytes, _Restored] = {}
            with read_steadily(self._folder / (source or name)) as file:
                for line in raw_lines(file, max_bytes):
                    place = f"{source or name}: line {line.number}"
                    try:
                        item = line.parsed()
                    except ValidationError as error:
                        if line_before := backups.restored(line, place, str(error)):
                            restored.setdefault(line_before.digest, line_before)
                        else:
                            yield _unread(place, str(error))
                        continue
                    yield self._entry(item, place, repairs)
                    repairs = ()
            for repaired in restored.values():
                if repaired.digest not in self._seen:
                    yield self._entry(repaired.item, repaired.place, (repaired.repair,))

    def _faults_of_further(self) -> Iterator[Entry]:
        if self._further is not None and not self._further.is_filled:
            for number, fault in self._further.fill():
                yield _unread(f"{FURTHER}: line {number}", fault)

    def _entry(self, item: dict[str, Any], place: str, repairs: tuple[str, ...]) -> Entry:
        memory_id = id_of(item)
        digest = None if memory_id is None else digest_of(memory_id)
        if digest in self._seen:
            return _unread(
                place, f"id: an earlier line has the id {memory_id!r:.80} too, and is kept"
            )
        further = self._further.get(digest) if self._further and digest else None
        entry = entry_of(
            item,
            kind=self._kind,
            is_in_archive=self._is_in_archive,
            further=further,
            place=place,
            repairs=repairs,
        )
        if digest is not None and entry.error is None:
            self._seen.add(digest)
        return entry


class _Backups:
    def __init__(self, folder: Path, name: str, stack: contextlib.ExitStack) -> None:
        self._folder = folder
        self._name = name
        self._stack = stack
        self._opened: list[tuple[str, LinesById]] | None = None

    def restored(self, line: RawLine, place: str, fault: str) -> _Restored | None:
        """Return the memory of a broken line as the newest backup has it, if any has."""
        match = _ID.search(line.raw)
        if match is None:
            return None
        digest = digest_of(match[1].decode(errors="replace"))
        for name, lines in self._all():
            item = lines.get(digest)
            if item is not None:
                return _Restored(place, item, digest, f"the line {fault}: using {name}")
        return None

    def _all(self) -> list[tuple[str, LinesById]]:
        if self._opened is None:
            self._opened = []
            for path in backups_of(self._folder, self._name)[:MAX_BACKUPS]:
                lines = LinesById(self._stack.enter_context(read_steadily(path)))
                for _ in lines.fill():
                    pass  # a fault of a backup harms nobody
                self._opened.append((path.relative_to(self._folder).as_posix(), lines))
        return self._opened


def _is_of_use(path: Path) -> bool | None:
    """Return whether a file has a line that can be read; ``None`` where it has no lines at all."""
    is_of_use = None
    with read_steadily(path) as file:
        for line in raw_lines(file, MAX_FURTHER_BYTES):
            try:
                line.parsed()
            except ValidationError:
                is_of_use = False
            else:
                return True
    return is_of_use


def _unread(place: str, fault: str) -> Entry:
    return Entry(Section.MEMORY, {}, place, fault)
