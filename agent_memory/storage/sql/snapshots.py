"""What a thread computes once for each of its reads, on the database of either engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Value = TypeVar("Value")


class _OfThread(threading.local):
    """The state of a thread."""

    computed: dict[Hashable, Any] | None = None
    """Values computed from the snapshot of its read, while one is open."""


class Snapshots:
    """The snapshots that the threads of a process read."""

    def __init__(self) -> None:
        self._of_snapshot = _OfThread()

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        self._of_snapshot.computed = {}
        try:
            yield
        finally:
            self._of_snapshot.computed = None

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Compute a value once per snapshot of this thread's read, and return it.

        Outside a read it is computed each time.
        """
        computed = self._of_snapshot.computed
        if computed is None:
            return compute()
        if key not in computed:
            computed[key] = compute()
        value: Value = computed[key]
        return value
