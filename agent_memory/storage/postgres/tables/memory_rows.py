"""Rows of the table of memories in PostgreSQL."""

from __future__ import annotations

from agent_memory.storage.postgres.tables.history import HistoryTable
from agent_memory.storage.sql import memory_rows


class MemoryRowTable(memory_rows.MemoryRowTable):
    """Stored rows of the table of memories, by column."""

    _HISTORY = HistoryTable
    # An ASCII-only row has the word literally, except for case, unless it was escaped in JSON.
    _SELECT_TEXTS = r"""
SELECT m.seq, {texts} FROM memories AS m
CROSS JOIN LATERAL (SELECT m.tags || m.metadata || coalesce(m.task_metadata, '') AS text) AS json
WHERE m.seq > :after AND (
  strpos(lower(m.content), :word) > 0
  OR octet_length(m.content) <> length(m.content)
  OR strpos(lower(json.text), :word) > 0 OR strpos(json.text, '\') > 0
  OR octet_length(json.text) <> length(json.text))
ORDER BY m.seq LIMIT :page"""
