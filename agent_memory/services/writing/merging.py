"""Merging a memory that is stored again into the one that is there: what is taken over."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final

from agent_memory.models.enums import Importance
from agent_memory.models.limits import MAX_TAGS_PER_MEMORY
from agent_memory.models.memory import Memory
from agent_memory.models.memory_fields import MEMORY_FIELDS
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import is_same_value

_WEIGHT: Final = {Importance.LOW: 0, Importance.MEDIUM: 1, Importance.HIGH: 2}
_KEPT: Final = tuple(name for name, row in MEMORY_FIELDS.items() if row.column.merge == "kept")


def merge(engine: Engine, there: Memory, new: Memory, *, now: datetime) -> None:
    """Give the memory that is there what the new one has beyond it, if anything."""
    row_id = engine.memories.row_id_of(there.id)
    changes = {
        name: value
        for name, value in _merged(there, new).items()
        if not is_same_value(getattr(there, name), value)
    }
    if len(there.tags) > MAX_TAGS_PER_MEMORY:  # another program wrote them
        changes.pop("tags", None)
    if changes and row_id is not None:
        before = engine.history.last_change()
        engine.memories.update(row_id, changes, now=now)
        engine.history.sign(there.id, since=before, session_id=new.created_by_session, now=now)


def left_out(there: Memory, new: Memory, given: AbstractSet[str]) -> list[str]:
    """Return which of the given fields a merge would not take over, or not as they were given."""
    merged = _merged(there, new)
    lost = {
        "tags": not set(new.tags) <= set(merged["tags"]),
        "metadata": any(
            not is_same_value(merged["metadata"][key], value) for key, value in new.metadata.items()
        ),
        "importance": merged["importance"] != new.importance,
    }
    for name in _KEPT:
        lost[name] = not is_same_value(getattr(there, name), getattr(new, name))
    return sorted(name for name, is_lost in lost.items() if is_lost and name in given)


def says_more(there: Memory, new: Memory, given: AbstractSet[str]) -> bool:
    """Return whether a memory was given what is not said of the one that is there.

    Tags and metadata that a merge adds are no more than it can hold.
    """
    is_weighed = "importance" in given and there.importance != new.importance
    return is_weighed or bool(left_out(there, new, given))


def _merged(there: Memory, new: Memory) -> dict[str, Any]:
    return {
        "tags": list(dict.fromkeys([*there.tags, *new.tags]))[:MAX_TAGS_PER_MEMORY],
        "metadata": {**new.metadata, **there.metadata},
        "importance": max(there.importance, new.importance, key=_WEIGHT.__getitem__),
    }
