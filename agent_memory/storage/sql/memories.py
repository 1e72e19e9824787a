"""The table of memories: rows in, models out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models.fields import is_memory_id
from agent_memory.models.times import format_time
from agent_memory.storage.filters import EVERYTHING, Equals, Filter
from agent_memory.storage.records import MEMORY_COLUMNS, Row
from agent_memory.storage.sql import Condition, Table
from agent_memory.storage.sql.reviews import renew

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory
    from agent_memory.models.owner import Owner
    from agent_memory.text.dates import Span

COLUMNS: Final = ", ".join(f"m.{name}" for name in MEMORY_COLUMNS)
SELECT: Final = f"SELECT {COLUMNS} FROM memories AS m"
# Without a condition SQLite counts page by page: a million memories take some milliseconds, and
# half a second with one. Archived memories have an index.
_COUNT_ALL: Final = "SELECT count(*) FROM memories"
_COUNT_CURRENT: Final = f"""
SELECT ({_COUNT_ALL}) - (SELECT count(*) FROM memories WHERE archived <> 0)"""
NEWEST: Final = "m.timestamp DESC, m.seq DESC"
KEYS: Final[dict[str, tuple[str, str]]] = {
    "importance": ("CASE m.importance WHEN 'high' THEN 0 WHEN 'low' THEN 2 ELSE 1 END", ">"),
    "recalled": ("m.access_count", "<"),
    "last_recalled": ("coalesce(m.last_accessed, '')", "<"),
    "category": ("m.category", ">"),
}
"""What memories are sorted by before their time (as in ``MemoryOrder``, which a search need not
import), and how the key of a later memory compares."""


def sorting(order: str) -> str:
    """Return the SQL of an order."""
    if order == "oldest":
        return "m.timestamp, m.seq"
    if order not in KEYS:
        return NEWEST
    key, than = KEYS[order]
    return f"{key} {'DESC' if than == '<' else 'ASC'}, {NEWEST}"


class MemoryTable(Table):
    """The table of memories: rows in, models out."""

    _compiled: Callable[[Filter], Condition]
    """Returns the SQL condition of a filter."""
    _HAS_OTHERS: str
    """Asks whether there are memories of other users than ``:user_id``."""

    @property
    @abstractmethod
    def _agent_id(self) -> str:
        """The agent whose memories these are."""

    def _models(self, rows: Sequence[Row]) -> list[Memory]:
        """Build models from rows. They need Pydantic, which would delay the start of a hook."""
        from agent_memory.storage.memory_models import memory_of_values  # noqa: PLC0415

        agent_id = self._agent_id
        return [memory_of_values(row, agent_id) for row in rows]

    def exists(self, memory_id: str) -> bool:
        return self._db.row("SELECT 1 FROM memories WHERE id = ?", (memory_id,)) is not None

    def row_id_of(self, memory_id: str) -> int | None:
        if not is_memory_id(memory_id):
            return None
        row_id = self._db.value("SELECT seq FROM memories WHERE id = ?", (memory_id,))
        return None if row_id is None else int(row_id)

    def ids_of(self, row_ids: Sequence[int]) -> list[str]:
        sql = f"SELECT id FROM memories WHERE seq {self._db.AMONG} ORDER BY seq"
        return [memory_id for (memory_id,) in self._db.rows(sql, (self._db.listed(row_ids),))]

    def get(self, memory_id: str) -> Memory | None:
        if not is_memory_id(memory_id):
            return None
        row = self._db.row(f"{SELECT} WHERE m.id = ?", (memory_id,))
        return None if row is None else self._models([row])[0]

    def get_many(self, row_ids: Iterable[int]) -> dict[int, Memory]:
        sql = f"{SELECT} WHERE m.seq {self._db.AMONG}"
        rows = self._db.rows(sql, (self._db.listed(row_ids),))
        return {row[0]: memory for row, memory in zip(rows, self._models(rows), strict=True)}

    def ids(self, filters: Filter) -> list[str]:
        condition = self._compiled(filters)
        sql = f"SELECT m.id FROM memories AS m WHERE {condition.sql} ORDER BY m.seq"
        return [memory_id for (memory_id,) in self._db.rows(sql, condition.values)]

    def count(self, filters: Filter) -> int:
        if not filters.is_narrowing:
            return int(self._db.value(_COUNT_ALL if filters == EVERYTHING else _COUNT_CURRENT))
        condition = self._compiled(filters)
        sql = f"SELECT count(*) FROM memories AS m WHERE {condition.sql}"
        # A search of one owner's memories needs it twice.
        return self._db.once(
            ("count", repr(filters)), lambda: int(self._db.value(sql, condition.values))
        )

    def _within(
        self, spans: Iterable[Span], select: str, condition: Condition, limit: int
    ) -> list[int]:
        """Return the newest rows in each span of days that pass a condition."""
        sql = select.format(condition=condition.sql)
        row_ids: list[int] = []
        for span in spans:
            # Up to the last microsecond of the last day: times sort alike as text.
            bounds = (f"{span.first.isoformat()}T", f"{span.last.isoformat()}U")
            rows = self._db.rows(sql, (*bounds, *condition.values, limit))
            row_ids += [row_id for (row_id,) in rows]
        return row_ids

    def has_others(self, owner: Owner) -> bool:
        if owner.run_id is not None:
            own = Equals("user_id", owner.user_id).and_also(Equals("run_id", owner.run_id))
            return self.count(own) < self.count(EVERYTHING)
        return bool(self._db.value(self._HAS_OTHERS, {"user_id": owner.user_id}))

    def is_empty(self) -> bool:
        return self._db.row("SELECT 1 FROM memories LIMIT 1") is None

    def last_row_id(self) -> int:
        return int(self._db.value("SELECT max(seq) FROM memories") or 0)

    def update(self, row_id: int, changes: Mapping[str, Any], *, now: datetime) -> None:
        from agent_memory.models.memory import MemoryChanges  # noqa: PLC0415 - see _models
        from agent_memory.storage.memory_values import column_value  # noqa: PLC0415

        columns = [name for name in MemoryChanges.model_fields if name in changes]
        settings = "".join(f"{name} = ?, " for name in columns)
        sql = f"UPDATE memories SET {settings}updated_at = ?, version = version + 1 WHERE seq = ?"
        values = [column_value(changes[name]) for name in columns]
        memory_id = self._db.value(f"{sql} RETURNING id", (*values, format_time(now), row_id))
        if "content" not in columns:
            renew(self._db, [memory_id])
