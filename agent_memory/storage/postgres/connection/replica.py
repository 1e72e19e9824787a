"""A replica: another server that follows the one of the address, where searches are looked up.

It may lag behind, and it may be gone. A search asks it for what the agent's memories were last
changed by; where it does not say the same as the server itself, that server is searched.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from typing import Final

from agent_memory.errors import StorageClosed, StorageError, StorageUnavailable
from agent_memory.runtime import fork_safety
from agent_memory.runtime.addresses import ServerAddress
from agent_memory.storage.postgres.connection.error_translation import translated
from agent_memory.storage.postgres.connection.pool import PoolLease, SharedPool
from agent_memory.storage.records import Row

_REST_SECONDS: Final = 30.0
"""How long a replica that failed is left alone: a search must not wait for it each time."""
_PATIENCE_SECONDS: Final = 2.0
"""How long it is waited for."""


class Replica:
    """The replica of a database, as one open memory uses it. Threads may share it.

    ``searches`` counts what was looked up there, ``lagging`` how often it was behind.
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
        """Return whether it failed a moment ago."""
        return time.monotonic() < self._resting_until

    @contextlib.contextmanager
    def excused(self) -> Iterator[None]:
        """Run the body, and raise nothing that fails in it: the server itself is asked then."""
        try:
            with translated(self.location):
                yield
        except StorageClosed:
            raise
        except StorageError as error:
            if isinstance(error, StorageUnavailable):
                self._resting_until = time.monotonic() + _REST_SECONDS
            logging.getLogger("agent_memory").warning("searched the server itself: %s", error)

    def pool(self) -> SharedPool | None:
        """Return its connections; ``None`` while another thread connects.

        Raises ``StorageClosed`` after ``close``.
        """
        if self._lock.bare.locked():
            return None
        with self._lock.bare:
            return self._lease.pool()

    def is_current(self, state: Row | None, own: Row | None) -> bool:
        """Return whether the replica has all that the server had; both say so last."""
        is_current = state is not None and state == own
        if is_current:
            self.searches += 1
        else:
            self.lagging += 1
        return is_current

    def close(self) -> None:
        """Give its connections up."""
        self._lease.close()
