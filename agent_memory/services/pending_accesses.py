"""Access counts of searches that wait to be written, held in this process.

A search must not wait for a write, so its counts wait here and go into the file with the next write
transaction, half a second later by a thread of their own, or at closing, whichever comes first.
``UnitOfWork`` writes them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from agent_memory.errors import StorageError, StorageUnavailable

_FLUSH_AFTER_SECONDS: Final = 0.5


@dataclass(slots=True)
class PendingCounts:
    """Counts that wait: accesses by row id, with the time of the last; searches; their time.

    ``recalls`` has, by row id, when a search or a context last gave a memory to the agent.
    ``unconfirmed`` are counts whose commit failed in the disk's sync, so that they may or may not
    be in the file, and ``queries_after`` is the file's number of searches if they are.
    """

    accesses: dict[int, tuple[int, str]] = field(default_factory=dict)
    queries: int = 0
    milliseconds: float = 0.0
    recalls: dict[int, str] = field(default_factory=dict)
    unconfirmed: PendingCounts | None = None
    queries_after: int = 0

    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        return self.queries == 0 and not self.recalls and self.unconfirmed is None

    def reconcile(self, queries: int) -> None:
        """Take the unconfirmed counts back unless the file's number of searches has them already.

        When the sync of a commit fails, what it wrote can still be there when the file is opened
        anew; it was counted twice.
        """
        unconfirmed, self.unconfirmed = self.unconfirmed, None
        if unconfirmed is not None and queries < unconfirmed.queries_after:
            self.merge(unconfirmed)
        self.queries_after = queries + self.queries

    def merge(self, other: PendingCounts) -> None:
        """Add the counts of another."""
        for row_id, (times, moment) in other.accesses.items():
            counted, latest = self.accesses.get(row_id, (0, ""))
            self.accesses[row_id] = (counted + times, max(latest, moment))
        self.queries += other.queries
        self.milliseconds += other.milliseconds
        for row_id, moment in other.recalls.items():
            self.recalls[row_id] = max(self.recalls.get(row_id, ""), moment)


class PendingAccesses:
    """The counts of one store that wait to be written. Threads may share it."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._counts = PendingCounts()
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def _leave_parent(self) -> None:
        """After ``fork`` the counts are the parent's to write, and its lock may be held forever."""
        if os.getpid() != self._pid:
            self._forget()

    def add(self, counts: PendingCounts) -> None:
        """Add counts to those that wait."""
        self._leave_parent()
        with self._lock:
            self._counts.merge(counts)

    def accesses(self) -> dict[int, int]:
        """Return, by row id, how many accesses are not written yet."""
        self._leave_parent()
        with self._lock:
            unwritten = PendingCounts()
            for counts in (self._counts, self._counts.unconfirmed):
                unwritten.merge(counts or PendingCounts())
            return {row_id: times for row_id, (times, _) in unwritten.accesses.items()}

    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        self._leave_parent()
        return self._counts.is_empty()

    @contextlib.contextmanager
    def take(self) -> Iterator[PendingCounts]:
        """Take the counts away to write them in the body; they come back if it raises.

        Where the disk failed they come back as ``unconfirmed``.
        """
        self._leave_parent()
        with self._lock:
            counts, self._counts = self._counts, PendingCounts()
        try:
            yield counts
        except BaseException as error:
            has_disk_failed = type(error) in (StorageError, StorageUnavailable)
            with self._lock:
                fresh, self._counts = self._counts, counts
                if has_disk_failed and counts.queries_after:
                    self._counts = PendingCounts(unconfirmed=counts)
                else:
                    counts.queries_after = 0
                self._counts.merge(fresh)
            raise

    def flush_soon(self, flush: Callable[[], None]) -> None:
        """Call ``flush`` in a while, once for all the counts until then."""
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
            is_empty = self._counts.is_empty()
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
