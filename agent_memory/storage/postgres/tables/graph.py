"""The tables of the graph in PostgreSQL: how it is walked."""

from __future__ import annotations

from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.sql import graph


class GraphTable(graph.GraphTable):
    """The tables of the graph: entities, relationships, and their sources."""

    _db: Database
    # The rows of a recursion come as they are reached, nearest first: the limit ends it.
    _REACHED = """
WITH RECURSIVE reached (id, depth) AS (
  SELECT entity_id COLLATE "C", 0 FROM unnest(:start::text[]) AS entity_id
  UNION SELECT next.id, r.depth + 1 FROM reached AS r CROSS JOIN LATERAL (
    SELECT g.target_id AS id FROM {edges} AS g WHERE g.source_id = r.id AND {condition}
    UNION ALL SELECT g.source_id FROM {edges} AS g WHERE g.target_id = r.id AND {condition}) AS next
  WHERE r.depth < :depth)
SELECT id, depth FROM reached LIMIT {limit}"""
    _SOURCE_KEY = "agent_id, {kind}_id, memory_id"

    @property
    def _agent_id(self) -> str:
        return self._db.agent_id
