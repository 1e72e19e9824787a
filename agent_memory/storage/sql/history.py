"""The table ``history``. Triggers write each change; the library adds session and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Change
from agent_memory.storage.history_rows import change_of_row, entry_of_row, row_of_change
from agent_memory.storage.records import BEFORE_ALL, Operation, Row, page_end
from agent_memory.storage.sql import Table

if TYPE_CHECKING:
    from agent_memory.models.memory import HistoryEntry

_SIGN: Final = "UPDATE history SET session_id = ?, changed_at = ? WHERE change_id > ?"
_FORGET_AFTER: Final = """
WITH last AS MATERIALIZED (
  SELECT memory_id, max(change_id) AS change_id FROM history WHERE changed_at <= ?
  GROUP BY memory_id)
DELETE FROM history AS h WHERE h.changed_at > ? AND NOT EXISTS (
  SELECT 1 FROM last WHERE last.memory_id = h.memory_id AND last.change_id > h.change_id)"""
"""Changes by a clock that was ahead stay if a change up to the moment builds on them."""
_SELECT: Final = """
SELECT change_id, memory_id, event, changed_at, session_id, old_values, new_values FROM history"""
_IS_OF: Final = "user_id = :user_id AND (CAST(:run_id AS text) IS NULL OR run_id = :run_id)"
_SELECT_LAST_OF: Final = f"""
SELECT h.change_id FROM history AS h LEFT JOIN memories AS m ON m.id = h.memory_id
WHERE CASE WHEN m.id IS NOT NULL THEN {_IS_OF} ELSE {{}} END ORDER BY h.change_id DESC LIMIT 1"""
_SELECT_OF: Final = f"""{_SELECT} WHERE change_id < :before AND memory_id IN (
  SELECT id FROM memories WHERE {_IS_OF} UNION SELECT h.memory_id FROM history AS h WHERE {{}})
ORDER BY change_id DESC LIMIT :limit"""
_INSERT: Final = """
INSERT INTO history (memory_id, event, changed_at, session_id, old_values, new_values)
VALUES (?, ?, ?, ?, ?, ?)"""
_REPLACE: Final = """
UPDATE history SET memory_id = ?, event = ?, changed_at = ?, session_id = ?, old_values = ?,
  new_values = ? WHERE change_id = ?"""


class HistoryTable(Table):
    """The table of every change of a memory."""

    _KEEP_REVIEWS: ClassVar[str]
    _FORGET_REVIEWS: ClassVar[str]
    _WAS_OF: ClassVar[str]
    """Whether a row ``h`` is the deletion of a memory of a user, or of one of their runs."""

    def last_change(self) -> int:
        return int(self._db.value("SELECT max(change_id) FROM history") or 0)

    def last_change_of(self, user_id: str, run_id: str | None) -> int:
        """Return the newest change of the memories of a user, or of one of their runs, or 0.

        Deleted memories count for the user whom they were about when they were deleted.
        """
        sql = _SELECT_LAST_OF.format(self._WAS_OF)
        return int(self._db.value(sql, {"user_id": user_id, "run_id": run_id}) or 0)

    def sign(self, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
        values = (session_id, format_time(now), since, memory_id)
        self._db.run(f"{_SIGN} AND memory_id = ?", values)

    def sign_all(self, *, since: int, session_id: str, now: datetime) -> None:
        self._db.run(_SIGN, (session_id, format_time(now), since))

    def sign_between(self, after: int, until: int, *, session_id: str, now: datetime) -> None:
        values = (session_id, format_time(now), after, until)
        self._db.run(f"{_SIGN} AND change_id <= ?", values)

    def iterate(self, *, page: int = 1_000) -> Iterator[Change]:
        after = BEFORE_ALL
        sql = f"{_SELECT} WHERE change_id > ? ORDER BY change_id LIMIT ?"
        while rows := self._db.rows(sql, (after, page)):
            yield from map(change_of_row, rows)
            after = page_end(rows[-1][0], after=after)

    def texts(self, *, page: int = 1_000) -> Iterator[list[str]]:
        values = ("coalesce(old_values, '{}')", "coalesce(new_values, '{}')")
        sql = f"""SELECT change_id, {self._bytes("memory_id", *values)} FROM history
WHERE change_id > ? ORDER BY change_id LIMIT ?"""
        last = BEFORE_ALL
        while rows := self._db.rows(sql, (last, page)):
            for _, *columns in rows:
                yield [column.decode(errors="replace") for column in columns]
            last = page_end(rows[-1][0], after=last)

    def between(self, first: int, last: int) -> list[Change]:
        sql = f"{_SELECT} WHERE change_id BETWEEN ? AND ? ORDER BY change_id"
        return [change_of_row(row) for row in self._db.rows(sql, (first, last))]

    def of_memory(self, memory_id: str) -> list[Change]:
        sql = f"{_SELECT} WHERE memory_id = ? ORDER BY change_id"
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

    def replace(self, change: Change) -> None:
        self._db.run(_REPLACE, (*row_of_change(change), change.change_id))

    def keep_reviews(self, reviews: Iterable[tuple[str, str]]) -> None:
        """Attach the reviews of deleted memories to their last change, the deletion.

        Each pair has the reviews, as JSON in the form of an export, and the memory's id.
        """
        self._db.run_many(self._KEEP_REVIEWS, reviews)

    def forget_reviews(self) -> None:
        self._db.run(self._FORGET_REVIEWS)

    def ids_with_history(self, memory_ids: Sequence[str]) -> set[str]:
        sql = f"SELECT DISTINCT memory_id FROM history WHERE memory_id {self._db.AMONG}"
        return {memory_id for (memory_id,) in self._db.rows(sql, (self._db.listed(memory_ids),))}

    def forget(self, memory_ids: Sequence[str], *, after: int, until: int) -> None:
        sql = f"""DELETE FROM history WHERE change_id > ? AND change_id <= ?
AND memory_id {self._db.AMONG}"""
        self._db.run(sql, (after, until, self._db.listed(memory_ids)))

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
        sql = f"{_SELECT} {where} ORDER BY change_id DESC LIMIT ?"
        return self._entries(self._db.rows(sql, (*conditions.values(), limit)))

    def entries_of(
        self, user_id: str, run_id: str | None, *, limit: int, before: int | None = None
    ) -> list[HistoryEntry]:
        values = {"user_id": user_id, "run_id": run_id, "limit": limit}
        values["before"] = 2**63 - 1 if before is None else before
        return self._entries(self._db.rows(_SELECT_OF.format(self._WAS_OF), values))

    def _entries(self, rows: list[Row]) -> list[HistoryEntry]:
        try:
            return [entry_of_row(row) for row in rows]
        except (ValueError, TypeError) as error:  # the schema rules that out
            raise StorageCorrupt(
                f"{self._db.location} is damaged, and its history cannot be read: restore a backup"
            ) from error


_INSERT_OPERATION: Final = """
INSERT INTO operations (verb, done_at, session_id, first_change, last_change)
VALUES (?, ?, ?, ?, ?)"""
_SELECT_OPERATION: Final = """
SELECT verb, first_change, last_change, done_at, session_id FROM operations"""


class OperationTable(Table):
    """The table of operations: groups of changes made by one verb, and what cannot be undone."""

    _LAST_NUMBER: ClassVar[str]
    """The query for the number of the last change, even if it was deleted since."""

    def last_number(self) -> int:
        return int(self._db.value(self._LAST_NUMBER) or 0)

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
        sql = f"""{_SELECT_OPERATION} WHERE first_change <= ? AND last_change >= ?
ORDER BY operation_id DESC LIMIT 1"""
        row = self._db.row(sql, (change_id, change_id))
        return None if row is None else Operation(*row)

    def last(self) -> Operation | None:
        sql = f"{_SELECT_OPERATION} ORDER BY last_change DESC, operation_id DESC LIMIT 1"
        row = self._db.row(sql)
        if row is not None and None in row[:3]:  # the schema rules that out
            raise StorageCorrupt(f"{self._db.location} is damaged: restore a backup")
        return None if row is None else Operation(*row)
