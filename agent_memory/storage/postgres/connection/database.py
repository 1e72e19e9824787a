"""``Database``: one agent's rows in a database; its transactions and statements."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql as composing

from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    StorageError,
    StorageLocked,
    StorageUnavailable,
    opened_read_only,
)
from agent_memory.runtime.addresses import AgentAddress
from agent_memory.storage.in_memory.tokenizer import StandaloneTokenizer
from agent_memory.storage.postgres.connection.error_translation import (
    is_connection_loss,
    translated,
)
from agent_memory.storage.postgres.connection.pool import Connection, PoolLease, SharedPool
from agent_memory.storage.postgres.connection.replica import Replica
from agent_memory.storage.records import Row, Values
from agent_memory.storage.sql.snapshots import Snapshots

Value = TypeVar("Value")

_NAME: Final = re.compile(r"(?<![:\w]):(\w+)")
"""A named value in a statement for both engines; two colons are a cast."""
_LOCK_SECONDS: Final = 30
"""How long a write waits for another of the same agent."""
_ASIDE_SECONDS: Final = 5
"""How long a write waits that is not part of the memory."""
_OUTCOME_SECONDS: Final = 30.0
"""How long to ask whether a transaction was committed, if the answer was lost."""
_MOST_RETRIES: Final = 3
"""How often a read is retried because its connection was lost in the middle."""

_LOCK: Final = "SELECT pg_{}advisory_xact_lock(agent_lock()), pg_current_xact_id()::text, {}"
_IS_DURABLE: Final = (
    "set_config('synchronous_commit',"
    " replace(current_setting('synchronous_commit'), 'off', 'on'), true)"
)
"""Acknowledged writes are on disk, whatever the server's default; a stronger setting is kept."""
_IS_NOT_DURABLE: Final = "set_config('synchronous_commit', 'off', true)"
_MAY_IDLE: Final = "SET LOCAL idle_in_transaction_session_timeout = 0"
_AS_EVER: Final = (
    "set_config('row_security', 'on', true), set_config('standard_conforming_strings', 'on', true)"
)
"""What a role or a database may have changed: row-level security would then refuse every query, and
a backslash in a constraint would have another meaning."""
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"


class _OfThread(threading.local):
    """The state of a thread."""

    connection: Connection | None = None
    """The connection of its open transaction."""
    is_impatient: bool = False
    """Whether a write fails at once instead of waiting."""
    is_writing: bool = False
    """Whether its transaction is a write transaction."""


class Database(Snapshots):
    """One agent's rows in a database of a server. Threads may share it.

    Each thread has a connection of the shared pool while it is in a transaction. ``synchronous`` is
    ``FULL`` (an acknowledged write is on the server's disk) or ``NORMAL`` (the last ones may be
    lost in a power cut). Raises ``StorageError`` and its subclasses.
    """

    def __init__(
        self, address: AgentAddress, *, read_only: bool = False, synchronous: str = "FULL"
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise ConfigurationError(f"synchronous is FULL or NORMAL, not {synchronous!r}")
        super().__init__()
        self.address = address
        self.agent_id = address.agent_id
        self.location = str(address)
        self.schema = f'"{address.server.schema}"'
        """The schema's name, quoted for SQL."""
        self.read_only = read_only
        self._synchronous = synchronous
        self._thread = _OfThread()
        self._tokenizer = StandaloneTokenizer()
        self.before_commit: list[Callable[[], None]] = []
        """What each write transaction runs last."""
        self._lease = PoolLease(address.server)
        with translated(self.location):
            self._lease.pool()  # a wrong address is reported at once
        follower = address.server.replica
        self.replica = None if follower is None else Replica(follower)
        """A server that searches may use instead."""

    @property
    def can_write(self) -> bool:
        """Return whether a write may succeed, as far as is known."""
        return not self.read_only

    @property
    def is_writing(self) -> bool:
        """Return whether this thread is inside ``write()``."""
        return self._thread.is_writing

    @property
    def pool(self) -> SharedPool:
        """The pool of connections, which others use too."""
        return self._lease.pool()

    def close(self) -> None:
        """Release the connections. Closing twice is fine; later use raises ``StorageClosed``."""
        self._lease.close()
        if self.replica is not None:
            self.replica.close()

    # Transactions -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def write(self, *, durable: bool = True) -> Iterator[None]:
        """Run the body in one write transaction, which holds the agent's lock from its start.

        Each of its statements sees what was committed before, even by others; nobody else can write
        for this agent. ``durable=False`` is for data that can be recomputed: the commit does not
        wait for the disk.
        """
        if self.read_only:
            raise opened_read_only(self.location)
        self._refuse_nested()
        is_durable = durable and self._synchronous == "FULL"
        is_impatient = self._thread.is_impatient
        pool = self.pool  # read once: another thread may close this, and the lock would stay
        opening = (
            _WRITE,
            self._settings(is_durable=is_durable, timeout=_LOCK_SECONDS),
            _LOCK.format("try_" if is_impatient else "", pool.incarnation),
        )
        with translated(self.location), self._begun(opening, pool) as (connection, row):
            if row[0] is False:
                raise StorageLocked(
                    f"{self.location} is in use by another process: try again in a moment"
                )
            self._thread.is_writing = True
            yield
            for step in self.before_commit:
                step()
            self._commit(connection, *row[1:])

    @contextlib.contextmanager
    def write_aside(self, subject: str) -> Iterator[None]:
        """Run the body in a write transaction on data outside the memory, one at a time.

        It does not wait for those of ``write``, nor does its commit wait for the disk.
        """
        self._refuse_nested()
        key = f"hashtextextended({composing.quote(f'{self.schema} {self.agent_id} {subject}')}, 0)"
        settings = self._settings(is_durable=False, timeout=_ASIDE_SECONDS)
        opening = (_WRITE, settings, f"SELECT pg_advisory_xact_lock({key})")
        pool = self.pool
        with translated(self.location), self._begun(opening, pool) as (connection, _):
            yield
            connection.execute("COMMIT")

    def read(self) -> contextlib.AbstractContextManager[None]:
        """Run the body in one read transaction, which sees a single unchanging snapshot."""
        return self._reading(self.pool, self.location)

    @contextlib.contextmanager
    def _reading(self, pool: SharedPool, location: str) -> Iterator[None]:
        self._refuse_nested()
        with translated(location):
            begun = self._begun((_READ, self._settings()), pool)
            with begun as (connection, _), self._snapshot():
                yield
                connection.execute("COMMIT")

    def lookup(self, look: Callable[[], Value], *, state: str) -> Value:
        """Return what ``look`` returns in one read transaction; it may be called again.

        The transaction may be on the replica if ``state`` returns the same row there: it is a query
        for values that change with the agent's memories.
        """
        if self.replica is not None and not self.replica.is_resting:
            current = self.row(state)
            with self.replica.excused():
                pool = self.replica.pool()
                if pool is not None:
                    with self._reading(pool, self.replica.location):
                        if self.replica.is_current(current, self.row(state)):
                            return look()
        for _ in range(_MOST_RETRIES):
            try:
                with self.read():
                    return look()
            except StorageError as error:
                if not error.is_undone:
                    raise
        with self.read():
            return look()

    @contextlib.contextmanager
    def administering(self, *, is_writing: bool) -> Iterator[None]:
        """Run the body in a transaction on the schema itself, as the login role.

        No agent's rows are visible in it. While it writes, no other process changes the schema.
        """
        self._refuse_nested()
        key = composing.quote(f"agent_memory schema {self.address.server.schema}")
        opening = [_WRITE if is_writing else _READ, f"SELECT {self._search_path()}"]
        if is_writing:
            opening.append(f"SELECT pg_advisory_xact_lock(hashtextextended({key}, 0))")
        pool = self.pool
        with translated(self.location), self._begun(opening, pool) as (connection, _):
            yield
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def alone(self, *, busy: str) -> Iterator[None]:
        """Hold a lock between processes, in a transaction of its own that does nothing else.

        So it ends with the process, even behind a pooler. Meanwhile the thread may begin other
        transactions. The server's timeout for idle transactions does not apply to it.
        """
        key = f"hashtextextended({composing.quote(f'{self.schema} {self.agent_id} alone')}, 0)"
        pool = self.pool
        with translated(self.location):
            lock = f"SELECT pg_try_advisory_xact_lock({key})"
            with self._begun((_WRITE, _MAY_IDLE, lock), pool) as (_, row):
                self._thread.connection = None
                if not row[0]:
                    raise StorageLocked(busy)
                yield

    @contextlib.contextmanager
    def nowait(self) -> Iterator[None]:
        """Make a write in the body fail at once with ``StorageLocked`` instead of waiting."""
        self._thread.is_impatient = True
        try:
            yield
        finally:
            self._thread.is_impatient = False

    def counting(self) -> contextlib.AbstractContextManager[None]:
        """Run statements that only update counters: here no cache needs to know."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """Let an error in the body undo what the body did, so that the transaction can go on."""
        connection = self._thread.connection
        if connection is None:
            yield
            return
        connection.execute("SAVEPOINT of_part")
        try:
            yield
        except BaseException:  # Ctrl-C too
            connection.execute("ROLLBACK TO SAVEPOINT of_part")
            raise
        connection.execute("RELEASE SAVEPOINT of_part")

    def _refuse_nested(self) -> None:
        if self._thread.connection is not None:
            raise AgentMemoryError(
                "this thread is inside a transaction of the same memory: a callback, such as"
                " `progress`, must not use the memory that calls it"
            )

    def _settings(
        self,
        *,
        is_durable: bool | None = None,
        is_reading: bool = False,
        timeout: int | None = None,
    ) -> str:
        """Return the statement that sets, for this transaction only, whose rows it sees."""
        settings = {"agent_memory.agent": self.agent_id}
        role = self.pool.role
        if role is not None:
            settings["role"] = role
        if is_reading:
            settings["transaction_read_only"] = "on"
        if timeout is not None:
            settings["lock_timeout"] = f"{timeout}s"
        steps = [
            f"set_config({composing.quote(name)}, {composing.quote(value)}, true)"
            for name, value in settings.items()
        ]
        if is_durable is not None:
            steps.append(_IS_DURABLE if is_durable else _IS_NOT_DURABLE)
        return f"SELECT {self._search_path()}, " + ", ".join(steps)

    def _search_path(self) -> str:
        """Return the SQL that makes names refer to the schema's tables, not to temporary ones."""
        return f"set_config('search_path', '{self.schema}, pg_temp', true), {_AS_EVER}"

    @contextlib.contextmanager
    def _begun(
        self, statements: Sequence[str], pool: SharedPool
    ) -> Iterator[tuple[Connection, Row]]:
        """Give the body a connection with a transaction begun, and the last row returned by that.

        After the body the connection is given back, and rolled back if its transaction is still
        open.
        """
        script = "; ".join(statements)

        def begin(connection: Connection) -> Row:
            cursor = connection.execute(script)
            while cursor.nextset():
                pass
            return cursor.fetchone() or ()

        connection, row = self._used(begin, pool)
        try:  # with nothing in between: a Ctrl-C there would leave the transaction open
            self._thread.connection = connection
            yield connection, row
        finally:
            self._thread.connection = None
            self._thread.is_writing = False
            self._abandon(pool, connection)

    def _used(
        self, use: Callable[[Connection], Value], pool: SharedPool
    ) -> tuple[Connection, Value]:
        """Return a connection after using it for something repeatable, and the result.

        Connections that broke while idle, as all do when the server restarts, are skipped.
        """
        for is_last in (*[False] * pool.address.pool_size, True):
            connection = pool.take()
            try:
                return connection, use(connection)
            except BaseException as error:  # Ctrl-C too: a connection is given back
                self._abandon(pool, connection)
                if is_last or not is_connection_loss(error):
                    raise
        raise AssertionError("the last one raises")

    @staticmethod
    def _abandon(pool: SharedPool, connection: Connection) -> None:
        if pool.pid != os.getpid():  # in a forked child the connection is the parent's
            return
        if not connection.closed and connection.info.transaction_status:
            with contextlib.suppress(psycopg.Error):
                connection.execute("ROLLBACK")
        pool.give_back(connection)

    def _commit(self, connection: Connection, transaction: str, incarnation: str | None) -> None:
        """Commit; if the answer is lost, ask for the outcome on another connection."""
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not is_connection_loss(error):
                raise
            if not self._was_committed(transaction, incarnation, error):
                raise

    def _was_committed(
        self, transaction: str, incarnation: str | None, loss: psycopg.Error
    ) -> bool:
        deadline = time.monotonic() + _OUTCOME_SECONDS
        while time.monotonic() < deadline:
            try:
                pool = self.pool
                connection = pool.take()
                try:
                    row = connection.execute(
                        f"SELECT pg_xact_status(%s::xid8), {pool.incarnation}", (transaction,)
                    ).fetchone()
                finally:
                    pool.give_back(connection)
            except psycopg.errors.InvalidParameterValue:
                return False  # another server has taken over, without this transaction
            except psycopg.Error:
                row = None
            if row is not None and row[0] == "aborted":
                return False
            if row is not None and row[0] == "committed":
                if row[1] == incarnation:
                    return True
                break  # after a crash, or on another server, the id may be another transaction's
            time.sleep(0.1)
        raise StorageUnavailable(
            f"the connection to {self.location} was lost during a write, and it is not known"
            f" whether that was stored: check before you store it again ({loss})"
        ) from loss

    # Statements -------------------------------------------------------------------------------

    # Where the engines' SQL differs: ``storage.sql`` explains each.
    AMONG = "= ANY (?)"
    GREATEST = "greatest"
    LEAST = "least"
    LIST = "json_agg"
    LIST_ITEMS = "json_array_elements_text"
    PADDED = "lpad({}::text, 20, '0')"
    AS_BYTES = "convert_to({}, 'UTF8')"
    SOURCE_NUMBER = "seq"
    ROW_KEY = "agent_id, seq"

    @staticmethod
    def listed(values: Iterable[Any]) -> list[Any]:
        """Return the values that ``AMONG`` stands for, as a single parameter."""
        return list(values)

    def run(self, sql: str, values: Values = ()) -> int:
        """Execute a statement and return the number of rows changed directly, without triggers."""
        with self._statement() as connection:
            return connection.execute(_marked(sql, values), values or None).rowcount

    def run_many(self, sql: str, values: Iterable[Values]) -> None:
        """Execute a statement for each of many lists of values, which are sent together."""
        with self._statement() as connection, connection.cursor() as cursor:
            cursor.executemany(_marked(sql, values), values)

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows."""
        return self._executed(sql, values).fetchall()

    def row(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row, or ``None``."""
        return self._executed(sql, values).fetchone()

    def value(self, sql: str, values: Values = ()) -> Any:  # noqa: ANN401 - any column
        """Return the first column of the first row, or ``None``."""
        row = self.row(sql, values)
        return row[0] if row else None

    def _executed(self, sql: str, values: Values) -> psycopg.Cursor[Row]:
        """Execute a query in this thread's transaction, or in one of its own.

        The latter cannot write, so it may be executed again if the answer is lost.
        """
        connection, sql = self._thread.connection, _marked(sql, values)
        with translated(self.location):
            if connection is not None:
                return connection.execute(sql, values or None, binary=True)

            def execute(connection: Connection) -> psycopg.Cursor[Row]:
                # Statements sent together are one transaction, and one round trip.
                with connection.pipeline():
                    connection.execute(self._settings(is_reading=True))
                    return connection.execute(sql, values or None, binary=True)

            pool = self.pool
            connection, cursor = self._used(execute, pool)
            self._abandon(pool, connection)
            return cursor

    @contextlib.contextmanager
    def _statement(self) -> Iterator[Connection]:
        """Give the body the connection of this thread's transaction, or of a new one."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(translated(self.location))
            if self._thread.connection is None:
                stack.enter_context(self.write())
            connection = self._thread.connection
            assert connection is not None  # noqa: S101 - of the transaction
            yield connection

    # The host, and words ----------------------------------------------------------------------

    def host(self) -> tuple[str, int]:
        """Return the host of the address that answers, and its port."""
        connection = self._thread.connection
        if connection is None:
            with self.read():
                return self.host()
        return connection.info.host, connection.info.port

    def words(self, text: str) -> list[tuple[str, str]]:
        """Return the words of a text: each as the keyword index holds it, and as it is written."""
        return self._tokenizer.words(text)

    def tokenize(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the words of each text as the keyword index holds them."""
        return self._tokenizer.tokenize(texts)


def _marked(sql: str, values: object) -> str:
    """Return a statement with psycopg's placeholders; others have ``?`` or ``:name``."""
    if "%" in sql or not values:
        return sql
    return _with_names(sql) if isinstance(values, Mapping) else sql.replace("?", "%s")


@lru_cache(maxsize=200)  # it took 0.24 ms a call
def _with_names(sql: str) -> str:
    return _NAME.sub(r"%(\1)s", sql)
