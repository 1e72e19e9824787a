"""The table ``history`` in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import history

_SELECT_LAST_OF: Final = """
SELECT h.change_id FROM history AS h LEFT JOIN memories AS m
  ON m.agent_id = h.agent_id AND m.id = h.memory_id
WHERE CASE WHEN m.id IS NOT NULL
  THEN m.user_id = %(user_id)s AND (%(run_id)s::text IS NULL OR m.run_id = %(run_id)s)
  WHEN h.event = 'DELETE' THEN h.old_values::json ->> 'user_id' = %(user_id)s
    AND (%(run_id)s::text IS NULL OR h.old_values::json ->> 'run_id' = %(run_id)s) END
ORDER BY h.change_id DESC LIMIT 1"""
_SELECT_TEXTS: Final = """
SELECT change_id, memory_id, coalesce(old_values, '{}'), coalesce(new_values, '{}')
FROM history WHERE change_id > %s ORDER BY change_id LIMIT %s"""


class HistoryTable(history.HistoryTable):
    """The table of every change of a memory."""

    _db: Database
    _KEEP_REVIEWS = """
UPDATE history
SET old_values = (old_values::jsonb || jsonb_build_object('reviews', %s::text))::text
WHERE change_id = (SELECT max(change_id) FROM history WHERE memory_id = %s) AND event = 'DELETE'"""
    _FORGET_REVIEWS = """
UPDATE history SET old_values = (old_values::jsonb - 'reviews')::text
WHERE event = 'DELETE' AND old_values::json -> 'reviews' IS NOT NULL"""

    def last_change_of(self, user_id: str, run_id: str | None) -> int:
        """Return the newest change of the memories of a user, or of one of their runs, or 0.

        Deleted memories count for the user whom they were about when they were deleted.
        """
        return int(self._db.value(_SELECT_LAST_OF, {"user_id": user_id, "run_id": run_id}) or 0)

    def texts(self, *, page: int = 1_000) -> Iterator[list[str]]:
        last = BEFORE_ALL
        while rows := self._db.rows(_SELECT_TEXTS, (last, page)):
            for _, *columns in rows:
                yield list(columns)
            last = page_end(rows[-1][0], after=last)


class OperationTable(history.OperationTable):
    """The table of operations: groups of changes made by one verb, and what cannot be undone."""

    _LAST_NUMBER = """
SELECT greatest((SELECT max(change_id) FROM history),
  (SELECT highest FROM numbers WHERE of_table = 'history'))"""
