"""Queries for statistics: numbers of memories by field and day, and how they are used."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection
from typing import ClassVar, Final

from agent_memory.storage.queries import DayOfChanges, StatisticsField, Totals
from agent_memory.storage.sql import Table

_SELECT_STORED: Final = """
SELECT {column}, substr(timestamp, 1, 10), count(*) FROM memories
WHERE timestamp >= ? GROUP BY 1, 2 ORDER BY 1, 2"""
_SELECT_CHANGES: Final = """
SELECT substr(changed_at, 1, 10), event, count(*),
  CAST(sum({new_bytes} - {old_bytes}) AS bigint)
FROM history WHERE changed_at >= ? GROUP BY 1, 2 ORDER BY 1, 2"""
_SELECT_TOTALS: Final = """
SELECT count(CASE WHEN archived <> 1 THEN 1 END), count(CASE WHEN archived = 1 THEN 1 END),
  CAST(coalesce(sum(octet_length(content)), 0) AS bigint)
FROM memories"""
_NEVER_RECALLED: Final = """
FROM memories WHERE access_count = 0 AND archived = 0 AND updated_at <= ?"""
_SELECT_MOST_RECALLED: Final = """
SELECT id, access_count FROM memories
WHERE access_count > 0 AND archived = 0 ORDER BY access_count DESC, seq LIMIT ?"""


class StatisticsQueries(Table):
    """Queries for statistics. They read whole tables, and no texts but names."""

    _COLUMNS: ClassVar[dict[StatisticsField, str]]
    """The SQL of each field; ``_name`` makes a name of its value."""
    _BYTES: ClassVar[str]
    """The SQL of the bytes of the content in ``{values}`` of a change, 0 if it has none."""
    _SIZE: ClassVar[str]
    """The query for the bytes that the memories take."""

    @abstractmethod
    def _name(self, value: str | None) -> str | None: ...

    def stored_by_day(
        self, field: StatisticsField, *, since: str
    ) -> list[tuple[str | None, str, int]]:
        counts: Counter[tuple[str | None, str]] = Counter()
        sql = _SELECT_STORED.format(column=self._COLUMNS[field])
        for value, day, count in self._db.rows(sql, (since,)):
            counts[self._name(value), day] += count
        return [(name, day, count) for (name, day), count in counts.items()]

    def changes_by_day(self, *, since: str) -> list[DayOfChanges]:
        sql = _SELECT_CHANGES.format(
            new_bytes=self._BYTES.format(values="new_values"),
            old_bytes=self._BYTES.format(values="old_values"),
        )
        return [DayOfChanges(*row) for row in self._db.rows(sql, (since,))]

    def totals(self) -> Totals:
        memories, archived, size = self._db.rows(_SELECT_TOTALS)[0]
        return Totals(memories, archived, size, int(self._db.value(self._SIZE)))

    def never_recalled(self, *, written_until: str, limit: int) -> tuple[int, list[str]]:
        count = int(self._db.value(f"SELECT count(*) {_NEVER_RECALLED}", (written_until,)))
        sql = f"SELECT id {_NEVER_RECALLED} ORDER BY updated_at, seq LIMIT ?"
        return count, [memory_id for (memory_id,) in self._db.rows(sql, (written_until, limit))]

    def most_recalled(self, *, limit: int) -> list[tuple[str, int]]:
        rows = self._db.rows(_SELECT_MOST_RECALLED, (limit,))
        return [(memory_id, count) for memory_id, count in rows]

    def written(self, memory_ids: Collection[str]) -> dict[str, str]:
        sql = f"""SELECT id, {self._db.GREATEST}(timestamp, updated_at) FROM memories
WHERE archived = 0 AND id {self._db.AMONG}"""
        return dict(self._db.rows(sql, (self._db.listed(memory_ids),)))
