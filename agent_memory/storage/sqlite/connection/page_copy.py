"""Copies whole files page by page: over another one's content in one commit, or into an empty one.

A file that others have open is not replaced by renaming: its log and shared memory would have to
change names in the same moment, and whoever opened it in between would write into the one and take
the log of the other. SQLite's own copying is a commit like any other instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from agent_memory.errors import StorageFull, StorageLocked
from agent_memory.storage.sqlite.connection.error_translation import FULL


class ChangedMeanwhile(StorageLocked):
    """Somebody wrote into a file that was to be overwritten. Nothing was replaced."""


@contextlib.contextmanager
def overwriting(
    target: apsw.Connection, source: apsw.Connection, path: Path, *, shuts_out_readers: bool = False
) -> Iterator[None]:
    """Copy the source over the target, at ``path``, when the body ends without an error.

    The body has the target's write lock, which was waited for. Both must have pages of one size.

    With a rollback journal the copying ``shuts_out_readers``, and the body must read: it runs with
    another lock, which is let go of before the copying takes its own. ``ChangedMeanwhile`` is
    raised where somebody was faster.
    """
    before = None
    if shuts_out_readers:
        with _kept_from_writers(target):
            before = _change_counter(target)
            yield
    with full_disk_translated(target, path):
        copying = target.backup("main", source, "main")
        try:
            copying.step(0)  # takes the lock
            if before is None:
                yield
            elif _change_counter(target) != before:
                raise ChangedMeanwhile(f"{path} was written meanwhile: try again in a moment")
            while not copying.done:
                copying.step(-1)
        finally:
            copying.finish()  # undoes what is half done, and words an error better than ``step``


@contextlib.contextmanager
def _kept_from_writers(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _change_counter(connection: apsw.Connection) -> bytes:
    """Return the number in a file's header that each commit with a rollback journal adds to."""
    return connection.read("main", 0, 24, 4)[1]


def copy_pages(source: apsw.Connection, path: Path) -> None:
    """Copy what a file and its log hold into an empty file, damaged pages as they are."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    with contextlib.closing(apsw.Connection(str(path), flags=flags)) as target:
        target.pragma("journal_mode", "off")  # nobody reads it unless it is complete
        target.pragma("synchronous", "off")
        with overwriting(target, source, path):
            pass


@contextlib.contextmanager
def full_disk_translated(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Raise ``StorageFull`` that names the file which does not fit, and not that which is copied.

    Where a quota or a limit ends the writing of a file, too: to SQLite that is an error of the disk
    like any other.
    """
    try:
        yield
    except (apsw.FullError, apsw.IOError) as error:
        if isinstance(error, apsw.IOError) and connection.system_errno not in FULL:
            raise
        raise StorageFull(
            f"{path} does not fit: free space on its disk. Nothing stored was lost ({error})"
        ) from error
