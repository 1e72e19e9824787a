"""The table ``history``. Triggers write each change; the library adds session and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.memory import HistoryEntry
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Change
from agent_memory.storage.changes import change_of_row, entry_of_row, row_of_change
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.records import BEFORE_ALL, Operation, page_end

_SIGN: Final = """
UPDATE history SET session_id = %s, changed_at = %s
WHERE change_id > %s AND memory_id = %s"""
_SELECT: Final = """
SELECT change_id, memory_id, event, changed_at, session_id, old_values, new_values FROM history
{where} ORDER BY change_id DESC LIMIT %s"""
_SIGN_ALL: Final = """
UPDATE history SET session_id = %s, changed_at = %s WHERE change_id > %s"""
_SELECT_LAST_OF: Final = """
SELECT h.change_id FROM history AS h LEFT JOIN memories AS m
  ON m.agent_id = h.agent_id AND m.id = h.memory_id
WHERE CASE WHEN m.id IS NOT NULL
  THEN m.user_id = %(user_id)s AND (%(run_id)s::text IS NULL OR m.run_id = %(run_id)s)
  WHEN h.event = 'DELETE' THEN h.old_values::json ->> 'user_id' = %(user_id)s
    AND (%(run_id)s::text IS NULL OR h.old_values::json ->> 'run_id' = %(run_id)s) END
ORDER BY h.change_id DESC LIMIT 1"""
_FORGET_AFTER: Final = """
WITH last AS MATERIALIZED (
  SELECT memory_id, max(change_id) AS change_id FROM history WHERE changed_at <= %s
  GROUP BY memory_id)
DELETE FROM history AS h WHERE h.changed_at > %s AND NOT EXISTS (
  SELECT 1 FROM last WHERE last.memory_id = h.memory_id AND last.change_id > h.change_id)"""
"""Changes by a clock that was ahead stay where a change up to the moment builds upon them."""
_CHANGE: Final = "change_id, memory_id, event, changed_at, session_id, old_values, new_values"
_INSERT: Final = """
INSERT INTO history (memory_id, event, changed_at, session_id, old_values, new_values)
VALUES (%s, %s, %s, %s, %s, %s)"""
_KEEP_REVIEWS: Final = """
UPDATE history
SET old_values = (old_values::jsonb || jsonb_build_object('reviews', %s::text))::text
WHERE change_id = (SELECT max(change_id) FROM history WHERE memory_id = %s) AND event = 'DELETE'"""
_FORGET_REVIEWS: Final = """
UPDATE history SET old_values = (old_values::jsonb - 'reviews')::text
WHERE event = 'DELETE' AND old_values::json -> 'reviews' IS NOT NULL"""
_SELECT_TEXTS: Final = """
SELECT change_id, memory_id, coalesce(old_values, '{}'), coalesce(new_values, '{}')
FROM history WHERE change_id > %s ORDER BY change_id LIMIT %s"""


class HistoryTable(Table):
    """The table of every change of a memory."""

    def last_change(self) -> int:
        return int(self._db.value("SELECT max(change_id) FROM history") or 0)

    def last_change_of(self, user_id: str, run_id: str | None) -> int:
        """Return the newest change of the memories of a user, or of one run of them; 0 for none.

        Memories that were deleted count as those of the user whom they were about then.
        """
        return int(self._db.value(_SELECT_LAST_OF, {"user_id": user_id, "run_id": run_id}) or 0)

    def sign(self, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
        self._db.run(_SIGN, (session_id, format_time(now), since, memory_id))

    def sign_all(self, *, since: int, session_id: str, now: datetime) -> None:
        self._db.run(_SIGN_ALL, (session_id, format_time(now), since))

    def sign_between(self, after: int, until: int, *, session_id: str, now: datetime) -> None:
        sql = """UPDATE history SET session_id = %s, changed_at = %s
WHERE change_id > %s AND change_id <= %s"""
        self._db.run(sql, (session_id, format_time(now), after, until))

    def iterate(self, *, page: int = 1_000) -> Iterator[Change]:
        after = BEFORE_ALL
        sql = f"SELECT {_CHANGE} FROM history WHERE change_id > %s ORDER BY change_id LIMIT %s"
        while rows := self._db.rows(sql, (after, page)):
            yield from map(change_of_row, rows)
            after = page_end(rows[-1][0], after=after)

    def texts(self, *, page: int = 1_000) -> Iterator[list[str]]:
        last = BEFORE_ALL
        while rows := self._db.rows(_SELECT_TEXTS, (last, page)):
            for _, *columns in rows:
                yield list(columns)
            last = page_end(rows[-1][0], after=last)

    def between(self, first: int, last: int) -> list[Change]:
        sql = f"SELECT {_CHANGE} FROM history WHERE change_id BETWEEN %s AND %s ORDER BY change_id"
        return [change_of_row(row) for row in self._db.rows(sql, (first, last))]

    def of_memory(self, memory_id: str) -> list[Change]:
        sql = f"SELECT {_CHANGE} FROM history WHERE memory_id = %s ORDER BY change_id"
        return [change_of_row(row) for row in self._db.rows(sql, (memory_id,))]

    def changed_after(self, moment: datetime) -> list[str]:
        sql = "SELECT DISTINCT memory_id FROM history WHERE changed_at > %s"
        return [memory_id for (memory_id,) in self._db.rows(sql, (format_time(moment),))]

    def born_after(self, moment: datetime) -> list[str]:
        sql = """SELECT h.memory_id FROM history AS h WHERE h.changed_at > %s AND h.event = 'ADD'
AND NOT EXISTS (SELECT 1 FROM history AS e
  WHERE e.memory_id = h.memory_id AND (e.change_id < h.change_id OR e.changed_at <= %s))"""
        stamp = format_time(moment)
        return [memory_id for (memory_id,) in self._db.rows(sql, (stamp, stamp))]

    def insert(self, changes: Iterable[Change]) -> None:
        self._db.run_many(_INSERT, map(row_of_change, changes))

    def keep_reviews(self, reviews: Iterable[tuple[str, str]]) -> None:
        """Keep with the last change of memories, which deleted them, the reviews that they had.

        Those of each are JSON as an export has them; the id follows.
        """
        self._db.run_many(_KEEP_REVIEWS, reviews)

    def forget_reviews(self) -> None:
        self._db.run(_FORGET_REVIEWS)

    def ids_with_history(self, memory_ids: Sequence[str]) -> set[str]:
        sql = """SELECT DISTINCT memory_id FROM history
WHERE memory_id = ANY(%s)"""
        return {memory_id for (memory_id,) in self._db.rows(sql, (list(memory_ids),))}

    def forget(self, memory_ids: Sequence[str], *, after: int, until: int) -> None:
        sql = """DELETE FROM history WHERE change_id > %s AND change_id <= %s
AND memory_id = ANY(%s)"""
        self._db.run(sql, (after, until, list(memory_ids)))

    def forget_after(self, moment: datetime, newest: int) -> None:
        stamp = format_time(moment)
        self._db.run("DELETE FROM history WHERE change_id > %s", (newest,))
        self._db.run(_FORGET_AFTER, (stamp, stamp))

    def entries(
        self, memory_id: str | None, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        asked = {"memory_id = %s": memory_id, "change_id < %s": before}
        conditions = {sql: value for sql, value in asked.items() if value is not None}
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self._db.rows(_SELECT.format(where=where), (*conditions.values(), limit))
        try:
            return [entry_of_row(row) for row in rows]
        except (ValueError, TypeError) as error:  # what the schema rules out
            raise StorageCorrupt(
                f"{self._db.location} is damaged, and its history cannot be read: restore a backup"
            ) from error


_INSERT_OPERATION: Final = """
INSERT INTO operations (verb, done_at, session_id, first_change, last_change)
VALUES (%s, %s, %s, %s, %s)"""
_SELECT_LAST_OPERATION: Final = """
SELECT operation_id, verb, first_change, last_change, done_at, session_id FROM operations
ORDER BY last_change DESC, operation_id DESC LIMIT 1"""
_SELECT_AROUND: Final = """
SELECT operation_id, verb, first_change, last_change, done_at, session_id FROM operations
WHERE first_change <= %s AND last_change >= %s ORDER BY operation_id DESC LIMIT 1"""
_LAST_NUMBER: Final = """
SELECT greatest((SELECT max(change_id) FROM history),
  (SELECT highest FROM numbers WHERE of_table = 'history'))"""


class OperationTable(Table):
    """The table of operations: changes that belong together, and what cannot be undone."""

    def last_number(self) -> int:
        return int(self._db.value(_LAST_NUMBER) or 0)

    def record(self, verb: str, *, since: int, session_id: str, now: datetime) -> None:
        last = self.last_number()
        if last > since:
            self._insert(verb, session_id, now, since + 1, last)

    def record_irreversible(self, verb: str, *, session_id: str, now: datetime) -> None:
        last = self.last_number()
        self._insert(verb, session_id, now, last + 1, last)

    def _insert(self, verb: str, session_id: str, now: datetime, first: int, last: int) -> None:
        self._db.run(_INSERT_OPERATION, (verb, format_time(now), session_id, first, last))

    def around(self, change_id: int) -> Operation | None:
        row = self._db.row(_SELECT_AROUND, (change_id, change_id))
        return None if row is None else Operation(*row)

    def last(self) -> Operation | None:
        row = self._db.row(_SELECT_LAST_OPERATION)
        if row is not None and None in row[:4]:  # which the schema rules out
            raise StorageCorrupt(f"{self._db.location} is damaged: restore a backup")
        return None if row is None else Operation(*row)
