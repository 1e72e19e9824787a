"""The only module that knows APSW: opening a file safely, transactions, errors.

Three rules come from faults that lost data elsewhere:

* The library never uses Python's own ``sqlite3``, and never opens the database, its ``-wal`` or
  its ``-shm`` with ``open()``: closing such a file drops every lock that this process holds on it,
  and the next visitor then deletes the log of a live writer.
* A connection is never used after ``fork``: parent and child would share it unknowingly.
* A file that was deleted or replaced under a connection is noticed before the next write.

Threads share one connection under one lock: a transaction belongs to the thread that began it, and
the others wait. (A connection per thread would wait for the same lock inside SQLite, and would
have to be closed by threads that are gone.)
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import apsw

from agent_memory import forking
from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    NotAMemoryFile,
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.files import beside, create_private_file, refuse_unfit_file, tighten_rights

APPLICATION_ID: Final = 0x41674D65
"""``AgMe``: marks a file as ours, in its header."""
PAGE_SIZE: Final = 8192
BUSY_TIMEOUT_SECONDS: Final = 5.0
_OLDEST_SQLITE: Final = 3_054_000
_TOKENIZER: Final = (
    "porter",
    ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"],
)

Row = tuple[Any, ...]

SELECT_OBJECTS: Final = """
SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL
AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT IN
  ('memory_index_config', 'memory_index_data', 'memory_index_docsize', 'memory_index_idx')
ORDER BY rowid"""
"""All objects of a schema but SQLite's own and the tables that FTS5 keeps for its index."""

# Connections of a parent process. They must outlive this one: closing one here would run SQLite's
# clean-up of a file that the parent is still using.
_parents_connections: Final[list[apsw.Connection]] = []


class Database:
    """One SQLite file, opened; shared by the threads of a process under a lock.

    ``path`` must be absolute. ``create`` makes the file, mode 0600, when there is none.
    ``synchronous`` is ``FULL`` (an acknowledged write survives a power cut) or ``NORMAL`` (the
    last ones may be lost then, the file stays sound). ``refuse_version`` is called with the path
    and the schema's version before the file is touched, and raises for one that it does not know.
    Raises ``StorageError`` and its kinds.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        synchronous: str = "FULL",
        refuse_version: Callable[[Path, int], None] = lambda _path, _version: None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise ConfigurationError(f"synchronous is FULL or NORMAL, not {synchronous!r}")
        if apsw.SQLITE_VERSION_NUMBER < _OLDEST_SQLITE:
            raise ConfigurationError(
                f"SQLite {apsw.sqlite_lib_version()} can lose data: run `pip install -U apsw`"
            )
        self.path = path
        self.read_only = read_only
        self._synchronous = synchronous
        self._refuse_version = refuse_version
        self._lock = threading.RLock()
        self._depth = 0
        self._pid = os.getpid()
        self._is_closed = False
        self._parts = (path, beside(path, "-wal"), beside(path, "-shm"))
        forking.join(self)
        with self._lock, _translated(path):
            self._connection: apsw.Connection | None = self._connect(create=create)

    # Transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self) -> Iterator[None]:
        """Run the body in one transaction that holds the write lock from its start.

        A transaction that first reads and then writes would fail at once when another process
        wrote in between, whatever the timeout; one that begins with the lock waits its turn.
        """
        if self.read_only:
            raise StorageReadOnly(f"{self.path} was opened read-only: open it without read_only")
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Run the body on one unchanging view of the file."""
        with self._transaction("BEGIN"):
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._notice_fork()
        with self._lock, _translated(self.path):
            if self._depth:
                raise AgentMemoryError(
                    "this thread is inside a transaction of the same memory: a callback, such as"
                    " `progress`, must not use the memory that calls it"
                )
            if begin == "BEGIN IMMEDIATE":
                self._notice_replaced_file()
            connection = self._live()
            connection.execute(begin)
            self._depth = 1
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                # A full disk has already rolled back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    @contextlib.contextmanager
    def impatient(self) -> Iterator[None]:
        """Let a write in the body fail at once with ``StorageLocked`` rather than wait."""
        self._notice_fork()
        with self._lock:
            connection = self._live()
            connection.set_busy_timeout(0)
            try:
                yield
            finally:
                connection.set_busy_timeout(int(BUSY_TIMEOUT_SECONDS * 1000))

    # Statements: named by what comes back -----------------------------------------------------

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return how many rows it changed itself, without triggers."""
        with self._statement() as connection:
            connection.execute(sql, values)
            return connection.changes()

    def run_many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for each of many value lists."""
        with self._statement() as connection:
            connection.executemany(sql, values)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows."""
        with self._statement() as connection:
            return list(connection.execute(sql, values))

    def row(self, sql: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row, or ``None``."""
        with self._statement() as connection:
            for row in connection.execute(sql, values):
                return tuple(row)
        return None

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row, or ``None``."""
        row = self.row(sql, values)
        return row[0] if row else None

    def words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text: each as the keyword index holds it, and as it is written."""
        encoded = text.encode()
        with self._statement() as connection:
            tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
            flags = apsw.FTS5_TOKENIZE_DOCUMENT
            places = cast(
                "list[tuple[int, int, str]]",
                tokenizer(encoded, flags, None, include_colocated=False),
            )
        return [(word, encoded[start:end].decode()) for start, end, word in places]

    def tokenize(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text as the keyword index holds them."""
        with self._statement() as connection:
            tokenizer = connection.fts5_tokenizer(*_TOKENIZER)
            split = functools.partial(
                tokenizer,
                flags=apsw.FTS5_TOKENIZE_DOCUMENT,
                locale=None,
                include_offsets=False,
                include_colocated=False,
            )
            return [cast("list[str]", split(text.encode())) for text in texts]

    @contextlib.contextmanager
    def _statement(self) -> Iterator[apsw.Connection]:
        self._notice_fork()
        with self._lock, _translated(self.path):
            yield self._live()

    # The file ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. Closing twice is fine; using it afterwards is ``StorageClosed``."""
        self._notice_fork()
        with self._lock, _translated(self.path):
            self._is_closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def copy_into(self, target: Path) -> None:
        """Write a consistent copy into an empty file, without what was deleted; not yet synced."""
        with self._statement() as connection:
            connection.pragma("query_only", False)  # which would forbid writing the copy, too
            try:
                connection.execute("VACUUM INTO ?", (str(target),))
            finally:
                connection.pragma("query_only", self.read_only)

    def size(self) -> int:
        """Return the bytes of the file and its log."""
        parts = (self.path, beside(self.path, "-wal"))
        return sum(part.stat().st_size for part in parts if part.exists())

    def _live(self) -> apsw.Connection:
        if self._is_closed:
            raise StorageClosed(f"{self.path} is closed: open the memory again")
        if self._connection is None:
            self._connection = self._connect(create=False)
        return self._connection

    def _connect(self, *, create: bool) -> apsw.Connection:
        if create and not self.read_only:
            create_private_file(self.path)
        refuse_unfit_file(self.path)
        _look_before_opening(self.path, self._refuse_version)
        tighten_rights(self.path)
        leaves_log = self.read_only and _has_log(self.path)
        # The path is never taken for a URI: "file:x?mode=memory" would store into nothing. A file
        # that is only read is opened for writing all the same, or the log that SQLite makes beside
        # it would be left there.
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW
        connection = apsw.Connection(str(self.path), flags=flags)
        try:
            _wait_for_locks(connection)
            _leave_log_on_close(connection, leave=True)
            _refuse_foreign_file(connection, self.path)
            _configure(connection, synchronous=self._synchronous, read_only=self.read_only)
            _leave_log_on_close(connection, leave=leaves_log)
        except BaseException:
            connection.close()
            raise
        self._identity = self._file_identity()
        return connection

    def _file_identity(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory. ``stat`` opens nothing."""
        inodes: list[int | None] = []
        for part in self._parts:
            try:
                inodes.append(os.stat(part).st_ino)  # noqa: PTH116 - 1 µs
            except FileNotFoundError:
                inodes.append(None)
        return inodes

    def _notice_replaced_file(self) -> None:
        """Reopen when the file, its log or its shared memory is not the one that was opened.

        Otherwise the write would go into a file that nobody can reach any more.
        """
        identity = self._file_identity()
        if identity == self._identity:
            return
        if identity[0] is None:
            raise StorageUnavailable(
                f"{self.path} was deleted or moved while it was open: put it back, or close this"
                " memory and open it anew"
            )
        connection, self._connection = self._live(), None
        # The log that a replaced file leaves behind would be played into the new one, whose
        # content it would overwrite. Any other log is somebody else's: let it be.
        _leave_log_on_close(connection, leave=True)
        connection.close()
        if identity[0] != self._identity[0] and identity[1] == self._identity[1]:
            beside(self.path, "-wal").unlink()

    # Forking ----------------------------------------------------------------------------------

    def _notice_fork(self) -> None:
        """Start anew in a child that was forked without Python's hooks being run."""
        if os.getpid() != self._pid:
            self.leave_parent()

    def hold(self) -> None:
        """Wait until no other thread is inside SQLite, and keep them out."""
        self._lock.acquire()

    def release(self) -> None:
        """Let other threads in again."""
        self._lock.release()

    def leave_parent(self) -> None:
        """In a forked child: put the parent's connection aside; the next use opens another."""
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._depth = 0
        if self._connection is not None:
            _parents_connections.append(self._connection)
            self._connection = None


# Opening a file ---------------------------------------------------------------------------------


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
        if not _has_log(path):
            raise
    finally:
        connection.close()


def _has_log(path: Path) -> bool:
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


def _wait_for_locks(connection: apsw.Connection) -> None:
    """Wait for other processes rather than fail: a write takes well under a second."""
    connection.set_busy_timeout(int(BUSY_TIMEOUT_SECONDS * 1000))


def _distrust_the_schema(connection: apsw.Connection) -> None:
    """Keep a crafted file from running functions, and any statement from damaging the index."""
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.pragma("cell_size_check", True)


def _leave_log_on_close(connection: apsw.Connection, *, leave: bool) -> None:
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


def statement_is_complete(sql: str) -> bool:
    """Tell whether SQL ends with the end of a statement, not inside a trigger or a text."""
    return bool(apsw.complete(sql))


def objects_made_by(sql: Iterable[str]) -> list[Row]:
    """Return what SQL statements make in an empty database: type, name and SQL of each object."""
    connection = apsw.Connection(":memory:")
    try:
        for statement in sql:
            connection.execute(statement)
        return list(connection.execute(SELECT_OBJECTS))
    finally:
        connection.close()


def library_version() -> str:
    """Return the version of SQLite in use."""
    return str(apsw.sqlite_lib_version())


# Errors -----------------------------------------------------------------------------------------

_KINDS: Final[tuple[tuple[type[apsw.Error], type[StorageError], str], ...]] = (
    (apsw.BusyError, StorageLocked, "is held by another process: try again in a moment"),
    (apsw.LockedError, StorageLocked, "is in use by another statement: try again in a moment"),
    (apsw.FullError, StorageFull, "does not fit: free space on its disk. Nothing stored was lost"),
    (apsw.ReadOnlyError, StorageReadOnly, "cannot be written: check its permissions"),
    (apsw.NotADBError, NotAMemoryFile, "is not a database, or is encrypted: it was not touched"),
    (
        apsw.CorruptError,
        StorageCorrupt,
        "is damaged: restore a backup; `agent-memory check` says what is wrong",
    ),
    (apsw.CantOpenError, StorageUnavailable, "cannot be opened: check the path and permissions"),
    (apsw.PermissionsError, StorageUnavailable, "may not be accessed: check its permissions"),
)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn SQLite's and the system's errors into ours, naming the file."""
    try:
        yield
    except apsw.ConstraintError as error:
        raise ValidationError(f"{path} refused the values: {error}") from error
    except apsw.Error as error:
        for kind, ours, advice in _KINDS:
            if isinstance(error, kind):
                raise ours(f"{path} {advice} ({error})") from error
        raise StorageError(f"{path}: {error}") from error
    except PermissionError as error:
        raise StorageUnavailable(f"{path} may not be accessed: {error}") from error
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error
