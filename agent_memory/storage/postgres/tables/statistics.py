"""Queries for statistics: numbers of memories by field and day, and how they are used."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Final

from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.queries import DayOfChanges, StatisticsField, Totals

# The source as JSON: PostgreSQL cannot convert every JSON string to text, such as "\u0000".
_COLUMNS: Final[dict[StatisticsField, str]] = {
    "category": "to_json(category)::text",
    "session": "to_json(created_by_session)::text",
    "source": "(metadata::json -> 'source')::text",
}
_SELECT_STORED: Final = """
SELECT {column}, substr(timestamp, 1, 10), count(*) FROM memories
WHERE timestamp >= %s GROUP BY 1, 2 ORDER BY 1, 2"""
_BYTES: Final = """coalesce(octet_length(
  CASE WHEN strpos({values}, '\\u0000') = 0 THEN {values}::json ->> 'content' END), 0)"""
_SELECT_CHANGES: Final = f"""
SELECT substr(changed_at, 1, 10), event, count(*),
  sum({_BYTES.format(values="new_values")} - {_BYTES.format(values="old_values")})::bigint
FROM history WHERE changed_at >= %s GROUP BY 1, 2 ORDER BY 1, 2"""
_SELECT_TOTALS: Final = """
SELECT count(*) FILTER (WHERE archived <> 1), count(*) FILTER (WHERE archived = 1),
  coalesce(sum(octet_length(content)), 0)::bigint
FROM memories"""
_NEVER_RECALLED: Final = """
FROM memories WHERE access_count = 0 AND archived = 0 AND updated_at <= %s"""
_SELECT_MOST_RECALLED: Final = """
SELECT id, access_count FROM memories
WHERE access_count > 0 AND archived = 0 ORDER BY access_count DESC, seq LIMIT %s"""
_SELECT_WRITTEN: Final = """
SELECT id, greatest(timestamp, updated_at) FROM memories
WHERE archived = 0 AND id = ANY (%s::text[])"""
# The size of this agent's rows. How much of the pages and indexes is whose is unknown.
_SIZE: Final = """
SELECT coalesce((SELECT sum(pg_column_size(m.*)) FROM memories AS m), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(h.*)) FROM history AS h), 0)::bigint
  + coalesce((SELECT sum(pg_column_size(e.*)) FROM embeddings AS e), 0)::bigint"""


class StatisticsQueries(Table):
    """Queries for statistics. They read all rows of the agent, and no texts but names."""

    def stored_by_day(
        self, field: StatisticsField, *, since: str
    ) -> list[tuple[str | None, str, int]]:
        counts: Counter[tuple[str | None, str]] = Counter()
        for value, day, count in self._db.rows(
            _SELECT_STORED.format(column=_COLUMNS[field]), (since,)
        ):
            name = None if value is None else json.loads(value)
            counts[name if isinstance(name, str) else None, day] += count
        return [(name, day, count) for (name, day), count in counts.items()]

    def changes_by_day(self, *, since: str) -> list[DayOfChanges]:
        return [DayOfChanges(*row) for row in self._db.rows(_SELECT_CHANGES, (since,))]

    def totals(self) -> Totals:
        memories, archived, size = self._db.rows(_SELECT_TOTALS)[0]
        return Totals(memories, archived, size, int(self._db.value(_SIZE)))

    def never_recalled(self, *, written_until: str, limit: int) -> tuple[int, list[str]]:
        count = int(self._db.value(f"SELECT count(*) {_NEVER_RECALLED}", (written_until,)))
        sql = f"SELECT id {_NEVER_RECALLED} ORDER BY updated_at, seq LIMIT %s"
        return count, [memory_id for (memory_id,) in self._db.rows(sql, (written_until, limit))]

    def most_recalled(self, *, limit: int) -> list[tuple[str, int]]:
        rows = self._db.rows(_SELECT_MOST_RECALLED, (limit,))
        return [(memory_id, count) for memory_id, count in rows]

    def written(self, memory_ids: Collection[str]) -> dict[str, str]:
        return dict(self._db.rows(_SELECT_WRITTEN, (list(memory_ids),)))
