"""The same memories in a file and in a database, to compare what both say of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from postgres_server import PostgresServer

from agent_memory.models.memory import Memory
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.engine import Engine
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.engine import PostgresEngine
from agent_memory.storage.sqlite.connection import Database as FileDatabase
from agent_memory.storage.sqlite.engine import SQLiteEngine

NOW = datetime(2026, 1, 30, 16, 0, tzinfo=UTC)
_schemas = count()


@dataclass
class Pair:
    """An engine of each kind, with the same memories."""

    file: SQLiteEngine
    server: PostgresEngine

    @property
    def both(self) -> tuple[Engine, Engine]:
        return self.file, self.server

    def store(self, memories: Sequence[Memory]) -> list[int]:
        """Store memories in both, where they have the same row ids, which are returned."""
        rows: list[list[int]] = []
        for engine in self.both:
            with engine.write():
                rows.append([engine.memories.insert(memory) for memory in memories])
        first, second = rows
        assert first == second
        return first


def memory_of(number: int, content: str, **fields: Any) -> Memory:
    """Make a memory, each an hour younger than the one before."""
    moment = NOW + timedelta(hours=number)
    values: dict[str, Any] = {
        "id": f"mem-{number}",
        "agent_id": "bob",
        "category": "note",
        "content": content,
        "timestamp": moment,
        "updated_at": moment,
        "created_by_session": "session-1",
        **fields,
    }
    return Memory.model_validate(values)


def opened_on(server: PostgresServer, schema: str, agent: str = "bob") -> PostgresEngine:
    """Open an agent's memories in a schema, which is made where it is not there."""
    address = AgentAddress(server_address(server.url(schema=schema)), agent)
    engine = PostgresEngine(Database(address))
    engine.prepare(agent, clock=lambda: NOW)
    return engine


@contextlib.contextmanager
def opened_pair(server: PostgresServer, folder: Path) -> Iterator[Pair]:
    """Open an empty memory of each kind."""
    file = SQLiteEngine(FileDatabase(folder / "memories.db"))
    file.prepare("bob", clock=lambda: NOW)
    pair = Pair(file, opened_on(server, f"pair_{next(_schemas)}"))
    with contextlib.closing(pair.file), contextlib.closing(pair.server):
        yield pair
