"""What searches count and give out, on its way into the file: with the next write, or soon."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from agent_memory.errors import StorageError
from agent_memory.models.agent import AgentConfig
from agent_memory.models.times import format_time
from agent_memory.services.pending_accesses import PendingAccesses, SearchNotes, notes_of
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Reason


class Entered(NamedTuple):
    """What came into the scratchpad: the rows that did, and the ids of those that made room."""

    row_ids: Sequence[int]
    evicted: list[str]


class Promoted(NamedTuple):
    """What came into the scratchpad because it was used, and how many are in then."""

    memory_ids: list[str]
    evicted: list[str]
    scratchpad_size: int


class UnitOfWork:
    """The notes of one store's searches. Threads may share it.

    Memories that were accessed ``promotion_threshold`` times enter the scratchpad.
    """

    def __init__(
        self, engine: Engine, clock: Callable[[], datetime], *, promotion_threshold: int
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._promotion_threshold = promotion_threshold
        self._pending = PendingAccesses()
        self.when_promoted: Callable[[Promoted], object] = lambda _: None
        """Is told what use brought into the scratchpad, once that is in the file."""

    def accesses(self) -> dict[int, int]:
        """Return how many accesses of each row are not in the file yet."""
        return self._pending.accesses()

    def note_search(
        self,
        accessed: Sequence[str],
        recalled: Sequence[str],
        *,
        milliseconds: float,
        now: datetime,
    ) -> None:
        """Remember a search and the ids that it gave; the file hears of it soon.

        A search neither waits for a write nor fails where it cannot write.
        """
        moment = format_time(now)
        # When they were given out is not ``now``, which the caller of a search may set.
        given_out = format_time(self._clock())
        if self._engine.read_only:
            return
        row_ids = self._engine.recalls.row_ids_of(recalled) if recalled else {}
        self._note(
            notes_of(
                [row_ids[memory_id] for memory_id in accessed if memory_id in row_ids],
                milliseconds=milliseconds,
                moment=moment,
                recalled=list(row_ids.values()),
                recalled_at=given_out,
            )
        )

    def note_recalls(self, memory_ids: Sequence[str]) -> None:
        """Remember that memories were given to the agent; the file hears of it soon."""
        if memory_ids:
            row_ids = self._engine.recalls.row_ids_of(memory_ids)
            moment = format_time(self._clock())
            self._note(SearchNotes(recalls=dict.fromkeys(row_ids.values(), moment)))

    def _note(self, notes: SearchNotes) -> None:
        if not self._engine.read_only:
            self._pending.add(notes)
            self._pending.flush_soon(self.flush)

    @contextlib.contextmanager
    def writing(self) -> Iterator[datetime]:
        """Run a verb in a write transaction, into which the notes go too; give it the time."""
        now = self._clock()
        with self._pending.taken() as notes, self._engine.write():
            promoted = self._write(notes, now)
            yield now
        if promoted is not None:
            self.when_promoted(promoted)

    def flush(self, *, patiently: bool = False) -> None:
        """Write the notes now.

        While another process is writing they are kept for later, unless ``patiently``.
        """
        if self._pending.is_empty():
            return
        patience = contextlib.nullcontext() if patiently else self._engine.nowait()
        try:
            with patience, self.writing():
                pass
        except StorageError as error:
            import logging  # noqa: PLC0415 - 3 ms of a start of 180, for a line seldom written

            logging.getLogger("agent_memory").info("access counts are kept for later: %s", error)

    def close(self) -> None:
        """Write the notes, and take no more."""
        self._pending.cancel_flush()
        self.flush(patiently=True)

    def _write(self, notes: SearchNotes, now: datetime) -> Promoted | None:
        if not notes.is_empty():
            notes.settle(self._engine.agent.queries())
        self._engine.agent.count_queries(
            queries=notes.queries, total_ms=notes.milliseconds, now=now
        )
        self._engine.recalls.record(notes.recalls, now)
        if not notes.accesses:
            return None
        self._engine.memories.count_accesses(notes.accesses)
        worthy = self._engine.scratchpad.promotable(
            list(notes.accesses), threshold=self._promotion_threshold
        )
        if not worthy:
            return None
        entered = enter_scratchpad(self._engine, worthy, "accessed", now)
        self._engine.agent.count_promotions(len(worthy))
        ids = self._engine.memories.ids_of(entered.row_ids)
        return Promoted(ids, entered.evicted, self._engine.scratchpad.size())


def enter_scratchpad(
    engine: Engine,
    row_ids: Sequence[int],
    reason: Reason,
    now: datetime,
    *,
    settings: AgentConfig | None = None,
) -> Entered:
    """Put memories into the scratchpad, the last ones if they are too many for it.

    ``settings`` are the agent's, where the verb has read them already.
    """
    max_size = (settings or engine.agent.config()).scratchpad_max_size
    # What was promoted by hand makes no room for what was just stored.
    room = max_size if reason == "promoted" else max_size - engine.scratchpad.count_promoted()
    entering = row_ids[-room:] if room > 0 else []
    engine.scratchpad.enter(entering, reason, now=now)
    return Entered(entering, engine.scratchpad.evict(max_size=max_size, keep=entering))
