"""The table ``history``. Triggers write each change; the library adds session and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.columns import HISTORIC, JSON_COLUMNS
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Change
from agent_memory.storage.changes import change_of_row, entry_of_row, row_of_change
from agent_memory.storage.records import BEFORE_ALL, Operation, page_end
from agent_memory.storage.sqlite.tables import Table

if TYPE_CHECKING:
    from agent_memory.models.memory import HistoryEntry

_SIGN: Final = """
UPDATE history SET session_id = ?, changed_at = ?
WHERE change_id > ? AND memory_id = ?"""
_SELECT: Final = """
SELECT change_id, memory_id, event, changed_at, session_id, old_values, new_values FROM history
{where} ORDER BY change_id DESC LIMIT ?"""
_SIGN_ALL: Final = """
UPDATE history SET session_id = ?, changed_at = ? WHERE change_id > ?"""
_SELECT_LAST_OF: Final = """
SELECT h.change_id FROM history AS h LEFT JOIN memories AS m ON m.id = h.memory_id
WHERE CASE WHEN m.id IS NOT NULL THEN m.user_id = ?1 AND (?2 IS NULL OR m.run_id = ?2)
  WHEN h.event = 'DELETE' AND json_valid(h.old_values) THEN h.old_values ->> 'user_id' = ?1
    AND (?2 IS NULL OR h.old_values ->> 'run_id' = ?2) END
ORDER BY h.change_id DESC LIMIT 1"""
_FORGET_AFTER: Final = """
WITH last AS MATERIALIZED (
  SELECT memory_id, max(change_id) AS change_id FROM history WHERE changed_at <= ?
  GROUP BY memory_id)
DELETE FROM history AS h WHERE h.changed_at > ? AND NOT EXISTS (
  SELECT 1 FROM last WHERE last.memory_id = h.memory_id AND last.change_id > h.change_id)"""
"""Changes by a clock that was ahead stay where a change up to the moment builds upon them."""
_CHANGE: Final = "change_id, memory_id, event, changed_at, session_id, old_values, new_values"
_INSERT: Final = """
INSERT INTO history (memory_id, event, changed_at, session_id, old_values, new_values)
VALUES (?, ?, ?, ?, ?, ?)"""
_KEEP_REVIEWS: Final = """
UPDATE history SET old_values = json_set(old_values, '$.reviews', ?)
WHERE change_id = (SELECT max(change_id) FROM history WHERE memory_id = ?) AND event = 'DELETE'"""
_FORGET_REVIEWS: Final = """
UPDATE history SET old_values = json_remove(old_values, '$.reviews')
WHERE event = 'DELETE' AND CASE WHEN json_valid(old_values)
  THEN json_type(old_values, '$.reviews') IS NOT NULL END"""
_SELECT_TEXTS: Final = """
SELECT change_id, CAST(memory_id AS BLOB), CAST(coalesce(old_values, '{}') AS BLOB),
  CAST(coalesce(new_values, '{}') AS BLOB)
FROM history WHERE change_id > ? ORDER BY change_id LIMIT ?"""

_BEGIN_ALL: Final = """
INSERT INTO history (memory_id, event, changed_at, session_id, new_values)
SELECT m.id, 'ADD', m.updated_at, m.created_by_session, {} FROM memories AS m
WHERE NOT EXISTS (SELECT 1 FROM history AS h WHERE h.memory_id = m.id) ORDER BY m.seq"""


def added_values() -> str:
    """Return the SQL that makes of a memory ``m`` what the trigger writes when it is added.

    JSON columns are texts inside.
    """
    pairs = (f"'{name}', m.{name}" + " || ''" * (name in JSON_COLUMNS) for name in HISTORIC)
    return f"json_patch('{{}}', json_object({', '.join(pairs)}))"


class HistoryTable(Table):
    """The table of every change of a memory."""

    def begin_all(self) -> None:
        """Begin the history of the memories that have none: they were there before it was."""
        self._db.run(_BEGIN_ALL.format(added_values()))

    def last_change(self) -> int:
        return int(self._db.value("SELECT max(change_id) FROM history") or 0)

    def last_change_of(self, user_id: str, run_id: str | None) -> int:
        """Return the newest change of the memories of a user, or of one run of them; 0 for none.

        Memories that were deleted count as those of the user whom they were about then.
        """
        return int(self._db.value(_SELECT_LAST_OF, (user_id, run_id)) or 0)

    def sign(self, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
        self._db.run(_SIGN, (session_id, format_time(now), since, memory_id))

    def sign_all(self, *, since: int, session_id: str, now: datetime) -> None:
        self._db.run(_SIGN_ALL, (session_id, format_time(now), since))

    def sign_between(self, after: int, until: int, *, session_id: str, now: datetime) -> None:
        sql = """UPDATE history SET session_id = ?, changed_at = ?
WHERE change_id > ? AND change_id <= ?"""
        self._db.run(sql, (session_id, format_time(now), after, until))

    def iterate(self, *, page: int = 1_000) -> Iterator[Change]:
        after = BEFORE_ALL
        sql = f"SELECT {_CHANGE} FROM history WHERE change_id > ? ORDER BY change_id LIMIT ?"
        while rows := self._db.rows(sql, (after, page)):
            yield from map(change_of_row, rows)
            after = page_end(rows[-1][0], after=after)

    def texts(self, *, page: int = 1_000) -> Iterator[list[str]]:
        last = BEFORE_ALL
        while rows := self._db.rows(_SELECT_TEXTS, (last, page)):
            for _, *columns in rows:
                yield [column.decode(errors="replace") for column in columns]
            last = page_end(rows[-1][0], after=last)

    def between(self, first: int, last: int) -> list[Change]:
        sql = f"SELECT {_CHANGE} FROM history WHERE change_id BETWEEN ? AND ? ORDER BY change_id"
        return [change_of_row(row) for row in self._db.rows(sql, (first, last))]

    def of_memory(self, memory_id: str) -> list[Change]:
        sql = f"SELECT {_CHANGE} FROM history WHERE memory_id = ? ORDER BY change_id"
        return [change_of_row(row) for row in self._db.rows(sql, (memory_id,))]

    def changed_after(self, moment: datetime) -> list[str]:
        sql = "SELECT DISTINCT memory_id FROM history WHERE changed_at > ?"
        return [memory_id for (memory_id,) in self._db.rows(sql, (format_time(moment),))]

    def born_after(self, moment: datetime) -> list[str]:
        sql = """SELECT h.memory_id FROM history AS h WHERE h.changed_at > ? AND h.event = 'ADD'
AND NOT EXISTS (SELECT 1 FROM history AS e
  WHERE e.memory_id = h.memory_id AND (e.change_id < h.change_id OR e.changed_at <= ?))"""
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
WHERE memory_id IN (SELECT value FROM json_each(?))"""
        return {memory_id for (memory_id,) in self._db.rows(sql, (to_json(list(memory_ids)),))}

    def forget(self, memory_ids: Sequence[str], *, after: int, until: int) -> None:
        sql = """DELETE FROM history WHERE change_id > ? AND change_id <= ?
AND memory_id IN (SELECT value FROM json_each(?))"""
        self._db.run(sql, (after, until, to_json(list(memory_ids))))

    def forget_after(self, moment: datetime, newest: int) -> None:
        stamp = format_time(moment)
        self._db.run("DELETE FROM history WHERE change_id > ?", (newest,))
        self._db.run(_FORGET_AFTER, (stamp, stamp))

    def entries(
        self, memory_id: str | None, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        asked = {"memory_id = ?": memory_id, "change_id < ?": before}
        conditions = {sql: value for sql, value in asked.items() if value is not None}
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = self._db.rows(_SELECT.format(where=where), (*conditions.values(), limit))
        try:
            return [entry_of_row(row) for row in rows]
        except (ValueError, TypeError) as error:  # what the schema rules out
            raise StorageCorrupt(
                f"{self._db.path} is damaged, and its history cannot be read: restore a backup"
            ) from error


_INSERT_OPERATION: Final = """
INSERT INTO operations (verb, done_at, session_id, first_change, last_change)
VALUES (?, ?, ?, ?, ?)"""
_SELECT_LAST_OPERATION: Final = """
SELECT operation_id, verb, first_change, last_change, done_at, session_id FROM operations
ORDER BY last_change DESC, operation_id DESC LIMIT 1"""
_SELECT_AROUND: Final = """
SELECT operation_id, verb, first_change, last_change, done_at, session_id FROM operations
WHERE first_change <= ? AND last_change >= ? ORDER BY operation_id DESC LIMIT 1"""
# The sequence alone says 0 where another program emptied it: one `undo` then took back everything.
_LAST_NUMBER: Final = """
SELECT max(coalesce((SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'history'), 0),
  coalesce((SELECT max(change_id) FROM history), 0))"""


class OperationTable(Table):
    """The table of operations: changes that belong together, and what cannot be undone."""

    def last_number(self) -> int:
        return int(self._db.value(_LAST_NUMBER))

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
            raise StorageCorrupt(f"{self._db.path} is damaged: restore a backup")
        return None if row is None else Operation(*row)
