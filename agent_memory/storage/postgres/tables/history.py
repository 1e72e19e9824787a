"""The table ``history`` in PostgreSQL."""

from __future__ import annotations

from agent_memory.storage.sql import history


class HistoryTable(history.HistoryTable):
    """The table of every change of a memory."""

    _KEEP_REVIEWS = """
UPDATE history
SET old_values = (old_values::jsonb || jsonb_build_object('reviews', %s::text))::text
WHERE change_id = (SELECT max(change_id) FROM history WHERE memory_id = %s) AND event = 'DELETE'"""
    _FORGET_REVIEWS = """
UPDATE history SET old_values = (old_values::jsonb - 'reviews')::text
WHERE event = 'DELETE' AND old_values::json -> 'reviews' IS NOT NULL"""
    _WAS_OF = """CASE WHEN h.event = 'DELETE' THEN h.old_values::json ->> 'user_id' = :user_id
    AND (:run_id::text IS NULL OR h.old_values::json ->> 'run_id' = :run_id) END"""


class OperationTable(history.OperationTable):
    """The table of operations: groups of changes made by one verb, and what cannot be undone."""

    _LAST_NUMBER = """
SELECT greatest((SELECT max(change_id) FROM history),
  (SELECT highest FROM numbers WHERE of_table = 'history'))"""
