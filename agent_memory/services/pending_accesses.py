"""Access counts that are not written yet: a search must not wait for a write.

They are written with the next write transaction, half a second later by a thread of their own, or
on closing, whichever comes first.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Final

from agent_memory.errors import StorageError, StorageUnavailable

_FLUSH_AFTER_SECONDS: Final = 0.5


class PendingCounts:
    """Pending counts: accesses by row id, with the time of the last; searches; their time.

    ``recalls`` has, by row id, when a search or a context last gave a memory to the agent.
    ``unconfirmed`` are counts whose commit failed when syncing to disk, so they may or may not be
    in the file; ``queries_after`` is the file's number of searches if they are.
    """

    __slots__ = (
        "accesses", "milliseconds", "queries", "queries_after", "recalls", "unconfirmed",
    )  # fmt: skip

    def __init__(
        self,
        accesses: dict[int, tuple[int, str]] | None = None,
        queries: int = 0,
        milliseconds: float = 0.0,
        recalls: dict[int, str] | None = None,
        unconfirmed: "PendingCounts | None" = None,
    ) -> None:
        self.accesses = accesses or {}
        self.queries = queries
        self.milliseconds = milliseconds
        self.recalls = recalls or {}
        self.unconfirmed = unconfirmed
        self.queries_after = 0

    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        return self.queries == 0 and not self.recalls and self.unconfirmed is None

    def reconcile(self, queries: int) -> None:
        """Restore the unconfirmed counts unless the file's number of searches includes them.

        When the sync of a commit fails, what it wrote may still be there when the file is reopened;
        then it was counted twice.
        """
        unconfirmed, self.unconfirmed = self.unconfirmed, None
        if unconfirmed is not None and queries < unconfirmed.queries_after:
            self.merge(unconfirmed)
        self.queries_after = queries + self.queries

    def merge(self, other: "PendingCounts") -> None:
        """Add the counts of another object."""
        for row_id, (times, moment) in other.accesses.items():
            counted, latest = self.accesses.get(row_id, (0, ""))
            self.accesses[row_id] = (counted + times, max(latest, moment))
        self.queries += other.queries
        self.milliseconds += other.milliseconds
        for row_id, moment in other.recalls.items():
            self.recalls[row_id] = max(self.recalls.get(row_id, ""), moment)


class PendingAccesses:
    """The counts of one store that are not written yet. Threads may share it."""

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
        """Add counts to the pending ones."""
        self._leave_parent()
        with self._lock:
            self._counts.merge(counts)

    def accesses(self) -> dict[int, int]:
        """Return, by row id, how many accesses are not written yet."""
        self._leave_parent()
        with self._lock:
            unwritten = {row_id: times for row_id, (times, _) in self._counts.accesses.items()}
            if self._counts.unconfirmed is not None:
                for row_id, (times, _) in self._counts.unconfirmed.accesses.items():
                    unwritten[row_id] = unwritten.get(row_id, 0) + times
            return unwritten

    def is_empty(self) -> bool:
        """Return whether there is nothing to write."""
        self._leave_parent()
        return self._counts.is_empty()

    @contextlib.contextmanager
    def take(self) -> Iterator[PendingCounts]:
        """Take the counts to write them in the body; they are restored if it raises.

        If the disk failed, they are restored as ``unconfirmed``.
        """
        self._leave_parent()
        with self._lock:
            counts, self._counts = self._counts, PendingCounts()
        try:
            yield counts
        except BaseException as error:  # Ctrl-C too: unwritten counts must be kept
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
        """Call ``flush`` in a while, once for all the counts until then.

        If no thread can be started, they wait for the next write or for closing.
        """
        self._leave_parent()
        with self._lock:
            if self._timer is None and not self._is_closed:
                timer = threading.Timer(_FLUSH_AFTER_SECONDS, self._fire, [flush])
                timer.daemon = True
                with contextlib.suppress(RuntimeError):  # too many threads, or shutdown
                    timer.start()
                    self._timer = timer

    def _fire(self, flush: Callable[[], None]) -> None:
        flush()
        with self._lock:
            self._timer = None  # only now: `cancel_flush` waits for it
            is_empty = self._counts.is_empty()
        if not is_empty:
            self.flush_soon(flush)

    def cancel_flush(self) -> None:
        """Cancel a scheduled ``flush``, or wait for one that is running."""
        self._leave_parent()
        with self._lock:
            timer = self._timer
            self._is_closed = True
        if timer is not None:
            timer.cancel()
            if timer is not threading.current_thread():
                timer.join()
