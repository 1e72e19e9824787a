"""The connections to one database, shared by all of this process's agents in it."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from typing import Any, Final

import psycopg
import psycopg_pool
from psycopg.types.numeric import NumericBinaryLoader

from agent_memory.errors import StorageClosed
from agent_memory.runtime import fork_safety
from agent_memory.runtime.addresses import ServerAddress

Connection = psycopg.Connection[tuple[Any, ...]]

_WAIT_SECONDS: Final = 30.0
"""How long a thread waits for a connection: a restarting server is back by then."""
_CONNECT_SECONDS: Final = 10
_IDLE_SECONDS: Final = 300.0
"""After this time, an unused connection is closed."""
_INCARNATION: Final = (
    "left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)"
    " || (SELECT checkpoint_lsn FROM pg_control_checkpoint())"
)
"""What changes when another server takes over, or the server has recovered from a crash.

From then on the id of a lost transaction may be another's. (It also changes with each checkpoint:
recovery from a crash always makes one.)
"""


class SharedPool:
    """A pool of connections, and what is known about their database."""

    def __init__(self, address: ServerAddress, *, patience: float) -> None:
        self.address = address
        self.users = 0
        self.pid = os.getpid()
        self.role: str | None = None
        """The role to assume if the login role would see all agents' rows."""
        self.is_current = False
        """Whether the schema is known to be that of this version."""
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._options: dict[str, Any] = {
            "autocommit": True,
            "client_encoding": "UTF8",
            "application_name": "agent-memory",
            "connect_timeout": max(2, min(_CONNECT_SECONDS, int(patience))),
        }
        # The first connection is made here, so that a wrong address is reported at once, and not
        # after all the time that the pool would retry.
        with psycopg.Connection[tuple[Any, ...]].connect(
            address.conninfo, **self._options
        ) as first:
            self.server_version = first.info.server_version
            # A pooler reports a process id of its own, and may give each transaction another server
            # process, which does not know the prepared statements.
            row = first.execute("SELECT pg_backend_pid()").fetchone()
            self._is_direct = row is not None and row[0] == first.info.backend_pid
            self.incarnation = _INCARNATION
            try:
                first.execute(f"SELECT {_INCARNATION}")
            except psycopg.Error:  # a standby, or a server without such a log
                self.incarnation = "NULL"
        self._pool = psycopg_pool.ConnectionPool(
            address.conninfo,
            kwargs=self._options,
            min_size=0,
            max_size=address.pool_size,
            timeout=patience,
            max_idle=_IDLE_SECONDS,
            configure=self._configure,
            num_workers=1,
            open=True,
        )

    def _configure(self, connection: Connection) -> None:
        self._connections.add(connection)
        connection.adapters.register_loader("numeric", _NumberLoader)
        if not self._is_direct:
            connection.prepare_threshold = None

    def take(self) -> Connection:
        """Return a connection; it must be returned with ``give_back``."""
        try:
            return self._pool.getconn()
        except psycopg_pool.PoolTimeout as timeout:
            # The pool keeps retrying, and does not tell why it cannot connect.
            try:
                psycopg.connect(self.address.conninfo, **self._options).close()
            except psycopg.Error as error:
                raise timeout from error
            raise

    def give_back(self, connection: Connection) -> None:
        """Give a connection back; a broken one is not used again."""
        self._pool.putconn(connection)

    def figures(self) -> dict[str, int]:
        """Return how many connections may and do exist, and how many threads wait for one."""
        stats = self._pool.get_stats()
        return {
            "pool_size": self.address.pool_size,
            "connections": stats.get("pool_size", 0),
            "idle": stats.get("pool_available", 0),
            "waiting": stats.get("requests_waiting", 0),
        }

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def leave_to_parent(self) -> None:
        """In a forked child, abandon the connections without a word to the server.

        A connection that is open in a child keeps its session alive, with its locks, when the
        parent is killed. Its descriptor stays in use, so that nothing else is mistaken for the
        connection.
        """
        nothing = os.open(os.devnull, os.O_RDWR)
        for connection in list(self._connections):
            with contextlib.suppress(psycopg.Error, OSError):
                os.dup2(nothing, connection.fileno(), inheritable=False)
        os.close(nothing)


class _NumberLoader(NumericBinaryLoader):
    """Reads a ``numeric``, which the sum of bigints is, as the number that SQLite would return."""

    def load(self, data: Any) -> Any:  # noqa: ANN401 - bytes of psycopg's own kinds
        number = super().load(data)
        return int(number) if number == number.to_integral_value() else float(number)


class _Pools:
    """The pools of this process, by address."""

    def __init__(self) -> None:
        self._lock = fork_safety.Lock()
        self._pools: dict[ServerAddress, SharedPool] = {}
        self._of_parents: list[SharedPool] = []
        fork_safety.join(self)

    def door(self) -> threading.Lock:
        """Return the lock that keeps other threads out while the process forks."""
        return self._lock.bare

    def leave_parent(self) -> None:
        """Start afresh in a forked child: closing the parent's pools would end its sessions."""
        for pool in self._pools.values():
            pool.leave_to_parent()
            self._of_parents.append(pool)
        self._pools.clear()

    def acquire(self, address: ServerAddress, patience: float) -> SharedPool:
        with self._lock.bare:
            pool = self._pools.get(address)
            if pool is None:
                pool = self._pools[address] = SharedPool(address, patience=patience)
            pool.users += 1
            return pool

    def give_up(self, pool: SharedPool) -> None:
        with self._lock.bare:
            if self._pools.get(pool.address) is not pool:  # the parent's
                return
            pool.users -= 1
            if pool.users:
                return
            del self._pools[pool.address]
        pool.close()

    def close(self) -> None:
        with self._lock.bare:
            pools = list(self._pools.values())
            self._pools.clear()
        for pool in pools:
            with contextlib.suppress(psycopg.Error):
                pool.close()


_pools: Final = _Pools()
# The pool's messages on broken connections are for those who enabled logging, not the terminal.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
atexit.register(_pools.close)


class PoolLease:
    """The use of a shared pool by one open memory, in whatever process.

    The pool is created on first use; ``patience`` is how many seconds to wait for a connection.
    """

    def __init__(self, address: ServerAddress, *, patience: float | None = None) -> None:
        self._address = address
        self._patience = _WAIT_SECONDS if patience is None else patience
        self._pid = os.getpid()
        self._lock = fork_safety.Lock()
        self._pool: SharedPool | None = None
        self._is_closed = False

    def pool(self) -> SharedPool:
        """Return the pool. Raises ``StorageClosed`` after ``close``."""
        with self._lock.bare:
            if self._is_closed:
                raise StorageClosed(f"{self._address.location} was closed: open it again")
            if self._pool is None or self._pid != os.getpid():
                self._pool = _pools.acquire(self._address, self._patience)
                self._pid = os.getpid()
            return self._pool

    def close(self) -> None:
        """Release the pool. The last user closes it."""
        with self._lock.bare:
            pool, self._pool = self._pool, None
            self._is_closed = True
            if pool is not None and self._pid == os.getpid():
                _pools.give_up(pool)
