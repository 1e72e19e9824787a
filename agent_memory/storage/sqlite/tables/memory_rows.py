"""Rows of the table of memories in SQLite."""

from __future__ import annotations

from agent_memory.storage.sql import memory_rows
from agent_memory.storage.sqlite.tables.history import HistoryTable


class MemoryRowTable(memory_rows.MemoryRowTable):
    """Stored rows of the table of memories, by column."""

    _HISTORY = HistoryTable
    # An ASCII-only row has the word literally, except for case, unless it was escaped in JSON. The
    # keyword index would not find them all: it has no metadata, its words differ ("straße" is not
    # "strasse" there), and it may be damaged.
    _SELECT_TEXTS = r"""
SELECT m.seq, {texts} FROM memories AS m
WHERE m.seq > :after AND (
  instr(lower(m.content), :word)
  OR octet_length(m.content) <> length(m.content)
  OR EXISTS (
    SELECT 1 FROM (SELECT m.tags || m.metadata || coalesce(m.task_metadata, '') AS json)
    WHERE instr(lower(json), :word) OR instr(json, '\') OR octet_length(json) <> length(json)))
ORDER BY m.seq LIMIT :page"""
