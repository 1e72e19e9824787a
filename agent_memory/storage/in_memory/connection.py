"""A connection of SQLite to no file, which computes and keeps nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import apsw

from agent_memory.runtime import fork_safety


class InMemoryConnection:
    """A connection that threads may share: to use one in two at a time, APSW makes an error.

    It is made when it is first used, and in a forked child anew.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        fork_safety.join(self)

    @contextlib.contextmanager
    def alone(self) -> Iterator[apsw.Connection]:
        """Give the body the connection, and nobody else."""
        with self._lock:
            if self._connection is None:
                self._connection = apsw.Connection(":memory:")
                self._connection.pragma("temp_store", "MEMORY")  # there may be no disk to write on
            yield self._connection

    def door(self) -> threading.Lock:
        """Return the lock that a thread holds while it is inside SQLite."""
        return self._lock

    def leave_parent(self) -> None:
        """In a forked child: leave the parent's connection to the parent."""
        self._lock = threading.Lock()
        self._connection = None
