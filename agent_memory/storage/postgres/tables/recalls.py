"""The table ``recalls``: when memories were last returned to the agent, by any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.records import recall_window

# The memory may be gone by the time this is written.
_RECORD: Final = """
INSERT INTO recalls (seq, recalled_at)
SELECT m.seq, told.moment FROM unnest(%s::bigint[], %s::text[]) AS told (seq, moment)
JOIN memories AS m ON m.seq = told.seq
ON CONFLICT (agent_id, seq) DO UPDATE
SET recalled_at = greatest(recalls.recalled_at, excluded.recalled_at)"""


class RecallTable(Table):
    """The table of when each memory was last returned to the agent."""

    def row_ids_of(self, memory_ids: Sequence[str]) -> dict[str, int]:
        sql = "SELECT id, seq FROM memories WHERE id = ANY (%s::text[])"
        return dict(self._db.rows(sql, (list(memory_ids),)))

    def record(self, recalled: Mapping[int, str], now: datetime) -> None:
        if recalled:
            sql = "DELETE FROM recalls WHERE recalled_at NOT BETWEEN %s AND %s"
            self._db.run(sql, recall_window(now))
            self._db.run(_RECORD, (list(recalled), list(recalled.values())))

    def is_any_recent(self, now: datetime) -> bool:
        sql = "SELECT 1 FROM recalls WHERE recalled_at BETWEEN %s AND %s LIMIT 1"
        return self._db.row(sql, recall_window(now)) is not None
