"""Protocol of the event log: what happened in a memory, as all processes that use it tell it.

It is a diary for people and programs that watch, and no part of the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from agent_memory.models.event import MemoryEvent


class EventLog(Protocol):
    """The events of one store, of which the youngest are kept. Threads and processes share it."""

    def append(self, events: list[MemoryEvent]) -> None:
        """Write events at the end. What cannot be written is counted, and never raised."""

    def read(self, *, memory_id: str | None = None) -> Iterator[MemoryEvent]:
        """Yield the events that there are, the oldest first; with ``memory_id`` those about it.

        What another program wrote there, and is no event, is passed over.
        """

    def follow(self, *, until: Callable[[], bool] = lambda: False) -> Iterator[MemoryEvent | None]:
        """Yield the events that come from this call on; ``None`` when there is nothing to tell.

        It ends when ``until`` says so.
        """

    def forget(self, memory_ids: Collection[str]) -> None:
        """Take out the events that are about one of the memories, or quote a query or a memory.

        Of a search that returned one of them, its id goes and the event stays.
        """
