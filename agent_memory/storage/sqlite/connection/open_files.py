"""Tracks the files that this process has open as databases."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Final, Protocol

from agent_memory.runtime import fork_safety


class OpenFile(Protocol):
    """A file that is open as a database."""

    def inodes(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory, if they are open."""


_open_files: Final[weakref.WeakSet[OpenFile]] = weakref.WeakSet()
_lock: Final = fork_safety.Lock()


def register(opened: OpenFile) -> None:
    """Register an open file, for the lifetime of the object."""
    with _lock.bare:
        _open_files.add(opened)


def is_open_here(path: Path) -> bool:
    """Return whether this process has a file open as a database, or as the log of one.

    Opening such a file directly and closing it drops SQLite's locks on it.
    """
    try:
        inode = path.stat().st_ino
    except OSError:
        return False
    with _lock.bare:
        open_files = list(_open_files)
    return any(inode in opened.inodes() for opened in open_files)
