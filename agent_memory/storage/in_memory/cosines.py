"""Cosines of quantized vectors, for an engine that does not compute them itself."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from agent_memory.storage.in_memory.sqlite_vec import load_sqlite_vec
from agent_memory.storage.quantization import cosine

_SELECT: Final = "SELECT 1 - vec_distance_cosine(vec_int8(?1), vec_int8(?2))"


class Cosines:
    """Computes cosines with sqlite-vec, or without it in Python. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: apsw.Connection | None = None
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Return why sqlite-vec is not in use, and what to do; ``None`` when it is."""
        with self._lock:
            self._loaded()
        return self._problem

    def between(
        self, vectors: Iterable[tuple[int, bytes]], others: Sequence[bytes]
    ) -> dict[int, tuple[float, ...]]:
        """Return, by row, the cosines of each vector with some others; all have one length.

        A vector of nothing but zeros has none, and is left out.
        """
        with self._lock:
            connection = self._loaded()
            if connection is None:
                return {
                    row_id: tuple(cosine(vector, other) for other in others)
                    for row_id, vector in vectors
                }
            cursor = connection.cursor()
            cosines = (
                (row_id, [cursor.execute(_SELECT, (vector, other)).get for other in others])
                for row_id, vector in vectors
            )
            return {row_id: tuple(values) for row_id, values in cosines if None not in values}

    def _loaded(self) -> apsw.Connection | None:
        """Return a connection with sqlite-vec; it is made, and tried, but once."""
        if self._connection is None:
            self._connection = apsw.Connection(":memory:")
            self._problem = load_sqlite_vec(self._connection)
        return None if self._problem else self._connection
