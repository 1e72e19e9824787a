"""What was read of memories, kept for the next search for as long as no memory changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class KeptRows(Generic[Key, Value]):
    """Values by row id or another key, ``most`` and those of one more search.

    Then all are read anew.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._stamp: Hashable = None
        self._values: dict[Key, Value] = {}

    def current(self, stamp: Hashable) -> dict[Key, Value]:
        """Return the values that still hold, to be added to; ``stamp`` is ``Statements.stamp``."""
        if stamp is None:
            return {}
        if stamp != self._stamp or len(self._values) > self._most:
            self._stamp, self._values = stamp, {}
        return self._values

    def forget(self, key: Key) -> None:
        """Let a value be read anew."""
        self._values.pop(key, None)
