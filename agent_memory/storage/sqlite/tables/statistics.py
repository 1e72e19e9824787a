"""Queries for statistics in SQLite, where another program may have stored any text as JSON."""

from __future__ import annotations

from typing import ClassVar

from agent_memory.storage.sql import statistics


class StatisticsQueries(statistics.StatisticsQueries):
    """Queries for statistics. They read whole tables, and no texts but names."""

    _COLUMNS: ClassVar = {
        "category": "category",
        "session": "created_by_session",
        "source": "CASE WHEN json_valid(metadata) AND json_type(metadata, '$.source') = 'text'"
        " THEN metadata ->> '$.source' END",
    }
    _BYTES = """coalesce(octet_length(
  CASE WHEN json_valid({values}) THEN {values} ->> '$.content' END), 0)"""
    _SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"

    def _name(self, value: str | None) -> str | None:
        return value
