"""Storing memories, inside one transaction: which are new, and what becomes of the others."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent_memory.errors import StorageError, ValidationError
from agent_memory.models.agent import AgentConfig
from agent_memory.models.duplicate import (
    Duplicate,
    DuplicatePolicy,
    OnDuplicateCall,
    is_decision,
)
from agent_memory.models.enums import OnDuplicate
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import MEMORY_FIELDS, SharedFields, new_memory_id
from agent_memory.services.policies.admission import Admission
from agent_memory.services.writing import duplicates, merging
from agent_memory.services.writing.refusing import refusal
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import DuplicateQuery, recall_window

_LOGGER: Final = "agent_memory.duplicates"
_OF_ONE: Final = frozenset(
    name for name in SharedFields.model_fields if MEMORY_FIELDS[name].column.merge != "ignored"
)
"""What is said of one memory, and so cannot be given to several."""


class _CallableFailed(Exception):
    """Carries an error of the caller's function past those who translate errors of the file."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


@contextlib.contextmanager
def unwrapped_failure() -> Iterator[None]:
    """Raise what the caller's function raised in the body, as it is."""
    try:
        yield
    except _CallableFailed as failed:
        raise failed.error from failed.error.__cause__


@dataclass(frozen=True, slots=True)
class InsertResult:
    """What was stored: the ids under which the memories can be found, in their order.

    ``new`` has the places of those that are new, from 0, in their order, and whether each is in
    the scratchpad; the others were there already.
    """

    ids: list[str]
    new: list[tuple[int, bool]]


class MemoryInsert:
    """The storing of one memory or of a list: ``take`` each, in order, then ``finish``.

    ``marks`` are the fingerprints of the memories.
    ``made_up`` has the ids that may be replaced, ``given`` the names of the fields that were given
    of each memory: one without an id and a time of its own may be an echo. ``ids`` are those under
    which the memories can be found afterwards, ``row_ids`` the rows that are new. ``settings`` are
    the agent's.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        agent_id: str,
        now: datetime,
        marks: Sequence[int],
        generated_ids: AbstractSet[str],
        given: Sequence[AbstractSet[str]] | None,
        is_list: bool,
        on_duplicate: DuplicatePolicy | None,
        settings: AgentConfig,
    ) -> None:
        self.ids: list[str] = []
        self.row_ids: list[int] = []
        self.noticed: list[tuple[Duplicate, OnDuplicate]] = []
        self._engine = engine
        self._agent_id = agent_id
        self._now = now
        self._made_up = generated_ids
        self._given = given
        self._is_list = is_list
        self._on_duplicate = on_duplicate
        self._was_recalled = engine.recalls.is_any_recent(now)
        self._fingerprints = marks
        self._known = engine.fingerprints.present(marks)
        self._unwritten: list[tuple[int, int]] = []
        self._places: dict[str, int] = {}
        self._refused: list[Duplicate] = []
        self._taken = 0
        self._usual = settings.on_duplicate
        self._admission = Admission(engine, settings)

    def take(self, memory: Memory) -> None:
        """Store the next of the memories, unless it is there already."""
        place, self._taken = self._taken, self._taken + 1
        if memory.id not in self._made_up:
            at = (place,) if self._is_list else ()
            if holds(self._engine, memory, agent_id=self._agent_id, at=at):
                self.ids.append(memory.id)
                return
        self._admission.refuse(memory, at=(place,) if self._is_list else ())
        fingerprint = self._fingerprints[place]
        question = self._question(memory, place)
        echoes = self._duplicates(memory, question, place)
        if echoes and self._is_settled(memory, echoes, place):
            return
        if not echoes and not self._is_list and self._is_heard():
            self._tell_similar(question)
        self._insert(memory, fingerprint, place)

    def pass_over(self) -> None:
        """Go on without the memory that ``take`` just refused: its place in ``ids`` is empty."""
        self.ids.append("")

    def finish(self) -> None:
        """Complete the storing. Raises ``DuplicateMemory`` when any of the memories was refused."""
        self._write_fingerprints()
        if self._refused:
            raise refusal(self._refused, self._taken, self._places)

    def added(self, *, in_scratchpad: int) -> InsertResult:
        """Return what was stored; of what is new, the last so many are in the scratchpad."""
        first_in = len(self.row_ids) - in_scratchpad
        places = enumerate(self._places.values())
        return InsertResult(self.ids, [(place, number >= first_in) for number, place in places])

    def _question(self, memory: Memory, place: int) -> DuplicateQuery:
        may_be_echo = self._was_recalled and not self._is_its_own(memory, place)
        return DuplicateQuery(
            content=memory.content,
            user_id=memory.user_id,
            run_id=memory.run_id,
            recalled=recall_window(self._now) if may_be_echo else None,
            index=place if self._is_list else None,
        )

    def _given_of(self, place: int) -> AbstractSet[str]:
        return Memory.model_fields.keys() if self._given is None else self._given[place]

    def _is_its_own(self, memory: Memory, place: int) -> bool:
        """Return whether the caller gave an id or a time: then it is another memory to them."""
        return memory.id not in self._made_up or "timestamp" in self._given_of(place)

    def _duplicates(self, memory: Memory, question: DuplicateQuery, place: int) -> list[Duplicate]:
        """Return what a text repeats: a memory, or, in several lines, several that were recalled.

        Of many that say the same, the one that was recalled comes first.
        """
        found: list[Duplicate] = []
        if self._fingerprints[place] in self._known:
            self._write_fingerprints()  # of those before it in the list
            found = duplicates.find(self._engine, question, self._fingerprints[place])
        if not found:
            return self._echoes_of_entries(memory, question, place)
        echo = next((it for it in found if it.recalled_at is not None), None)
        if echo is None:
            return found[:1]
        if self._says_more(echo, memory, place) or self._engine.similarity.is_corrected(
            question, found
        ):
            echo = echo.model_copy(update={"recalled_at": None})
        return [echo]

    def _echoes_of_entries(
        self, memory: Memory, question: DuplicateQuery, place: int
    ) -> list[Duplicate]:
        if question.recalled is None:
            return []
        echoes = duplicates.echoes_of_entries(self._engine, question)
        if len(echoes) == 1:
            return [] if self._says_more(echoes[0], memory, place) else echoes
        # What was given of several would be lost: it is that of none of them.
        given = self._given_of(place) & _OF_ONE
        return [] if any(getattr(memory, name) for name in given) else echoes

    def _says_more(self, duplicate: Duplicate, memory: Memory, place: int) -> bool:
        given = self._given_of(place)
        if given <= {"content"}:
            return False
        there = self._there(duplicate)
        return there is None or merging.says_more(there, memory, given)

    def _there(self, duplicate: Duplicate) -> Memory | None:
        """Return the memory that is there, unless another program left it unreadable."""
        try:
            return self._engine.memories.get(duplicate.memory_id, agent_id=self._agent_id)
        except StorageError:
            return None

    def _is_settled(self, memory: Memory, echoes: Sequence[Duplicate], place: int) -> bool:
        """Decide about a memory that is there; return whether nothing is left to store."""
        first = echoes[0]
        there = self._there(first) if len(echoes) == 1 else None  # several are given nothing
        if there is not None:
            left_out = merging.left_out(there, memory, self._given_of(place))
            first = first.model_copy(update={"left_out": left_out})
        fate = self._fate(first, is_its_own=self._is_its_own(memory, place))
        self.noticed.append((first, fate))
        if fate is OnDuplicate.REFUSE:
            self._refused.append(first)
        if fate is OnDuplicate.MERGE:
            if there is not None:
                merging.merge(self._engine, there, memory, now=self._now)
            self.ids.append(first.memory_id)
        return fate is not OnDuplicate.KEEP

    def _fate(self, duplicate: Duplicate, *, is_its_own: bool) -> OnDuplicate:
        """Ask the caller what to do; else the file's settings; else an echo alone is merged."""
        said = self._on_duplicate
        if callable(said):
            said = _answer(said, duplicate)
        if said is not None:
            return OnDuplicate(said)
        if self._usual == "merge" and is_its_own:
            return OnDuplicate.KEEP
        if self._usual is not None:
            return OnDuplicate(self._usual)
        return OnDuplicate.MERGE if duplicate.recalled_at is not None else OnDuplicate.KEEP

    def _insert(self, memory: Memory, fingerprint: int, place: int) -> None:
        while memory.id in self._made_up and self._engine.memories.exists(memory.id):
            memory = memory.model_copy(update={"id": new_memory_id()})
        self._admission.refuse_beyond(memory)
        row_id = self._engine.memories.insert(memory)
        self._known.add(fingerprint)
        self._unwritten.append((fingerprint, row_id))
        self.ids.append(memory.id)
        self.row_ids.append(row_id)
        self._places[memory.id] = place

    def _write_fingerprints(self) -> None:
        self._engine.fingerprints.put(self._unwritten)
        self._unwritten.clear()

    # Telling ----------------------------------------------------------------------------------

    def _is_heard(self) -> bool:
        """Return whether similar memories are reported: looking for them takes a millisecond."""
        return callable(self._on_duplicate) or _is_logged()

    def _tell_similar(self, question: DuplicateQuery) -> None:
        for duplicate in self._engine.similarity.similar(question):
            if callable(self._on_duplicate):
                _answer(self._on_duplicate, duplicate)
            self.noticed.append((duplicate, OnDuplicate.KEEP))

    def log(self) -> None:
        """Log what was noticed and decided: after the transaction, for that may take long."""
        if self.noticed and _is_logged():
            import logging  # noqa: PLC0415 - it is loaded: somebody listens

            for duplicate, fate in self.noticed:
                left_out = duplicate.left_out if fate is OnDuplicate.MERGE else ()
                logging.getLogger(_LOGGER).info(
                    "%s%s duplicate of %s: %s%s",
                    "" if duplicate.index is None else f"item {duplicate.index}: ",
                    duplicate.grade.value,
                    duplicate.memory_id,
                    fate.value,
                    f", without its {', '.join(left_out)}" if left_out else "",
                )


def _answer(decide: OnDuplicateCall, duplicate: Duplicate) -> str | None:
    """Return what the caller's function says about a duplicate."""
    try:
        said = decide(duplicate)
    except Exception as error:
        raise _CallableFailed(error) from error
    if said is not None and not is_decision(said):
        message = "must return keep, merge, refuse or None"
        raise ValidationError.of("on_duplicate", message, said)
    return said


def _is_logged() -> bool:
    """Return whether anybody reads the log: not without having imported ``logging``."""
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger(_LOGGER).isEnabledFor(logging.INFO)


def holds(engine: Engine, memory: Memory, *, agent_id: str, at: tuple[int, ...] = ()) -> bool:
    """Return whether a memory is stored; its id with another content is ``ValidationError``."""
    there = engine.memories.get(memory.id, agent_id=agent_id)
    if there is not None and there.content != memory.content:
        message = "is taken by a memory with another content: use update, or no id"
        raise ValidationError.of("id", message, memory.id, at=at)
    return there is not None
