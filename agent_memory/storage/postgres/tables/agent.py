"""The table ``agent`` in PostgreSQL."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.sql import agent

_INSERT_NAME: Final = "INSERT INTO agent_names VALUES (?) ON CONFLICT DO NOTHING"
# All agents share the tables: this agent's share of their bytes is that of its memories.
_SIZE: Final = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) * least(1,
  (SELECT count(*) FROM memories) / greatest(1, max(c.reltuples)
    FILTER (WHERE c.relname = 'memories'))::float8)
FROM pg_class AS c WHERE c.relnamespace = current_schema::regnamespace AND c.relkind = 'r'"""


class AgentTable(agent.AgentTable):
    """The table with the agent's single row."""

    _db: Database
    _INSERT = """
INSERT INTO agent (agent_id, created_at, last_accessed) VALUES (?, ?, ?)
ON CONFLICT (agent_id) DO NOTHING"""
    _MISSING = "has no such agent"
    _DAMAGED = "restore a backup"

    def create(self, agent_id: str, *, now: datetime) -> None:
        """Insert the agent's row and its name unless they exist."""
        super().create(agent_id, now=now)
        self._db.run(_INSERT_NAME, (agent_id,))

    @property
    def agent_id(self) -> str:
        """The agent whose memories these are, according to the address."""
        return self._db.agent_id

    def _size(self) -> int:
        return int(self._db.value(_SIZE))
