"""The hot set of memories: what ``scratchpad.yaml`` holds (A)."""

from datetime import datetime

from pydantic import (
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
)

from agent_memory.models.field_types import AgentId, UtcDatetime
from agent_memory.models.limits import MAX_SCRATCHPAD_SIZE
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record
from agent_memory.models.times import now_utc


class ScratchpadMemoryEntry(Record, frozen=True):
    """A memory as the scratchpad shows it: without embedding and metadata."""

    id: str
    timestamp: UtcDatetime
    category: str
    content: str
    tags: list[str] = Field(default_factory=list)
    access_count: int = Field(default=0, ge=0)
    last_accessed: UtcDatetime | None = None


class Scratchpad(Record):
    """The scratchpad of an agent: 10 to 100 entries at most, 50 by default.

    ``promoted`` (ours) are the ids of those memories that were promoted by hand; it is not part of
    the file format, so ``model_dump`` leaves it out.
    """

    agent_id: AgentId
    last_updated: UtcDatetime = Field(default_factory=now_utc)
    max_size: int = Field(default=50, ge=10, le=MAX_SCRATCHPAD_SIZE)
    memories: list[ScratchpadMemoryEntry] = Field(default_factory=list)
    promoted: list[str] = Field(default_factory=list, exclude=True)

    _entered: dict[str, datetime] = PrivateAttr(default_factory=dict)

    @field_validator("memories")
    @classmethod
    def validate_size(
        cls, entries: list[ScratchpadMemoryEntry], info: ValidationInfo
    ) -> list[ScratchpadMemoryEntry]:
        """Keep the most recent entries if there are more than ``max_size``."""
        max_size = int(info.data.get("max_size", 50))
        if len(entries) > max_size:
            return sorted(entries, key=lambda entry: entry.timestamp, reverse=True)[:max_size]
        return entries

    def add_memory(self, memory: Memory) -> None:
        """Add a memory, and drop the least recently used one when the scratchpad is full."""
        self.memories.append(ScratchpadMemoryEntry(**memory.to_scratchpad_entry()))
        self.last_updated = now_utc()
        self._entered[memory.id] = self.last_updated
        if len(self.memories) > self.max_size:
            self.evict_lru()

    def evict_lru(self) -> None:
        """Drop the least recently used entries beyond ``max_size``.

        An entry's last use is its last access, or the time it entered if that is later. (A treated
        an entry that was never accessed as the oldest, and so dropped the one just added.)
        """
        newest_first = sorted(self.memories, key=self._last_use, reverse=True)
        self.memories = newest_first[: self.max_size]

    def _last_use(self, entry: ScratchpadMemoryEntry) -> datetime:
        uses = [entry.last_accessed, self._entered.get(entry.id)]
        return max((use for use in uses if use is not None), default=entry.timestamp)


class Promotion(Record, frozen=True):
    """The outcome of ``promote``: whether it was promoted now, and which memory was evicted."""

    memory_id: str
    promoted: bool
    evicted: str | None
    scratchpad_size: int
