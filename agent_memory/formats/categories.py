"""Categories that an agent does not know: kept as a note, and given back on the way out."""

from __future__ import annotations

from typing import Any

from agent_memory.models.enums import ORIGINAL_CATEGORY, MemoryCategory
from agent_memory.models.memory import Memory


def given_back(memory: Memory) -> tuple[str, dict[str, Any]]:
    """Return a memory's category and metadata as they were before an import changed them."""
    original = memory.metadata.get(ORIGINAL_CATEGORY)
    is_unknown = isinstance(original, str) and original not in MemoryCategory.all_values()
    if memory.category != MemoryCategory.NOTE.value or not is_unknown:
        return memory.category, memory.metadata
    rest = {key: value for key, value in memory.metadata.items() if key != ORIGINAL_CATEGORY}
    return str(original), rest
