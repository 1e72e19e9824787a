"""One memory, what is asked of it, and what became of it."""

from datetime import datetime
from typing import Annotated, Any, Final
from uuid import uuid4

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationInfo,
)

from agent_memory.models.enums import (
    HistoryEvent,
    Importance,
    MemoryCategory,
    MemoryKind,
    MemoryType,
    TaskStatus,
)
from agent_memory.models.fields import AgentId, Content, Label, MemoryId, Metadata, Tags, Text
from agent_memory.models.record import Record
from agent_memory.models.times import UtcDatetime, age_in_days, now_utc

_CATEGORIES: Final = frozenset(MemoryCategory.all_values())

FRESHNESS_DECAY_RATE: Final = 0.1
"""A's rate: a memory of ``n`` days counts ``1 / (1 + 0.1 n)``."""
ACCESS_BOOST_RATE: Final = 0.05
"""A's rate: a memory accessed ``n`` times counts ``1 + 0.05 n``."""


def new_memory_id() -> str:
    """Make an id: ``mem-`` and 12 hexadecimal digits."""
    return f"mem-{uuid4().hex[:12]}"


def _known_category(category: str, info: ValidationInfo) -> str:
    """Accept the nine words, and those that the agent's configuration adds (as context)."""
    added = (info.context or {}).get("categories", ())
    if category not in _CATEGORIES and category not in added:
        raise ValueError(
            f"{category!r:.80} is not a category: use one of"
            f" {', '.join(sorted(_CATEGORIES | set(added)))},"
            " or add your own: `configure categories '[\"incident\"]'`"
        )
    return str(category)


Category = Annotated[str, AfterValidator(_known_category)]


class TaskMetadata(Record):
    """What a task has beyond other memories (E).

    ``completed_at`` goes with the status ``completed``, ``blockers`` with ``blocked``.
    """

    model_config = ConfigDict(frozen=True)

    status: TaskStatus
    completed_at: UtcDatetime | None = None
    blockers: list[Text] = Field(default_factory=list)
    outcome: Text | None = None

    def timed(self, now: datetime) -> "TaskMetadata":
        """Return it with the time of its completion, which is ``now`` where nothing says so."""
        if self.status is not TaskStatus.COMPLETED or self.completed_at is not None:
            return self
        return self.model_copy(update={"completed_at": now})


class MemoryInput(Record):
    """What a caller may say of a memory that it stores: the fields of ``AgentMemory.store``.

    ``id`` makes the storing idempotent; without it the memory gets a new one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: Content = Field(description="The memory's text: 1 to 10,000 characters")
    category: Category = Field(default=MemoryCategory.NOTE.value, description="What it is about")
    tags: Tags = Field(default_factory=list, description="Up to 20 words of up to 50 characters")
    kind: MemoryKind = Field(default=MemoryKind.LEARNING, description="How long it should live")
    importance: Importance = Importance.MEDIUM
    session_id: Label | None = Field(default=None, description="The session that stores it")
    user_id: Label | None = Field(default=None, description="Whom it is about")
    run_id: Label | None = None
    memory_type: MemoryType = MemoryType.STANDARD
    timestamp: UtcDatetime | None = Field(default=None, description="When it was learned")
    task_metadata: TaskMetadata | None = None
    metadata: Metadata = Field(default_factory=dict)
    id: MemoryId | None = None


class MemoryChanges(Record):
    """What ``AgentMemory.update`` may change. Only the fields that are given change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    content: Content = ""
    category: Category = MemoryCategory.NOTE.value
    tags: Tags = Field(default_factory=list)
    kind: MemoryKind = MemoryKind.LEARNING
    importance: Importance = Importance.MEDIUM
    user_id: Label | None = None
    run_id: Label | None = None
    memory_type: MemoryType = MemoryType.STANDARD
    timestamp: UtcDatetime = Field(default_factory=now_utc)
    task_metadata: TaskMetadata | None = None
    metadata: Metadata = Field(default_factory=dict)
    archived: bool = False


class Memory(Record):
    """A single memory, with its content, what is known about it, and how it was used.

    The first eleven fields are document A's, in A's order; the rest come from C and E.
    ``timestamp`` is when it was learned, ``updated_at`` when it last changed (accesses do not
    count), ``last_accessed`` when a search last returned it; all are aware and in UTC.
    ``embedding`` has as many numbers as the agent's embedding model, and is ``None`` unless asked
    for. Making one from wrong values raises Pydantic's ``ValidationError``.
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

    id: MemoryId = Field(default_factory=new_memory_id)
    agent_id: AgentId
    content: Content
    category: Category
    tags: Tags = Field(default_factory=list)
    embedding: Annotated[list[FiniteFloat], Field(min_length=1)] | None = None
    timestamp: UtcDatetime = Field(default_factory=now_utc)
    last_accessed: UtcDatetime | None = None
    access_count: int = Field(default=0, ge=0)
    created_by_session: Label
    metadata: Metadata = Field(default_factory=dict)

    kind: MemoryKind = MemoryKind.LEARNING
    importance: Importance = Importance.MEDIUM
    task_metadata: TaskMetadata | None = None
    archived: bool = False
    updated_at: UtcDatetime = Field(default_factory=now_utc)
    user_id: Label | None = None
    run_id: Label | None = None
    memory_type: MemoryType = MemoryType.STANDARD
    version: int = Field(default=1, ge=1)

    def to_scratchpad_entry(self) -> dict[str, Any]:
        """Return the fields that ``scratchpad.yaml`` holds, times as ISO 8601 text (A)."""
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
        """Return what a vector store keeps beside the vector (A)."""
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
        """Return A's score: similarity (0 to 1), less with age, more with each access.

        It has no upper bound. A time before the memory's own counts as its own.
        """
        return relevance_score(
            similarity,
            age_days=age_in_days(self.timestamp, now or now_utc()),
            access_count=self.access_count,
        )

    def should_promote_to_scratchpad(self, threshold: int = 3) -> bool:
        """Return whether it was accessed often enough for the scratchpad (A)."""
        return self.access_count >= threshold


def relevance_score(
    similarity: float,
    *,
    age_days: int,
    access_count: int,
    decay_rate: float = FRESHNESS_DECAY_RATE,
    boost_rate: float = ACCESS_BOOST_RATE,
) -> float:
    """Return A's formula: similarity × freshness × access boost."""
    freshness = 1.0 / (1.0 + decay_rate * age_days)
    return similarity * freshness * (1.0 + boost_rate * access_count)


class ScoredMemory(Memory):
    """A memory as D's ``search`` returns it: with its relevance to the query."""

    relevance_score: float = Field(ge=0.0)


class HistoryEntry(Record):
    """One change of one memory: what it was and what it became.

    Of an UPDATE the values are those of the changed fields, of an ADD or DELETE all; a field that
    was empty is left out. ``session_id`` is ``None`` for a change that another program made.
    """

    model_config = ConfigDict(frozen=True)

    change_id: int
    memory_id: str
    event: HistoryEvent
    changed_at: UtcDatetime
    session_id: str | None
    old_values: dict[str, Any] | None
    new_values: dict[str, Any] | None
