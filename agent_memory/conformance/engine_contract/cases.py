"""Memories for the tests of the contract."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from agent_memory.models.memory import Memory
from agent_memory.storage.engine import Engine

AGENT = "bob"
NOW = datetime(2026, 1, 30, 16, 0, tzinfo=UTC)


def memory_of(number: int, content: str | None = None, **fields: Any) -> Memory:
    """Return a memory; each number is a minute later than the one before."""
    moment = NOW + timedelta(minutes=number)
    values: dict[str, Any] = {
        "id": f"mem-{number}",
        "agent_id": AGENT,
        "category": "note",
        "content": content or f"fact number {number}",
        "timestamp": moment,
        "updated_at": moment,
        "created_by_session": "session-1",
        **fields,
    }
    return Memory.model_validate(values)


def stored(engine: Engine, *memories: Memory) -> list[int]:
    """Store memories as they are, and return their row ids."""
    with engine.write():
        return [engine.memories.insert(memory) for memory in memories]
