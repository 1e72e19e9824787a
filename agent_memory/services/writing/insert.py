"""Inserting memories in one transaction: which are new, and what happens to duplicates."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.errors import StorageError, ValidationError
from agent_memory.models.columns import COLUMNS
from agent_memory.models.enums import OnDuplicate, is_decision
from agent_memory.models.fields import new_memory_id
from agent_memory.runtime.logs import is_log_read, logger
from agent_memory.services.erasure.tombstones import Tombstones
from agent_memory.services.policies.admission import Admission
from agent_memory.services.writing import duplicates
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.engine import Engine
from agent_memory.storage.fingerprints import fingerprint_of
from agent_memory.storage.memory_values import row_of_memory
from agent_memory.storage.records import recall_window

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig
    from agent_memory.models.duplicate import Duplicate, DuplicatePolicy, OnDuplicateCall
    from agent_memory.models.memory import Memory

_LOGGER: Final = "agent_memory.duplicates"
_MOST_UNWRITTEN: Final = 1_000
_OF_ONE: Final = frozenset(
    name for name, column in COLUMNS.items() if column.merge != "ignored"
) - {"id", "timestamp"}
"""Fields that describe one memory, and so cannot be merged into several."""


class _CallableFailed(Exception):
    """Carries an error of the caller's function past the code that translates storage errors."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


@contextlib.contextmanager
def unwrapped_failure() -> Iterator[None]:
    """Raise an exception of the caller's function in the body unchanged."""
    try:
        yield
    except _CallableFailed as failed:
        raise failed.error from failed.error.__cause__


class InsertResult(NamedTuple):
    """What was stored: the ``ids`` under which the memories can be found, in input order.

    ``new`` has, for each memory that is new, its position in the list, from 0, and whether it is in
    the scratchpad; the others were stored before.
    """

    ids: list[str]
    new: list[tuple[int, bool]]


class MemoryInsert:
    """Inserts one memory or a list: call ``take`` for each, in order, then ``finish``.

    ``fingerprints`` are those of the memories, in order; the other arguments are as in
    ``Store.add``. Afterwards ``ids`` has the ids under which the memories can be found, and
    ``row_ids`` the rows that are new. With ``reports_similar``, similar memories are searched for.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        now: datetime,
        fingerprints: Sequence[int],
        generated_ids: AbstractSet[str],
        fields_set: Sequence[AbstractSet[str]] | None,
        is_list: bool,
        on_duplicate: DuplicatePolicy | None,
        settings: AgentConfig,
        reports_similar: bool = False,
    ) -> None:
        self.ids: list[str] = []
        self.row_ids: list[int] = []
        self.noticed: list[tuple[Duplicate, OnDuplicate]] = []
        self._engine = engine
        self._now = now
        self._generated_ids = generated_ids
        self._taken_ids = engine.memory_rows.get_many(list(generated_ids)).keys()
        self._fields_set = fields_set
        self._is_list = is_list
        self._on_duplicate = on_duplicate
        self._reports_similar = reports_similar
        self._was_recalled = engine.recalls.is_any_recent(now)
        self._fingerprints = fingerprints
        self._stored_fingerprints = engine.fingerprints.present(fingerprints)
        self._unwritten: list[tuple[Memory, int]] = []
        """New memories that are not written yet, with their fingerprints."""
        self._places: dict[str, int] = {}
        self._refused: list[Duplicate] = []
        self._taken = 0
        self._default_policy = settings.on_duplicate
        self._admission = Admission(engine, settings)
        self._tombstones = Tombstones(engine)

    def take(self, memory: Memory) -> None:
        """Store the next memory, unless it is already stored."""
        place, self._taken = self._taken, self._taken + 1
        if memory.id not in self._generated_ids:
            at = (place,) if self._is_list else ()
            if memory.id in self._places:
                self._write()
            if is_stored(self._engine, memory, at=at):
                self.ids.append(memory.id)
                return
            is_dated = "timestamp" in self._fields_set_of(place)
            said_at = memory.timestamp if is_dated else None
            self._tombstones.refuse(memory, said_at=said_at, at=at)
        self._admission.refuse(memory, at=(place,) if self._is_list else ())
        fingerprint = self._fingerprints[place]
        echoes = self._duplicates(memory, place)
        if echoes and self._is_settled(memory, echoes, place):
            return
        if not echoes and self._reports_similar:
            self._report_similar(self._query(memory, place))
        self._insert(memory, fingerprint, place)

    def pass_over(self) -> None:
        """Skip the memory that ``take`` just refused: its place in ``ids`` is empty."""
        self.ids.append("")

    def finish(self) -> None:
        """Finish storing. Raises ``DuplicateMemory`` if any of the memories was refused."""
        self._write()
        if self._refused:
            raise duplicates.refusal(self._refused, self._taken, self._places)

    def result(self, in_scratchpad: Collection[int]) -> InsertResult:
        """Return what was stored, and for each new memory whether its row is in the scratchpad."""
        places = zip(self.row_ids, self._places.values(), strict=True)
        entered = set(in_scratchpad)
        return InsertResult(self.ids, [(place, row_id in entered) for row_id, place in places])

    def _query(self, memory: Memory, place: int) -> DuplicateQuery:
        may_be_echo = self._was_recalled and not self._is_its_own(memory, place)
        return DuplicateQuery(
            content=memory.content,
            user_id=memory.user_id,
            run_id=memory.run_id,
            recalled=recall_window(self._now) if may_be_echo else None,
            index=place if self._is_list else None,
        )

    def _fields_set_of(self, place: int) -> AbstractSet[str]:
        return COLUMNS.keys() if self._fields_set is None else self._fields_set[place]

    def _is_its_own(self, memory: Memory, place: int) -> bool:
        """Return whether the caller set an id or a time: then they mean a separate memory."""
        return memory.id not in self._generated_ids or "timestamp" in self._fields_set_of(place)

    def _duplicates(self, memory: Memory, place: int) -> list[Duplicate]:
        """Return what a text repeats: a memory, or, if it has several lines, several recalled ones.

        If many say the same, the one that was recalled comes first.
        """
        is_known = self._fingerprints[place] in self._stored_fingerprints
        if not is_known and not self._was_recalled:
            return []
        query = self._query(memory, place)
        matches: list[Duplicate] = []
        if is_known:
            self._write()  # write the earlier ones of the list first
            matches = duplicates.find(self._engine, query, self._fingerprints[place])
        if not matches:
            return self._echoes_of_entries(memory, query, place)
        echo = next((match for match in matches if match.recalled_at is not None), None)
        if echo is None:
            return matches[:1]
        if self._says_more(echo, memory, place) or self._engine.similarity.is_corrected(
            query, matches
        ):
            echo = echo.model_copy(update={"recalled_at": None})
        return [echo]

    def _echoes_of_entries(
        self, memory: Memory, query: DuplicateQuery, place: int
    ) -> list[Duplicate]:
        if query.recalled is None:
            return []
        echoes = duplicates.echoes_of_entries(self._engine, query)
        if len(echoes) == 1:
            return [] if self._says_more(echoes[0], memory, place) else echoes
        # A single value cannot be merged into several memories: it would be lost.
        fields = self._fields_set_of(place) & _OF_ONE
        return [] if any(getattr(memory, name) for name in fields) else echoes

    def _says_more(self, duplicate: Duplicate, memory: Memory, place: int) -> bool:
        fields_set = self._fields_set_of(place)
        if fields_set <= {"content"}:
            return False
        existing = self._existing(duplicate)
        return existing is None or duplicates.says_more(existing, memory, fields_set)

    def _existing(self, duplicate: Duplicate) -> Memory | None:
        """Return the stored memory, unless another program left it unreadable."""
        try:
            return self._engine.memories.get(duplicate.memory_id)
        except StorageError:
            return None

    def _is_settled(self, memory: Memory, echoes: Sequence[Duplicate], place: int) -> bool:
        """Decide what happens to a duplicate; return whether nothing is left to store."""
        self._write()  # earlier memories come first in the history too
        first = echoes[0]
        existing = self._existing(first) if len(echoes) == 1 else None  # no merge into several
        if existing is not None:
            left_out = duplicates.left_out(existing, memory, self._fields_set_of(place))
            first = first.model_copy(update={"left_out": left_out})
        decision = self._decide(first, is_its_own=self._is_its_own(memory, place))
        self.noticed.append((first, decision))
        if decision is OnDuplicate.REFUSE:
            self._refused.append(first)
        if decision is OnDuplicate.MERGE:
            if existing is not None:
                duplicates.merge(self._engine, existing, memory, now=self._now)
            self.ids.append(first.memory_id)
        return decision is not OnDuplicate.KEEP

    def _decide(self, duplicate: Duplicate, *, is_its_own: bool) -> OnDuplicate:
        """Ask the caller what to do, or the file's settings; by default only an echo is merged."""
        policy = self._on_duplicate
        if callable(policy):
            policy = _ask(policy, duplicate)
        if policy is not None:
            return OnDuplicate(policy)
        if self._default_policy == "merge" and is_its_own:
            return OnDuplicate.KEEP
        if self._default_policy is not None:
            return OnDuplicate(self._default_policy)
        return OnDuplicate.MERGE if duplicate.recalled_at is not None else OnDuplicate.KEEP

    def _insert(self, memory: Memory, fingerprint: int, place: int) -> None:
        while memory.id in self._taken_ids or memory.id in self._places:  # a generated id
            memory = memory.model_copy(update={"id": new_memory_id()})
        if self._admission.has_limits or len(self._unwritten) >= _MOST_UNWRITTEN:
            self._write()  # limits count what is in the table
        self._admission.refuse_beyond(memory)
        self._tombstones.lift(memory.id, memory.content, memory.user_id)
        self._stored_fingerprints.add(fingerprint)
        self._unwritten.append((memory, fingerprint))
        self.ids.append(memory.id)
        self._places[memory.id] = place

    def _write(self) -> None:
        """Write the new memories together: one by one takes four times as long."""
        if not self._unwritten:
            return
        row_ids = self._engine.memory_rows.insert_many(
            [row_of_memory(memory) for memory, _ in self._unwritten]
        )
        rows = [(fingerprint, row_ids[memory.id]) for memory, fingerprint in self._unwritten]
        self._engine.fingerprints.put(rows)
        self.row_ids += [row_id for _, row_id in rows]
        self._unwritten.clear()

    # Reporting --------------------------------------------------------------------------------

    def _report_similar(self, query: DuplicateQuery) -> None:
        for duplicate in self._engine.similarity.similar(query):
            if callable(self._on_duplicate):
                _ask(self._on_duplicate, duplicate)
            self.noticed.append((duplicate, OnDuplicate.KEEP))

    def log(self) -> None:
        """Log decisions and findings: after the transaction, since it may take long."""
        if self.noticed and is_log_read(_LOGGER):
            for duplicate, decision in self.noticed:
                left_out = duplicate.left_out if decision is OnDuplicate.MERGE else ()
                logger(_LOGGER).info(
                    "%s%s duplicate of %s: %s%s",
                    "" if duplicate.index is None else f"item {duplicate.index}: ",
                    duplicate.grade.value,
                    duplicate.memory_id,
                    decision.value,
                    f", without its {', '.join(left_out)}" if left_out else "",
                )


def has_listener(on_duplicate: DuplicatePolicy | None) -> bool:
    """Return whether anybody is told about similar memories: the search takes a millisecond.

    Call this before the transaction. A fork takes the lock of ``logging`` and waits for the
    database; a transaction that asks for a logger then waits for that lock: a deadlock.
    """
    return callable(on_duplicate) or is_log_read(_LOGGER)


def _ask(decide: OnDuplicateCall, duplicate: Duplicate) -> str | None:
    try:
        decision = decide(duplicate)
    except Exception as error:  # the caller's own code, whose error goes to the caller
        raise _CallableFailed(error) from error
    if decision is not None and not is_decision(decision):
        message = "must return keep, merge, refuse or None"
        raise ValidationError.of("on_duplicate", message, decision)
    return decision


def fingerprints_of(memories: Sequence[Memory]) -> list[int]:
    """Return the fingerprint of each memory, by which its duplicates are found."""
    return [fingerprint_of(memory.content, memory.user_id, memory.run_id) for memory in memories]


def is_stored(engine: Engine, memory: Memory, *, at: tuple[int, ...] = ()) -> bool:
    """Return whether a memory is stored; the same id with other content is ``ValidationError``."""
    existing = engine.memories.get(memory.id)
    if existing is not None and existing.content != memory.content:
        message = "is taken by a memory with other content: use update, or no id"
        raise ValidationError.of("id", message, memory.id, at=at)
    return existing is not None
