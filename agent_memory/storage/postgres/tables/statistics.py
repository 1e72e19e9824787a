"""Queries for statistics in PostgreSQL."""

from __future__ import annotations

import json
from typing import ClassVar

from agent_memory.storage.sql import statistics


class StatisticsQueries(statistics.StatisticsQueries):
    """Queries for statistics. They read all rows of the agent, and no texts but names."""

    # As JSON: PostgreSQL cannot convert every JSON string to text, such as "\u0000".
    _COLUMNS: ClassVar = {
        "category": "to_json(category)::text",
        "session": "to_json(created_by_session)::text",
        "source": "(metadata::json -> 'source')::text",
    }
    _BYTES = """coalesce(octet_length(
  CASE WHEN strpos({values}, '\\u0000') = 0 THEN {values}::json ->> 'content' END), 0)"""
    # The size of this agent's rows. How much of the pages and indexes is whose is unknown.
    _SIZE = """
SELECT coalesce((SELECT sum(pg_column_size(m.*)) FROM memories AS m), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(h.*)) FROM history AS h), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(e.*)) FROM embeddings AS e), 0)::bigint"""

    def _name(self, value: str | None) -> str | None:
        name = None if value is None else json.loads(value)
        return name if isinstance(name, str) else None
