"""Copies whole files page by page: over another's content in one commit, or into an empty one.

A file that others have open is not replaced by renaming: its log and shared memory would have to be
renamed at the same moment, and whoever opened it in between would write to one and use the log of
the other. SQLite's backup API is a commit like any other instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from agent_memory.errors import StorageFull, StorageLocked
from agent_memory.storage.sqlite.connection.error_translation import FULL


class ChangedMeanwhile(StorageLocked):
    """Someone wrote to a file that was to be overwritten. Nothing was replaced."""


@contextlib.contextmanager
def overwriting(
    target: apsw.Connection, source: apsw.Connection, path: Path, *, shuts_out_readers: bool = False
) -> Iterator[None]:
    """Copy the source over the target, at ``path``, when the body ends without an error.

    The body holds the target's write lock. Both must have the same page size.

    With a rollback journal, the copying ``shuts_out_readers``, but the body must read: it runs with
    another lock, which is released before the copying takes its own. Raises ``ChangedMeanwhile`` if
    someone wrote in between.
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
            copying.finish()  # rolls back a partial copy, with a better error than ``step``


@contextlib.contextmanager
def _kept_from_writers(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _change_counter(connection: apsw.Connection) -> bytes:
    """Return the header's change counter, which each commit with a rollback journal increments."""
    return connection.read("main", 0, 24, 4)[1]


def copy_pages(source: apsw.Connection, path: Path) -> None:
    """Copy the contents of a file and its log into an empty file, damaged pages as they are."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    with contextlib.closing(apsw.Connection(str(path), flags=flags)) as target:
        target.pragma("journal_mode", "off")  # nobody reads it until it is complete
        target.pragma("synchronous", "off")
        with overwriting(target, source, path):
            pass


@contextlib.contextmanager
def full_disk_translated(connection: apsw.Connection, path: Path) -> Iterator[None]:
    """Raise ``StorageFull`` that names the file which does not fit, not the one being copied.

    Also when a quota or a limit stops the writing of a file: to SQLite that is an ordinary disk
    error.
    """
    try:
        yield
    except (apsw.FullError, apsw.IOError) as error:
        if isinstance(error, apsw.IOError) and connection.system_errno not in FULL:
            raise
        raise StorageFull(
            f"{path} cannot be written: its disk is full. Free some space; nothing stored was"
            f" lost ({error})"
        ) from error
