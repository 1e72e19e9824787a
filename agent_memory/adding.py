"""Storing memories, inside one transaction: which are new, and what becomes of the others."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

from agent_memory import agent, duplicates, fingerprints, history, recalls, records
from agent_memory.connection import Database
from agent_memory.duplicates import Question
from agent_memory.errors import DuplicateMemory, ValidationError
from agent_memory.models.duplicate import Duplicate, DuplicatePolicy
from agent_memory.models.memory import Memory, new_memory_id
from agent_memory.vocabulary import (
    MAX_TAGS_PER_MEMORY,
    Importance,
    OnDuplicate,
)

_LOGGER: Final = "agent_memory.duplicates"
_WEIGHT: Final = {Importance.LOW: 0, Importance.MEDIUM: 1, Importance.HIGH: 2}


class Adding:
    """The storing of one memory or of a list: ``take`` each, in order, then ``finish``.

    ``marks`` are the fingerprints of the memories.
    ``made_up`` has the ids that may be replaced, ``undated`` those of memories that were given
    neither an id nor a time: they may be echoes. ``ids`` are those under which the memories can be
    found afterwards, ``seqs`` the rows that are new.
    """

    def __init__(
        self,
        database: Database,
        *,
        agent_id: str,
        now: datetime,
        marks: Sequence[int],
        made_up: AbstractSet[str],
        undated: AbstractSet[str],
        is_list: bool,
        on_duplicate: DuplicatePolicy | None,
    ) -> None:
        self.ids: list[str] = []
        self.seqs: list[int] = []
        self.noticed: list[tuple[Duplicate, OnDuplicate]] = []
        self._database = database
        self._agent_id = agent_id
        self._now = now
        self._made_up = made_up
        self._undated = undated
        self._is_list = is_list
        self._on_duplicate = on_duplicate
        self._recalled_since = recalls.since(now)
        self._was_recalled = recalls.are_any(database, now)
        self._fingerprints = marks
        self._known = fingerprints.known(database, marks)
        self._unwritten: list[tuple[int, int]] = []
        self._places: dict[str, int] = {}
        self._refused: list[Duplicate] = []
        self._taken = 0
        settings = agent.config(database)
        self._usual = settings.on_duplicate if "on_duplicate" in settings.model_fields_set else None

    def take(self, memory: Memory) -> None:
        """Store the next of the memories, unless it is there already."""
        place, self._taken = self._taken, self._taken + 1
        if memory.id not in self._made_up:
            at = (place,) if self._is_list else ()
            if holds(self._database, memory, agent_id=self._agent_id, at=at):
                self.ids.append(memory.id)
                return
        fingerprint = self._fingerprints[place]
        question = self._question(memory, place)
        echoes = self._duplicates(question, fingerprint)
        if echoes and self._is_settled(memory, echoes):
            return
        if not echoes and not self._is_list and self._is_heard():
            self._tell_similar(question)
        self._insert(memory, fingerprint, place)

    def finish(self) -> None:
        """Complete the storing. Raises ``DuplicateMemory`` when any of the memories was refused."""
        self._write_fingerprints()
        if self._refused:
            raise _refusal(self._refused, self._taken, self._places)

    def _question(self, memory: Memory, place: int) -> Question:
        may_be_echo = self._was_recalled and memory.id in self._made_up & self._undated
        return Question(
            content=memory.content,
            user_id=memory.user_id,
            run_id=memory.run_id,
            recalled_since=self._recalled_since if may_be_echo else None,
            index=place if self._is_list else None,
        )

    def _duplicates(self, question: Question, fingerprint: int) -> list[Duplicate]:
        """Return what a text repeats: a memory, or, in several lines, several that were recalled.

        Of many that say the same, the one that was recalled comes first.
        """
        if fingerprint in self._known:
            self._write_fingerprints()  # of those before it in the list
            found = duplicates.find(self._database, question, fingerprint)
        else:
            found = []
        if found:
            return [next((it for it in found if it.recalled_at is not None), found[0])]
        if question.recalled_since is None:
            return []
        return duplicates.echoes_of_entries(self._database, question)

    def _is_settled(self, memory: Memory, echoes: Sequence[Duplicate]) -> bool:
        """Decide about a memory that is there; tell whether nothing is left to store."""
        first = echoes[0]
        fate = self._fate(first)
        self.noticed.append((first, fate))
        if fate is OnDuplicate.REFUSE:
            self._refused.append(first)
        if fate is OnDuplicate.MERGE:
            if len(echoes) == 1:  # what was given of several is none of each
                self._merge(first.memory_id, memory)
            self.ids.append(first.memory_id)
        return fate is not OnDuplicate.KEEP

    def _fate(self, duplicate: Duplicate) -> OnDuplicate:
        """Ask the caller what to do; else the file's settings; else an echo alone is merged."""
        said = self._on_duplicate
        if callable(said):
            said = said(duplicate)
        said = said or self._usual
        if said is None:
            return OnDuplicate.MERGE if duplicate.recalled_at is not None else OnDuplicate.KEEP
        if said not in list(OnDuplicate):
            raise ValidationError.of("on_duplicate", "must return keep, merge or refuse", said)
        return OnDuplicate(said)

    def _merge(self, memory_id: str, new: Memory) -> None:
        """Give the memory that is there what the new one has beyond it, if anything."""
        there = records.get(self._database, memory_id, agent_id=self._agent_id)
        seq = records.seq_of(self._database, memory_id)
        if there is None or seq is None:
            return
        merged: dict[str, Any] = {
            "tags": list(dict.fromkeys([*there.tags, *new.tags]))[:MAX_TAGS_PER_MEMORY],
            "metadata": {**new.metadata, **there.metadata},
            "importance": max(there.importance, new.importance, key=_WEIGHT.__getitem__),
        }
        changes = {
            name: value
            for name, value in merged.items()
            if not records.is_same(getattr(there, name), value)
        }
        if len(there.tags) > MAX_TAGS_PER_MEMORY:  # another program wrote them
            changes.pop("tags", None)
        if changes:
            before = history.last_change(self._database)
            records.update(self._database, seq, changes, now=self._now)
            session_id = new.created_by_session
            history.sign(
                self._database, memory_id, since=before, session_id=session_id, now=self._now
            )

    def _insert(self, memory: Memory, fingerprint: int, place: int) -> None:
        while memory.id in self._made_up and records.exists(self._database, memory.id):
            memory = memory.model_copy(update={"id": new_memory_id()})
        seq = records.insert(self._database, memory)
        self._known.add(fingerprint)
        self._unwritten.append((fingerprint, seq))
        self.ids.append(memory.id)
        self.seqs.append(seq)
        self._places[memory.id] = place

    def _write_fingerprints(self) -> None:
        fingerprints.put(self._database, self._unwritten)
        self._unwritten.clear()

    # Telling ----------------------------------------------------------------------------------

    def _is_heard(self) -> bool:
        """Tell whether anybody hears of similar memories: looking for them takes a millisecond."""
        return callable(self._on_duplicate) or _is_logged()

    def _tell_similar(self, question: Question) -> None:
        for duplicate in duplicates.similar(self._database, question):
            if callable(self._on_duplicate):
                self._on_duplicate(duplicate)
            self.noticed.append((duplicate, OnDuplicate.KEEP))

    def log(self) -> None:
        """Log what was noticed and decided: after the transaction, for that may take long."""
        if self.noticed and _is_logged():
            import logging  # noqa: PLC0415 - it is loaded: somebody listens

            for duplicate, fate in self.noticed:
                logging.getLogger(_LOGGER).info(
                    "%s%s duplicate of %s: %s",
                    "" if duplicate.index is None else f"item {duplicate.index}: ",
                    duplicate.grade.value,
                    duplicate.memory_id,
                    fate.value,
                )


def _refusal(
    refused: Sequence[Duplicate], total: int, places: Mapping[str, int]
) -> DuplicateMemory:
    """Make the error for what was refused; ``places`` are those of what this list stored itself."""
    faults = [
        {
            "loc": ("content",) if it.index is None else (it.index, "content"),
            "msg": _reason(it, places),
            "type": "duplicate",
            "input": it.new_content,
        }
        for it in refused
    ]
    first = refused[0]
    message = f"content: {_reason(first, places)}"
    if first.index is not None:
        message = (
            f"nothing was stored: {len(refused)} of {total} memories are duplicates;"
            f" the first, item {first.index}: {message}"
        )
    return DuplicateMemory(message, faults, memory_id=first.memory_id)


def _reason(duplicate: Duplicate, places: Mapping[str, int]) -> str:
    advice = 'or store it with on_duplicate="keep"'
    if duplicate.memory_id in places:
        place = places[duplicate.memory_id]
        return f"says the same as item {place}: leave one of them out, {advice}"
    return (
        f"is there already, as {duplicate.memory_id} ({duplicate.grade} duplicate):"
        f" update that one, {advice}"
    )


def _is_logged() -> bool:
    """Tell whether anybody reads the log: not without having imported ``logging``."""
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger(_LOGGER).isEnabledFor(logging.INFO)


def holds(database: Database, memory: Memory, *, agent_id: str, at: tuple[int, ...] = ()) -> bool:
    """Tell whether a memory is there under its id; with another content is ``ValidationError``."""
    there = records.get(database, memory.id, agent_id=agent_id)
    if there is not None and there.content != memory.content:
        message = "is taken by a memory with another content: use update, or no id"
        raise ValidationError.of("id", message, memory.id, at=at)
    return there is not None
