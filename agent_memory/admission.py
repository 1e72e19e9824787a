"""What may come into a store: nothing that was rejected, and no more than hard limits let in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from agent_memory import agent, gatekeeping, rejections, retention
from agent_memory.connection import Database
from agent_memory.errors import LimitReached
from agent_memory.models.memory import Memory
from agent_memory.rejecting import TEXT_FIELDS
from agent_memory.vocabulary import MemoryKind

Incoming = Memory | Mapping[str, Any]
"""A memory that is to come in: a model, or what it tells by column."""


class Admission:
    """What is asked of memories before they are stored, in one transaction.

    The rejections and the limits are read once: most agents have none of either, and then nothing
    more is asked. ``counts`` remembers what was let in, where it is not stored: in a dry run.
    """

    def __init__(self, database: Database, *, counts: bool = False) -> None:
        self._database = database
        self._known = rejections.known(database)
        self._policy = agent.config(database).retention
        self._is_near_limit = self._policy is not None
        self._counts = counts
        self._counted: dict[MemoryKind, tuple[int, int]] = {}

    def expect(self, memories: Iterable[Incoming]) -> None:
        """Hear of all that may come in: where all of it fits, it need not be counted one by one."""
        if self._policy is None:
            return
        amounts = _amounts_of(memories)
        with contextlib.suppress(LimitReached):
            retention.refuse_beyond(self._database, self._policy, amounts)
            self._is_near_limit = False

    def refuse(
        self, memory: Memory, *, at: tuple[int, ...] = (), fields: AbstractSet[str] | None = None
    ) -> None:
        """Raise ``RejectedContent`` for a memory that holds a rejected value.

        ``at`` is its place in a list, ``fields`` what changes of it, if not all is new.
        """
        if self._known:
            looked_at = TEXT_FIELDS if fields is None else fields
            gatekeeping.refuse_rejected(
                self._database, memory, self._known, at=at, fields=looked_at
            )

    def refuse_move(self, there: Incoming, wanted: Incoming) -> None:
        """Raise ``LimitReached`` for a memory that comes under another limit than it was."""
        if self._policy is None:
            return
        before, after = _amounts_of([there]), _amounts_of([wanted])
        for kind, (count, size) in after.items():
            had_count, had_size = before.get(kind, (0, 0))
            self._refuse(kind, count - had_count, size - had_size)

    def refuse_row(self, row: Mapping[str, Any]) -> None:
        """Do the same for a memory that is given by column."""
        if self._known:
            gatekeeping.refuse_rejected_row(self._database, row, self._known)

    def refuse_beyond(self, memory: Incoming) -> None:
        """Raise ``LimitReached`` for one memory more than there may be."""
        if self._policy is not None and self._is_near_limit:
            for kind, (count, size) in _amounts_of([memory]).items():
                self._refuse(kind, count, size)

    def _refuse(self, kind: MemoryKind, count: int, size: int) -> None:
        """Raise ``LimitReached`` where there is no room for some more of a kind."""
        if self._policy is None:
            return
        more_count, more_size = self._counted.get(kind, (0, 0))
        amount = (more_count + count, more_size + size)
        retention.refuse_beyond(self._database, self._policy, {kind: amount})
        if self._counts:
            self._counted[kind] = amount


def _amounts_of(incoming: Iterable[Incoming]) -> dict[MemoryKind, tuple[int, int]]:
    """Count memories and the bytes of their contents, by kind; archived ones are free."""
    amounts: dict[MemoryKind, tuple[int, int]] = {}
    for one in incoming:
        named = one.get if isinstance(one, Mapping) else partial(getattr, one)
        if named("archived", False):
            continue
        kind = MemoryKind(named("kind", None) or MemoryKind.LEARNING)
        count, size = amounts.get(kind, (0, 0))
        amounts[kind] = (count + 1, size + len(str(named("content", "")).encode()))
    return amounts
