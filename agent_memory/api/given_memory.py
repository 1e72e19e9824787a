"""A memory of what a caller gives, made without the models where every value is as it should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Final

from agent_memory.api.session_names import choose_session_name
from agent_memory.models.columns import COLUMNS, MemoryValues
from agent_memory.models.enums import Importance, MemoryCategory, MemoryKind, MemoryType
from agent_memory.models.fields import (
    clean_content,
    clean_label,
    clean_memory_id,
    clean_metadata,
    clean_scope_id,
    clean_tags,
    new_memory_id,
)
from agent_memory.models.times import now_utc, to_utc

_RULES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "content": clean_content,
    "category": lambda category: MemoryCategory(category).value,
    "tags": lambda tags: clean_tags(list(tags)),
    "kind": MemoryKind,
    "importance": Importance,
    "memory_type": MemoryType,
    "session_id": clean_label,
    "user_id": clean_scope_id,
    "run_id": clean_scope_id,
    "timestamp": to_utc,
    "metadata": clean_metadata,
    "id": clean_memory_id,
}
"""What makes of a value of the right type the one that is stored, or raises ``ValueError``."""


def memory_of_fields(fields: Mapping[str, Any], *, agent_id: str) -> MemoryValues | None:
    """Return a memory by the rules of ``MemoryInput``; ``None`` where one is broken."""
    if not fields.keys() <= _RULES.keys():
        return None
    now = now_utc()
    usual: dict[str, Any] = {name: copy(column.default) for name, column in COLUMNS.items()}
    usual |= {"id": new_memory_id(), "timestamp": now, "updated_at": now}
    try:
        values = {name: _RULES[name](value) for name, value in fields.items()}
        session = choose_session_name(values.pop("session_id", None))
    except ValueError:
        return None
    usual |= {"agent_id": agent_id, "created_by_session": session, "embedding": None}
    return MemoryValues(**usual | values)
