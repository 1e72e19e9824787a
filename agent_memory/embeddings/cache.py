"""The vectors of the last texts, so that the same text is not embedded twice in a short time."""

from __future__ import annotations

import time
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from agent_memory.runtime import fork_safety


class VectorCache:
    """Keeps the ``size`` vectors that were used last, each for ``ttl_seconds``.

    A size or time of 0 keeps nothing. Threads may share it.
    """

    def __init__(self, size: int, ttl_seconds: float) -> None:
        self._size = size if ttl_seconds > 0 else 0
        self._ttl_seconds = ttl_seconds
        self._entries: OrderedDict[bytes, tuple[float, array[float]]] = OrderedDict()
        self._lock = fork_safety.Lock()

    def find(self, keys: Iterable[bytes]) -> dict[bytes, array[float]]:
        """Return the vectors that are there, by key."""
        if not self._entries:
            return {}
        now = time.monotonic()
        vectors = {}
        with self._lock:
            for key in keys:
                expires, vector = self._entries.get(key, (0.0, None))
                if vector is not None and now < expires:
                    self._entries.move_to_end(key)
                    vectors[key] = vector
        return vectors

    def keep(self, vectors: Mapping[bytes, array[float]]) -> None:
        """Take in vectors, and forget those that were used longest ago."""
        expires = time.monotonic() + self._ttl_seconds
        with self._lock:
            for key, vector in vectors.items():
                self._entries[key] = (expires, vector)
                self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)
