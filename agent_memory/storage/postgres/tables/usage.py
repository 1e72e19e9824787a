"""Queries on the use and the number of memories, which retention needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.enums import MemoryKind
from agent_memory.models.times import format_time
from agent_memory.storage.change_records import Amount, Usage
from agent_memory.storage.postgres.tables import Table

# A kind that another program made up is a learning, as it is when the memory is read.
_KIND: Final = "CASE WHEN m.kind IN ('core', 'task') THEN m.kind ELSE 'learning' END"
_LAST_USED: Final = "greatest(m.updated_at, coalesce(m.last_accessed, ''))"
_IS_PROTECTED: Final = "(m.importance = 'high' OR s.reason IS NOT DISTINCT FROM 'promoted')"
_SELECT_USES: Final = f"""
SELECT seq, kind, last_used, updated_at, access_count, size,
  is_protected OR last_used > %s AS is_kept,
  CASE kind WHEN 'task' THEN convert_to(task_metadata, 'UTF8') END
FROM (
  SELECT m.seq, {_KIND} AS kind, {_LAST_USED} AS last_used, m.updated_at, m.access_count,
    octet_length(m.content) AS size, {_IS_PROTECTED} AS is_protected, m.task_metadata
  FROM memories AS m LEFT JOIN scratchpad AS s USING (agent_id, seq)
  WHERE m.archived = 0) AS used
WHERE kind = ANY (%s::text[])
ORDER BY last_used, access_count, seq"""
_SELECT_TEXTS: Final = """
SELECT seq, id, content FROM memories WHERE seq = ANY (%s::bigint[])"""
_SELECT_AMOUNTS: Final = f"""
SELECT known_kind, count(*), sum(size)::bigint FROM (
  SELECT {_KIND} AS known_kind, octet_length(m.content) AS size FROM memories AS m
  WHERE {{condition}}) AS known
GROUP BY known_kind"""
_SELECT_CURRENT: Final = _SELECT_AMOUNTS.format(
    condition=f"m.archived = 0 AND {_KIND} = ANY (%s::text[])"
)
_SELECT_ARCHIVED: Final = _SELECT_AMOUNTS.format(
    condition="m.archived = 1 AND m.id = ANY (%s::text[])"
)
_SELECT_LEAST_USED: Final = f"""
SELECT m.id FROM memories AS m LEFT JOIN scratchpad AS s USING (agent_id, seq)
WHERE m.archived = 0 AND {_KIND} = %s AND NOT {_IS_PROTECTED}
ORDER BY {_LAST_USED}, m.access_count, m.seq LIMIT %s"""


class UsageQueries(Table):
    """Queries on the use of each memory, and on the number and size of each kind."""

    def uses(self, kinds: Collection[MemoryKind], *, recent_since: datetime) -> list[Usage]:
        values = (format_time(recent_since), [kind.value for kind in kinds])
        return [
            Usage(row_id, MemoryKind(kind), *rest)
            for row_id, kind, *rest in self._db.rows(_SELECT_USES, values)
        ]

    def texts(self, row_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        rows = self._db.rows(_SELECT_TEXTS, (list(row_ids),))
        return {row_id: (memory_id, content) for row_id, memory_id, content in rows}

    def amounts(self, kinds: Collection[MemoryKind]) -> defaultdict[str, Amount]:
        rows = self._db.rows(_SELECT_CURRENT, ([kind.value for kind in kinds],))
        return defaultdict(Amount, {kind: Amount(count, size) for kind, count, size in rows})

    def archived_amounts(self, memory_ids: Sequence[str]) -> dict[MemoryKind, tuple[int, int]]:
        rows = self._db.rows(_SELECT_ARCHIVED, (list(memory_ids),))
        return {MemoryKind(kind): (count, size) for kind, count, size in rows}

    def least_used(self, kind: MemoryKind, *, limit: int) -> list[str]:
        rows = self._db.rows(_SELECT_LEAST_USED, (kind.value, limit))
        return [memory_id for (memory_id,) in rows]
