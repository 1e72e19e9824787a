"""The table of changes. Triggers write it; the library says who made the change, and reads it."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime
from typing import Any, Final

from agent_memory.connection import Database
from agent_memory.models.memory import HistoryEntry
from agent_memory.times import format_time, read_stored_time
from agent_memory.vocabulary import HistoryEvent

_SIGN: Final = """
UPDATE history SET session_id = ?, changed_at = ?
WHERE change_id > ? AND memory_id = ?"""
_SELECT: Final = """
SELECT change_id, memory_id, event, changed_at, session_id, old_values, new_values FROM history
{where} ORDER BY change_id DESC LIMIT ?"""
_JSON_FIELDS: Final = ("tags", "metadata", "task_metadata")


def last_change(database: Database) -> int:
    """Return the number of the newest change, 0 for none."""
    return int(database.value("SELECT max(change_id) FROM history") or 0)


def sign(database: Database, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
    """Say which session made the changes after ``since``, and when by the store's clock."""
    database.run(_SIGN, (session_id, format_time(now), since, memory_id))


def entries(database: Database, memory_id: str | None, *, limit: int) -> list[HistoryEntry]:
    """Return the changes of one memory, or of all, newest first."""
    where, values = ("", ()) if memory_id is None else ("WHERE memory_id = ?", (memory_id,))
    rows = database.rows(_SELECT.format(where=where), (*values, limit))
    return [
        HistoryEntry(
            change_id=change_id,
            memory_id=of,
            event=HistoryEvent(event),
            changed_at=read_stored_time(changed_at),
            session_id=session_id,
            old_values=_read(old),
            new_values=_read(new),
        )
        for change_id, of, event, changed_at, session_id, old, new in rows
    ]


def _read(text: str | None) -> dict[str, Any] | None:
    """Read the values of a change; the JSON columns are texts inside, as the table has them."""
    if text is None:
        return None
    values: dict[str, Any] = json.loads(text)
    for field in _JSON_FIELDS:
        if isinstance(values.get(field), str):
            with contextlib.suppress(ValueError, RecursionError):  # then the text itself is told
                values[field] = json.loads(values[field])
    if "archived" in values:
        values["archived"] = bool(values["archived"])
    return values
