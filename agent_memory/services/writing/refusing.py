"""The error for memories that are refused because they are there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_memory.errors import DuplicateMemory, described
from agent_memory.models.duplicate import Duplicate


def refusal(refused: Sequence[Duplicate], total: int, places: Mapping[str, int]) -> DuplicateMemory:
    """Make the error for what was refused; ``places`` are those of what this list stored itself."""
    faults = [
        {
            "loc": ("content",) if it.index is None else (it.index, "content"),
            "msg": _reason(it, places),
            "type": "duplicate",
            "input": described(it.new_content),
            "ctx": {"memory_id": it.memory_id, "item": places.get(it.memory_id)},
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
