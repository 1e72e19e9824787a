"""``Database``: one file, opened; its transactions and statements, forks and replaced files."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal

import apsw

from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    StorageClosed,
    StorageError,
    StorageReadOnly,
    StorageUnavailable,
)
from agent_memory.runtime import fork_safety as forking
from agent_memory.runtime.files import beside
from agent_memory.storage.sqlite.connection import compaction as purging
from agent_memory.storage.sqlite.connection import journal_mode as journals
from agent_memory.storage.sqlite.connection import lost_log as cut_off
from agent_memory.storage.sqlite.connection import opened
from agent_memory.storage.sqlite.connection import page_copy as pages
from agent_memory.storage.sqlite.connection import read_only_media as settled
from agent_memory.storage.sqlite.connection.code_vetting import Vet, Vetting
from agent_memory.storage.sqlite.connection.error_translation import (
    OF_WRONG_VALUES,
    note_errno,
    refuse_damaged,
    translated,
)
from agent_memory.storage.sqlite.connection.opening import (
    leave_log_on_close,
    open_connection,
    wait_for_locks,
)
from agent_memory.storage.sqlite.connection.sqlite_vec import load_sqlite_vec
from agent_memory.storage.sqlite.connection.statements import Statements

_OLDEST_SQLITE: Final = 3_054_000

_FAILURES: Final = (apsw.SQLError, apsw.IOError, apsw.FullError)
"""What comes of a disk that fails; the first is what an extension makes of it."""

# Connections of a parent process that were in use at the fork. They must outlive this process: to
# close one would roll back, in what both share, what the parent is about to commit.
_parents_connections: Final[list[apsw.Connection]] = []


class Database(Statements):
    """One SQLite file, opened; shared by the threads of a process under a lock.

    ``path`` must be absolute. ``create`` makes the file, mode 0600, when there is none.
    ``synchronous`` is ``FULL`` (an acknowledged write survives a power cut) or ``NORMAL`` (the
    last ones may be lost then, the file stays sound). ``refuse_version`` is called with the path
    and the schema's version before the file is touched, and raises for one that it does not know.
    ``vet`` judges what is in the file: without it a file that is written is trusted, and in one
    that is only read no view may be looked at.
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
        vet: Vet | None = None,
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
        self._vetting = Vetting(path, vet, read_only=read_only)
        self._lock = threading.RLock()
        self._depth = 0
        self._pid = os.getpid()
        self._is_closed = False
        self._wants_vectors = False
        self._vectors_problem: str | None = None
        self._parts = (path, beside(path, "-wal"), beside(path, "-shm"))
        forking.join(self)
        self._connection: apsw.Connection | None = None
        with self._lock, self._translated():
            self._connection = self._connect(create=create)
        opened.remember(self)

    # Transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True, vetted: bool = True) -> Iterator[None]:
        """Run the body in one transaction that holds the write lock from its start.

        A transaction that first reads and then writes would fail at once when another process
        wrote in between, whatever the timeout; one that begins with the lock waits its turn.

        ``durable=False`` is for what can be made anew, such as embeddings: the commit does not
        wait for the disk, and a power cut may lose it, as long as no durable one came after it.
        The file stays sound.

        ``vetted=False`` is for taking out of the file what may not be there: no trigger runs until
        ``trust`` is called. Otherwise such a file is ``StorageUntrusted``.
        """
        if self.read_only:
            raise StorageReadOnly(f"{self.path} was opened read-only: open it without read_only")
        with self._transaction("BEGIN IMMEDIATE", durable=durable):
            if vetted:
                self._vetting.before_writing(self._live())
            else:
                self._vetting.stop_triggers(self._live())
            yield

    def trust(self) -> None:
        """Raise ``StorageUntrusted`` unless the triggers and views of the file may run."""
        with self._statement() as connection:
            self._vetting.before_writing(connection)

    @property
    def can_write(self) -> bool:
        """Return whether the file may be written, as far as was seen when it was last looked at."""
        return not self.read_only and self._vetting.refusal is None

    @contextlib.contextmanager
    def read(self) -> Iterator[None]:
        """Run the body on one unchanging view of the file."""
        with self._transaction("BEGIN"):
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str, *, durable: bool = True) -> Iterator[None]:
        self._notice_fork()
        with self._lock, self._translated():
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
            with (
                self._renewed_after_failure(connection),
                self._waiting_for_the_disk(connection, waits=durable),
            ):
                connection.execute(begin)
                self._depth = 1
                try:
                    yield
                    connection.execute("COMMIT")
                    self._seen = cut_off.last_change(self.path)
                except BaseException as error:
                    note_errno(error, connection)
                    # A full disk has already rolled back by itself.
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    self._vetting.put_views_in_place(connection)
                    if isinstance(error, OF_WRONG_VALUES):
                        refuse_damaged(connection, self.path, error)
                    raise
                finally:
                    self._depth = 0

    @contextlib.contextmanager
    def _renewed_after_failure(self, connection: apsw.Connection) -> Iterator[None]:
        """Let the next use open another connection where the body could not read or write.

        Of an extension's tables more was lost than is rolled back: sqlite-vec forgets the name of
        one that it could not drop, and can then never drop it.
        """
        try:
            yield
        except (apsw.Error, StorageError) as error:
            note_errno(error, connection)
            failure = error if isinstance(error, apsw.Error) else error.__cause__
            if isinstance(failure, _FAILURES) and self._connection is connection:
                self._connection = None
                connection.close()
            raise

    @contextlib.contextmanager
    def _waiting_for_the_disk(self, connection: apsw.Connection, *, waits: bool) -> Iterator[None]:
        """Let the body's transaction wait for the disk or not. Inside of it, SQLite would refuse.

        A setting that cannot be restored goes with its connection, and the next use opens another.
        """
        if waits or self._synchronous != "FULL":
            yield
            return
        try:
            connection.pragma("synchronous", self._journal.synchronous(durable=False))
            yield
        finally:
            try:
                connection.pragma("synchronous", self._journal.synchronous(durable=True))
            except BaseException as error:
                note_errno(error, connection)
                self._connection = None
                connection.close()
                raise

    @contextlib.contextmanager
    def impatient(self) -> Iterator[None]:
        """Let a write in the body fail at once with ``StorageLocked`` rather than wait."""
        self._notice_fork()
        with self._lock:
            with self._translated():
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

    # Statements -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _statement(self) -> Iterator[apsw.Connection]:
        self._notice_fork()
        with self._lock, self._translated():
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
        with self._lock, self._translated():
            self._is_closed = True
            identity = self._file_identity()
            if self._connection is not None and identity[:2] != self._identity[:2]:
                self._part(identity)  # or another file's log would be deleted, or ours stay
            if self._connection is not None:
                # Others may have written since: to bring their log into the file is not for a
                # reader, nor to delete it.
                leave = self.read_only and journals.has_log(self.path)
                leave_log_on_close(self._connection, leave=leave)
                self._connection.close()
                self._connection = None

    def inodes(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory, if they are open."""
        if self._connection is None:
            return []
        try:
            return self._file_identity()
        except OSError:
            return self._identity  # as they were when it was opened

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
        with self._lock, source._statement() as source_connection, self._translated():
            self._notice_replaced_file()
            with pages.overwriting(
                self._live(), source_connection, self.path, shuts_out_readers=self._journal.rollback
            ):
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
        with self._translated():
            return [part for part in self._parts[:2] if part.exists() and part.stat().st_size]

    def raw(self, part: Path, length: int) -> Iterator[bytes]:
        """Yield the bytes of one of these as they are, ``length`` at a time but for the last."""
        with self._translated():
            size = part.stat().st_size
        for offset in range(0, size, length):
            with self._statement() as connection:
                amount = min(length, size - offset)
                data = purging.raw(connection, self._parts.index(part), offset, amount)
            yield data

    @property
    def journal(self) -> Literal["wal", "rollback"]:
        """How commits are kept whole: by a write-ahead log or by a rollback journal."""
        return "rollback" if self._journal.rollback else "wal"

    @property
    def warning(self) -> str | None:
        """What should be known of the file's drive and names; ``None`` when all is as usual."""
        return self._journal.warning(self.path) or journals.warning_of_names(self.path)

    def size(self) -> int:
        """Return the bytes of the file and its log."""
        parts = (self.path, beside(self.path, "-wal"))
        with self._translated():
            return sum(part.stat().st_size for part in parts if part.exists())

    def _translated(self) -> contextlib.AbstractContextManager[None]:
        """Turn the errors of the body into ours."""
        return translated(self.path, lambda: self._connection)

    def _live(self) -> apsw.Connection:
        if self._is_closed:
            raise StorageClosed(f"{self.path} is closed: open the memory again")
        if self._connection is None:
            self._connection = self._connect(create=False)
        return self._connection

    def _connect(self, *, create: bool) -> apsw.Connection:
        self._journal = journals.choose(self.path)
        stamp = settled.stamp(self.path)
        connection = open_connection(
            self.path,
            create=create,
            read_only=self.read_only,
            synchronous=self._journal.synchronous(durable=self._synchronous == "FULL"),
            journal=self._journal,
            refuse_version=self._refuse_version,
        )
        try:
            self._vetting.begin(connection)
        except BaseException as error:
            note_errno(error, connection)
            leave_log_on_close(connection, leave=True)
            connection.close()
            raise
        self._identity = self._file_identity()
        self._seen = cut_off.last_change(self.path)
        self._stamp = stamp if settled.is_read_as_it_is(connection) else None
        if self._wants_vectors:
            self._vectors_problem = load_sqlite_vec(connection)
        return connection

    def _file_identity(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory."""
        return cut_off.identity(self.path)

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
        if inode != self._identity[0] or self._is_used_otherwise():
            self._notice_replaced_file()

    def _is_used_otherwise(self) -> bool:
        """Return whether somebody uses the same file in a way that this connection cannot follow.

        It has a log now, which it may not have on its drive, or it was changed while it was read
        as one that nobody changes.
        """
        if self._connection is None:
            return False
        if self._stamp is not None:
            return settled.stamp(self.path) != self._stamp
        return self._journal.rollback and journals.uses_log(self._connection, self.path)

    def _notice_replaced_file(self) -> None:
        """Reopen when the file, its log or its shared memory is not the one that was opened.

        Otherwise the write would go into a file that nobody can reach any more.
        """
        identity = self._file_identity()
        if identity == self._identity and not self._is_used_otherwise():
            return
        if identity[0] is None:
            if self._connection is not None and not self.read_only:
                cut_off.bring_in(self._connection)  # wherever the file is now
            raise StorageUnavailable(
                f"{self.path} was deleted or moved while it was open: put it back, or close this"
                " memory and open it anew"
            )
        self._part(identity)

    def _part(self, identity: list[int | None]) -> None:
        """Close a connection to what is not at its place any more, losing nothing of its log."""
        connection, self._connection = self._connection, None
        if connection is not None:
            is_untouched = cut_off.last_change(self.path) == self._seen
            log = cut_off.Log(self.path, self._identity, identity, is_untouched=is_untouched)
            log.part(connection, may_write=not self.read_only)

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
        """In a forked child: part with the parent's connection; the next use opens another.

        SQLite believes to have the locks that it had at the fork, and they are the parent's alone:
        on a connection of its own the child would lock nothing, and others would delete the log
        under it. So the parent's is closed here, which leaves the parent's locks, its log and what
        it shares with others as they are. That cannot be done in the middle of its use.
        """
        is_unused = self._lock.acquire(blocking=False)
        connection, self._connection = self._connection, None
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._depth = 0
        if connection is None:
            return
        if is_unused and not connection.in_transaction:
            leave_log_on_close(connection, leave=True)
            connection.close()
        else:
            _parents_connections.append(connection)
