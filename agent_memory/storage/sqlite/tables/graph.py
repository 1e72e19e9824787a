"""The tables of the graph in SQLite: how it is walked."""

from __future__ import annotations

from agent_memory.storage.sql import graph
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.agent import AgentTable


class GraphTable(graph.GraphTable):
    """The tables of the graph: entities, relationships, and their sources."""

    _REACHED = """
WITH RECURSIVE reached (id, depth) AS (
  SELECT value, 0 FROM json_each(:start)
  UNION SELECT g.target_id, r.depth + 1 FROM reached AS r
    JOIN {edges} AS g ON g.source_id = r.id WHERE r.depth < :depth AND {condition}
  UNION SELECT g.source_id, r.depth + 1 FROM reached AS r
    JOIN {edges} AS g ON g.target_id = r.id WHERE r.depth < :depth AND {condition}
  LIMIT {limit})
SELECT id, depth FROM reached ORDER BY depth"""
    _SOURCE_KEY = "{kind}_id, memory_id"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._agent = AgentTable(database)

    @property
    def _agent_id(self) -> str:
        return self._agent.agent_id
