"""Cosines of quantized vectors, for an engine that does not compute them itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import apsw

from agent_memory.storage.in_memory.connection import InMemoryConnection
from agent_memory.storage.in_memory.sqlite_vec import load_sqlite_vec
from agent_memory.storage.quantization import cosine

_SELECT: Final = "SELECT 1 - vec_distance_cosine(vec_int8(?1), vec_int8(?2))"


class Cosines:
    """Computes cosines with sqlite-vec, or in Python without it. Threads may share it."""

    def __init__(self) -> None:
        self._connection = InMemoryConnection()
        self._loaded: apsw.Connection | None = None
        self._problem: str | None = None

    def problem(self) -> str | None:
        """Return why sqlite-vec is not in use, and what to do; ``None`` when it is."""
        with self._connection.alone() as connection:
            return self._problem_of(connection)

    def between(
        self, vectors: Iterable[tuple[int, bytes]], others: Sequence[bytes]
    ) -> dict[int, tuple[float, ...]]:
        """Return, by row, the cosines of each vector with the others; all have the same length.

        With sqlite-vec, a vector that is all zeros has no cosine and is left out.
        """
        with self._connection.alone() as connection:
            if self._problem_of(connection) is not None:
                return {
                    row_id: tuple(cosine(vector, other) for other in others)
                    for row_id, vector in vectors
                }
            execute = connection.cursor().execute
            cosines = (
                (row_id, [execute(_SELECT, (vector, other)).get for other in others])
                for row_id, vector in vectors
            )
            return {row_id: tuple(values) for row_id, values in cosines if None not in values}

    def _problem_of(self, connection: apsw.Connection) -> str | None:
        """Load sqlite-vec into a connection that has not tried yet."""
        if self._loaded is not connection:
            self._problem = load_sqlite_vec(connection)
            self._loaded = connection
        return self._problem
