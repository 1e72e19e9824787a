"""Queries on the use and the number of memories, for retention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.enums import MemoryKind
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Amount, Usage
from agent_memory.storage.sql import Table

# A kind made up by another program counts as a learning, as it does when the memory is read.
_KIND: Final = "CASE WHEN m.kind IN ('core', 'task') THEN m.kind ELSE 'learning' END"
_LAST_USED: Final = "{greatest}(m.updated_at, coalesce(m.last_accessed, ''))"
# What may correct a memory is not archived before it: the outdated one would be all that is found.
_IS_PROTECTED: Final = """(m.importance = 'high' OR s.reason IS NOT DISTINCT FROM 'promoted'
  OR m.id IN (SELECT r.replaced_by FROM reviews AS r JOIN memories AS older ON older.seq = r.seq
    WHERE r.replaced_by IS NOT NULL AND r.dismissed_at IS NULL AND older.archived = 0))"""
# A task's metadata as bytes: a text that is not UTF-8 must not prevent reading the others.
_SELECT_USES: Final = f"""
SELECT seq, kind, last_used, updated_at, access_count, size, is_protected OR last_used > ?,
  CASE kind WHEN 'task' THEN {{task_metadata}} END
FROM (
  SELECT m.seq, {_KIND} AS kind, {_LAST_USED} AS last_used, m.updated_at, m.access_count,
    octet_length(m.content) AS size, {_IS_PROTECTED} AS is_protected, m.task_metadata
  FROM memories AS m LEFT JOIN scratchpad AS s ON s.seq = m.seq
  WHERE m.archived = 0) AS used
WHERE kind {{among}}
ORDER BY last_used, access_count, seq"""
_SELECT_AMOUNTS: Final = f"""
SELECT known_kind, count(*), CAST(sum(size) AS bigint) FROM (
  SELECT {_KIND} AS known_kind, octet_length(m.content) AS size FROM memories AS m
  WHERE {{condition}}) AS known
GROUP BY known_kind"""
_SELECT_LEAST_USED: Final = f"""
SELECT m.id FROM memories AS m LEFT JOIN scratchpad AS s ON s.seq = m.seq
WHERE m.archived = 0 AND {_KIND} = ? AND NOT {_IS_PROTECTED}
ORDER BY {_LAST_USED}, m.access_count, m.seq LIMIT ?"""


class UsageQueries(Table):
    """Queries on how each memory is used, and on the number and size of each kind."""

    def uses(self, kinds: Collection[MemoryKind], *, recent_since: datetime) -> list[Usage]:
        sql = _SELECT_USES.format(
            greatest=self._db.GREATEST,
            among=self._db.AMONG,
            task_metadata=self._db.AS_BYTES.format("task_metadata"),
        )
        values = (format_time(recent_since), self._db.listed(kind.value for kind in kinds))
        kinds_by_value = {kind.value: kind for kind in MemoryKind}
        return [
            Usage(
                row_id,
                kinds_by_value[kind],
                last_used,
                updated_at,
                accesses,
                size,
                bool(is_kept),
                task,
            )
            for row_id, kind, last_used, updated_at, accesses, size, is_kept, task in self._db.rows(
                sql, values
            )
        ]

    def texts(self, row_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        sql = f"""SELECT seq, id, {self._db.AS_BYTES.format("content")} FROM memories
WHERE seq {self._db.AMONG}"""
        return {
            row_id: (memory_id, content.decode(errors="replace"))
            for row_id, memory_id, content in self._db.rows(sql, (self._db.listed(row_ids),))
        }

    def amounts(self, kinds: Collection[MemoryKind]) -> defaultdict[str, Amount]:
        condition = f"m.archived = 0 AND {_KIND} {self._db.AMONG}"
        sql = _SELECT_AMOUNTS.format(condition=condition)
        rows = self._db.rows(sql, (self._db.listed(kind.value for kind in kinds),))
        return defaultdict(Amount, {kind: Amount(count, size) for kind, count, size in rows})

    def archived_amounts(self, memory_ids: Sequence[str]) -> dict[MemoryKind, tuple[int, int]]:
        sql = _SELECT_AMOUNTS.format(condition=f"m.archived = 1 AND m.id {self._db.AMONG}")
        rows = self._db.rows(sql, (self._db.listed(memory_ids),))
        return {MemoryKind(kind): (count, size) for kind, count, size in rows}

    def least_used(self, kind: MemoryKind, *, limit: int) -> list[str]:
        sql = _SELECT_LEAST_USED.format(greatest=self._db.GREATEST)
        rows = self._db.rows(sql, (kind.value, limit))
        return [memory_id for (memory_id,) in rows]
