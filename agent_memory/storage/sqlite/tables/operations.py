"""The table ``operations``: changes that belong together, and what cannot be undone."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.times import format_time
from agent_memory.storage.records import Operation
from agent_memory.storage.sqlite.tables import Table

_INSERT: Final = """
INSERT INTO operations (verb, done_at, session_id, first_change, last_change)
VALUES (?, ?, ?, ?, ?)"""
_SELECT_LAST: Final = """
SELECT operation_id, verb, first_change, last_change FROM operations
ORDER BY last_change DESC, operation_id DESC LIMIT 1"""
_SELECT_AROUND: Final = """
SELECT operation_id, verb, first_change, last_change FROM operations
WHERE first_change <= ? AND last_change >= ? ORDER BY operation_id DESC LIMIT 1"""
_LAST_NUMBER: Final = "SELECT seq FROM sqlite_sequence WHERE name = 'history'"


class OperationTable(Table):
    """The table of operations: changes that belong together, and what cannot be undone."""

    def last_number(self) -> int:
        return int(self._db.value(_LAST_NUMBER) or 0)

    def record(self, verb: str, *, since: int, session_id: str, now: datetime) -> None:
        last = self.last_number()
        if last > since:
            self._insert(verb, session_id, now, since + 1, last)

    def record_irreversible(self, verb: str, *, session_id: str, now: datetime) -> None:
        last = self.last_number()
        self._insert(verb, session_id, now, last + 1, last)

    def _insert(self, verb: str, session_id: str, now: datetime, first: int, last: int) -> None:
        self._db.run(_INSERT, (verb, format_time(now), session_id, first, last))

    def around(self, change_id: int) -> Operation | None:
        """Return the newest operation that a change belongs to, if it belongs to any."""
        row = self._db.row(_SELECT_AROUND, (change_id, change_id))
        return None if row is None else Operation(*row)

    def last(self) -> Operation | None:
        row = self._db.row(_SELECT_LAST)
        if row is not None and None in row:  # which the schema rules out
            raise StorageCorrupt(f"{self._db.path} is damaged: restore a backup")
        return None if row is None else Operation(*row)
