"""A replica: another server that follows the one of the address, used for searches.

It may lag behind or be down. A search asks it what last changed the agent's memories; if its answer
differs from the primary's, the primary is searched.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Final

from agent_memory.errors import StorageClosed, StorageError, StorageUnavailable
from agent_memory.runtime import fork_safety
from agent_memory.runtime.addresses import ServerAddress
from agent_memory.runtime.logs import logger
from agent_memory.storage.postgres.connection.error_translation import translated
from agent_memory.storage.postgres.connection.pool import PoolLease, SharedPool
from agent_memory.storage.records import Row

_REST_SECONDS: Final = 30.0
"""How long a failed replica is not used: a search must not wait for it each time."""
_PATIENCE_SECONDS: Final = 2.0
"""How long to wait for it."""


class Replica:
    """The replica of a database, as one open memory uses it. Threads may share it.

    ``searches`` counts the lookups there, ``lagging`` how often it was behind.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.location = str(address)
        self.searches = 0
        self.lagging = 0
        self._lock = fork_safety.Lock()
        self._lease = PoolLease(address, patience=_PATIENCE_SECONDS)
        self._resting_until = 0.0

    @property
    def is_resting(self) -> bool:
        """Return whether it failed recently."""
        return time.monotonic() < self._resting_until

    @contextlib.contextmanager
    def excused(self) -> Iterator[None]:
        """Run the body, suppressing its failures: the primary is searched instead."""
        try:
            with translated(self.location):
                yield
        except StorageClosed:
            raise
        except StorageError as error:
            if isinstance(error, StorageUnavailable):
                self._resting_until = time.monotonic() + _REST_SECONDS
            logger().warning("the replica was not used, and the server searched instead: %s", error)

    def pool(self) -> SharedPool | None:
        """Return its connections, or ``None`` while another thread connects.

        Raises ``StorageClosed`` after ``close``.
        """
        if self._lock.bare.locked():
            return None
        with self._lock.bare:
            return self._lease.pool()

    def is_current(self, state: Row | None, own: Row | None) -> bool:
        """Return whether the replica is up to date, given the state of both servers."""
        is_current = state is not None and state == own
        if is_current:
            self.searches += 1
        else:
            self.lagging += 1
        return is_current

    def close(self) -> None:
        """Release its connections."""
        self._lease.close()
