"""Excerpts of memories, made of the rows that engines keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_memory.models.excerpt import MemoryExcerpt
from agent_memory.models.times import read_stored_time
from agent_memory.storage.records import read_list

EXCERPT_COLUMNS: Final = tuple(name for name in MemoryExcerpt._fields if name != "agent_id")
"""The columns of an excerpt. Whose memory it is, is said by the whole store."""


def excerpt_of_values(row: Sequence[Any], agent_id: str) -> MemoryExcerpt:
    """Make the excerpt of a row: its number, then values in the order of ``EXCERPT_COLUMNS``."""
    _, memory_id, content, category, tags, timestamp, session, user_id = row
    return MemoryExcerpt(
        memory_id,
        agent_id,
        content,
        category,
        read_list(tags),
        read_stored_time(timestamp),
        session,
        user_id,
    )
