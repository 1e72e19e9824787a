"""The table ``reviews``: memories that are in question, until somebody decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.records import Operation, review_of_row
from agent_memory.storage.sqlite.tables import Table

if TYPE_CHECKING:
    from agent_memory.models.decision import Review
    from agent_memory.models.owner import Owner

_INSERT: Final = """
INSERT INTO reviews (seq, version, replaced_by, confidence, reasoning, proposed_at, session_id)
SELECT seq, version, ?2, ?3, ?4, ?5, ?6 FROM memories WHERE seq = ?1"""
_SELECT_OPEN: Final = """
SELECT review_id FROM reviews WHERE seq = ? AND replaced_by IS ? AND dismissed_at IS NULL
  AND version = (SELECT version FROM memories AS m WHERE m.seq = reviews.seq)"""
_SELECT_NEWER: Final = """
SELECT r.seq, max(n.seq) FROM reviews AS r
JOIN memories AS m ON m.seq = r.seq AND m.version = r.version
JOIN memories AS n ON n.id = r.replaced_by
WHERE r.seq IN (SELECT value FROM json_each(?)) AND n.seq > r.seq AND r.dismissed_at IS NULL
GROUP BY r.seq"""
_SELECT: Final = """
SELECT r.review_id, m.id, m.content, r.replaced_by, r.confidence, r.reasoning, r.proposed_at,
  r.session_id, m.user_id, m.run_id
FROM reviews AS r JOIN memories AS m ON m.seq = r.seq WHERE r.dismissed_at IS NULL"""

_OF_OWNER: Final = "m.user_id = ?1 AND (?2 IS NULL OR m.run_id = ?2)"
_SELECT_LAST_DECIDED: Final = f"""
SELECT o.operation_id, o.verb, o.first_change, o.last_change, o.done_at, o.session_id
FROM operations AS o
JOIN reviews AS r ON CASE o.verb WHEN 'dismiss' THEN r.dismissed_at = o.done_at
  ELSE r.proposed_at = o.done_at AND r.session_id IS o.session_id AND r.dismissed_at IS NULL END
JOIN memories AS m ON m.seq = r.seq
WHERE {_OF_OWNER} AND o.verb IN ('add', 'dismiss')
  AND o.first_change > o.last_change AND o.last_change >= ?3
ORDER BY o.operation_id DESC LIMIT 1"""
_ASKED: Final = "proposed_at = ?3 AND session_id IS ?4 AND dismissed_at IS NULL"
_OWN_ROWS: Final = f"""
(SELECT m.seq FROM memories AS m WHERE ?1 IS NULL OR ({_OF_OWNER}))"""
_DELETE_ASKED: Final = f"DELETE FROM reviews WHERE {_ASKED} AND seq IN {_OWN_ROWS}"
_ASK_AGAIN: Final = f"""
UPDATE reviews SET dismissed_at = NULL WHERE dismissed_at = ?3 AND seq IN {_OWN_ROWS}"""

_ASK_ONE_AGAIN: Final = """
UPDATE reviews SET dismissed_at = NULL WHERE review_id = ? AND dismissed_at IS NOT NULL"""


class ReviewTable(Table):
    """The table of memories that are in question."""

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
        open_review_id = self._db.value(_SELECT_OPEN, (row_id, replaced_by))
        if open_review_id is not None:
            return int(open_review_id)
        values = (row_id, replaced_by, confidence, reasoning, format_time(now), session_id)
        self._db.run(_INSERT, values)
        return int(self._db.value("SELECT max(review_id) FROM reviews"))

    def put(self, row_id: int, values: Mapping[str, Any]) -> None:
        names = ("replaced_by", "confidence", "reasoning", "proposed_at", "session_id")
        self._db.run(_INSERT, (row_id, *map(values.get, names)))

    def all(self) -> list[Review]:
        return [review_of_row(row) for row in self._db.rows(f"{_SELECT} ORDER BY r.review_id")]

    def get(self, review_id: int) -> Review | None:
        row = self._db.row(f"{_SELECT} AND r.review_id = ?", (review_id,))
        return None if row is None else review_of_row(row)

    def is_stale(self, review_id: int) -> bool:
        sql = """SELECT r.version <> m.version FROM reviews AS r JOIN memories AS m ON m.seq = r.seq
WHERE r.review_id = ?"""
        return bool(self._db.value(sql, (review_id,)))

    def last_decided(self, owner: Owner, *, since: int) -> Operation | None:
        row = self._db.row(_SELECT_LAST_DECIDED, (owner.user_id, owner.run_id, since))
        return None if row is None else Operation(*row)

    def take_back(self, operation: Operation, owner: Owner | None) -> int:
        whose = (None, None) if owner is None else (owner.user_id, owner.run_id)
        if operation.verb == "dismiss":
            return self._db.run(_ASK_AGAIN, (*whose, operation.done_at))
        if operation.verb == "add":
            return self._db.run(_DELETE_ASKED, (*whose, operation.done_at, operation.session_id))
        return 0

    def newer_of(self, row_ids: Sequence[int]) -> dict[int, int]:
        if self._db.row("SELECT 1 FROM reviews LIMIT 1") is None:
            return {}  # as in most files, and asked for hundreds of rows
        return dict(self._db.rows(_SELECT_NEWER, (to_json(list(row_ids)),)))

    def forget_reasoning(self) -> None:
        self._db.run("UPDATE reviews SET reasoning = NULL WHERE reasoning IS NOT NULL")

    def dismiss(self, review_id: int, *, now: datetime) -> None:
        sql = "UPDATE reviews SET dismissed_at = ? WHERE review_id = ?"
        self._db.run(sql, (format_time(now), review_id))

    def ask_again(self, review_id: int) -> bool:
        return self._db.run(_ASK_ONE_AGAIN, (review_id,)) > 0
