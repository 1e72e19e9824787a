"""Whole files, page by page: over the content of another one in one commit, or into an empty one.

A file that others have open is not replaced by renaming: its log and shared memory would have to
change names in the same moment, and whoever opened it in between would write into the one and take
the log of the other. SQLite's own copying is a commit like any other instead.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from agent_memory.errors import StorageFull

_NO_MORE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def overwriting(target: apsw.Connection, source: apsw.Connection, path: Path) -> Iterator[None]:
    """Copy the source over the target, at ``path``, when the body ends without an error.

    The body has the target's write lock, which was waited for. Both must have pages of one size.
    """
    with full_told(target, path):
        copying = target.backup("main", source, "main")
        try:
            copying.step(0)  # takes the lock
            yield
            while not copying.done:
                copying.step(-1)
        finally:
            copying.finish()  # undoes what is half done, and words an error better than ``step``


def copy(source: apsw.Connection, path: Path) -> None:
    """Copy what a file and its log hold into an empty file, damaged pages as they are."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    target = apsw.Connection(str(path), flags=flags)
    try:
        target.pragma("journal_mode", "off")  # nobody reads it unless it is complete
        target.pragma("synchronous", "off")
        with overwriting(target, source, path):
            pass
    finally:
        target.close()


@contextlib.contextmanager
def full_told(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Raise ``StorageFull`` where a quota or a limit ends the writing of a file, too.

    To SQLite that is an error of the disk like any other.
    """
    try:
        yield
    except apsw.IOError as error:
        if connection.system_errno not in _NO_MORE:
            raise
        raise StorageFull(
            f"{path} does not fit: free space on its disk. Nothing stored was lost ({error})"
        ) from error
