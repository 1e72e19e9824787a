"""Opens an agent in a database, and lists the existing ones: an ``EngineOpener``."""

from __future__ import annotations

import contextlib

from agent_memory.runtime.addresses import AgentAddress, ServerAddress
from agent_memory.storage.postgres import schema
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.engine import PostgresEngine


def open_engine(
    address: AgentAddress, *, create: bool, read_only: bool, synchronous: str
) -> PostgresEngine:
    """Open the memories of an agent."""
    database = Database(address, read_only=read_only, synchronous=synchronous)
    return PostgresEngine(database, create=create)


def agents_of(server: ServerAddress) -> list[str]:
    """Return the names of the agents in a database, in order."""
    with contextlib.closing(Database(AgentAddress(server, ""), read_only=True)) as database:
        return schema.agents(database)
