"""The table ``recalls``: when memories were last returned to the agent, by any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.records import recall_window
from agent_memory.storage.sqlite.tables import Table

# The memory may be gone by the time this is written.
_RECORD: Final = """
INSERT INTO recalls (seq, recalled_at) SELECT seq, ? FROM memories WHERE seq = ?
ON CONFLICT (seq) DO UPDATE SET recalled_at = max(recalled_at, excluded.recalled_at)"""


class RecallTable(Table):
    """The table of when each memory was last returned to the agent."""

    def row_ids_of(self, memory_ids: Sequence[str]) -> dict[str, int]:
        sql = "SELECT id, seq FROM memories WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._db.rows(sql, (to_json(list(memory_ids)),)))

    def record(self, recalled: Mapping[int, str], now: datetime) -> None:
        if not recalled:
            return
        with self._db.counting():
            self._db.run(
                "DELETE FROM recalls WHERE recalled_at NOT BETWEEN ? AND ?", recall_window(now)
            )
            self._db.run_many(_RECORD, ((moment, row_id) for row_id, moment in recalled.items()))

    def is_any_recent(self, now: datetime) -> bool:
        sql = "SELECT 1 FROM recalls WHERE recalled_at BETWEEN ? AND ? LIMIT 1"
        return self._db.row(sql, recall_window(now)) is not None
