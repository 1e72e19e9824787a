"""Which memories stay in E's three files when there are more than these may hold."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import datetime

from agent_memory.formats.directory.layout import SHELVES, Shelf
from agent_memory.formats.directory.lines import to_line
from agent_memory.formats.directory.shape import misfit, shaped
from agent_memory.models.enums import MemoryKind
from agent_memory.models.memory import Memory


def kept(memories: Iterable[Memory]) -> frozenset[int]:
    """Return the numbers, from 0, of the memories that stay in E's three files.

    They are within E's limits for one memory, and among the most recently used of their kind; of
    two that were used at the same moment, the one that was stored first.
    """
    rankings = {kind: _Ranking(shelf) for kind, shelf in SHELVES.items()}
    for number, memory in enumerate(memories):
        if not memory.archived:
            fields = shaped(memory).fields
            line = to_line(fields)
            if misfit(fields, line) is None:
                rankings[memory.kind].offer(number, _last_used(memory), len(line))
    return frozenset(number for ranking in rankings.values() for number in ranking.numbers())


def _last_used(memory: Memory) -> datetime:
    return max(memory.last_accessed or memory.timestamp, memory.updated_at)


class _Ranking:
    """The most recently used memories of a kind: as many as one file may hold, and no more."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._heap: list[tuple[datetime, int, int]] = []

    def offer(self, number: int, used: datetime, size: int) -> None:
        """Take the next memory into account; ``size`` is of its line, in bytes."""
        entry = (used, -number, size)
        if len(self._heap) < self._shelf.max_memories:
            heapq.heappush(self._heap, entry)
        else:
            heapq.heappushpop(self._heap, entry)

    def numbers(self) -> list[int]:
        """Return the numbers of those that fit into the file."""
        numbers = []
        total = -1  # the last line has no end
        for _, number, size in sorted(self._heap, reverse=True):
            total += size + 1
            if total > self._shelf.max_bytes:
                break
            numbers.append(-number)
        return numbers


def of_kind(kind: MemoryKind) -> str:
    """Say in words what the limit of a kind's file is."""
    shelf = SHELVES[kind]
    megabytes = shelf.max_bytes // 10**6
    return f"beyond the {shelf.max_memories:,} memories or {megabytes} MB of {shelf.name}"
