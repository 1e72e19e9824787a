"""What is shown of a memory: the fields that a list or a prompt has of it."""

from __future__ import annotations

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
    def of(cls, memory: Memory) -> Self:
        """Return the excerpt of a memory."""
        return cls(*(getattr(memory, name) for name in cls._fields))
