"""The unit of work of one store: every write transaction of a verb is opened here.

A search must not wait for a write, so its access counts wait in ``PendingAccesses``. They are
written with the next write transaction, half a second later by a thread of their own, or on
closing, whichever comes first.
"""

import contextlib
import functools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    StorageError,
    StorageLocked,
    StorageUnavailable,
)
from agent_memory.models.limits import (
    DEFAULT_SCRATCHPAD_SIZE,
    MAX_SCRATCHPAD_SIZE,
    MIN_SCRATCHPAD_SIZE,
)
from agent_memory.models.times import format_time
from agent_memory.runtime.logs import logger
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Reason

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig

_FLUSH_AFTER_SECONDS: Final = 0.5
_CLOSE_SECONDS: Final = 0.5
_BEAT_SECONDS: Final = 0.005
_MOST_RETRIES: Final = 3

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


def repeated_if_undone(verb: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Retry a verb of one transaction if nothing of it was kept.

    That happens when a server broke a deadlock, or was lost before the commit: see
    ``StorageError``.
    """

    @functools.wraps(verb)
    def repeated(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        for _ in range(_MOST_RETRIES):
            try:
                return verb(*arguments, **options)
            except StorageError as error:
                if not error.is_undone:
                    raise
        return verb(*arguments, **options)

    return repeated


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


class ScratchpadEntry(NamedTuple):
    """The row ids that entered the scratchpad, and the ids of the memories evicted for them."""

    row_ids: Sequence[int]
    evicted: list[str]


class Promoted(NamedTuple):
    """The ids of memories that use promoted into the scratchpad, and its size afterwards."""

    memory_ids: list[str]
    evicted: list[str]
    scratchpad_size: int


class UnitOfWork:
    """Opens every write transaction of the verbs, and writes pending access counts with it.

    Threads may share it. Memories that were accessed ``promotion_threshold`` times enter the
    scratchpad.
    """

    def __init__(
        self, engine: Engine, clock: Callable[[], datetime], *, promotion_threshold: int
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._promotion_threshold = promotion_threshold
        self._pending = PendingAccesses()
        self.on_promoted: Callable[[Promoted], object] = lambda _: None
        """Called with what use promoted into the scratchpad, after the commit."""

    def accesses(self) -> dict[int, int]:
        """Return how many accesses of each row are not in the file yet."""
        return self._pending.accesses()

    def record_search(
        self,
        accessed: Sequence[str],
        recalled: Sequence[str],
        *,
        milliseconds: float,
        now: datetime,
    ) -> None:
        """Record a search, the accesses of ``accessed`` and the memories that it returned.

        ``now`` is the time of the accesses. The counts are pending: a search neither waits for a
        write nor fails if it cannot write.
        """
        if self._engine.read_only:
            return
        # The time of the recall is not ``now``, which the caller of a search may set.
        recalled_at = format_time(self._clock())
        row_ids = self._engine.recalls.row_ids_of(recalled) if recalled else {}
        rows_accessed = [row_ids[memory_id] for memory_id in accessed if memory_id in row_ids]
        self._add_pending(
            PendingCounts(
                accesses=dict.fromkeys(rows_accessed, (1, format_time(now))),
                queries=1,
                milliseconds=milliseconds,
                recalls=dict.fromkeys(row_ids.values(), recalled_at),
            )
        )

    def record_recalls(self, memory_ids: Sequence[str]) -> None:
        """Record, with the next transaction, that memories were given to the agent now."""
        if memory_ids:
            row_ids = self._engine.recalls.row_ids_of(memory_ids)
            recalled_at = format_time(self._clock())
            self._add_pending(PendingCounts(recalls=dict.fromkeys(row_ids.values(), recalled_at)))

    def _add_pending(self, counts: PendingCounts) -> None:
        if not self._engine.read_only:
            self._pending.add(counts)
            self._pending.flush_soon(self.flush)

    @contextlib.contextmanager
    def write(self) -> Iterator[datetime]:
        """Run the body in a write transaction that includes pending counts; yield its time.

        If the body raises, nothing is written, and the counts are pending again.
        """
        now = self._clock()
        with self._pending.take() as counts, self._engine.write():
            promoted = self._write_counts(counts, now)
            yield now
        if promoted is not None:
            self.on_promoted(promoted)

    def flush(self, *, seconds: float = 0) -> None:
        """Write the pending counts now.

        If another process is writing for longer than ``seconds``, they stay pending.
        """
        deadline = time.monotonic() + seconds
        hindrance = self._hindrance()
        while isinstance(hindrance, StorageLocked) and time.monotonic() < deadline:
            time.sleep(_BEAT_SECONDS)
            hindrance = self._hindrance()
        if hindrance is not None:
            logger().info("access counts are kept for later: %s", hindrance)

    def _hindrance(self) -> AgentMemoryError | None:
        """Write the pending counts; return the error that prevents it, if any."""
        if self._pending.is_empty():
            return None
        try:
            with self._engine.nowait(), self.write():
                return None
        except (StorageError, ConfigurationError) as error:  # or the file is another agent's now
            return error

    def close(self) -> None:
        """Write the pending counts, and accept no more.

        They are no reason to wait for another process longer than a write takes: somebody who asked
        one question is waiting for the process to end.
        """
        self._pending.cancel_flush()
        self.flush(seconds=_CLOSE_SECONDS)

    def _write_counts(self, counts: PendingCounts, now: datetime) -> Promoted | None:
        if not counts.is_empty():
            counts.reconcile(self._engine.agent.queries())
        self._engine.agent.count_queries(
            queries=counts.queries, total_ms=counts.milliseconds, now=now
        )
        self._engine.recalls.record(counts.recalls, now)
        if not counts.accesses:
            return None
        self._engine.memories.count_accesses(counts.accesses)
        row_ids = self._engine.scratchpad.promotable(
            list(counts.accesses), threshold=self._promotion_threshold
        )
        if not row_ids:
            return None
        entry = enter_scratchpad(self._engine, row_ids, "accessed", now)
        self._engine.agent.count_promotions(len(row_ids))
        ids = self._engine.memories.ids_of(entry.row_ids)
        return Promoted(ids, entry.evicted, self._engine.scratchpad.size())


class Service:
    """The verbs of one feature on one file. Threads may share it."""

    def __init__(
        self, engine: Engine, unit_of_work: UnitOfWork, clock: Callable[[], datetime]
    ) -> None:
        self._engine = engine
        self._unit_of_work = unit_of_work
        self._clock = clock


def enter_scratchpad(
    engine: Engine,
    row_ids: Sequence[int],
    reason: Reason,
    now: datetime,
    *,
    settings: "AgentConfig | None" = None,
) -> ScratchpadEntry:
    """Put memories into the scratchpad, the last of each user if there is no room for all."""
    max_size = settings.scratchpad_max_size if settings else _max_size(engine)
    entering: list[int] = []
    for user_id, own in engine.scratchpad.by_user(row_ids).items():
        # Memories promoted by hand make no room for ones that were just stored.
        promoted = 0 if reason == "promoted" else engine.scratchpad.count_promoted(user_id)
        entering += own[max(0, len(own) - max(0, max_size - promoted)) :]
    engine.scratchpad.enter(entering, reason, now=now)
    return ScratchpadEntry(entering, engine.scratchpad.evict(max_size=max_size, keep=entering))


def promoted_first(engine: Engine, row_ids: Sequence[int]) -> list[int]:
    """Order members of the scratchpad for a context: those promoted by hand first.

    Being shown does not count as use: ordered by use alone, newer memories left them no room.
    """
    reasons = engine.scratchpad.reasons(row_ids)
    return sorted(row_ids, key=lambda row_id: reasons.get(row_id) != "promoted")


def _max_size(engine: Engine) -> int:
    """Return the size of the scratchpad, read without the models.

    A search promotes a memory when it finds it for the third time. Such a process took 170 ms of
    processor time instead of 70, since it imported Pydantic for this number.
    """
    try:
        size = json.loads(engine.agent.settings()).get(
            "scratchpad_max_size", DEFAULT_SCRATCHPAD_SIZE
        )
    except (ValueError, AttributeError, RecursionError):  # written by another program
        size = None
    is_size = type(size) is int and MIN_SCRATCHPAD_SIZE <= size <= MAX_SCRATCHPAD_SIZE
    return size if is_size else engine.agent.config().scratchpad_max_size
