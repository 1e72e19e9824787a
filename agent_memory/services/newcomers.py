"""What others have stored while a conversation was decided upon, and what of it is contradicted.

Decisions are made from memories that were read before the transaction. Of two conversations at the
same time, neither knew what the other said: "My birthday is May 5" and "My birthday is May 6" were
both kept, and nobody was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from agent_memory.extraction.rules.conflicts import conflict
from agent_memory.extraction.rules.decisions import EarlierFacts
from agent_memory.extraction.rules.readings import read
from agent_memory.extraction.rules.succession import Contradicted, latest
from agent_memory.models.memory import Memory
from agent_memory.storage.engine import Engine

_READ: Final = 2_000
"""Changes that are read, the last ones, of whichever owner: all others wait for it. Reading 100,000
held the lock of writers for six seconds."""
_MOST: Final = 500
"""Newcomers that are compared, the last ones."""


class Contradiction(NamedTuple):
    """A memory that another contradicts, and why."""

    memory_id: str
    replaced_by: str
    why: str


class Newcomers:
    """The memories of one owner whose text was stored or changed after a change, the last ones.

    ``new`` is a memory of the same owner. Must be made and used inside the write transaction.
    """

    def __init__(self, engine: Engine, new: Memory, *, since: int) -> None:
        self._engine = engine
        self._texts = EarlierFacts()
        self._ids: dict[str, str] = {}
        last = engine.operations.last_number()
        changes = engine.history.between(max(since, last - _READ) + 1, last)
        ids = list(dict.fromkeys(each.memory_id for each in changes if "content" in each.new))
        rows = engine.memory_rows.get_many(ids)
        is_any_run = new.user_id is not None and new.run_id is None
        own = [
            row
            for row in (rows[memory_id] for memory_id in ids if memory_id in rows)
            if row["user_id"] == new.user_id and (is_any_run or row["run_id"] == new.run_id)
        ]
        for row in own[-_MOST:]:
            self._ids[self._texts.take(row["content"])] = row["id"]

    def contradictions(self, text: str, memory_id: str) -> Iterator[Contradiction]:
        """Yield what a memory and the newcomers contradict, in either order: nobody knows which.

        As among memories, only the latest of each slot is asked about.
        """
        new, is_asked = read(text), False
        contradicted: list[Contradicted] = []
        for other in self._texts.related(text):
            newcomer, old = self._ids[other.id], self._texts.read(other.text)
            if newcomer == memory_id or not self._engine.memories.exists(newcomer):
                continue
            if (against := conflict(new, old)) is not None:
                contradicted.append(Contradicted(other, against))
                continue
            against = conflict(old, new)
            if against is not None and not (against.may_stay or is_asked):
                is_asked = True
                yield Contradiction(memory_id, newcomer, against.why)
        for other, against in latest(text, contradicted):
            if not (against.may_stay or (against.is_of_any and is_asked)):
                is_asked = True
                yield Contradiction(self._ids[other.id], memory_id, against.why)
