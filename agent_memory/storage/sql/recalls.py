"""The table ``recalls``: when memories were last returned to the agent, by any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from agent_memory.storage.records import recall_window
from agent_memory.storage.sql import Table

# The memory may be gone by the time this is written.
_RECORD: Final = """
INSERT INTO recalls (seq, recalled_at) SELECT seq, ? FROM memories WHERE seq = ?
ON CONFLICT ({key}) DO UPDATE
SET recalled_at = {greatest}(recalls.recalled_at, excluded.recalled_at)"""


class RecallTable(Table):
    """The table of when each memory was last returned to the agent."""

    def row_ids_of(self, memory_ids: Sequence[str]) -> dict[str, int]:
        sql = f"SELECT id, seq FROM memories WHERE id {self._db.AMONG}"
        return dict(self._db.rows(sql, (self._db.listed(memory_ids),)))

    def record(self, recalled: Mapping[int, str], now: datetime) -> None:
        if not recalled:
            return
        sql = _RECORD.format(key=self._db.ROW_KEY, greatest=self._db.GREATEST)
        with self._db.counting():
            self._db.run(
                "DELETE FROM recalls WHERE recalled_at NOT BETWEEN ? AND ?", recall_window(now)
            )
            self._db.run_many(sql, ((moment, row_id) for row_id, moment in recalled.items()))

    def is_any_recent(self, now: datetime) -> bool:
        sql = "SELECT 1 FROM recalls WHERE recalled_at BETWEEN ? AND ? LIMIT 1"
        return self._db.row(sql, recall_window(now)) is not None
