"""Reads a file as immutable, where not even a log can be written beside it.

SQLite then reads the file as it is, without locks. That is right as long as nobody writes to it:
this process cannot, since the directory does not let it, and nobody else was at it when it was
opened, for there was no log and no journal. Should somebody come who may write there, it is seen
before the next statement, and the file is opened anew; a statement that is under way may by then
have read some of the old and some of the new.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import apsw

from agent_memory.runtime.files import SIDE_FILES, beside

_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW

Stamp = tuple[object, ...]
"""What changes with a file: its inode, its length, when it was written, what is beside it."""


def is_immutable(path: Path) -> bool:
    """Return whether a file can be read as it is: nothing can be written there, and nobody does."""
    return not os.access(path.parent, os.W_OK) and not has_side_files(path)


def has_side_files(path: Path) -> bool:
    """Return whether there is a log or a journal beside a file."""
    return any(os.path.lexists(beside(path, suffix)) for suffix in SIDE_FILES)


def connect_immutable(path: Path) -> apsw.Connection:
    """Open a file as it is, leaving no trace; what is in a log or journal is not seen."""
    return apsw.Connection(f"{path.as_uri()}?immutable=1", flags=_FLAGS)


def is_immutable_connection(connection: apsw.Connection) -> bool:
    """Return whether a connection was made by ``connect_immutable``."""
    return bool(connection.open_flags & apsw.SQLITE_OPEN_URI)


def stamp(path: Path) -> Stamp | None:
    """Return what tells that a file was changed; ``None`` for one that is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116 - 1 µs
    except OSError:
        return None
    side_files_exist = (os.path.lexists(beside(path, suffix)) for suffix in SIDE_FILES)
    return (status.st_ino, status.st_size, status.st_mtime_ns, *side_files_exist)
