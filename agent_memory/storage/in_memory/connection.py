"""An in-memory SQLite connection, which computes and stores nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import apsw

from agent_memory.runtime import fork_safety


class InMemoryConnection:
    """A connection that threads may share: APSW raises an error if two use one at the same time.

    It is opened on first use, and again in a forked child.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        fork_safety.join(self)

    @contextlib.contextmanager
    def alone(self) -> Iterator[apsw.Connection]:
        """Give the body exclusive use of the connection."""
        with self._lock:
            if self._connection is None:
                self._connection = apsw.Connection(":memory:")
                self._connection.pragma("temp_store", "MEMORY")  # there may be no writable disk
            yield self._connection

    def door(self) -> threading.Lock:
        """Return the lock that a thread holds while it is inside SQLite."""
        return self._lock

    def leave_parent(self) -> None:
        """In a forked child, leave the parent's connection to the parent."""
        self._lock = threading.Lock()
        self._connection = None
