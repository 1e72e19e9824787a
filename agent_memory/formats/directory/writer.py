"""Writes document E's folder: streaming, in two passes, all files or none."""

from __future__ import annotations

import contextlib
import heapq
import os
import shutil
import stat
from collections import Counter, OrderedDict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from agent_memory.errors import ValidationError
from agent_memory.formats.directory.commit import (
    commit,
    complete,
    refuse_links,
    stage,
)
from agent_memory.formats.directory.index import Index
from agent_memory.formats.directory.layout import (
    BEYOND,
    FURTHER,
    INDEX,
    LOCK,
    MAIN_FILES,
    SHELVES,
    STAGED,
    Shelf,
    archives_of,
    is_e_folder,
    place_of,
)
from agent_memory.formats.directory.lines import MAX_FURTHER_BYTES, to_line
from agent_memory.formats.directory.lock import held
from agent_memory.formats.directory.repair import NESTED
from agent_memory.formats.directory.shape import misfit, shaped
from agent_memory.formats.protocol import Source, Written
from agent_memory.models.enums import MemoryKind
from agent_memory.models.memory import Memory
from agent_memory.runtime.files import make_private_folder, open_private, translated_errors
from agent_memory.text.counts import counted

_PARTS: Final = ".further"
_MAX_OPEN: Final = 32
"""Files open at a time: archives may be of any number of quarters."""


def write_folder(folder: Path, source: Source) -> Written:
    """Write a store as E's folder. Raises ``ValidationError`` if something else is there."""
    with translated_errors(folder, "written"):
        is_new = _is_made(folder)
    try:
        with held(folder, to_write=True), translated_errors(folder, "written"):
            complete(folder)
            return _written(folder, source)
    finally:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()  # where nothing came of it


def _is_made(folder: Path) -> bool:
    """Make the folder, and tell so; or refuse what is there unless it is E's or empty."""
    if not os.path.lexists(folder):
        make_private_folder(folder)
        return True
    if folder.is_symlink():
        raise ValidationError(f"{folder} is a symbolic link: give the path of the folder itself")
    refuse_links(folder)
    if not folder.is_dir():
        raise ValidationError(f"{folder} is a file: give the path of a folder")
    others = {path.name for path in folder.iterdir()} - {LOCK, STAGED}
    if others and not is_e_folder(folder):
        raise ValidationError(
            f"{folder} has other files, such as {min(others)!r:.80}: give a new or empty folder, or"
            f" one that has {', '.join(MAIN_FILES)}"
        )
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        with contextlib.suppress(PermissionError):
            folder.chmod(mode & 0o700)
    return False


def _written(folder: Path, source: Source) -> Written:
    staged = stage(folder)
    try:
        files, further = _Files(staged), _Files(staged / _PARTS)
        with contextlib.closing(further), contextlib.closing(files):
            written = _Export(staged, source, files, further).written()
        commit(folder, [*(name for name in files.sizes if name != INDEX), INDEX])
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return written


class _Export:
    def __init__(self, folder: Path, source: Source, files: _Files, further: _Files) -> None:
        self._source = source
        self._folder = folder
        self._files = files
        # By the file that it belongs to, so that it comes in the order in which files are read: in
        # that order the memories stand in a store that takes the folder in, and goes out again.
        self._further = further
        self._index = Index()
        self._beyond: Counter[str] = Counter()
        self._archived = self._with_further = self._too_long = 0

    def written(self) -> Written:
        """Write all files, and say what went where."""
        for name in MAIN_FILES:
            self._files.begin(name)
        kept = numbers_within_limits(self._source.memories())
        count = 0
        for number, memory in enumerate(self._source.memories()):
            self._take(memory, is_kept=number in kept)
            count += 1
        self._join_further()
        index = self._index.written(
            changed_at=self._source.changed_at,
            archived=self._archived,
            total_bytes=sum(self._files.sizes.values()),
        )
        self._files.append(INDEX, index)
        return Written(count, self._notes())

    def _take(self, memory: Memory, *, is_kept: bool) -> None:
        both = shaped(memory)
        line = to_line(both.fields)
        reason = misfit(both.fields, line)
        if reason is None and not (is_kept or memory.archived):
            reason = limit_of(memory.kind)
        if reason is not None:
            self._beyond[reason] += 1
            whole = {**both.fields, NESTED: both.further} if both.further else both.fields
            self._files.append(BEYOND, self._measured(whole))
            return
        self._files.append(place_of(memory), line)
        if memory.archived:
            self._archived += 1
        else:
            self._index.add(memory.kind, both.fields)
        if both.further:
            self._with_further += 1
            line = self._measured({"id": both.fields["id"], **both.further})
            self._further.append(place_of(memory), line)

    def _measured(self, item: dict[str, Any]) -> bytes:
        line = to_line(item)
        self._too_long += len(line) > MAX_FURTHER_BYTES
        return line

    def _join_further(self) -> None:
        """Put what has no place in the format into one file."""
        self._further.close()
        parts = self._folder / _PARTS
        for name in (*MAIN_FILES, *archives_of(parts)):
            if name in self._further.sizes:
                self._files.append_file(FURTHER, parts / name)
        shutil.rmtree(parts, ignore_errors=True)

    def _notes(self) -> list[str]:
        notes = [
            f"{count} were written whole into {BEYOND}: {reason}"
            for reason, count in self._beyond.items()
        ]
        if self._with_further:
            notes.append(
                f"{FURTHER} has the fields that the format has no place for (ids, sessions,"
                f" metadata, …): of {counted(self._with_further)}"
            )
        if self._too_long:
            notes.append(
                f"{self._too_long} have over {MAX_FURTHER_BYTES // 10**6} MB of metadata:"
                " they were written, but cannot be imported"
            )
        return notes


class _Files:
    """Files that lines are appended to, few of them open at a time. ``sizes`` are in bytes."""

    def __init__(self, folder: Path) -> None:
        self.sizes: dict[str, int] = {}
        self._folder = folder
        self._open: OrderedDict[str, BinaryIO] = OrderedDict()

    def begin(self, name: str) -> BinaryIO:
        """Return a file, open at its end; make it if need be."""
        file = self._open.pop(name, None)
        if file is None:
            if len(self._open) >= _MAX_OPEN:
                self._open.popitem(last=False)[1].close()
            path = self._folder / name
            make_private_folder(path.parent)
            file = open(path, "ab", 2**16, opener=open_private)  # noqa: SIM115 - see close
            self.sizes.setdefault(name, 0)
        self._open[name] = file
        return file

    def append(self, name: str, line: bytes) -> None:
        """Add a line. The last one of a file has no end (E)."""
        file = self.begin(name)
        raw = b"\n" + line if self.sizes[name] else line
        file.write(raw)
        self.sizes[name] += len(raw)

    def append_file(self, name: str, part: Path) -> None:
        """Add all lines of another file, which is not empty."""
        with part.open("rb") as lines:
            self.append(name, lines.readline().removesuffix(b"\n"))
            file = self.begin(name)
            rest = part.stat().st_size - lines.tell()
            if rest:
                file.write(b"\n")
                shutil.copyfileobj(lines, file, 2**20)
                self.sizes[name] += rest + 1

    def close(self) -> None:
        """Close all files. Raises ``OSError`` for what did not fit, when all are closed."""
        failed: OSError | None = None
        for file in self._open.values():
            try:
                file.close()
            except OSError as error:
                failed = error
        self._open.clear()
        if failed is not None:
            raise failed


def numbers_within_limits(memories: Iterable[Memory]) -> frozenset[int]:
    """Return the numbers, from 0, of the memories that stay in E's three files.

    They are within E's limits for a single memory, and among the most recently used of their kind;
    of two that were used at the same moment, the one stored first.
    """
    rankings = {kind: _Ranking(shelf) for kind, shelf in SHELVES.items()}
    for number, memory in enumerate(memories):
        if not memory.archived:
            fields = shaped(memory).fields
            line = to_line(fields)
            if misfit(fields, line) is None:
                last_used = max(memory.last_accessed or memory.timestamp, memory.updated_at)
                rankings[memory.kind].offer(number, last_used, len(line))
    return frozenset(number for ranking in rankings.values() for number in ranking.numbers())


class _Ranking:
    """The most recently used memories of a kind: as many as one file may hold, and no more."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._heap: list[tuple[datetime, int, int]] = []

    def offer(self, number: int, used: datetime, size: int) -> None:
        """Take the next memory into account; ``size`` is of its line, in bytes."""
        entry = (used, -number, size)
        if len(self._heap) < self._shelf.max_memories:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def numbers(self) -> list[int]:
        """Return the numbers of those that fit into the file."""
        numbers = []
        total = -1  # the last line has no end
        for _, number, size in sorted(self._heap, reverse=True):
            total += size + 1
            if total > self._shelf.max_bytes:
                break
            numbers.append(-number)
        return numbers


def limit_of(kind: MemoryKind) -> str:
    """Return the limit of a kind's file, in words."""
    shelf = SHELVES[kind]
    megabytes = shelf.max_bytes // 10**6
    return f"beyond the {shelf.max_memories:,} memories or {megabytes} MB of {shelf.name}"
