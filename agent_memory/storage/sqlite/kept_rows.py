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
        # One object: a thread must not be given the values of another stamp.
        self._kept: tuple[Hashable, dict[Key, Value]] = (None, {})

    def current(self, stamp: Hashable) -> dict[Key, Value]:
        """Return the values that still hold, to be added to; ``stamp`` is ``Statements.stamp``."""
        if stamp is None:
            return {}
        kept_stamp, values = self._kept
        if stamp != kept_stamp or len(values) > self._most:
            values = {}
            self._kept = stamp, values
        return values

    def forget(self, key: Key) -> None:
        """Let a value be read anew."""
        self._kept[1].pop(key, None)
