"""The unit of work of one store: every write transaction of a verb is opened here."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple, ParamSpec, TypeVar

from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    StorageError,
    StorageLocked,
)
from agent_memory.models.times import format_time
from agent_memory.runtime.logs import logger
from agent_memory.services.pending_accesses import PendingAccesses, PendingCounts
from agent_memory.services.scratchpad import enter_scratchpad
from agent_memory.storage.engine import Engine

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
        rows_read: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Record a search, the accesses of ``accessed`` and the memories that it returned.

        ``now`` is the time of the accesses; ``rows_read`` has the rows of memories by their ids, as
        far as the search has read them, which saves 80 µs. The counts are pending: a search neither
        waits for a write nor fails if it cannot write.
        """
        if self._engine.read_only:
            return
        # The time of the recall is not ``now``, which the caller of a search may set.
        recalled_at = format_time(self._clock())
        row_ids = {
            memory_id: rows_read[memory_id] for memory_id in recalled if memory_id in rows_read
        }
        if others := [memory_id for memory_id in recalled if memory_id not in rows_read]:
            row_ids |= self._engine.recalls.row_ids_of(others)
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
