"""Which files this process has open as databases."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Final, Protocol

from agent_memory.runtime import fork_safety as forking


class Opened(Protocol):
    """A database that may be open."""

    def inodes(self) -> list[int | None]:
        """Return the inodes of its files, if they are open."""


_all: Final[weakref.WeakSet[Opened]] = weakref.WeakSet()
_lock: Final = forking.Lock()


def remember(database: Opened) -> None:
    """Know of a database for as long as it lives."""
    with _lock:
        _all.add(database)


def is_open_here(path: Path) -> bool:
    """Return whether this process has a file open as a database, or as the log of one.

    Whoever opens such a file by himself drops SQLite's locks on it when he closes it.
    """
    try:
        inode = path.stat().st_ino
    except OSError:
        return False
    with _lock:
        databases = list(_all)
    return any(inode in database.inodes() for database in databases)
