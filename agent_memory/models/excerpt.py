"""What is shown of a memory: the fields that a list or a prompt has of it."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Self

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
    def of(cls, memory: "Memory") -> Self:
        """Return the excerpt of a memory."""
        return cls(*(getattr(memory, name) for name in cls._fields))


class ExcerptHit(NamedTuple):
    """A hit of a search with what is shown of it, named as in ``MemorySearchResult``."""

    memory: MemoryExcerpt
    relevance_score: float
    similarity: float
    passed_gate: bool
    repeats: Sequence[int]
    score: None = None


class NearExcerpt(NamedTuple):
    """What nearly was a hit, named as in ``NearMiss``."""

    memory_id: str
    content: str
    reason: str
    score: None = None


class ExcerptAnswer(NamedTuple):
    """The hits of a search, best first, and what is told of it, named as in ``SearchMetadata``."""

    hits: Sequence[ExcerptHit]
    explanation: str | None
    near_misses: Sequence[NearExcerpt]
    degraded: Sequence[str]
