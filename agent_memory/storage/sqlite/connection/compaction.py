"""Compaction, which leaves no free pages, no log and no reader of an older state; and raw bytes.

What SQLite deletes stays in the file and in its log until it is overwritten. The disk may keep what
a file released: that is beyond the reach of any program that writes files.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from agent_memory.errors import StorageLocked
from agent_memory.runtime.files import refuse_unfit_file
from agent_memory.storage.sqlite.connection import opening
from agent_memory.storage.sqlite.connection.error_translation import translated

_IN_MEMORY_UP_TO: Final = 256 * 2**20
"""Up to this size in bytes, a file's new image is built in memory, not in a temporary file on
another disk."""

_NOTHING_ERASED: Final = "Nothing was erased: try again when that is done"
_TURN_SECONDS: Final = 0.3
_WRITERS_TURN_SECONDS: Final = 0.05
_UNFINISHED: Final = "What was erased is still in its log: finish the erasure when that is done"


def refuse_readers(connection: apsw.Connection, path: Path) -> None:
    """Raise ``StorageLocked`` while anyone is reading an older state of the file.

    Their state could not be taken from them, so the log would have to stay. An empty log says
    nothing about its readers, so the header is first rewritten unchanged.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.pragma("user_version", connection.pragma("user_version"))
        # With a rollback journal the commit waits for readers.
        with _readers_translated(path, _NOTHING_ERASED):
            connection.execute("COMMIT")
    except BaseException:  # Ctrl-C too
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    _empty_log(connection, path, _NOTHING_ERASED)


def compact(connection: apsw.Connection, path: Path, *, size: int) -> None:
    """Vacuum the file: rewrite it with only what its tables hold, and empty the log.

    Waits for readers up to the busy timeout, then raises ``StorageLocked``. The temporary file that
    SQLite uses from 256 MB on has no name, and holds only what the tables hold.
    """
    _empty_log(connection, path, _UNFINISHED)
    in_memory = size <= _IN_MEMORY_UP_TO
    with _writing_over(connection, in_memory=in_memory), _readers_translated(path, _UNFINISHED):
        connection.execute("VACUUM")
    _empty_log(connection, path, _UNFINISHED)


@contextlib.contextmanager
def _writing_over(connection: apsw.Connection, *, in_memory: bool) -> Iterator[None]:
    """Make SQLite fill the unused parts of pages with zeros."""
    usual = connection.pragma("temp_store")
    connection.pragma("secure_delete", True)
    connection.pragma("temp_store", "MEMORY" if in_memory else usual)
    try:
        yield
    finally:
        connection.pragma("temp_store", usual)
        connection.pragma("secure_delete", False)


def _empty_log(connection: apsw.Connection, path: Path, advice: str) -> None:
    """Checkpoint the whole log into the file, and truncate it.

    While SQLite waits for readers it blocks all writers, who would wait as long and give up. So it
    waits in short turns, with turns for the writers in between.
    """
    deadline = time.monotonic() + opening.BUSY_TIMEOUT_SECONDS
    with _readers_translated(path, advice):
        while not _has_emptied_log(connection, is_last=time.monotonic() >= deadline):
            time.sleep(_WRITERS_TURN_SECONDS)


def _has_emptied_log(connection: apsw.Connection, *, is_last: bool) -> bool:
    """Try for one turn, and return whether it succeeded. The last turn raises ``BusyError``."""
    opening.wait_for_locks(connection, seconds=_TURN_SECONDS)
    try:
        connection.wal_checkpoint("main", apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        if is_last:
            raise
        return False
    finally:
        opening.wait_for_locks(connection)
    return True


@contextlib.contextmanager
def _readers_translated(path: Path, advice: str) -> Iterator[None]:
    """Raise an error which says that someone is reading, and what to do."""
    try:
        yield
    except apsw.BusyError as error:
        raise StorageLocked(
            f"another process or thread has been reading an older state of {path} for longer than"
            f" the busy timeout. {advice}"
        ) from error


def read_raw(connection: apsw.Connection, part: int, offset: int, amount: int) -> bytes:
    """Return raw bytes of the file (0) or of its log (1); past its end they are zeros."""
    return connection.read("main", part, offset, amount)[1]


def raw_of_file(path: Path, length: int) -> Iterator[bytes]:
    """Yield the bytes of any file, ``length`` at a time but for the last.

    It may be a database that this process has open: SQLite reads it, and no lock is lost. Raises
    ``StorageError`` and its subclasses.
    """
    with translated(path):
        refuse_unfit_file(path)
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_NOFOLLOW
        connection = apsw.Connection(str(path), flags=flags)
    with contextlib.closing(connection):
        with translated(path):
            size = path.stat().st_size
        for offset in range(0, size, length):
            with translated(path):
                data = read_raw(connection, 0, offset, min(length, size - offset))
            yield data
