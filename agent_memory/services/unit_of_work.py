"""What searches count and give out, on its way into the file: with the next write, or soon."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from agent_memory.errors import StorageError
from agent_memory.models.times import format_time
from agent_memory.services.pending_accesses import NotesKeeper, SearchNotes, notes_of
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables import agent, recalls, scratchpad
from agent_memory.storage.sqlite.tables import memories as records


class Entered(NamedTuple):
    """What came into the scratchpad: the rows that did, and the ids of those that made room."""

    seqs: Sequence[int]
    evicted: list[str]


class Promoted(NamedTuple):
    """What came into the scratchpad because it was used, and how many are in then."""

    memory_ids: list[str]
    evicted: list[str]
    scratchpad_size: int


class Noting:
    """The notes of one store's searches. Threads may share it.

    Memories that were accessed ``promotion_threshold`` times enter the scratchpad.
    """

    def __init__(
        self, database: Database, clock: Callable[[], datetime], *, promotion_threshold: int
    ) -> None:
        self._database = database
        self._clock = clock
        self._promotion_threshold = promotion_threshold
        self._notes = NotesKeeper()
        self.when_promoted: Callable[[Promoted], object] = lambda _: None
        """Is told what use brought into the scratchpad, once that is in the file."""

    def accesses(self) -> dict[int, int]:
        """Return how many accesses of each row are not in the file yet."""
        return self._notes.accesses()

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
        if self._database.read_only:
            return
        seqs = recalls.rows_of(self._database, recalled) if recalled else {}
        self._note(
            notes_of(
                [seqs[memory_id] for memory_id in accessed if memory_id in seqs],
                milliseconds=milliseconds,
                moment=moment,
                recalled=list(seqs.values()),
                recalled_at=given_out,
            )
        )

    def note_recalls(self, memory_ids: Sequence[str]) -> None:
        """Remember that memories were given to the agent; the file hears of it soon."""
        if memory_ids:
            seqs = recalls.rows_of(self._database, memory_ids)
            moment = format_time(self._clock())
            self._note(SearchNotes(recalls=dict.fromkeys(seqs.values(), moment)))

    def _note(self, notes: SearchNotes) -> None:
        if not self._database.read_only:
            self._notes.add(notes)
            self._notes.flush_soon(self.flush)

    @contextlib.contextmanager
    def writing(self) -> Iterator[datetime]:
        """Run a verb in a write transaction, into which the notes go too; give it the time."""
        now = self._clock()
        with self._notes.taken() as notes, self._database.write():
            promoted = self._write(notes, now)
            yield now
        if promoted is not None:
            self.when_promoted(promoted)

    def flush(self, *, patiently: bool = False) -> None:
        """Write the notes now.

        While another process is writing they are kept for later, unless ``patiently``.
        """
        if self._notes.is_empty():
            return
        patience = contextlib.nullcontext() if patiently else self._database.impatient()
        try:
            with patience, self.writing():
                pass
        except StorageError as error:
            import logging  # noqa: PLC0415 - 3 ms of a start of 180, for a line seldom written

            logging.getLogger("agent_memory").info("access counts are kept for later: %s", error)

    def close(self) -> None:
        """Write the notes, and take no more."""
        self._notes.cancel_flush()
        self.flush(patiently=True)

    def _write(self, notes: SearchNotes, now: datetime) -> Promoted | None:
        if not notes.is_empty():
            notes.settle(agent.queries(self._database))
        agent.count_queries(
            self._database, queries=notes.queries, total_ms=notes.milliseconds, now=now
        )
        recalls.record(self._database, notes.recalls, now)
        if not notes.accesses:
            return None
        records.count_accesses(self._database, notes.accesses)
        worthy = scratchpad.worthy(
            self._database, list(notes.accesses), threshold=self._promotion_threshold
        )
        if not worthy:
            return None
        entered = enter_scratchpad(self._database, worthy, "accessed", now)
        agent.count_promotions(self._database, len(worthy))
        ids = records.ids_of(self._database, entered.seqs)
        return Promoted(ids, entered.evicted, scratchpad.size(self._database))


def enter_scratchpad(
    database: Database, seqs: Sequence[int], reason: scratchpad.Reason, now: datetime
) -> Entered:
    """Put memories into the scratchpad, the last ones if they are too many for it."""
    max_size = agent.config(database).scratchpad_max_size
    # What was promoted by hand makes no room for what was just stored.
    room = max_size if reason == "promoted" else max_size - scratchpad.count_promoted(database)
    entering = seqs[-room:] if room > 0 else []
    scratchpad.enter(database, entering, reason, now=now)
    return Entered(entering, scratchpad.evict(database, max_size=max_size, keep=entering))
