"""Admission of memories to a store: no rejected values, limits respected, valid rows."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_memory.models.enums import MemoryKind
from agent_memory.storage.engine import Engine
from agent_memory.storage.memory_values import fields_of
from agent_memory.storage.records import RowValues

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig
    from agent_memory.models.memory import Memory

    Incoming = Memory | Mapping[str, Any]
    """A memory to store: a model, or its values by column."""


class Admission:
    """Checks memories before they are stored, in one transaction.

    The rejections and the limits are read once: most agents have neither, and then nothing is
    checked. ``settings`` are the agent's, if the verb has read them already; with ``counts``,
    admitted memories are counted although they are not stored: in a dry run.
    """

    def __init__(
        self,
        engine: Engine,
        settings: AgentConfig | None = None,
        *,
        counts: bool = False,
    ) -> None:
        self._engine = engine
        self._rejected_hashes = engine.rejections.hashes_by_length()
        self._policy = (settings or engine.agent.config()).retention
        self._room: dict[MemoryKind, tuple[float, float]] | None = None
        self._counts = counts
        self._counted: dict[MemoryKind, tuple[int, int]] = {}

    @property
    def has_limits(self) -> bool:
        """Return whether there are limits on the number or the length of memories."""
        return self._policy is not None

    def refuse(
        self,
        memory: Memory,
        *,
        at: tuple[int, ...] = (),
        fields: AbstractSet[str] | None = None,
    ) -> None:
        """Raise ``RejectedContent`` if a memory contains a rejected value.

        ``at`` is its position in a list, ``fields`` the changed fields, if not all are new.
        """
        if self._rejected_hashes:
            # Imported only if needed: most agents reject nothing, and it takes 5 ms.
            from agent_memory.services.policies import rejected_values  # noqa: PLC0415

            rejected_values.refuse_rejected(
                self._engine, memory, self._rejected_hashes, at=at, fields=fields
            )

    def refuse_move(self, existing: Incoming, changed: Incoming) -> None:
        """Raise ``LimitReached`` if a change brings a memory under a limit that has no room."""
        if self._policy is None:
            return
        before, after = _amount_of(existing), _amount_of(changed)
        for kind, (count, size) in after.items():
            had_count, had_size = before.get(kind, (0, 0))
            self._refuse(kind, count - had_count, size - had_size)

    def refuse_row(self, row: Mapping[str, Any]) -> None:
        """Raise ``RejectedContent`` if a memory, given by column, contains a rejected value."""
        if self._rejected_hashes:
            from agent_memory.services.policies import rejected_values  # noqa: PLC0415 - as above

            rejected_values.refuse_rejected_row(self._engine, row, self._rejected_hashes)

    def refuse_beyond(self, memory: Incoming) -> None:
        """Raise ``LimitReached`` if a memory would exceed a limit."""
        if self._policy is not None:
            for kind, (count, size) in _amount_of(memory).items():
                self._refuse(kind, count, size)

    def _refuse(self, kind: MemoryKind, count: int, size: int) -> None:
        """Raise ``LimitReached`` if there is no room for this much more of a kind.

        Admitted memories are subtracted from the room, which is measured only once.
        """
        if self._policy is None:
            return
        from agent_memory.services.policies import retention  # noqa: PLC0415 - most agents have no policy

        if self._room is None:
            self._room = retention.room(self._engine, self._policy)
        if kind not in self._room:
            return
        count_left, size_left = self._room[kind]
        if (count > 0 and count > count_left) or (size > 0 and size > size_left):
            dry_run_amount = self._counted.get(kind, (0, 0)) if self._counts else (0, 0)
            amount = (dry_run_amount[0] + count, dry_run_amount[1] + size)
            retention.refuse_beyond(self._engine, self._policy, {kind: amount})
        self._room[kind] = (count_left - count, size_left - size)
        counted = self._counted.get(kind, (0, 0))
        self._counted[kind] = (counted[0] + count, counted[1] + size)


def _amount_of(memory: Incoming) -> dict[MemoryKind, tuple[int, int]]:
    """Return, by kind, one memory and its bytes of content; archived ones are not counted."""
    value_of = memory.get if isinstance(memory, Mapping) else partial(getattr, memory)
    if value_of("archived", False):
        return {}
    kind = MemoryKind(value_of("kind", None) or MemoryKind.LEARNING)
    return {kind: (1, len(str(value_of("content", "")).encode()))}


def storable_row(row: RowValues, *, moment: str) -> RowValues:
    """Return a row as it is, or repaired as by ``check --repair`` if no import would accept it.

    ``moment`` replaces an invalid time.
    """
    from pydantic import ValidationError as PydanticValidationError  # noqa: PLC0415 - as the next

    from agent_memory.models.portable import PortableMemory  # noqa: PLC0415 - 10 ms
    from agent_memory.models.row_repair import mended_row  # noqa: PLC0415 - for bad rows alone

    try:
        PortableMemory.model_validate(fields_of(row))
    except PydanticValidationError as error:
        wrong = {str(fault["loc"][0]) for fault in error.errors()} & row.keys()
        return mended_row(row, wrong, moment=moment)
    return row
