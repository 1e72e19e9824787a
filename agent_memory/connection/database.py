"""``Database``: one file, opened; its transactions and statements, forks and replaced files."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory import forking
from agent_memory.connection import opened, pages, purging, words
from agent_memory.connection.extension import load_sqlite_vec
from agent_memory.connection.faults import translated
from agent_memory.connection.opening import (
    has_log,
    leave_log_on_close,
    open_connection,
    wait_for_locks,
)
from agent_memory.connection.sqlite import Row
from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    StorageClosed,
    StorageReadOnly,
    StorageUnavailable,
)
from agent_memory.files import beside

_OLDEST_SQLITE: Final = 3_054_000

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
        self._wants_vectors = False
        self._vectors_problem: str | None = None
        self._parts = (path, beside(path, "-wal"), beside(path, "-shm"))
        forking.join(self)
        with self._lock, translated(path):
            self._connection: apsw.Connection | None = self._connect(create=create)
        opened.remember(self)

    # Transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[None]:
        """Run the body in one transaction that holds the write lock from its start.

        A transaction that first reads and then writes would fail at once when another process
        wrote in between, whatever the timeout; one that begins with the lock waits its turn.

        ``durable=False`` is for what can be made anew, such as embeddings: the commit does not
        wait for the disk, and a power cut may lose it, as long as no durable one came after it.
        The file stays sound.
        """
        if self.read_only:
            raise StorageReadOnly(f"{self.path} was opened read-only: open it without read_only")
        with self._transaction("BEGIN IMMEDIATE", durable=durable):
            yield

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Run the body on one unchanging view of the file."""
        with self._transaction("BEGIN"):
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str, *, durable: bool = True) -> Iterator[None]:
        self._notice_fork()
        with self._lock, translated(self.path):
            if self._depth:
                raise AgentMemoryError(
                    "this thread is inside a transaction of the same memory: a callback, such as"
                    " `progress`, must not use the memory that calls it"
                )
            if begin == "BEGIN IMMEDIATE":
                self._notice_replaced_file()
            else:
                self._notice_other_file()
            connection = self._live()
            with self._waiting_for_the_disk(connection, waits=durable):
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
    def _waiting_for_the_disk(self, connection: apsw.Connection, *, waits: bool) -> Iterator[None]:
        """Let the body's transaction wait for the disk or not. Inside of it, SQLite would refuse.

        A setting that cannot be restored goes with its connection, and the next use opens another.
        """
        if waits or self._synchronous != "FULL":
            yield
            return
        try:
            connection.pragma("synchronous", "NORMAL")
            yield
        finally:
            try:
                connection.pragma("synchronous", "FULL")
            except BaseException:
                self._connection = None
                connection.close()
                raise

    @contextlib.contextmanager
    def impatient(self) -> Iterator[None]:
        """Let a write in the body fail at once with ``StorageLocked`` rather than wait."""
        self._notice_fork()
        with self._lock:
            with translated(self.path):
                # Now, for in the body it would close the connection that is made impatient here.
                if not self.read_only:
                    self._notice_replaced_file()
                connection = self._live()
                connection.set_busy_timeout(0)
            try:
                yield
            finally:
                if connection is self._connection:
                    wait_for_locks(connection)

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
        with self._statement() as connection:
            return words.words(connection, text)

    def tokenize(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text as the keyword index holds them."""
        with self._statement() as connection:
            return words.tokenize(connection, texts)

    @contextlib.contextmanager
    def _statement(self) -> Iterator[apsw.Connection]:
        self._notice_fork()
        with self._lock, translated(self.path):
            if not self._depth:
                self._notice_other_file()
            yield self._live()

    # Vectors ----------------------------------------------------------------------------------

    def load_vectors(self) -> bool:
        """Make sqlite-vec's functions and its table type ``vec0`` available from now on.

        ``False`` when that is not possible: ``vectors_problem`` says why. It is tried once for
        each connection, so asking again costs nothing.
        """
        with self._statement() as connection:
            if not self._wants_vectors:
                self._wants_vectors = True
                self._vectors_problem = load_sqlite_vec(connection)
            return self._vectors_problem is None

    def vectors_problem(self) -> str | None:
        """Return why ``load_vectors`` said no and what to do; ``None`` when it did not."""
        return self._vectors_problem

    # The file ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. Closing twice is fine; using it afterwards is ``StorageClosed``."""
        self._notice_fork()
        with self._lock, translated(self.path):
            self._is_closed = True
            if self._connection is not None:
                # Others may have written since: to bring their log into the file is not for a
                # reader, nor to delete it.
                leave = self.read_only and has_log(self.path)
                leave_log_on_close(self._connection, leave=leave)
                self._connection.close()
                self._connection = None

    def inodes(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory, if they are open."""
        return [] if self._connection is None else self._file_identity()

    def copy_into(self, target: Path, *, page_size: int | None = None) -> None:
        """Write a consistent copy into an empty file, without what was deleted; not yet synced.

        Its pages are as long as the file's, unless a ``page_size`` in bytes is given.
        """
        with self._statement() as connection, pages.full_told(connection, target):
            connection.pragma("query_only", False)  # which would forbid writing the copy, too
            try:
                if page_size is not None:
                    connection.pragma("page_size", page_size)
                connection.execute("VACUUM INTO ?", (str(target),))
            finally:
                connection.pragma("query_only", self.read_only)

    def copy_pages_into(self, target: Path) -> None:
        """Write the pages as they are, damaged ones too, into an empty file; not yet synced."""
        with self._statement() as connection:
            pages.copy(connection, target)

    @contextlib.contextmanager
    def overwritten_by(self, source: Database) -> Iterator[None]:
        """Let what ``source`` holds take the place of all that is here, in one commit.

        It comes when the body ends without an error. The body runs with the write lock, and must
        not use this object; what it writes into ``source`` is copied as well. Others who have the
        file open see the new content from their next transaction on.
        """
        self._notice_fork()
        with self._lock, source._statement() as there, translated(self.path):
            self._notice_replaced_file()
            with pages.overwriting(self._live(), there, self.path):
                yield

    def refuse_readers(self) -> None:
        """Raise ``StorageLocked`` while somebody reads an older state of the file."""
        with self._alone() as connection:
            purging.refuse_readers(connection, self.path)

    def compact(self) -> None:
        """Write the file anew with nothing but what its tables hold, and leave the log empty.

        What was deleted is then in neither. Waits for readers up to the busy timeout.
        """
        with self._alone() as connection:
            purging.compact(connection, self.path, size=self.size())

    @contextlib.contextmanager
    def _alone(self) -> Iterator[apsw.Connection]:
        """Run the body outside of any transaction, on a file that may be written."""
        if self.read_only:
            raise StorageReadOnly(f"{self.path} was opened read-only: open it without read_only")
        with self._statement():
            if self._depth:
                raise AgentMemoryError("this thread is inside a transaction of the same memory")
            self._notice_replaced_file()
            yield self._live()

    def raw_parts(self) -> list[Path]:
        """Return the file, and its log unless that is empty."""
        return [part for part in self._parts[:2] if part.exists() and part.stat().st_size]

    def raw(self, part: Path, length: int) -> Iterator[bytes]:
        """Yield the bytes of one of these as they are, ``length`` at a time but for the last."""
        size = part.stat().st_size
        for offset in range(0, size, length):
            with self._statement() as connection:
                amount = min(length, size - offset)
                data = purging.raw(connection, self._parts.index(part), offset, amount)
            yield data

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
        connection = open_connection(
            self.path,
            create=create,
            read_only=self.read_only,
            synchronous=self._synchronous,
            refuse_version=self._refuse_version,
        )
        self._identity = self._file_identity()
        if self._wants_vectors:
            self._vectors_problem = load_sqlite_vec(connection)
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

    def _notice_other_file(self) -> None:
        """Reopen when another file has taken the place of the one that is being read.

        A file that is gone can still be read; what became of its log is for a writer to see.
        """
        if self._connection is None:
            return
        try:
            inode = os.stat(self.path).st_ino  # noqa: PTH116 - 1 µs
        except OSError:
            return
        if inode != self._identity[0]:
            self._notice_replaced_file()

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
        # content it would overwrite, and its shared memory tells where in that log its pages are.
        # Any other log is somebody else's: let it be.
        leave_log_on_close(connection, leave=True)
        connection.close()
        if identity[0] != self._identity[0]:
            for part, opened, now in zip(
                self._parts, self._identity, self._file_identity(), strict=True
            ):
                if part != self.path and opened == now:
                    part.unlink(missing_ok=True)

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
