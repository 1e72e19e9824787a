"""What searches count and give out, held in this process until it is written.

A search must not wait for a write, so its access counts are noted here and go into the file with
the next write, half a second later by a thread of its own, or at closing, whichever comes first.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent_memory.errors import StorageError, StorageUnavailable

_FLUSH_AFTER_SECONDS: Final = 0.5


@dataclass(slots=True)
class SearchNotes:
    """Counts: by row id how many accesses and the time of the last; searches; their time.

    ``recalls`` are the rows that were given to the agent, by a search or a context, and when.
    ``tried`` are notes of which it is not known whether they were written, and ``queries_after``
    how many searches the file counts if these were.
    """

    accesses: dict[int, tuple[int, str]] = field(default_factory=dict)
    queries: int = 0
    milliseconds: float = 0.0
    recalls: dict[int, str] = field(default_factory=dict)
    tried: SearchNotes | None = None
    queries_after: int = 0

    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        return self.queries == 0 and not self.recalls and self.tried is None

    def settle(self, queries: int) -> None:
        """Make out by the searches that the file counts whether those that were tried are in it.

        When the sync of a commit fails, what it wrote can still be there when the file is opened
        anew; it was counted twice.
        """
        tried, self.tried = self.tried, None
        if tried is not None and queries < tried.queries_after:
            self.merge(tried)
        self.queries_after = queries + self.queries

    def merge(self, other: SearchNotes) -> None:
        """Add the counts of another."""
        for row_id, (times, moment) in other.accesses.items():
            counted, latest = self.accesses.get(row_id, (0, ""))
            self.accesses[row_id] = (counted + times, max(latest, moment))
        self.queries += other.queries
        self.milliseconds += other.milliseconds
        for row_id, moment in other.recalls.items():
            self.recalls[row_id] = max(self.recalls.get(row_id, ""), moment)


class PendingAccesses:
    """The notes of one store; threads may share it."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._notes = SearchNotes()
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def _leave_parent(self) -> None:
        """After ``fork`` the notes are the parent's to write, and its lock may be held forever."""
        if os.getpid() != self._pid:
            self._forget()

    def add(self, notes: SearchNotes) -> None:
        """Note more counts."""
        self._leave_parent()
        with self._lock:
            self._notes.merge(notes)

    def accesses(self) -> dict[int, int]:
        """Return how many accesses of each row are not written yet."""
        self._leave_parent()
        with self._lock:
            known = SearchNotes()
            for notes in (self._notes, self._notes.tried):
                known.merge(notes or SearchNotes())
            return {row_id: times for row_id, (times, _) in known.accesses.items()}

    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        self._leave_parent()
        return self._notes.is_empty()

    @contextlib.contextmanager
    def taken(self) -> Iterator[SearchNotes]:
        """Take the notes away to write them in the body; they come back if it fails.

        Where the disk failed they come back as ``tried``.
        """
        self._leave_parent()
        with self._lock:
            notes, self._notes = self._notes, SearchNotes()
        try:
            yield notes
        except BaseException as error:
            has_disk_failed = type(error) in (StorageError, StorageUnavailable)
            with self._lock:
                fresh, self._notes = self._notes, notes
                if has_disk_failed and notes.queries_after:
                    self._notes = SearchNotes(tried=notes)
                else:
                    notes.queries_after = 0
                self._notes.merge(fresh)
            raise

    def flush_soon(self, flush: Callable[[], None]) -> None:
        """Call ``flush`` in a while, once for all the notes until then."""
        self._leave_parent()
        with self._lock:
            if self._timer is None and not self._is_closed:
                self._timer = threading.Timer(_FLUSH_AFTER_SECONDS, self._fire, [flush])
                self._timer.daemon = True
                self._timer.start()

    def _fire(self, flush: Callable[[], None]) -> None:
        flush()
        with self._lock:
            self._timer = None  # only now: `cancel_flush` waits for it
            is_empty = self._notes.is_empty()
        if not is_empty:
            self.flush_soon(flush)

    def cancel_flush(self) -> None:
        """Call off any ``flush`` that is to come, and wait for one that is under way."""
        self._leave_parent()
        with self._lock:
            timer = self._timer
            self._is_closed = True
        if timer is not None:
            timer.cancel()
            if timer is not threading.current_thread():
                timer.join()


def notes_of(
    accessed: Sequence[int],
    *,
    milliseconds: float,
    moment: str,
    recalled: Sequence[int] = (),
    recalled_at: str = "",
) -> SearchNotes:
    """Return the notes of one search, which gave out the rows ``recalled``."""
    accesses = dict.fromkeys(accessed, (1, moment))
    return SearchNotes(accesses, 1, milliseconds, dict.fromkeys(recalled, recalled_at))
