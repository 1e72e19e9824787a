"""The files of document E's folder: their names, and which of them exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from agent_memory.models.enums import MemoryKind
from agent_memory.models.memory import Memory
from agent_memory.models.times import from_epoch

INDEX: Final = "index.json"
LOCK: Final = ".lock"
BACKUPS: Final = ".backup"
ARCHIVE: Final = "archive"
FURTHER: Final = "agent_memory.jsonl"
"""Beside E's files: what E has no place for, one line a memory that has such."""
BEYOND: Final = "beyond_limits.jsonl"
"""Beside E's files: the memories that E's limits do not allow, whole."""
STAGED: Final = ".exporting"
"""Where new files are written: worth nothing until it is called ``READY``."""
READY: Final = ".exported"
"""New files that are whole and on the disk, and are to be put into place."""

MAX_LINE_BYTES: Final = 10 * 1024
MAX_BACKUPS: Final = 5
"""Of each file; the oldest goes."""


class Shelf(NamedTuple):
    """One of E's three files: its name without the ending, and how much it can hold."""

    stem: str
    max_memories: int
    max_bytes: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.stem}.jsonl"


# E's MB are taken for 10**6 bytes: then both readings of MB are kept.
SHELVES: Final[Mapping[MemoryKind, Shelf]] = MappingProxyType(
    {
        MemoryKind.CORE: Shelf("core_memories", 1000, 10_000_000),
        MemoryKind.LEARNING: Shelf("learnings", 500, 5_000_000),
        MemoryKind.TASK: Shelf("tasks", 200, 2_000_000),
    }
)
MAIN_FILES: Final = tuple(shelf.name for shelf in SHELVES.values())

_ARCHIVED: Final = re.compile(
    r"archive/([0-9]{4})/(?:core_memories|learnings|tasks)_\1_Q[1-4]\.jsonl"
)
KINDS: Final = frozenset(kind.value for kind in MemoryKind)
_KIND: Final = re.compile(r"core|learning|task")
# E names backups "learnings.jsonl.backup" in one place, "<type>_memories.jsonl.backup.<timestamp>"
# in another; archives likewise.
_OTHER_STEMS: Final = {"learnings": "learning_memories", "tasks": "task_memories"}
_STAMP: Final = re.compile(r"\.jsonl\.backup(?:\.(\d{8}_\d{6}))?")
STAMP_FORMAT: Final = "%Y%m%d_%H%M%S"


def place_of(memory: Memory) -> str:
    """Return the file for a memory, relative to the folder."""
    shelf = SHELVES[memory.kind]
    if not memory.archived:
        return shelf.name
    moment = memory.updated_at
    quarter = f"{moment.year:04d}_Q{(moment.month + 2) // 3}"
    return f"{ARCHIVE}/{moment.year:04d}/{shelf.stem}_{quarter}.jsonl"


def kind_in(text: str) -> MemoryKind | None:
    """Return the kind that a file's name, or another spelling of a type, begins with."""
    match = _KIND.match(text.strip().lower())
    return MemoryKind(match[0]) if match else None


def is_written_here(name: str) -> bool:
    """Return whether an export writes a file with this name, relative to the folder."""
    return name in (*MAIN_FILES, FURTHER, BEYOND, INDEX) or bool(_ARCHIVED.fullmatch(name))


def is_e_folder(path: Path) -> bool:
    """Return whether a folder is document E's: it has one of its files, or a backup of one."""
    if any(os.path.lexists(path / name) for name in (*MAIN_FILES, READY)):
        return True
    return any(backups_of(path, name) for name in MAIN_FILES)


def archives_of(path: Path) -> list[str]:
    """Return the archive's files, sorted by name, relative to the folder.

    Symbolic links to folders are not followed.
    """
    archive = path / ARCHIVE
    places = [archive, *_names_in(archive)]
    archives = [
        file
        for place in places
        for file in _names_in(place)
        if file.suffix == ".jsonl" and kind_in(file.name) and not file.is_dir()
    ]
    return [file.relative_to(path).as_posix() for file in archives]


def _names_in(folder: Path) -> list[Path]:
    """Return what stands in a folder, in order; nothing if it is a symbolic link, or no folder."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(folder.iterdir())


def backups_of(path: Path, name: str) -> list[Path]:
    """Return the backups of a file, newest first: in ``.backup`` or beside it, as E has both."""
    beside = stamped_backups(path, name, folder=".")
    return [file for _, file in sorted([*stamped_backups(path, name), *beside], reverse=True)]


def stamped_backups(path: Path, name: str, *, folder: str = BACKUPS) -> list[tuple[str, Path]]:
    """Return the backups of a file with their times, newest first. Links do not count."""
    base = Path(name).name.removesuffix(".jsonl")
    backups = [
        (stamp, file)
        for file in _names_in(path / folder)
        if (stamp := _stamp_of(file, base)) and not file.is_symlink() and file.is_file()
    ]
    return sorted(backups, reverse=True)


def _stamp_of(file: Path, base: str) -> str | None:
    """Return when a backup was made, by its name, else by its file; nothing if it is none of it."""
    for stem in _spellings(base):
        if file.name.startswith(stem) and (match := _STAMP.fullmatch(file.name, len(stem))):
            changed = from_epoch(file.lstat().st_mtime)
            return match[1] or changed.strftime(STAMP_FORMAT)
    return None


def _spellings(base: str) -> Iterator[str]:
    yield base
    for stem, other in _OTHER_STEMS.items():
        if base.startswith(stem):
            yield other + base.removeprefix(stem)
