"""The table of memories in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.models.enums import MemoryOrder
from agent_memory.models.excerpt import MemoryExcerpt
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import MEMORY_FIELDS
from agent_memory.storage.filters import Filter, spread_rows
from agent_memory.storage.memory_values import column_value
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.filters import compiled
from agent_memory.storage.records import Signals, signals_of_row
from agent_memory.storage.sql import Condition, memories
from agent_memory.storage.sql.memories import KEYS, sorting
from agent_memory.text.dates import Span

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner

_INSERT: Final = f"""
INSERT INTO memories ({", ".join(MEMORY_FIELDS)})
VALUES ({", ".join(["%s"] * len(MEMORY_FIELDS))}) RETURNING seq"""
# The rows are chosen before their texts are read.
_SELECT_RECENT: Final = f"""
WITH chosen AS MATERIALIZED (SELECT m.agent_id, m.seq FROM memories AS m
  WHERE {{condition}} ORDER BY {{order}} LIMIT %s OFFSET %s)
SELECT {memories.COLUMNS} FROM chosen JOIN memories AS m USING (agent_id, seq)
ORDER BY {{order}}"""
_SELECT_BEGINNINGS: Final = """
WITH chosen AS MATERIALIZED (SELECT m.agent_id, m.seq FROM memories AS m
  WHERE {condition} ORDER BY m.timestamp DESC, m.seq DESC LIMIT %s)
SELECT left(m.content, %s) FROM chosen JOIN memories AS m USING (agent_id, seq)
ORDER BY m.timestamp DESC, m.seq DESC"""
_SELECT_SIGNALS: Final = """
SELECT m.seq, m.created_by_session, m.timestamp, m.access_count
FROM memories AS m WHERE m.seq = ANY(%s) AND {condition} ORDER BY m.seq"""
_SELECT_AMONG: Final = "SELECT m.seq FROM memories AS m WHERE m.seq = ANY(%s) AND {condition}"
_SELECT_BETWEEN: Final = """
SELECT m.seq FROM memories AS m WHERE m.timestamp BETWEEN %s AND %s AND {condition}
ORDER BY m.timestamp DESC, m.seq DESC LIMIT %s"""
# The two nearest on a side, by one index lookup. For one owner's rows the index of users has the
# same order, so other users' memories in that session are not even visited.
_SELECT_SIDE: Final = """
  ARRAY(SELECT n.seq FROM memories AS n
    WHERE n.agent_id = m.agent_id AND n.created_by_session = m.created_by_session
      AND (n.timestamp, n.seq) {than} (m.timestamp, m.seq) {{own}}
    ORDER BY n.timestamp {order}, n.seq {order} LIMIT 2)"""
_SIDES: Final = ", ".join(
    _SELECT_SIDE.format(than=than, order=order) for than, order in (("<", "DESC"), (">", "ASC"))
)
_SELECT_AROUND: Final = f"""
SELECT m.seq, {_SIDES} FROM memories AS m
WHERE m.seq = ANY(%s) AND m.created_by_session NOT IN ('psql', 'sqlite3')"""
_COUNT_ACCESSES: Final = """
UPDATE memories SET access_count = least(access_count + %s, 9007199254740991),
  last_accessed = greatest(last_accessed, %s)
WHERE seq = %s"""
_LAST_ROW_ID: Final = """
SELECT greatest((SELECT max(seq) FROM memories),
  (SELECT highest FROM numbers WHERE of_table = 'memories'))"""


class MemoryTable(memories.MemoryTable):
    """The table of memories: rows in, models out."""

    _db: Database
    _compiled = staticmethod(compiled)
    _HAS_OTHERS = """
SELECT EXISTS (SELECT 1 FROM memories WHERE user_id > :user_id)
  OR EXISTS (SELECT 1 FROM memories WHERE user_id < :user_id)
  OR (SELECT count(*) FROM memories) > (SELECT count(*) FROM memories WHERE user_id = :user_id)"""

    @property
    def _agent_id(self) -> str:
        return self._db.agent_id

    def insert(self, memory: Memory) -> int:
        values = [column_value(getattr(memory, name)) for name in MEMORY_FIELDS]
        return int(self._db.value(_INSERT, values))

    def excerpts(self, row_ids: Iterable[int]) -> dict[int, MemoryExcerpt]:
        memories = self.get_many(row_ids)
        return {row_id: MemoryExcerpt.of(memory) for row_id, memory in memories.items()}

    def recent_excerpts(self, filters: Filter, *, limit: int) -> list[MemoryExcerpt]:
        return [MemoryExcerpt.of(memory) for memory in self.recent(filters, limit=limit, offset=0)]

    def readable(self, *, after: int, until: int) -> list[Memory]:
        sql = f"{memories.SELECT} WHERE m.seq > ? AND m.seq <= ?"
        return self._models(self._db.rows(sql, (after, until)))

    def recent(
        self,
        filters: Filter,
        *,
        limit: int,
        offset: int,
        after: str | None = None,
        order: MemoryOrder = MemoryOrder.NEWEST,
    ) -> list[Memory]:
        condition = compiled(filters)
        behind = Condition("true") if after is None else self._behind(after, order)
        sql = _SELECT_RECENT.format(
            condition=f"{behind.sql} AND {condition.sql}", order=sorting(order)
        )
        rows = self._db.rows(sql, (*behind.values, *condition.values, limit, offset))
        return self._models(rows)

    def _behind(self, memory_id: str, order: MemoryOrder) -> Condition:
        """Return the condition of what comes after a memory; if that is gone, nothing does."""
        key, than = KEYS.get(order, ("0", "<"))
        sql = f"SELECT m.timestamp, m.seq, {key} FROM memories AS m WHERE m.id = %s"
        seen = self._db.row(sql, (memory_id,))
        if seen is None:
            return Condition("false")
        later = ">" if order is MemoryOrder.OLDEST else "<"
        behind = f"(m.timestamp, m.seq) {later} (%s, %s)"
        if order not in KEYS:
            return Condition(behind, seen[:2])
        return Condition(
            f"({key} {than} %s OR ({key} = %s AND {behind}))", (seen[2], seen[2], *seen[:2])
        )

    def beginnings(self, filters: Filter, *, characters: int, limit: int) -> list[str]:
        condition = compiled(filters)
        sql = _SELECT_BEGINNINGS.format(condition=condition.sql)
        return [text for (text,) in self._db.rows(sql, (*condition.values, limit, characters))]

    def row_ids(
        self, filters: Filter, *, among: Sequence[int] | None = None, limit: int = -1
    ) -> list[int]:
        condition = compiled(filters)
        most = None if limit < 0 else limit
        if among is None:
            sql = f"SELECT m.seq FROM memories AS m WHERE {condition.sql} LIMIT %s"
            values: tuple[object, ...] = (*condition.values, most)
        else:
            sql = f"{_SELECT_AMONG.format(condition=condition.sql)} LIMIT %s"
            values = (list(among), *condition.values, most)
        return [row_id for (row_id,) in self._db.rows(sql, values)]

    def share_passing(self, filters: Filter) -> float:
        sample = spread_rows(self.last_row_id())
        return len(self.row_ids(filters, among=sample)) / max(1, len(sample))

    def last_row_id_of_damaged(self) -> int:
        return int(self._db.value(_LAST_ROW_ID) or 0)

    def count_accesses(self, accesses: Mapping[int, tuple[int, str]]) -> None:
        self._db.run_many(
            _COUNT_ACCESSES,
            ((times, moment, row_id) for row_id, (times, moment) in accesses.items()),
        )

    def ranking_signals(self, row_ids: Sequence[int], filters: Filter) -> list[Signals]:
        condition = compiled(filters)
        sql = _SELECT_SIGNALS.format(condition=condition.sql)
        return list(map(signals_of_row, self._db.rows(sql, (list(row_ids), *condition.values))))

    def between(self, filters: Filter, spans: Iterable[Span], *, limit: int) -> list[int]:
        return self._within(spans, _SELECT_BETWEEN, compiled(filters), limit)

    def neighbours(
        self, row_ids: Sequence[int], owner: Owner | None = None
    ) -> dict[int, dict[int, int]]:
        own = "" if owner is None else "AND n.user_id = m.user_id"
        if owner is not None and owner.run_id is not None:
            own += " AND n.run_id = m.run_id"
        rows = self._db.rows(_SELECT_AROUND.format(own=own), (list(row_ids),))
        return {
            row_id: dict(zip((-1, -2), before, strict=False))
            | dict(zip((1, 2), after, strict=False))
            for row_id, before, after in rows
        }
