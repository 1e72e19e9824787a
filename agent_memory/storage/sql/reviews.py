"""The table ``reviews``: memories under review, until someone decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.times import format_time
from agent_memory.storage.records import Operation, Row, read_json, review_of_row
from agent_memory.storage.sql import Table

if TYPE_CHECKING:
    from agent_memory.models.decision import Review
    from agent_memory.models.owner import Owner
    from agent_memory.storage.sql.database import SQLDatabase

_INSERT: Final = """
INSERT INTO reviews (seq, version, replaced_by, confidence, reasoning, proposed_at, session_id)
SELECT seq, version, ?, ?, ?, ?, ? FROM memories WHERE seq = ?"""
_SELECT_OPEN: Final = """
SELECT r.review_id FROM reviews AS r
JOIN memories AS m ON m.seq = r.seq AND m.version = r.version
WHERE r.seq = ? AND r.replaced_by IS NOT DISTINCT FROM ? AND r.dismissed_at IS NULL
  AND (r.replaced_by IS NOT NULL OR r.reasoning IS NOT DISTINCT FROM ?)
ORDER BY r.review_id LIMIT 1"""
_SELECT_NEWER: Final = """
SELECT r.seq, max(n.seq) FROM reviews AS r
JOIN memories AS m ON m.seq = r.seq AND m.version = r.version
JOIN memories AS n ON n.id = r.replaced_by
WHERE r.seq {among} AND n.seq > r.seq AND r.dismissed_at IS NULL GROUP BY r.seq"""
_READ: Final = """
SELECT r.review_id, m.id, m.content, r.replaced_by, r.confidence, r.reasoning, r.proposed_at,
  r.session_id, m.user_id, m.run_id,
  (SELECT n.content FROM memories AS n WHERE n.id = r.replaced_by), r.version <> m.version,
  EXISTS (SELECT 1 FROM history AS h WHERE h.memory_id = r.replaced_by AND h.event = 'UPDATE'
    AND h.changed_at > r.proposed_at AND replace(h.new_values, '"content":', '') <> h.new_values),
  r.dismissed_at
FROM reviews AS r JOIN memories AS m ON m.seq = r.seq"""
_SELECT: Final = f"{_READ} WHERE r.dismissed_at IS NULL"
_SELECT_NEWER_AND_CLOSED: Final = """
SELECT r.replaced_by, r.dismissed_at FROM reviews AS r JOIN memories AS m ON m.seq = r.seq
WHERE m.id = ? AND r.replaced_by IS NOT NULL ORDER BY r.review_id"""
_SELECT_CLOSED: Final = """
SELECT m.id, r.dismissed_at FROM reviews AS r JOIN memories AS m ON m.seq = r.seq
WHERE r.review_id = ? AND r.dismissed_at IS NOT NULL"""

_LOOKED_THROUGH: Final = 10_000
"""Changes after a memory was stored among which a deletion for its sake is looked for: 1 ms.

The history is indexed by memory and by number alone, and who was deleted is not known yet.
"""
_SELECT_DELETED: Final = """
SELECT h.memory_id, h.change_id, h.old_values FROM history AS h
JOIN (SELECT min(change_id) AS first FROM history WHERE memory_id = ?) AS n
  ON h.change_id BETWEEN n.first AND n.first + ?
WHERE h.event = 'DELETE' AND h.old_values LIKE ?
  AND h.change_id = (SELECT max(change_id) FROM history WHERE memory_id = h.memory_id)
ORDER BY h.change_id"""
# In a join, SQLite reads the whole history: 15 ms of 20,000 changes.
_SELECT_SHORTENED: Final = """
SELECT memory_id, change_id FROM history WHERE event = 'UPDATE' AND (memory_id, changed_at) IN (
  SELECT m.id, r.dismissed_at FROM reviews AS r JOIN memories AS m ON m.seq = r.seq
  WHERE r.replaced_by = ?) ORDER BY change_id"""

_OF_OWNER: Final = "m.user_id = ? AND (CAST(? AS TEXT) IS NULL OR m.run_id = ?)"
"""The values are the user's id, and the run's twice."""
_SELECT_LAST_DECIDED: Final = f"""
SELECT o.verb, o.first_change, o.last_change, o.done_at, o.session_id
FROM operations AS o
JOIN reviews AS r ON CASE o.verb WHEN 'dismiss' THEN r.dismissed_at = o.done_at
  ELSE r.proposed_at = o.done_at AND r.session_id IS NOT DISTINCT FROM o.session_id
    AND r.dismissed_at IS NULL END
JOIN memories AS m ON m.seq = r.seq
WHERE {_OF_OWNER} AND o.verb IN ('add', 'dismiss')
  AND o.first_change > o.last_change AND o.last_change >= ?
ORDER BY o.operation_id DESC LIMIT 1"""
_OWN_ROWS: Final = f"""
(SELECT m.seq FROM memories AS m WHERE CAST(? AS TEXT) IS NULL OR ({_OF_OWNER}))"""
_DELETE_ASKED: Final = f"""
DELETE FROM reviews WHERE proposed_at = ? AND session_id IS NOT DISTINCT FROM ?
AND dismissed_at IS NULL AND seq IN {_OWN_ROWS}"""
_ASK_AGAIN: Final = f"""
UPDATE reviews SET dismissed_at = NULL WHERE dismissed_at = ? AND seq IN {_OWN_ROWS}"""

_RETURNING_MEMORY: Final = "RETURNING (SELECT id FROM memories WHERE seq = reviews.seq)"
_ASK_ONE_AGAIN: Final = """
UPDATE reviews SET dismissed_at = NULL WHERE review_id = ? AND dismissed_at IS NOT NULL"""

_REOPEN: Final = """
UPDATE reviews SET dismissed_at = NULL, version = m.version FROM memories AS m
WHERE m.seq = reviews.seq AND m.id = ? AND dismissed_at = ?"""
_RENEW: Final = """
UPDATE reviews SET version = m.version FROM memories AS m
WHERE m.seq = reviews.seq AND m.id {among} AND reviews.version + 1 = m.version"""


def renew(database: SQLDatabase, memory_ids: Sequence[str]) -> None:
    """Let the reviews of memories, as they were before their last change, follow that change."""
    database.run(_RENEW.format(among=database.AMONG), (database.listed(memory_ids),))


class ReviewTable(Table):
    """The table of memories under review."""

    def add(
        self,
        row_id: int,
        *,
        replaced_by: str | None,
        confidence: float | None,
        reasoning: str | None,
        session_id: str,
        now: datetime,
    ) -> int:
        open_review_id = self._db.value(_SELECT_OPEN, (row_id, replaced_by, reasoning))
        if open_review_id is not None:
            return int(open_review_id)
        values = (replaced_by, confidence, reasoning, format_time(now), session_id, row_id)
        return int(self._db.value(f"{_INSERT} RETURNING review_id", values))

    def put(self, row_id: int, values: Mapping[str, Any]) -> None:
        names = ("replaced_by", "confidence", "reasoning", "proposed_at", "session_id")
        self._db.run(_INSERT, (*map(values.get, names), row_id))

    def all(self) -> list[Review]:
        return [review_of_row(row) for row in self._db.rows(f"{_SELECT} ORDER BY r.review_id")]

    def get(self, review_id: int) -> Review | None:
        row = self._db.row(f"{_SELECT} AND r.review_id = ?", (review_id,))
        return None if row is None else review_of_row(row)

    def of_memory(self, memory_id: str) -> list[Review]:
        sql = f"{_SELECT} AND m.id = ? AND r.version = m.version ORDER BY r.review_id"
        return [review_of_row(row) for row in self._db.rows(sql, (memory_id,))]

    def because_of(self, memory_id: str) -> list[tuple[Review, str | None]]:
        sql = f"{_READ} WHERE r.replaced_by = ? AND r.version = m.version ORDER BY r.review_id"
        return [(review_of_row(row), row[-1]) for row in self._db.rows(sql, (memory_id,))]

    def newer_and_closed(self, memory_id: str) -> list[tuple[str, str | None]]:
        rows = self._db.rows(_SELECT_NEWER_AND_CLOSED, (memory_id,))
        return [(newer_id, closed_at) for newer_id, closed_at in rows]

    def closed(self, review_id: int) -> tuple[str, str] | None:
        row = self._db.row(_SELECT_CLOSED, (review_id,))
        return None if row is None else (row[0], row[1])

    def last_decided(self, owner: Owner, *, since: int) -> Operation | None:
        row = self._db.row(_SELECT_LAST_DECIDED, (*_values_of(owner), since))
        return None if row is None else Operation(*row)

    def take_back(self, operation: Operation, owner: Owner | None) -> list[str]:
        whose = (None,) * 4 if owner is None else (owner.user_id, *_values_of(owner))
        done_at, session_id = operation.done_at, operation.session_id
        rows: list[Row] = []
        if operation.verb == "dismiss":
            rows = self._db.rows(f"{_ASK_AGAIN} {_RETURNING_MEMORY}", (done_at, *whose))
        elif operation.verb == "add":
            values = (done_at, session_id, *whose)
            rows = self._db.rows(f"{_DELETE_ASKED} {_RETURNING_MEMORY}", values)
        return sorted({memory_id for (memory_id,) in rows})

    def newer_of(self, row_ids: Sequence[int]) -> dict[int, int]:
        # Most stores have no reviews, and a search asks twice, for hundreds of rows.
        if not self._db.once("has reviews", self._has_reviews):
            return {}
        sql = _SELECT_NEWER.format(among=self._db.AMONG)
        return dict(self._db.rows(sql, (self._db.listed(row_ids),)))

    def _has_reviews(self) -> bool:
        # By the highest number: PostgreSQL looks for any row through the reviews of all agents.
        return self._db.value("SELECT max(review_id) FROM reviews") is not None

    def replaced_by(self, memory_id: str) -> list[tuple[str, int]]:
        values = (memory_id, _LOOKED_THROUGH, f"%{memory_id}%")
        deleted = [
            (older_id, change_id)
            for older_id, change_id, old in self._db.rows(_SELECT_DELETED, values)
            if (older_id, memory_id) in _kept_reviews(old)
        ]
        return [*self._db.rows(_SELECT_SHORTENED, (memory_id,)), *deleted]

    def forget_reasoning(self) -> None:
        self._db.run("UPDATE reviews SET reasoning = NULL WHERE reasoning IS NOT NULL")

    def dismiss(self, review_id: int, *, now: datetime) -> None:
        sql = "UPDATE reviews SET dismissed_at = ? WHERE review_id = ?"
        self._db.run(sql, (format_time(now), review_id))

    def ask_again(self, review_id: int) -> bool:
        return self._db.run(_ASK_ONE_AGAIN, (review_id,)) > 0

    def reopen(self, memory_id: str, closed_at: str) -> int:
        return self._db.run(_REOPEN, (memory_id, closed_at))

    def renew(self, memory_id: str) -> None:
        renew(self._db, [memory_id])


def _kept_reviews(old_values: str) -> set[tuple[str, str]]:
    """Return the reviews that are kept with a deletion: the older memory, and the newer one."""
    values = read_json(old_values)
    reviews = read_json(str(values.get("reviews"))) if isinstance(values, dict) else None
    return {
        (str(review.get("id")), str(review.get("replaced_by")))
        for review in (reviews if isinstance(reviews, list) else ())
        if isinstance(review, dict)  # another program may have written anything
    }


def _values_of(owner: Owner) -> tuple[str | None, ...]:
    return owner.user_id, owner.run_id, owner.run_id
