"""Which memories enter the scratchpad, and in which order a context shows them."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.models.limits import (
    DEFAULT_SCRATCHPAD_SIZE,
    MAX_SCRATCHPAD_SIZE,
    MIN_SCRATCHPAD_SIZE,
)
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Reason

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig


class ScratchpadEntry(NamedTuple):
    """The row ids that entered the scratchpad, and the ids of the memories evicted for them."""

    row_ids: Sequence[int]
    evicted: list[str]


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
