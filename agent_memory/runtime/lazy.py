"""A value that is costly to make: made at its first use, and once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from agent_memory.runtime import fork_safety

Value = TypeVar("Value")


class Once(Generic[Value]):
    """Makes a value when it is first asked for; threads that ask meanwhile wait for it.

    Where making it fails, the error goes to who asked, and the next one tries again.
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._made: list[Value] = []
        self._lock = fork_safety.Lock()

    def get(self) -> Value:
        """Return the value."""
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
