"""The engine of an open memory, for measurements below the verbs."""

from __future__ import annotations

from agent_memory import AgentMemory
from agent_memory.storage.sqlite.engine import SQLiteEngine


def engine_of(memory: AgentMemory) -> SQLiteEngine:
    """Return the SQLite engine of an open memory."""
    engine = memory._store._engine
    assert isinstance(engine, SQLiteEngine)
    return engine
