"""The table ``scratchpad``: the hot set of memories; what enters it and what is evicted.

Each user has ``max_size`` places, and so have the memories about nobody in particular: what one
user's session brings in evicts nothing of another's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.records import Reason
from agent_memory.storage.sqlite.tables import Table

_ENTER: Final = """
INSERT INTO scratchpad (seq, entered_at, reason) VALUES (?, ?, ?)
ON CONFLICT (seq) DO UPDATE SET reason = excluded.reason, entered_at = excluded.entered_at
WHERE excluded.reason = 'promoted' AND reason <> 'promoted'"""
# Least recently used first, by the last access, or else by when it entered. What was promoted by
# hand is evicted last; what has just entered stays, or promoting would evict what it promotes.
_SELECT_SURPLUS: Final = """
SELECT s.seq, m.id FROM scratchpad AS s CROSS JOIN memories AS m ON m.seq = s.seq
WHERE s.user_id IS ? AND s.seq NOT IN (SELECT value FROM json_each(?))
AND m.archived = 0
ORDER BY s.reason = 'promoted', max(coalesce(m.last_accessed, ''), s.entered_at), s.seq LIMIT ?"""
# CROSS JOIN: from the few entries to their memories, not through all memories for each store.
# An archived memory keeps its entry, hidden, until it is unarchived.
_SELECT_MEMBERS: Final = """
SELECT s.seq FROM scratchpad AS s CROSS JOIN memories AS m ON m.seq = s.seq
WHERE m.archived = 0 {of_user}
ORDER BY coalesce(m.last_accessed, s.entered_at) DESC, m.access_count DESC, s.seq DESC"""
_COUNT: Final = """
SELECT count(*) FROM scratchpad AS s CROSS JOIN memories AS m ON m.seq = s.seq
WHERE m.archived = 0"""
_COUNT_OF_USER: Final = f"{_COUNT} AND s.user_id IS ?"
_COUNT_PROMOTED: Final = f"{_COUNT_OF_USER} AND s.reason = 'promoted'"
_SELECT_REASONS: Final = """
SELECT seq, reason FROM scratchpad WHERE seq IN (SELECT value FROM json_each(?))"""
_SELECT_USERS: Final = """
SELECT DISTINCT user_id FROM scratchpad WHERE seq IN (SELECT value FROM json_each(?))"""
_SELECT_ALL_USERS: Final = "SELECT user_id FROM scratchpad GROUP BY user_id"
_SELECT_USERS_OF: Final = """
SELECT j.value, m.user_id FROM json_each(?) AS j CROSS JOIN memories AS m ON m.seq = j.value
ORDER BY j.key"""
_SELECT_WORTHY: Final = """
SELECT m.seq FROM memories AS m WHERE m.seq IN (SELECT value FROM json_each(?))
AND m.access_count >= ? AND m.archived = 0 AND m.seq NOT IN (SELECT seq FROM scratchpad)
ORDER BY m.seq"""


class ScratchpadTable(Table):
    """The table of the memories in the scratchpad."""

    def enter(self, row_ids: Sequence[int], reason: Reason, *, now: datetime) -> None:
        moment = format_time(now)
        with self._db.counting():
            self._db.run_many(_ENTER, ((row_id, moment, reason) for row_id in row_ids))

    def by_user(self, row_ids: Sequence[int]) -> dict[str | None, list[int]]:
        of_users: dict[str | None, list[int]] = defaultdict(list)
        for row_id, user_id in self._db.rows(_SELECT_USERS_OF, (to_json(list(row_ids)),)):
            of_users[user_id].append(row_id)
        return of_users

    def evict(self, *, max_size: int, keep: Sequence[int] | None = None) -> list[str]:
        kept = to_json(list(keep or ()))
        users = (
            self._db.rows(_SELECT_ALL_USERS)
            if keep is None
            else self._db.rows(_SELECT_USERS, (kept,))
        )
        evicted: list[str] = []
        for (user_id,) in users:
            surplus = int(self._db.value(_COUNT_OF_USER, (user_id,))) - max_size
            if surplus > 0:
                leaving = self._db.rows(_SELECT_SURPLUS, (user_id, kept, surplus))
                with self._db.counting():
                    self._db.run_many(
                        "DELETE FROM scratchpad WHERE seq = ?", ((row_id,) for row_id, _ in leaving)
                    )
                evicted += [memory_id for _, memory_id in leaving]
        return evicted

    def leave(self, row_id: int) -> bool:
        return self._db.run("DELETE FROM scratchpad WHERE seq = ?", (row_id,)) > 0

    def contains(self, row_id: int) -> bool:
        return self._db.row("SELECT 1 FROM scratchpad WHERE seq = ?", (row_id,)) is not None

    def members(self, *, user_id: str | None = None) -> list[int]:
        of_user, values = ("", ()) if user_id is None else ("AND s.user_id = ?", (user_id,))
        sql = _SELECT_MEMBERS.format(of_user=of_user)
        return [row_id for (row_id,) in self._db.rows(sql, values)]

    def reasons(self, row_ids: Sequence[int]) -> dict[int, Reason]:
        return dict(self._db.rows(_SELECT_REASONS, (to_json(list(row_ids)),)))

    def promotable(self, row_ids: Sequence[int], *, threshold: int) -> list[int]:
        rows = self._db.rows(_SELECT_WORTHY, (to_json(list(row_ids)), threshold))
        return [row_id for (row_id,) in rows]

    def size(self) -> int:
        return int(self._db.value(_COUNT))

    def count_promoted(self, user_id: str | None) -> int:
        return int(self._db.value(_COUNT_PROMOTED, (user_id,)))

    def put(self, row_id: int, *, reason: str, entered_at: str) -> None:
        sql = "INSERT OR IGNORE INTO scratchpad (seq, entered_at, reason) VALUES (?, ?, ?)"
        self._db.run(sql, (row_id, entered_at, reason))

    def entries(self) -> list[tuple[str, str, str]]:
        sql = """SELECT m.id, s.entered_at, s.reason
FROM scratchpad AS s CROSS JOIN memories AS m USING (seq)
ORDER BY s.entered_at, s.seq"""
        return self._db.rows(sql)
