"""The table ``history`` in SQLite, where another program may have stored any bytes as text."""

from __future__ import annotations

from typing import Final

from agent_memory.models.columns import HISTORIC, JSON_COLUMNS
from agent_memory.storage.sql import history

_BEGIN_ALL: Final = """
INSERT INTO history (memory_id, event, changed_at, session_id, new_values)
SELECT m.id, 'ADD', m.updated_at, m.created_by_session, {} FROM memories AS m
WHERE NOT EXISTS (SELECT 1 FROM history AS h WHERE h.memory_id = m.id) ORDER BY m.seq"""


def added_values() -> str:
    """Return the SQL for what the trigger writes when a memory ``m`` is added.

    JSON columns are texts inside.
    """
    pairs = (f"'{name}', m.{name}" + " || ''" * (name in JSON_COLUMNS) for name in HISTORIC)
    return f"json_patch('{{}}', json_object({', '.join(pairs)}))"


class HistoryTable(history.HistoryTable):
    """The table of every change of a memory."""

    _KEEP_REVIEWS = """
UPDATE history SET old_values = json_set(old_values, '$.reviews', ?)
WHERE change_id = (SELECT max(change_id) FROM history WHERE memory_id = ?) AND event = 'DELETE'"""
    _FORGET_REVIEWS = """
UPDATE history SET old_values = json_remove(old_values, '$.reviews')
WHERE event = 'DELETE' AND CASE WHEN json_valid(old_values)
  THEN json_type(old_values, '$.reviews') IS NOT NULL END"""
    _WAS_OF = """CASE WHEN h.event = 'DELETE' AND json_valid(h.old_values)
  THEN h.old_values ->> 'user_id' = :user_id
    AND (:run_id IS NULL OR h.old_values ->> 'run_id' = :run_id) END"""

    def begin_all(self) -> None:
        """Begin the history of memories that have none, because they are older than the table."""
        self._db.run(_BEGIN_ALL.format(added_values()))


class OperationTable(history.OperationTable):
    """The table of operations: groups of changes made by one verb, and what cannot be undone."""

    # The sequence alone is 0 if another program emptied it: one `undo` then undid everything.
    _LAST_NUMBER = """
SELECT max(coalesce((SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'history'), 0),
  coalesce((SELECT max(change_id) FROM history), 0))"""
