"""``Database``: one open file, its transactions and statements; it notices forks and new files."""

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
    StorageUnavailable,
    opened_read_only,
)
from agent_memory.runtime import fork_safety
from agent_memory.runtime.files import beside
from agent_memory.storage.in_memory.sqlite_vec import load_sqlite_vec
from agent_memory.storage.sqlite.connection import (
    compaction,
    journal_mode,
    lost_log,
    open_files,
    page_copy,
    read_only_media,
)
from agent_memory.storage.sqlite.connection.code_vetting import Vet, Vetting
from agent_memory.storage.sqlite.connection.error_translation import (
    OF_WRONG_VALUES,
    note_errno,
    refuse_damaged,
    translated,
)
from agent_memory.storage.sqlite.connection.opening import (
    is_makeshift,
    leave_log_on_close,
    open_connection,
    refuse_other_agent,
    refuse_without_space,
    wait_for_locks,
)
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
    that is only read no view may be looked at. ``agent_id`` is whose file it is, once that is
    known: another agent's that has taken its place is refused.
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
        agent_id: str | None = None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise ConfigurationError(f"synchronous is FULL or NORMAL, not {synchronous!r}")
        if apsw.SQLITE_VERSION_NUMBER < _OLDEST_SQLITE:
            raise ConfigurationError(
                f"SQLite {apsw.sqlite_lib_version()} can lose data: run `pip install -U apsw`"
            )
        super().__init__()
        self.path = path
        self.location = str(path)
        self.read_only = read_only
        self.agent_id = agent_id
        self._synchronous = synchronous
        self._refuse_version = refuse_version
        self._vetting = Vetting(path, vet, read_only=read_only)
        self._lock = threading.RLock()
        self._depth = 0
        self._pid = os.getpid()
        self._is_closed = False
        self._is_makeshift = False
        self._wants_vectors = False
        self._vectors_problem: str | None = None
        self._parts = (path, beside(path, "-wal"), beside(path, "-shm"))
        fork_safety.join(self)
        self._connection: apsw.Connection | None = None
        with self._lock, self._translated():
            self._connection = self._connect(create=create)
        open_files.register(self)

    # Transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True, vetted: bool = True) -> Iterator[None]:
        """Run the body in one write transaction, which holds the write lock from its start.

        A transaction that first reads and then writes would fail at once when another process
        wrote in between, whatever the timeout; one that begins with the lock waits its turn.

        ``durable=False`` is for what can be made anew, such as embeddings: the commit does not
        wait for the disk, and a power cut may lose it, as long as no durable one came after it.
        The file stays sound.

        ``vetted=False`` is for taking out of the file what may not be there: no trigger runs until
        ``trust`` is called. Otherwise such a file is ``StorageUntrusted``.
        """
        if self.read_only:
            raise opened_read_only(self.path)
        with self._transaction("BEGIN IMMEDIATE", durable=durable):
            if vetted:
                self._vetting.before_writing(self._connected())
            else:
                self._vetting.stop_triggers(self._connected())
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
        """Run the body in one read transaction: it sees one unchanging snapshot."""
        with self._transaction("BEGIN"), self._snapshot():
            yield

    @contextlib.contextmanager
    def _transaction(self, begin: str, *, durable: bool = True) -> Iterator[None]:
        self._leave_parent_after_fork()
        with self._lock, self._translated():
            if self._depth:
                raise AgentMemoryError(
                    "this thread is inside a transaction of the same memory: a callback, such as"
                    " `progress`, must not use the memory that calls it"
                )
            if begin == "BEGIN IMMEDIATE":
                self._reopen_if_replaced()
            else:
                self._reopen_if_other_file()
            connection = self._connected()
            with (
                self._makeshift_closed(),
                self._renewed_after_failure(connection),
                self._waiting_for_the_disk(connection, waits=durable),
            ):
                if begin == "BEGIN IMMEDIATE":
                    refuse_without_space(connection, self.path, self._journal)
                try:
                    connection.execute(begin)  # here: a Ctrl-C after it left the transaction open
                    self._depth = 1
                    yield
                    if connection.in_transaction or begin != "BEGIN":  # a damaged file ends a read
                        connection.execute("COMMIT")
                    self._last_change = lost_log.last_change(self.path)
                except BaseException as error:  # Ctrl-C too
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
    def _makeshift_closed(self) -> Iterator[None]:
        """Close a makeshift connection when the body, and its transaction, are done with it."""
        try:
            yield
        except BaseException as error:  # Ctrl-C too
            note_errno(error, self._connection)  # while it can still be asked
            raise
        finally:
            if (connection := self._connection) and self._is_makeshift and not self._depth:
                self._connection = None
                leave_log_on_close(connection, leave=True)
                connection.close()

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
            except BaseException as error:  # Ctrl-C too
                note_errno(error, connection)
                self._connection = None
                connection.close()
                raise

    @contextlib.contextmanager
    def nowait(self) -> Iterator[None]:
        """Let a write in the body fail at once with ``StorageLocked`` rather than wait."""
        self._leave_parent_after_fork()
        with self._lock:
            with self._translated():
                # Now, for in the body it would close the connection that is made impatient here.
                if not self.read_only:
                    self._reopen_if_replaced()
                connection = self._connected()
            try:
                connection.set_busy_timeout(0)
                yield
            finally:
                if connection is self._connection:
                    wait_for_locks(connection)

    # Statements -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _statement(self) -> Iterator[apsw.Connection]:
        self._leave_parent_after_fork()
        with self._lock, self._translated():
            if not self._depth:
                self._reopen_if_other_file()
            with self._makeshift_closed():
                yield self._connected()

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
        self._leave_parent_after_fork()
        with self._lock, self._translated():
            self._is_closed = True
            identity = self._file_identity()
            if self._connection is not None and identity[:2] != self._identity[:2]:
                # Otherwise another file's log would be deleted, or ours stay.
                self._leave_lost_file(identity)
            if self._connection is not None:
                # Others may have written since: to bring their log into the file is not for a
                # reader, nor to delete it.
                leave = self.read_only and journal_mode.has_log(self.path)
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

    def copy_into(
        self, target: Path, *, named: Path | None = None, page_size: int | None = None
    ) -> None:
        """Write a consistent copy into an empty file, without what was deleted; not yet synced.

        ``named`` is what errors call it, unless that is the target. Its pages are as long as the
        file's, unless a ``page_size`` in bytes is given.
        """
        with (
            self._statement() as connection,
            page_copy.full_disk_translated(connection, named or target),
        ):
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
            page_copy.copy_pages(connection, target)

    @contextlib.contextmanager
    def overwritten_by(self, source: Database) -> Iterator[None]:
        """Let what ``source`` holds take the place of all that is here, in one commit.

        It comes when the body ends without an error. The body runs with the write lock, and must
        not use this object; what it writes into ``source`` is copied as well. Others who have the
        file open see the new content from their next transaction on.
        """
        self._leave_parent_after_fork()
        with self._lock, source._statement() as source_connection, self._translated():
            self._reopen_if_replaced()
            self._generation += 1
            with page_copy.overwriting(
                self._connected(),
                source_connection,
                self.path,
                shuts_out_readers=self._journal.rollback,
            ):
                yield

    def refuse_readers(self) -> None:
        """Raise ``StorageLocked`` while somebody reads an older state of the file."""
        with self._outside_transaction() as connection:
            compaction.refuse_readers(connection, self.path)

    def compact(self) -> None:
        """Vacuum the file: write it anew with only what its tables hold, and empty the log.

        What was deleted is then in neither. Waits for readers up to the busy timeout.
        """
        with self._outside_transaction() as connection:
            compaction.compact(connection, self.path, size=self.size())

    @contextlib.contextmanager
    def _outside_transaction(self) -> Iterator[apsw.Connection]:
        """Run the body outside of any transaction, on a file that may be written."""
        if self.read_only:
            raise opened_read_only(self.path)
        with self._statement():
            if self._depth:
                raise AgentMemoryError("this thread is inside a transaction of the same memory")
            self._reopen_if_replaced()
            yield self._connected()

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
                data = compaction.read_raw(connection, self._parts.index(part), offset, amount)
            yield data

    @property
    def journal(self) -> Literal["wal", "rollback"]:
        """The journal mode: a write-ahead log or a rollback journal."""
        return "rollback" if self._journal.rollback else "wal"

    @property
    def warning(self) -> str | None:
        """A warning about the file's drive or hard links; ``None`` when all is as usual."""
        return self._journal.warning(self.path) or journal_mode.warning_of_names(self.path)

    def size(self) -> int:
        """Return the bytes of the file and its log."""
        parts = (self.path, beside(self.path, "-wal"))
        with self._translated():
            return sum(part.stat().st_size for part in parts if part.exists())

    def _translated(self) -> contextlib.AbstractContextManager[None]:
        """Translate the errors of the body into the library's."""
        return translated(self.path, lambda: self._connection)

    def _connected(self) -> apsw.Connection:
        if self._is_closed:
            raise StorageClosed(f"{self.path} is closed: open the memory again")
        if self._connection is None:
            self._connection = self._connect(create=False)
        return self._connection

    def _connect(self, *, create: bool) -> apsw.Connection:
        stamp = read_only_media.stamp(self.path)
        self._generation += 1
        connection, self._journal = open_connection(
            self.path,
            create=create,
            read_only=self.read_only,
            durable=self._synchronous == "FULL",
            refuse_version=self._refuse_version,
        )
        self._is_makeshift = is_makeshift(connection, read_only=self.read_only)
        try:
            self._vetting.begin(connection)
            refuse_other_agent(connection, self.path, self.agent_id)
        except BaseException as error:  # Ctrl-C too
            note_errno(error, connection)
            leave_log_on_close(connection, leave=journal_mode.has_log(self.path))
            connection.close()
            raise
        self._identity = self._file_identity()
        self._last_change = lost_log.last_change(self.path)
        self._immutable_stamp = (
            stamp if read_only_media.is_immutable_connection(connection) else None
        )
        if self._wants_vectors:
            self._vectors_problem = load_sqlite_vec(connection)
        return connection

    def _file_identity(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory."""
        return lost_log.identity(self.path)

    def _reopen_if_other_file(self) -> None:
        """Reopen when another file has taken the place of the one that is being read.

        What became of its log is for a writer to see. One that is gone is refused, as by a writer:
        whoever deleted an agent's folder does not expect its memories in answers of a server.
        """
        if self._connection is None:
            return
        try:
            inode = os.stat(self.path).st_ino  # noqa: PTH116 - 1 µs
        except FileNotFoundError:
            inode = None
        except OSError:  # its drive may answer again
            return
        if inode != self._identity[0] or self._is_out_of_step():
            self._reopen_if_replaced()

    def _is_out_of_step(self) -> bool:
        """Return whether somebody uses the same file in a way that this connection cannot follow.

        It has a log now, which it may not have on its drive, or it was changed while it was read
        as one that nobody changes.
        """
        if self._connection is None or self._is_makeshift:
            return False
        if self._immutable_stamp is not None:
            return read_only_media.stamp(self.path) != self._immutable_stamp
        return self._journal.rollback and journal_mode.uses_log(self._connection, self.path)

    def _reopen_if_replaced(self) -> None:
        """Reopen when the file, its log or its shared memory is not the one that was opened.

        Otherwise the write would go into a file that nobody can reach any more. Where there is none
        in its place, raise ``StorageUnavailable``.
        """
        identity = self._file_identity()
        if identity == self._identity and not self._is_out_of_step():
            return
        if identity[0] is None:
            if self._connection is not None and not self.read_only:
                lost_log.checkpoint(self._connection)  # wherever the file is now
            raise StorageUnavailable(
                f"{self.path} was deleted or moved while it was open: put it back, or close this"
                " memory and open it anew (a server that serves it: start that anew)"
            )
        self._leave_lost_file(identity)

    def _leave_lost_file(self, identity: list[int | None]) -> None:
        """Close a connection to what is not at its place any more, losing nothing of its log."""
        connection, self._connection = self._connection, None
        if connection is not None:
            is_untouched = lost_log.last_change(self.path) == self._last_change
            log = lost_log.Log(self.path, self._identity, identity, is_untouched=is_untouched)
            log.leave(connection, may_write=not self.read_only)

    # Forking ----------------------------------------------------------------------------------

    def _leave_parent_after_fork(self) -> None:
        """Leave the parent's connection in a child that was forked without Python's hooks."""
        if os.getpid() != self._pid:
            self.leave_parent()

    def door(self) -> contextlib.AbstractContextManager[bool]:
        """Return the lock that a thread holds while it is inside SQLite."""
        return self._lock

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
