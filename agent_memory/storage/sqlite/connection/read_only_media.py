"""Reads a file as immutable if not even a log can be written beside it.

SQLite then reads the raw file, without locks. That is right as long as nobody writes to it: this
process cannot, since the directory does not allow it, and nobody was using it when it was opened,
as there was no log and no journal. If someone who may write there changes it, that is noticed
before the next statement, and the file is reopened; a statement in progress may by then have read
some old and some new pages.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import apsw

from agent_memory.runtime.files import SIDE_FILES, beside

_FLAGS: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW

Stamp = tuple[object, ...]
"""What changes with a file: its inode, size and modification time, and which side files exist."""


def is_immutable(path: Path) -> bool:
    """Return whether a file can be read as immutable: not writable here, nor being written."""
    return not os.access(path.parent, os.W_OK) and not has_side_files(path)


def has_side_files(path: Path) -> bool:
    """Return whether there is a log or a journal beside a file."""
    return any(os.path.lexists(beside(path, suffix)) for suffix in SIDE_FILES)


def connect_immutable(path: Path) -> apsw.Connection:
    """Open a file as it is, leaving no trace; changes in a log or journal are not visible."""
    return apsw.Connection(f"{path.as_uri()}?immutable=1", flags=_FLAGS)


def is_immutable_connection(connection: apsw.Connection) -> bool:
    """Return whether a connection was made by ``connect_immutable``."""
    return bool(connection.open_flags & apsw.SQLITE_OPEN_URI)


def stamp(path: Path) -> Stamp | None:
    """Return a value that changes when the file does, or ``None`` if the file is gone."""
    try:
        status = os.stat(path)  # noqa: PTH116 - 1 µs
    except OSError:
        return None
    side_files_exist = (os.path.lexists(beside(path, suffix)) for suffix in SIDE_FILES)
    return (status.st_ino, status.st_size, status.st_mtime_ns, *side_files_exist)
