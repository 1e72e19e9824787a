"""The table of what was given to the agent of late, in this process or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time, shifted
from agent_memory.storage.sqlite.connection import Database

RECALL_WINDOW: Final = timedelta(hours=1)
"""How long a memory that was given out is remembered as such."""

# The memory may be gone by the time that this is written.
_RECORD: Final = """
INSERT INTO recalls (seq, recalled_at) SELECT seq, ? FROM memories WHERE seq = ?
ON CONFLICT (seq) DO UPDATE SET recalled_at = max(recalled_at, excluded.recalled_at)"""


def span(now: datetime) -> tuple[str, str]:
    """Return the first and the last moment at which what was given out counts.

    A later one was written before the clock was set back: nothing is known of its age.
    """
    return format_time(shifted(now, -RECALL_WINDOW)), format_time(now)


def rows_of(database: Database, memory_ids: Sequence[str]) -> dict[str, int]:
    """Return the row numbers of memories, by id."""
    sql = "SELECT id, seq FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    return dict(database.rows(sql, (to_json(list(memory_ids)),)))


def record(database: Database, recalled: Mapping[int, str], now: datetime) -> None:
    """Write down when rows were given out, and forget what was long ago."""
    if recalled:
        database.run("DELETE FROM recalls WHERE recalled_at NOT BETWEEN ? AND ?", span(now))
        database.run_many(_RECORD, ((moment, seq) for seq, moment in recalled.items()))


def are_any(database: Database, now: datetime) -> bool:
    """Return whether anything was given out of late."""
    sql = "SELECT 1 FROM recalls WHERE recalled_at BETWEEN ? AND ? LIMIT 1"
    return database.row(sql, span(now)) is not None
