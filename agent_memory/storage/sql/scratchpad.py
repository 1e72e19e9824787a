"""The table ``scratchpad``: the hot set of memories; what enters it and what is evicted.

Each user has ``max_size`` places, and so have the memories about nobody in particular: what one
user's session brings in evicts nothing of another's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.times import format_time
from agent_memory.storage.records import Reason
from agent_memory.storage.sql import Table

_INSERT: Final = "INSERT INTO scratchpad (seq, entered_at, reason) VALUES (?, ?, ?)"
_ENTER: Final = f"""{_INSERT} ON CONFLICT ({{key}}) DO UPDATE
SET reason = excluded.reason, entered_at = excluded.entered_at
WHERE excluded.reason = 'promoted' AND scratchpad.reason <> 'promoted'"""
# CROSS JOIN: from the few entries to their memories, not through all memories for each store.
# An archived memory keeps its entry, hidden, until it is unarchived.
_MEMBERS: Final = """
FROM scratchpad AS s CROSS JOIN memories AS m WHERE m.seq = s.seq AND m.archived = 0"""
_OF_USER: Final = "AND s.user_id IS NOT DISTINCT FROM ?"
# Least recently used first, by the last access, or else by when it entered. What was promoted by
# hand is evicted last; what has just entered stays, or promoting would evict what it promotes.
_SELECT_SURPLUS: Final = f"""
SELECT s.seq, m.id {_MEMBERS} {_OF_USER} AND NOT s.seq {{among}}
ORDER BY s.reason = 'promoted', {{greatest}}(coalesce(m.last_accessed, ''), s.entered_at), s.seq
LIMIT ?"""
_MOST_RECENT: Final = """
ORDER BY coalesce(m.last_accessed, s.entered_at) DESC, m.access_count DESC, s.seq DESC"""
_COUNT: Final = f"SELECT count(*) {_MEMBERS}"
_SELECT_WORTHY: Final = """
SELECT m.seq FROM memories AS m WHERE m.seq {among} AND m.access_count >= ? AND m.archived = 0
AND NOT EXISTS (SELECT 1 FROM scratchpad AS s WHERE s.seq = m.seq)
ORDER BY m.seq"""


class ScratchpadTable(Table):
    """The table of the memories in the scratchpad."""

    def enter(self, row_ids: Sequence[int], reason: Reason, *, now: datetime) -> None:
        moment, sql = format_time(now), _ENTER.format(key=self._db.ROW_KEY)
        with self._db.counting():
            self._db.run_many(sql, ((row_id, moment, reason) for row_id in row_ids))

    def by_user(self, row_ids: Sequence[int]) -> dict[str | None, list[int]]:
        sql = f"SELECT seq, user_id FROM memories WHERE seq {self._db.AMONG}"
        users: dict[int, str | None] = dict(self._db.rows(sql, (self._db.listed(row_ids),)))
        of_users: dict[str | None, list[int]] = defaultdict(list)
        for row_id in row_ids:
            if row_id in users:
                of_users[users[row_id]].append(row_id)
        return of_users

    def evict(self, *, max_size: int, keep: Sequence[int] | None = None) -> list[str]:
        among, kept = self._db.AMONG, self._db.listed(keep or ())
        users = (
            self._db.rows("SELECT user_id FROM scratchpad GROUP BY user_id")
            if keep is None
            else self._db.rows(
                f"SELECT DISTINCT user_id FROM scratchpad WHERE seq {among}", (kept,)
            )
        )
        sql = _SELECT_SURPLUS.format(among=among, greatest=self._db.GREATEST)
        evicted: list[str] = []
        for (user_id,) in users:
            surplus = int(self._db.value(f"{_COUNT} {_OF_USER}", (user_id,))) - max_size
            if surplus > 0:
                leaving = self._db.rows(sql, (user_id, kept, surplus))
                with self._db.counting():
                    self._db.run_many(
                        "DELETE FROM scratchpad WHERE seq = ?", ((row_id,) for row_id, _ in leaving)
                    )
                evicted += [memory_id for _, memory_id in leaving]
        return evicted

    def leave(self, row_id: int) -> bool:
        return self._db.run("DELETE FROM scratchpad WHERE seq = ?", (row_id,)) > 0

    def members(self, *, user_id: str | None = None) -> list[int]:
        of_user, values = ("", ()) if user_id is None else ("AND s.user_id = ?", (user_id,))
        sql = f"SELECT s.seq {_MEMBERS} {of_user} {_MOST_RECENT}"
        return [row_id for (row_id,) in self._db.rows(sql, values)]

    def reasons(self, row_ids: Sequence[int]) -> dict[int, Reason]:
        sql = f"SELECT seq, reason FROM scratchpad WHERE seq {self._db.AMONG}"
        return dict(self._db.rows(sql, (self._db.listed(row_ids),)))

    def promotable(self, row_ids: Sequence[int], *, threshold: int) -> list[int]:
        sql = _SELECT_WORTHY.format(among=self._db.AMONG)
        rows = self._db.rows(sql, (self._db.listed(row_ids), threshold))
        return [row_id for (row_id,) in rows]

    def size(self) -> int:
        return int(self._db.value(_COUNT))

    def count_promoted(self, user_id: str | None) -> int:
        return int(self._db.value(f"{_COUNT} {_OF_USER} AND s.reason = 'promoted'", (user_id,)))

    def put(self, row_id: int, *, reason: str, entered_at: str) -> None:
        self._db.run(f"{_INSERT} ON CONFLICT DO NOTHING", (row_id, entered_at, reason))

    def entries(self) -> list[tuple[str, str, str]]:
        rows = self._db.rows("""
SELECT m.id, s.entered_at, s.reason FROM scratchpad AS s JOIN memories AS m ON m.seq = s.seq
ORDER BY s.entered_at, s.seq""")
        return [(memory_id, entered_at, reason) for memory_id, entered_at, reason in rows]
