"""What is shown of a memory: the fields that a list or a prompt has of it."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from agent_memory.models.columns import MemoryValues

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory


class MemoryExcerpt(NamedTuple):
    """The fields of a ``Memory`` that are shown, each as it is there: a plain tuple.

    A program that only shows memories need not wait until the models are imported.
    """

    id: str
    agent_id: str
    content: str
    category: str
    tags: list[str]
    timestamp: datetime
    created_by_session: str
    user_id: str | None

    @classmethod
    def of(cls, memory: "Memory | MemoryExcerpt | MemoryValues") -> Self:
        """Return the excerpt of a memory."""
        return cls(*(getattr(memory, name) for name in cls._fields))


class HitValues(NamedTuple):
    """A hit of a search, named as in ``MemorySearchResult``."""

    memory: MemoryExcerpt | MemoryValues
    relevance_score: float
    match_type: str
    similarity: float
    confidence: float
    passed_gate: bool
    repeats: list[str]
    score: None = None


class NearMissValues(NamedTuple):
    """What nearly was a hit, named as in ``NearMiss``."""

    memory_id: str
    content: str
    similarity: float
    reason: str
    score: None = None


class SearchMetadataValues(NamedTuple):
    """How a search went, named as in ``SearchMetadata``."""

    query_time: datetime
    processing_time_ms: float
    keyword_search_time_ms: float
    embedding_time_ms: float
    vector_search_time_ms: float
    filters_applied: dict[str, Any]
    backend: str
    degraded: list[str]
    reason: str | None
    explanation: str | None
    near_misses: list[NearMissValues]


class SearchResultValues(NamedTuple):
    """The hits of a search, best first, and how it went, named as in ``SearchResults``."""

    results: list[HitValues]
    total_count: int
    search_metadata: SearchMetadataValues
