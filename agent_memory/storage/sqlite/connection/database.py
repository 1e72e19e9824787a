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
"""What a failing disk causes; the first is what an extension turns it into."""

# Connections of a parent process that were in use at the fork. They must outlive this process:
# closing one would roll back, in their shared state, what the parent is about to commit.
_parents_connections: Final[list[apsw.Connection]] = []


class Database(Statements):
    """One open SQLite file, shared by the threads of a process under a lock.

    ``path`` must be absolute. ``create`` creates the file, mode 0600, if it does not exist.
    ``synchronous`` is ``FULL`` (an acknowledged write survives a power cut) or ``NORMAL`` (the last
    ones may then be lost, but the file stays sound). ``refuse_version`` is called with the path and
    the schema version before the file is touched, and raises for an unknown one. ``vet`` judges the
    triggers and views in the file: without it, a file opened for writing is trusted, and in one
    opened read-only no view may be used. ``agent_id`` is the agent of the file, once known: another
    agent's file that has replaced it is refused. Raises ``StorageError`` and its subclasses.
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
        self._inside = 0
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

        A transaction that first reads and then writes would fail at once, whatever the timeout, if
        another process wrote in between; one that begins with the lock waits its turn.

        ``durable=False`` is for data that can be recomputed, such as embeddings: the commit does
        not wait for the disk, and a power cut may lose it unless a durable one follows. The file
        stays sound.

        ``vetted=False`` is for removing from the file what must not be there: no trigger runs until
        ``trust`` is called. Otherwise such a file raises ``StorageUntrusted``.
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
        """Return whether the file may be written, as of the last time it was examined."""
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
            if self._inside:
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
                    # Inside the try block: a Ctrl-C after it left the transaction open.
                    connection.execute(begin)
                    self._inside = threading.get_ident()
                    yield
                    if connection.in_transaction or begin != "BEGIN":  # a damaged file ends a read
                        connection.execute("COMMIT")
                    self._last_change = lost_log.last_change(self.path)
                except BaseException as error:  # Ctrl-C too
                    note_errno(error, connection)
                    # On a full disk SQLite has already rolled back.
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    self._vetting.put_views_in_place(connection)
                    if isinstance(error, OF_WRONG_VALUES):
                        refuse_damaged(connection, self.path, error)
                    raise
                finally:
                    self._inside = 0

    @contextlib.contextmanager
    def _makeshift_closed(self) -> Iterator[None]:
        """Close a makeshift connection after the body, unless a transaction is still open."""
        try:
            yield
        except BaseException as error:  # Ctrl-C too
            note_errno(error, self._connection)  # while the connection still knows it
            raise
        finally:
            if (connection := self._connection) and self._is_makeshift and not self._inside:
                self._connection = None
                leave_log_on_close(connection, leave=True)
                connection.close()

    @contextlib.contextmanager
    def _renewed_after_failure(self, connection: apsw.Connection) -> Iterator[None]:
        """If the body could not read or write, make the next use open another connection.

        An extension's tables lose more than a rollback restores: sqlite-vec forgets the name of a
        table that it could not drop, and can then never drop it.
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
        """Set whether the body's transaction waits for the disk; inside it, SQLite would refuse.

        If the setting cannot be restored, the connection is closed, and the next use opens another.
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
                # Now: in the body it would close the connection whose timeout is changed here.
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

    def _statement(self) -> contextlib.AbstractContextManager[apsw.Connection]:
        self._leave_parent_after_fork()
        if self._inside == threading.get_ident():  # in its transaction, which holds the lock
            self._connected()  # raises if the transaction's body has closed it
            return self._translated()
        return self._single_statement()

    @contextlib.contextmanager
    def _single_statement(self) -> Iterator[apsw.Connection]:
        with self._lock, self._translated():
            self._reopen_if_other_file()
            with self._makeshift_closed():
                yield self._connected()

    # Vectors ----------------------------------------------------------------------------------

    def load_vectors(self) -> bool:
        """Make sqlite-vec's functions and its table type ``vec0`` available from now on.

        Return ``False`` if that is impossible: ``vectors_problem`` says why. Each connection tries
        only once, so calling it again costs nothing.
        """
        with self._statement() as connection:
            if not self._wants_vectors:
                self._wants_vectors = True
                self._vectors_problem = load_sqlite_vec(connection)
            return self._vectors_problem is None

    def vectors_problem(self) -> str | None:
        """Return why ``load_vectors`` returned false, and what to do; ``None`` if it did not."""
        return self._vectors_problem

    # The file ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. Closing twice is fine; using it afterwards raises ``StorageClosed``."""
        self._leave_parent_after_fork()
        with self._lock, self._translated():
            self._is_closed = True
            identity = lost_log.identity(self.path)
            if self._connection is not None and identity[:2] != self._identity[:2]:
                # Otherwise another file's log would be deleted, or ours would stay.
                self._leave_lost_file(identity)
            if self._connection is not None:
                # Others may have written since: a reader must neither checkpoint nor delete their
                # log.
                leave = self.read_only and journal_mode.has_log(self.path)
                leave_log_on_close(self._connection, leave=leave)
                self._connection.close()
                self._connection = None

    def inodes(self) -> list[int | None]:
        """Return the inodes of the file, its log and its shared memory, if they are open."""
        if self._connection is None:
            return []
        try:
            return lost_log.identity(self.path)
        except OSError:
            return self._identity  # as they were when it was opened

    def copy_into(
        self, target: Path, *, named: Path | None = None, page_size: int | None = None
    ) -> None:
        """Write a consistent copy, without deleted data, into an empty file; it is not synced.

        ``named`` is the path that errors mention, by default the target. The pages have the size of
        the file's, unless ``page_size`` is given, in bytes.
        """
        with (
            self._statement() as connection,
            page_copy.full_disk_translated(connection, named or target),
        ):
            connection.pragma("query_only", False)  # it would also forbid writing the copy
            try:
                if page_size is not None:
                    connection.pragma("page_size", page_size)
                connection.execute("VACUUM INTO ?", (str(target),))
            finally:
                connection.pragma("query_only", self.read_only)

    def copy_pages_into(self, target: Path) -> None:
        """Copy the raw pages, damaged ones included, into an empty file; it is not synced."""
        with self._statement() as connection:
            page_copy.copy_pages(connection, target)

    @contextlib.contextmanager
    def overwritten_by(self, source: Database) -> Iterator[None]:
        """Replace the whole content with that of ``source``, in one commit.

        It happens when the body ends without an error. The body runs with the write lock, and must
        not use this object; what it writes to ``source`` is copied as well. Others who have the
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
        """Raise ``StorageLocked`` while anyone is reading an older state of the file."""
        with self._outside_transaction() as connection:
            compaction.refuse_readers(connection, self.path)

    def compact(self) -> None:
        """Vacuum the file: rewrite it with only what its tables hold, and empty the log.

        Deleted data is then in neither. Waits for readers up to the busy timeout.
        """
        with self._outside_transaction() as connection:
            compaction.compact(connection, self.path, size=self.size())

    @contextlib.contextmanager
    def _outside_transaction(self) -> Iterator[apsw.Connection]:
        """Run the body outside any transaction, on a file that may be written."""
        if self.read_only:
            raise opened_read_only(self.path)
        with self._statement():
            if self._inside:
                raise AgentMemoryError("this thread is inside a transaction of the same memory")
            self._reopen_if_replaced()
            yield self._connected()

    def raw_parts(self) -> list[Path]:
        """Return the file, and its log unless that is empty."""
        with self._translated():
            return [part for part in self._parts[:2] if part.exists() and part.stat().st_size]

    def raw(self, part: Path, length: int) -> Iterator[bytes]:
        """Yield the raw bytes of one of these, ``length`` at a time but for the last."""
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
        """A warning about the file's drive or hard links, or ``None``."""
        return self._journal.warning(self.path) or journal_mode.warning_of_names(self.path)

    def size(self) -> int:
        """Return the size of the file and its log in bytes."""
        with self._translated():
            return sum(part.stat().st_size for part in self.raw_parts())

    def _translated(self) -> translated:
        """Translate the errors of the body, which is given the connection, into the library's."""
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
            before_writing=self._vetting.before_writing,
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
        self._identity = lost_log.identity(self.path)
        self._last_change = lost_log.last_change(self.path)
        self._immutable_stamp = (
            stamp if read_only_media.is_immutable_connection(connection) else None
        )
        if self._wants_vectors:
            self._vectors_problem = load_sqlite_vec(connection)
        return connection

    def _reopen_if_other_file(self) -> None:
        """Reopen if another file has replaced the one that is being read.

        The state of its log matters only to a writer. A deleted file is refused, as for a writer:
        whoever deleted an agent's folder does not expect its memories in the answers of a server.
        """
        if self._connection is None:
            return
        try:
            inode = os.stat(self.path).st_ino  # noqa: PTH116 - 1 µs
        except FileNotFoundError:
            inode = None
        except OSError:  # the drive may recover
            return
        if inode != self._identity[0] or self._is_out_of_step():
            self._reopen_if_replaced()

    def _is_out_of_step(self) -> bool:
        """Return whether others use the same file in a way that this connection cannot follow.

        The file now has a log although its drive may not allow one, or it changed while it was
        being read as immutable.
        """
        if self._connection is None or self._is_makeshift:
            return False
        if self._immutable_stamp is not None:
            return read_only_media.stamp(self.path) != self._immutable_stamp
        return self._journal.rollback and journal_mode.uses_log(self._connection, self.path)

    def _reopen_if_replaced(self) -> None:
        """Reopen if the file, its log or its shared memory is not the one that was opened.

        Otherwise the write would go into a file that nobody can reach any more. Raises
        ``StorageUnavailable`` if there is no file in its place.
        """
        identity = lost_log.identity(self.path)
        if identity == self._identity and not self._is_out_of_step():
            return
        if identity[0] is None:
            if self._connection is not None and not self.read_only:
                lost_log.checkpoint(self._connection)  # wherever the file is now
            raise StorageUnavailable(
                f"{self.path} was deleted or moved while it was open: put it back, or close"
                " this memory and open it again (restart a server that serves it)"
            )
        self._leave_lost_file(identity)

    def _leave_lost_file(self, identity: list[int | None]) -> None:
        """Close a connection to a file that is no longer in place, losing nothing of its log."""
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
        """In a forked child, abandon the parent's connection; the next use opens another.

        SQLite believes that it has the locks it had at the fork, but they belong to the parent
        alone: on a connection of its own the child would lock nothing, and others would delete the
        log under it. So the parent's connection is closed here, which leaves the parent's locks,
        its log and its shared memory as they are. That is impossible while the connection is in
        use.
        """
        is_unused = self._lock.acquire(blocking=False)
        connection, self._connection = self._connection, None
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._inside = 0
        if connection is None:
            return
        if is_unused and not connection.in_transaction:
            leave_log_on_close(connection, leave=True)
            connection.close()
        else:
            _parents_connections.append(connection)
