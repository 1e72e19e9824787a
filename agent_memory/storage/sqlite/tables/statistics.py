"""Queries for statistics: numbers of memories by field and day, and how they are used."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.queries import DayOfChanges, StatisticsField, Totals
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.fingerprints import decoded

# Texts come as bytes: another program can store one that is not UTF-8.
_COLUMNS: Final[dict[StatisticsField, str]] = {
    "category": "CAST(category AS BLOB)",
    "session": "CAST(created_by_session AS BLOB)",
    "source": "CASE WHEN json_valid(metadata) AND json_type(metadata, '$.source') = 'text'"
    " THEN CAST(metadata ->> '$.source' AS BLOB) END",
}
_SELECT_STORED: Final = """
SELECT {column} AS value, CAST(substr(timestamp, 1, 10) AS BLOB), count(*) FROM memories
WHERE timestamp >= ? GROUP BY 1, 2"""
_BYTES: Final = """coalesce(octet_length(
  CASE WHEN json_valid({values}) THEN {values} ->> '$.content' END), 0)"""
_SELECT_CHANGES: Final = f"""
SELECT CAST(substr(changed_at, 1, 10) AS BLOB), event, count(*),
  sum({_BYTES.format(values="new_values")} - {_BYTES.format(values="old_values")})
FROM history WHERE changed_at >= ? GROUP BY 1, 2"""
_SELECT_TOTALS: Final = """
SELECT count(*), coalesce(sum(archived = 1), 0), coalesce(sum(octet_length(content)), 0)
FROM memories"""
_NEVER_RECALLED: Final = """
FROM memories WHERE access_count = 0 AND archived = 0 AND updated_at <= ?"""
_SELECT_MOST_RECALLED: Final = """
SELECT CAST(id AS BLOB), access_count FROM memories
WHERE access_count > 0 AND archived = 0 ORDER BY access_count DESC, seq LIMIT ?"""
_SELECT_WRITTEN: Final = """
SELECT id, CAST(max(timestamp, updated_at) AS BLOB) FROM memories
WHERE archived = 0 AND id IN (SELECT value FROM json_each(?))"""
_SIZE: Final = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


class StatisticsQueries(Table):
    """Queries for statistics. They read whole tables, and no texts but names."""

    def stored_by_day(
        self, field: StatisticsField, *, since: str
    ) -> list[tuple[str | None, str, int]]:
        rows = self._db.rows(_SELECT_STORED.format(column=_COLUMNS[field]), (since,))
        return [
            (None if value is None else decoded(value), decoded(day), count)
            for value, day, count in rows
        ]

    def changes_by_day(self, *, since: str) -> list[DayOfChanges]:
        return [
            DayOfChanges(decoded(day), *row)
            for day, *row in self._db.rows(_SELECT_CHANGES, (since,))
        ]

    def totals(self) -> Totals:
        count, archived, size = self._db.rows(_SELECT_TOTALS)[0]
        return Totals(count - archived, archived, size, int(self._db.value(_SIZE)))

    def never_recalled(self, *, written_until: str, limit: int) -> tuple[int, list[str]]:
        count = int(self._db.value(f"SELECT count(*) {_NEVER_RECALLED}", (written_until,)))
        sql = f"SELECT CAST(id AS BLOB) {_NEVER_RECALLED} ORDER BY updated_at, seq LIMIT ?"
        rows = self._db.rows(sql, (written_until, limit))
        return count, [decoded(memory_id) for (memory_id,) in rows]

    def most_recalled(self, *, limit: int) -> list[tuple[str, int]]:
        rows = self._db.rows(_SELECT_MOST_RECALLED, (limit,))
        return [(decoded(memory_id), count) for memory_id, count in rows]

    def written(self, memory_ids: Collection[str]) -> dict[str, str]:
        rows = self._db.rows(_SELECT_WRITTEN, (to_json(list(memory_ids)),))
        return {memory_id: decoded(moment) for memory_id, moment in rows}
