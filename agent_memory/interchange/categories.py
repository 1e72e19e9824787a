"""Categories that an agent does not know: kept as a note, and given back on the way out."""

from __future__ import annotations

from typing import Any, Final

from agent_memory import Memory, MemoryCategory

ORIGINAL_CATEGORY: Final = "original_category"
"""The key of the metadata that keeps the category that a memory came with."""


def given_back(memory: Memory) -> tuple[str, dict[str, Any]]:
    """Return a memory's category and metadata as they were before an import changed them."""
    original = memory.metadata.get(ORIGINAL_CATEGORY)
    if memory.category != MemoryCategory.NOTE.value or not isinstance(original, str):
        return memory.category, memory.metadata
    rest = {key: value for key, value in memory.metadata.items() if key != ORIGINAL_CATEGORY}
    return original, rest
