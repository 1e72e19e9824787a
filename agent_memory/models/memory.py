"""One memory, its input and changes, and its history."""

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.models.enums import HistoryEvent, MemoryCategory
from agent_memory.models.field_types import Content, Label, MemoryId, ScopeId, UtcDatetime
from agent_memory.models.memory_fields import SharedFields, StoredFields
from agent_memory.models.record import Record
from agent_memory.models.relevance import relevance_score
from agent_memory.models.times import age_in_days, now_utc


class _GivenFields(SharedFields):
    """The fields as a caller may give them: user and run ids must be valid in a session.

    A file may hold other ids, written by an older version or another program.
    """

    user_id: ScopeId | None = None
    run_id: ScopeId | None = None


class MemoryInput(_GivenFields, extra="forbid", frozen=True):
    """The fields of a memory to store, as ``AgentMemory.store`` takes them.

    ``id`` makes storing idempotent; without it the memory gets a new id.
    """

    session_id: Label | None = Field(default=None, description="The session that stores it")
    timestamp: UtcDatetime | None = Field(default=None, description="When it was learned")
    id: MemoryId | None = None


class MemoryChanges(_GivenFields, extra="forbid", frozen=True):
    """What ``AgentMemory.update`` may change. Only the fields that are given change."""

    content: Content = ""
    timestamp: UtcDatetime = Field(default_factory=now_utc)
    archived: bool = False


class Memory(StoredFields):
    """A single memory: its content, its properties, and how it was used.

    The order of the fields is that of exports. ``timestamp`` is when it was learned, ``updated_at``
    when it last changed (accesses do not count), ``last_accessed`` when a search last returned it;
    all are aware and in UTC. ``embedding`` has as many numbers as the agent's embedding model, and
    is ``None`` unless requested. Invalid values raise Pydantic's ``ValidationError``.
    """

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "id": "mem-a3f2c1b4e5d6",
                    "agent_id": "bob",
                    "content": "Prefer PostgreSQL for new projects",
                    "category": "preference",
                    "tags": ["database", "postgresql"],
                    "timestamp": "2026-01-28T12:00:00Z",
                    "access_count": 3,
                    "created_by_session": "session-abc-123",
                    "metadata": {"confidence": 0.95},
                }
            ]
        },
    )

    def to_scratchpad_entry(self) -> dict[str, Any]:
        """Return the fields that ``scratchpad.yaml`` holds, times as ISO 8601 text."""
        return {
            "id": self.id,
            "timestamp": self.timestamp.isoformat(),
            "category": self.category,
            "content": self.content,
            "tags": self.tags,
            "access_count": self.access_count,
            "last_accessed": self.last_accessed.isoformat() if self.last_accessed else None,
        }

    def to_vector_payload(self) -> dict[str, Any]:
        """Return what a vector store keeps beside the vector."""
        return {
            "content": self.content,
            "agent_id": self.agent_id,
            "timestamp": self.timestamp.isoformat(),
            "category": self.category,
            "tags": self.tags,
            "access_count": self.access_count,
            "last_accessed": self.last_accessed.isoformat() if self.last_accessed else None,
            "created_by_session": self.created_by_session,
            "metadata": self.metadata,
        }

    def calculate_relevance_score(self, similarity: float, now: datetime | None = None) -> float:
        """Return the score: similarity (0 to 1), reduced by age and raised by each access.

        It has no upper bound. A ``now`` before the memory's own time counts as an age of zero.
        """
        return relevance_score(
            similarity,
            age_days=age_in_days(self.timestamp, now or now_utc()),
            access_count=self.access_count,
        )

    def should_promote_to_scratchpad(self, threshold: int = 3) -> bool:
        """Return whether it was accessed often enough for the scratchpad."""
        return self.access_count >= threshold


class ScoredMemory(Memory):
    """A memory as ``MemoryStorage.search`` returns it: with its relevance to the query."""

    relevance_score: float = Field(ge=0.0)


class HistoryEntry(Record, frozen=True):
    """One change of one memory: its values before and after.

    An UPDATE has the values of the changed fields, an ADD or DELETE those of all fields; empty
    fields are left out. ``session_id`` is ``None`` for a change made by another program.
    """

    change_id: int
    memory_id: str
    event: HistoryEvent
    changed_at: UtcDatetime
    session_id: str | None
    old_values: dict[str, Any] | None
    new_values: dict[str, Any] | None


def given_back(memory: Memory) -> tuple[str, dict[str, Any]]:
    """Return a memory's category and metadata as they were before an import adapted them."""
    original = memory.metadata.get(ORIGINAL_CATEGORY)
    is_unknown = isinstance(original, str) and original not in list(MemoryCategory)
    if memory.category != MemoryCategory.NOTE.value or not is_unknown:
        return memory.category, memory.metadata
    rest = {key: value for key, value in memory.metadata.items() if key != ORIGINAL_CATEGORY}
    return str(original), rest
