"""Builds the models of memories from the rows that engines keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_memory.models.memory import Memory
from agent_memory.storage.memory_values import read_values
from agent_memory.storage.records import MEMORY_COLUMNS


def memory_of_values(row: Sequence[Any], agent_id: str) -> Memory:
    """Build the model of a row, as ``read_values`` reads it."""
    return Memory.model_construct(agent_id=agent_id, embedding=None, **read_values(row))


def memory_of_row(row: Mapping[str, Any], *, agent_id: str) -> Memory:
    """Build the model of a row given by column."""
    return memory_of_values(tuple(map(row.get, MEMORY_COLUMNS)), agent_id)
