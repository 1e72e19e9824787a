"""The table of changes. Triggers write it; the library says who made the change, and reads it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.enums import HistoryEvent
from agent_memory.models.fields import to_json
from agent_memory.models.memory import HistoryEntry
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.storage.sqlite.connection import Database, further

_SIGN: Final = """
UPDATE history SET session_id = ?, changed_at = ?
WHERE change_id > ? AND memory_id = ?"""
_SELECT: Final = """
SELECT change_id, memory_id, event, changed_at, session_id, old_values, new_values FROM history
{where} ORDER BY change_id DESC LIMIT ?"""
_SIGN_ALL: Final = """
UPDATE history SET session_id = ?, changed_at = ? WHERE change_id > ?"""
_CHANGE: Final = "change_id, memory_id, event, changed_at, session_id, old_values, new_values"
_INSERT: Final = """
INSERT INTO history (memory_id, event, changed_at, session_id, old_values, new_values)
VALUES (?, ?, ?, ?, ?, ?)"""
_JSON_FIELDS: Final = ("tags", "metadata", "task_metadata")


def last_change(database: Database) -> int:
    """Return the number of the newest change, 0 for none."""
    return int(database.value("SELECT max(change_id) FROM history") or 0)


def sign(database: Database, memory_id: str, *, since: int, session_id: str, now: datetime) -> None:
    """Say which session made the changes after ``since``, and when by the store's clock."""
    database.run(_SIGN, (session_id, format_time(now), since, memory_id))


def sign_all(database: Database, *, since: int, session_id: str, now: datetime) -> None:
    """Say which session made all the changes after ``since``, and when."""
    database.run(_SIGN_ALL, (session_id, format_time(now), since))


def sign_between(
    database: Database, after: int, until: int, *, session_id: str, now: datetime
) -> None:
    """Say which session made the changes from one number (not in it) to another, and when."""
    sql = """UPDATE history SET session_id = ?, changed_at = ?
WHERE change_id > ? AND change_id <= ?"""
    database.run(sql, (session_id, format_time(now), after, until))


@dataclass(frozen=True, slots=True)
class Change:
    """One change as the table holds it: the values are those of the columns of ``memories``.

    A column that was NULL is left out; JSON columns are their text.
    """

    change_id: int
    memory_id: str
    event: str
    changed_at: str
    session_id: str | None
    old: dict[str, Any]
    new: dict[str, Any]

    @property
    def columns(self) -> frozenset[str]:
        """Return the columns that changed."""
        return frozenset({*self.old, *self.new})


def every(database: Database, *, page: int = 1_000) -> Iterator[Change]:
    """Yield all changes, oldest first, read by the page."""
    after = 0
    sql = f"SELECT {_CHANGE} FROM history WHERE change_id > ? ORDER BY change_id LIMIT ?"
    while rows := database.rows(sql, (after, page)):
        yield from map(_change, rows)
        after = further(rows[-1][0], than=after)


def between(database: Database, first: int, last: int) -> list[Change]:
    """Return the changes from one number to another, oldest first."""
    sql = f"SELECT {_CHANGE} FROM history WHERE change_id BETWEEN ? AND ? ORDER BY change_id"
    return [_change(row) for row in database.rows(sql, (first, last))]


def of_memory(database: Database, memory_id: str) -> list[Change]:
    """Return all changes of a memory, oldest first."""
    sql = f"SELECT {_CHANGE} FROM history WHERE memory_id = ? ORDER BY change_id"
    return [_change(row) for row in database.rows(sql, (memory_id,))]


def changed_after(database: Database, moment: datetime) -> list[str]:
    """Return the ids of the memories that were changed after a moment."""
    sql = "SELECT DISTINCT memory_id FROM history WHERE changed_at > ?"
    return [memory_id for (memory_id,) in database.rows(sql, (format_time(moment),))]


def born_after(database: Database, moment: datetime) -> list[str]:
    """Return the ids of the memories of which nothing is known until after a moment."""
    sql = """SELECT h.memory_id FROM history AS h WHERE h.changed_at > ? AND h.event = 'ADD'
AND NOT EXISTS (SELECT 1 FROM history AS e
  WHERE e.memory_id = h.memory_id AND (e.change_id < h.change_id OR e.changed_at <= ?))"""
    stamp = format_time(moment)
    return [memory_id for (memory_id,) in database.rows(sql, (stamp, stamp))]


def insert(database: Database, change: Change) -> None:
    """Add a change that was made elsewhere."""
    old, new = (to_json(values) if values else None for values in (change.old, change.new))
    moment, who = change.changed_at, change.session_id
    database.run(_INSERT, (change.memory_id, change.event, moment, who, old, new))


def known(database: Database, memory_ids: Sequence[str]) -> set[str]:
    """Return those of the ids that have a history."""
    sql = """SELECT DISTINCT memory_id FROM history
WHERE memory_id IN (SELECT value FROM json_each(?))"""
    return {memory_id for (memory_id,) in database.rows(sql, (to_json(list(memory_ids)),))}


def forget(database: Database, memory_ids: Sequence[str], *, after: int, until: int) -> None:
    """Drop the changes of some memories from one number (not in it) to another."""
    sql = """DELETE FROM history WHERE change_id > ? AND change_id <= ?
AND memory_id IN (SELECT value FROM json_each(?))"""
    database.run(sql, (after, until, to_json(list(memory_ids))))


def forget_after(database: Database, moment: datetime, newest: int) -> None:
    """Drop the changes after a moment, and those numbered above ``newest``."""
    sql = "DELETE FROM history WHERE changed_at > ? OR change_id > ?"
    database.run(sql, (format_time(moment), newest))


def _change(row: Sequence[Any]) -> Change:
    number, memory_id, event, changed_at, session_id, old, new = row
    return Change(number, memory_id, event, changed_at, session_id, _values(old), _values(new))


def _values(text: str | None) -> dict[str, Any]:
    """Read the values of a change; another program may have written anything there."""
    try:
        values = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(values, dict):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str | int | None)}


def entries(database: Database, memory_id: str | None, *, limit: int) -> list[HistoryEntry]:
    """Return the changes of one memory, or of all, newest first."""
    where, values = ("", ()) if memory_id is None else ("WHERE memory_id = ?", (memory_id,))
    rows = database.rows(_SELECT.format(where=where), (*values, limit))
    try:
        return [_entry(row) for row in rows]
    except (ValueError, TypeError) as error:  # what the schema rules out
        raise StorageCorrupt(
            f"{database.path} is damaged, and its history cannot be read: restore a backup"
        ) from error


def _entry(row: Sequence[Any]) -> HistoryEntry:
    change_id, of, event, changed_at, session_id, old, new = row
    return HistoryEntry(
        change_id=change_id,
        memory_id=of,
        event=HistoryEvent(event),
        changed_at=read_stored_time(changed_at),
        session_id=session_id,
        old_values=_read(old),
        new_values=_read(new),
    )


def _read(text: str | None) -> dict[str, Any] | None:
    """Read the values of a change; the JSON columns are texts inside, as the table has them."""
    if text is None:
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):  # another program's
        return None
    if not isinstance(values, dict):
        return None
    for field in _JSON_FIELDS:
        if isinstance(values.get(field), str):
            with contextlib.suppress(ValueError, RecursionError):  # then the text itself is told
                values[field] = json.loads(values[field])
    if "archived" in values:
        values["archived"] = bool(values["archived"])
    return values
