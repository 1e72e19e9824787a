"""The table ``reviews``: memories that are in question, until somebody decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.decision import Review
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.storage.sqlite.connection import Row
from agent_memory.storage.sqlite.tables import Table

if TYPE_CHECKING:
    from agent_memory.models.session import Owner

_INSERT: Final = """
INSERT INTO reviews (seq, version, replaced_by, confidence, reasoning, proposed_at, session_id)
SELECT seq, version, ?2, ?3, ?4, ?5, ?6 FROM memories WHERE seq = ?1"""
_SELECT_OPEN: Final = """
SELECT review_id FROM reviews WHERE seq = ? AND replaced_by IS ? AND version =
  (SELECT version FROM memories AS m WHERE m.seq = reviews.seq)"""
_SELECT_NEWER: Final = """
SELECT r.seq, max(n.seq) FROM reviews AS r
JOIN memories AS m ON m.seq = r.seq AND m.version = r.version
JOIN memories AS n ON n.id = r.replaced_by
WHERE r.seq IN (SELECT value FROM json_each(?)) AND n.seq > r.seq GROUP BY r.seq"""
_SELECT: Final = """
SELECT r.review_id, m.id, m.content, r.replaced_by, r.confidence, r.reasoning, r.proposed_at,
  r.session_id, m.user_id, m.run_id
FROM reviews AS r JOIN memories AS m ON m.seq = r.seq"""


_OF_OWNER: Final = "m.user_id = ?1 AND (?2 IS NULL OR m.run_id = ?2)"
_SELECT_LAST_ASKED: Final = f"""
SELECT r.proposed_at, r.session_id FROM reviews AS r JOIN memories AS m ON m.seq = r.seq
JOIN operations AS o ON o.done_at = r.proposed_at AND o.session_id IS r.session_id
WHERE {_OF_OWNER} AND o.verb = 'add' AND o.first_change > o.last_change AND o.last_change >= ?3
ORDER BY o.operation_id DESC LIMIT 1"""
_DELETE_ASKED: Final = f"""
DELETE FROM reviews WHERE proposed_at = ?3 AND session_id IS ?4
AND seq IN (SELECT m.seq FROM memories AS m WHERE {_OF_OWNER})"""


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
        return [_review(row) for row in self._db.rows(f"{_SELECT} ORDER BY r.review_id")]

    def get(self, review_id: int) -> Review | None:
        row = self._db.row(f"{_SELECT} WHERE r.review_id = ?", (review_id,))
        return None if row is None else _review(row)

    def is_stale(self, review_id: int) -> bool:
        sql = """SELECT r.version <> m.version FROM reviews AS r JOIN memories AS m ON m.seq = r.seq
WHERE r.review_id = ?"""
        return bool(self._db.value(sql, (review_id,)))

    def drop_proposed(self, done_at: str, session_id: str | None) -> int:
        sql = "DELETE FROM reviews WHERE proposed_at = ? AND session_id IS ?"
        return self._db.run(sql, (done_at, session_id))

    def drop_last_asked(self, owner: Owner, *, since: int) -> int:
        whose = (owner.user_id, owner.run_id)
        asked = self._db.row(_SELECT_LAST_ASKED, (*whose, since))
        return 0 if asked is None else self._db.run(_DELETE_ASKED, (*whose, *asked))

    def newer_of(self, row_ids: Sequence[int]) -> dict[int, int]:
        return dict(self._db.rows(_SELECT_NEWER, (to_json(list(row_ids)),)))

    def forget_reasoning(self) -> None:
        self._db.run("UPDATE reviews SET reasoning = NULL WHERE reasoning IS NOT NULL")

    def drop(self, review_id: int) -> None:
        self._db.run("DELETE FROM reviews WHERE review_id = ?", (review_id,))


def _review(row: Row) -> Review:
    values = dict(zip(Review.model_fields, row, strict=True))
    values["proposed_at"] = read_stored_time(row[6])
    return Review.model_construct(**values)
