"""The table of what was done to several memories at once, or for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.times import format_time
from agent_memory.storage.sqlite.connection import Database

_INSERT: Final = """
INSERT INTO operations (verb, done_at, session_id, first_change, last_change)
VALUES (?, ?, ?, ?, ?)"""
_SELECT_LAST: Final = """
SELECT operation_id, verb, first_change, last_change FROM operations
ORDER BY last_change DESC, operation_id DESC LIMIT 1"""
_LAST_NUMBER: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'history'"


@dataclass(frozen=True, slots=True)
class Operation:
    """What was done, and the numbers of its first and last change in the history."""

    operation_id: int
    verb: str
    first_change: int
    last_change: int


def last_number(database: Database) -> int:
    """Return the highest number that a change was ever given, whether it is still there or not."""
    return int(database.value(_LAST_NUMBER) or 0)


def record(database: Database, verb: str, *, since: int, session_id: str, now: datetime) -> None:
    """Note that the changes after number ``since`` belong together; without any, note nothing."""
    last = last_number(database)
    if last > since:
        _insert(database, verb, session_id, now, since + 1, last)


def mark(database: Database, verb: str, *, session_id: str, now: datetime) -> None:
    """Note that something was done that ``undo`` cannot take back."""
    last = last_number(database)
    _insert(database, verb, session_id, now, last + 1, last)


def _insert(
    database: Database, verb: str, session_id: str, now: datetime, first: int, last: int
) -> None:
    database.run(_INSERT, (verb, format_time(now), session_id, first, last))


def last(database: Database) -> Operation | None:
    """Return the last operation, if there was any."""
    row = database.row(_SELECT_LAST)
    if row is not None and None in row:  # which the schema rules out
        raise StorageCorrupt(f"{database.path} is damaged: restore a backup")
    return None if row is None else Operation(*row)
