"""A store to be written out, made of a list of memories: what the formats are tested with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from agent_memory import (
    AgentMetadata,
    Memory,
    Scratchpad,
    ScratchpadMemoryEntry,
    StorageUnavailable,
)
from agent_memory.models.portable import Entry, Section


@dataclass
class ListSource:
    """What ``Source`` asks for, over memories in the order in which they were stored.

    ``hot`` are the ids of the scratchpad, most recently used first; ``further`` are entries of
    the sections after the memories and the scratchpad, in the order of ``Section``.
    """

    all_memories: Sequence[Memory]
    agent: AgentMetadata = field(default_factory=lambda: AgentMetadata(agent_id="bob"))
    hot: Sequence[str] = ()
    further: Sequence[Entry] = ()

    @property
    def agent_id(self) -> str:
        return self.agent.agent_id

    @property
    def changed_at(self) -> datetime:
        uses = [max(one.updated_at, one.last_accessed or one.updated_at) for one in self.memories()]
        return max(uses, default=self.agent.created_at)

    def metadata(self) -> AgentMetadata:
        return self.agent

    def scratchpad(self) -> Scratchpad:
        by_id = {one.id: one for one in self.all_memories}
        return Scratchpad(
            agent_id=self.agent_id,
            last_updated=self.changed_at,
            max_size=self.agent.config.scratchpad_max_size,
            memories=[
                ScratchpadMemoryEntry(**by_id[memory_id].to_scratchpad_entry())
                for memory_id in self.hot
            ],
        )

    def memories(self) -> Iterator[Memory]:
        return iter(self.all_memories)

    def count(self) -> int:
        return len(self.all_memories)

    def copy_into(self, path: Path) -> None:
        raise StorageUnavailable(f"these memories have no file that could be copied to {path}")

    def entries(self) -> Iterator[Entry]:
        yield Entry(Section.AGENT, {"agent_id": self.agent_id})
        for memory in self.all_memories:
            yield Entry(Section.MEMORY, fields_of(memory))
        for memory_id in self.hot:
            yield Entry(Section.SCRATCHPAD, {"id": memory_id, "reason": "stored"})
        yield from self.further


def fields_of(memory: Memory) -> dict[str, Any]:
    """Return a memory as the fields of an entry, without its agent and embedding."""
    told = memory.model_dump(mode="json", exclude={"agent_id", "embedding"})
    return {name: value for name, value in told.items() if value is not None}
