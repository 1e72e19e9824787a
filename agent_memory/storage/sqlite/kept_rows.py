"""Caches values read from memories for the next search, until a memory changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class KeptRows(Generic[Key, Value]):
    """Values by row id or another key: ``most`` of them, plus those of one more search.

    After that, all are read again.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # A single object: a thread must not get the values of another stamp.
        self._kept: tuple[Hashable, dict[Key, Value]] = (None, {})

    def current(self, stamp: Hashable) -> dict[Key, Value]:
        """Return the values still valid, to be added to; ``stamp`` is ``Statements.stamp``."""
        if stamp is None:
            return {}
        kept_stamp, values = self._kept
        if stamp != kept_stamp or len(values) > self._most:
            values = {}
            self._kept = stamp, values
        return values

    def forget(self, key: Key) -> None:
        """Drop a value, so that it is read again."""
        self._kept[1].pop(key, None)
