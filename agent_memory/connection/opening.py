"""Opening a file: looking before touching it, and setting the connection up."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from agent_memory.errors import NotAMemoryFile, StorageError
from agent_memory.files import beside, create_private_file, refuse_unfit_file, tighten_rights

APPLICATION_ID: Final = 0x41674D65
"""``AgMe``: marks a file as ours, in its header."""
PAGE_SIZE: Final = 8192
BUSY_TIMEOUT_SECONDS: Final = 5.0


def open_connection(
    path: Path,
    *,
    create: bool,
    read_only: bool,
    synchronous: str,
    refuse_version: Callable[[Path, int], None],
) -> apsw.Connection:
    """Open a file of ours, made when there is none and ``create``; the rest as ``Database``."""
    if create and not read_only:
        create_private_file(path)
    refuse_unfit_file(path)
    _look_before_opening(path, refuse_version)
    tighten_rights(path)
    # The path is never taken for a URI: "file:x?mode=memory" would store into nothing. A file
    # that is only read is opened for writing all the same, or the log that SQLite makes beside
    # it would be left there.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(str(path), flags=flags)
    try:
        wait_for_locks(connection)
        leave_log_on_close(connection, leave=True)
        _refuse_foreign_file(connection, path)
        _configure(connection, synchronous=synchronous, read_only=read_only)
        leave_log_on_close(connection, leave=False)
    except BaseException:
        connection.close()
        raise
    return connection


def _look_before_opening(path: Path, refuse_version: Callable[[Path, int], None]) -> None:
    """Refuse a newer, damaged or other program's file, leaving no trace of having looked.

    Opening a file in earnest makes a log beside it, and may write an old log into it. A file that
    is in use can look damaged while its log is being written back: that is not judged here.
    """
    if path.stat().st_size == 0:
        return
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(f"{path.as_uri()}?immutable=1", flags=flags)
    try:
        _refuse_foreign_file(connection, path)
        refuse_version(path, int(connection.pragma("user_version")))
    except (apsw.CorruptError, apsw.NotADBError):
        if not has_log(path):
            raise
    finally:
        connection.close()


def has_log(path: Path) -> bool:
    """Tell whether there are changes in the log that may not be in the file yet."""
    log = beside(path, "-wal")
    return log.exists() and log.stat().st_size > 0


def _refuse_foreign_file(connection: apsw.Connection, path: Path) -> None:
    """Refuse another program's database, before anything is written to it.

    SQLite opens anything and looks at it with the first statement.
    """
    if connection.pragma("application_id") == APPLICATION_ID:
        return
    is_empty = not connection.pragma("schema_version") and not connection.pragma("user_version")
    if not is_empty or connection.pragma("application_id"):
        raise NotAMemoryFile(
            f"{path} is a database of another program: it was not touched. Give another path"
        )


def _configure(connection: apsw.Connection, *, synchronous: str, read_only: bool) -> None:
    """Set a connection up. Each setting says why it is there."""
    _distrust_the_schema(connection)
    connection.create_scalar_function("casefold", _casefold, 1, deterministic=True)
    connection.create_scalar_function("sorted_json", _sorted_json, 1, deterministic=True)
    connection.pragma("foreign_keys", True)
    connection.pragma("cache_size", -32_000)  # KiB: the index of 100,000 memories stays in
    connection.pragma("mmap_size", 0)  # an I/O error of a mapped file kills the process
    if read_only:
        connection.pragma("query_only", True)
    else:
        if not connection.pragma("schema_version"):
            connection.pragma("page_size", PAGE_SIZE)  # vectors of 1,536 bytes fit five to a page
        _use_write_ahead_log(connection)
        connection.pragma("synchronous", synchronous)
        connection.pragma("journal_size_limit", 64_000_000)  # a log once long is cut back


def _casefold(*values: apsw.SQLiteValue) -> apsw.SQLiteValue:
    """Fold the case of any script; SQLite's own ``lower`` knows ASCII only."""
    (value,) = values
    return value.casefold() if isinstance(value, str) else value


def _sorted_json(*values: apsw.SQLiteValue) -> apsw.SQLiteValue:
    """Write JSON with its keys in order, so that equal objects are equal texts."""
    (value,) = values
    try:
        return json.dumps(json.loads(value), sort_keys=True) if isinstance(value, str) else value
    except RecursionError:
        return value


def wait_for_locks(connection: apsw.Connection) -> None:
    """Wait for other processes rather than fail: a write takes well under a second."""
    connection.set_busy_timeout(int(BUSY_TIMEOUT_SECONDS * 1000))


def _distrust_the_schema(connection: apsw.Connection) -> None:
    """Keep a crafted file from running functions, and any statement from damaging the index."""
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.pragma("cell_size_check", True)


def leave_log_on_close(connection: apsw.Connection, *, leave: bool) -> None:
    """Choose whether closing writes the log back into the file and deletes it."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(leave))


def _use_write_ahead_log(connection: apsw.Connection) -> None:
    """Switch to the write-ahead log, with which readers and a writer do not wait for each other.

    The switch ignores the busy timeout: of 36 openings of one new file by 6 processes at once, 3
    failed. So it is tried again until the timeout is over.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            mode = connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
            continue
        if mode != "wal":
            raise StorageError(f"SQLite chose the journal mode {mode!r}, not 'wal'")
        return
