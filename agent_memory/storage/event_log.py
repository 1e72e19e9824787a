"""Protocol of the event log: what happened in a memory, as reported by all processes that use it.

It is a diary for observers, human or not, and no part of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from agent_memory.models.event import MemoryEvent


class EventLog(Protocol):
    """The latest events of one store. Threads and processes share it."""

    def append(self, events: list[MemoryEvent]) -> None:
        """Append events. A failure to write is counted, and never raised."""

    def read(self, *, memory_id: str | None = None) -> Iterator[MemoryEvent]:
        """Yield the existing events, oldest first; with ``memory_id``, only those about it.

        Anything there that is not an event, written by another program, is skipped.
        """

    def follow(self, *, until: Callable[[], bool] = lambda: False) -> Iterator[MemoryEvent | None]:
        """Yield events from this call on, and ``None`` whenever there is nothing new.

        The iteration ends when ``until`` returns true.
        """

    def forget(self, memory_ids: Collection[str]) -> None:
        """Remove the events that are about one of the memories, and the texts of all others.

        The event of a search that returned one of them stays, without that id and its query.
        """
