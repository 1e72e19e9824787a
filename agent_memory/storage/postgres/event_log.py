"""The event log in a database: one table, to which every process appends.

It takes no part in the transactions of the memory: an event waits for no writer and no disk.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from agent_memory.errors import AgentMemoryError
from agent_memory.models.event import MemoryEvent
from agent_memory.runtime.event_log import (
    MOST_BYTES,
    event_of,
    is_about,
    line_of,
    without,
)
from agent_memory.storage.postgres.connection import Database, Row

_MOST_BYTES: Final = 4 * MOST_BYTES
"""As much as the files of an agent hold."""
_LOOKS_EVERY: Final = 1_000
"""Once in this many events, the size is checked to delete the oldest: that reads 20 MB."""
_LOOK_SECONDS: Final = 0.25
_PAGE: Final = 1_000

_INSERT: Final = """
INSERT INTO events (event_id, event)
SELECT greatest(
    (SELECT coalesce(max(event_id), 0) FROM events WHERE agent_id = this_agent()),
    (extract(epoch FROM clock_timestamp()) * 1e6)::bigint
  ) + number, line::json
FROM unnest(%s::text[]) WITH ORDINALITY AS lines (line, number)
RETURNING event_id"""
_SELECT: Final = """
SELECT event_id, event::text FROM events
WHERE event_id > %s AND strpos(event::text, %s) > 0 ORDER BY event_id LIMIT %s"""
_TRIM: Final = """
DELETE FROM events WHERE event_id <= (
  SELECT event_id FROM (
    SELECT event_id, sum(octet_length(event::text)) OVER (ORDER BY event_id DESC) AS size
    FROM events
  ) AS sized WHERE size > %s ORDER BY event_id DESC LIMIT 1)"""


class EventLog:
    """The events of one agent. Threads and processes may share them.

    ``failures`` counts the events that this object could not write.
    """

    def __init__(self, database: Database, *, most_bytes: int = _MOST_BYTES) -> None:
        self._db = database
        self._most_bytes = most_bytes
        self.failures = 0

    def append(self, events: list[MemoryEvent]) -> None:
        # A database accepts neither half a surrogate pair nor a NUL.
        lines = [line_of(event).encode(errors="replace").decode() for event in events]
        try:
            with self._db.write_aside("events"):
                numbers = self._db.rows(_INSERT, (lines,))
                if any(number % _LOOKS_EVERY == 0 for (number,) in numbers):
                    self.trim()
        except AgentMemoryError:
            self.failures += len(events)

    def trim(self) -> None:
        """Delete the oldest events beyond the size limit. Must run inside ``write_aside``."""
        self._db.run(_TRIM, (self._most_bytes,))

    # Reading ----------------------------------------------------------------------------------

    def read(self, *, memory_id: str | None = None) -> Iterator[MemoryEvent]:
        """Yield the existing events, oldest first; with ``memory_id``, only those about it."""
        piece = "" if memory_id is None else json.dumps(memory_id)
        for _, line in self._lines(0, piece):
            event = event_of(line.encode())
            if event is not None and (memory_id is None or is_about(event, memory_id)):
                yield event

    def follow(self, *, until: Callable[[], bool] = lambda: False) -> Iterator[MemoryEvent | None]:
        """Yield events from now on, and ``None`` whenever there is nothing new."""
        last = self._db.value("SELECT max(event_id) FROM events")
        return self._following(last or 0, until)  # from this call on

    def _following(self, last: int, until: Callable[[], bool]) -> Iterator[MemoryEvent | None]:
        while True:
            has_ended = until()
            for number, line in self._lines(last):
                last = number
                if event := event_of(line.encode()):
                    yield event
            if has_ended:
                return
            yield None
            time.sleep(_LOOK_SECONDS)

    def _lines(self, after: int, piece: str = "") -> Iterator[Row]:
        """Yield number and line of the events after one that contain a piece, page by page."""
        while rows := self._db.rows(_SELECT, (after, piece, _PAGE)):
            yield from rows
            after = rows[-1][0]

    # Erasing ----------------------------------------------------------------------------------

    def forget(self, memory_ids: Collection[str]) -> None:
        with self._db.write_aside("events"):
            for number, line in list(self._lines(0)):
                kept = without(f"{line}\n".encode(), memory_ids)
                if kept is None:
                    self._db.run("DELETE FROM events WHERE event_id = %s", (number,))
                elif kept.decode().rstrip("\n") != line:
                    self._db.run(
                        "UPDATE events SET event = %s::json WHERE event_id = %s",
                        (kept.decode(), number),
                    )
