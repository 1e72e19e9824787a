"""A memory in E's shape, and what that shape cannot hold."""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import Enum
from typing import Any, Final, NamedTuple
from uuid import UUID

from agent_memory.formats.directory.layout import MAX_LINE_BYTES
from agent_memory.models.documents.record_rules import is_uuid4
from agent_memory.models.enums import MemoryKind, TaskStatus
from agent_memory.models.memory import Memory, given_back
from agent_memory.models.memory_fields import MEMORY_FIELDS, fields_beyond
from agent_memory.models.times import format_briefly

_MAX_CONTENT: Final = 5000
_MAX_CATEGORY: Final = 50
_MAX_TAGS: Final = 10
_MAX_TAG: Final = 30

_PLACES: Final = frozenset(
    "id kind content category timestamp updated_at last_accessed access_count tags importance"
    " archived task_metadata metadata".split()
)
NO_PLACE: Final = fields_beyond(_PLACES, "created_by_session user_id run_id memory_type version")
"""What E has no place for, in the order in which it is written beside E's files."""

# What E has in the metadata of a task, by its status.
_OF_STATUS: Final = {
    TaskStatus.COMPLETED: ("status", "completed_at", "outcome"),
    TaskStatus.IN_PROGRESS: ("status",),
    TaskStatus.BLOCKED: ("status", "blockers"),
}


class Shaped(NamedTuple):
    """A memory as E has it, in E's order, and by our names the fields that E cannot hold."""

    fields: dict[str, Any]
    further: dict[str, Any]


def shaped(memory: Memory) -> Shaped:
    """Return a memory in E's shape. It may exceed E's limits: see ``misfit``."""
    category, metadata = given_back(memory)
    task, rest = _task(memory)
    fields: dict[str, Any] = {
        "id": e_id(memory.id),
        "type": memory.kind.value,
        "content": memory.content,
        "category": category,
        "created_at": format_briefly(memory.timestamp),
        "updated_at": format_briefly(memory.updated_at),
        "accessed_at": format_briefly(memory.last_accessed or memory.timestamp),
        "access_count": memory.access_count,
        "tags": memory.tags,
        "importance": memory.importance.value,
        "archived": memory.archived,
    }
    if task is not None:
        fields["task_metadata"] = task
    return Shaped(fields, _further(memory, fields, metadata, rest))


def _further(
    memory: Memory, fields: dict[str, Any], metadata: dict[str, Any], task: dict[str, Any]
) -> dict[str, Any]:
    is_like_new = fields["accessed_at"] == fields["created_at"] and not memory.access_count
    was_accessed = memory.last_accessed is not None
    values: list[tuple[str, object, object]] = [
        ("memory_id", memory.id, fields["id"]),
        *(
            (name, _plain(getattr(memory, name)), MEMORY_FIELDS[name].plain_default)
            for name in NO_PLACE
        ),
        # A time of access that is that of the making means "never" where nothing was counted.
        ("accessed", was_accessed, not is_like_new),
        ("task_metadata", task, {}),
        ("metadata", metadata, {}),
    ]
    return {key: value for key, value, default in values if value != default}


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return format_briefly(value)
    return value.value if isinstance(value, Enum) else value


def _task(memory: Memory) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return a task's metadata as E has it, and the rest: with the status that it goes with."""
    task = memory.task_metadata
    if task is None:
        return None, {}
    values: dict[str, Any] = {
        "status": task.status.value,
        "completed_at": task.completed_at and format_briefly(task.completed_at),
        "blockers": task.blockers or None,
        "outcome": task.outcome,
    }
    values = {key: value for key, value in values.items() if value is not None}
    if memory.kind is not MemoryKind.TASK:
        return None, values
    names = _OF_STATUS[task.status]
    fields = {key: value for key, value in values.items() if key in names}
    if "blockers" in names:
        fields.setdefault("blockers", [])
    rest = {key: value for key, value in values.items() if key not in fields}
    return fields, {"status": values["status"], **rest} if rest else {}


def e_id(memory_id: str) -> str:
    """Return the id of a memory in E's files: a UUID v4, always the same one."""
    if is_uuid4(memory_id):
        return memory_id
    return str(UUID(bytes=hashlib.sha256(memory_id.encode()).digest()[:16], version=4))


def misfit(fields: dict[str, Any], line: bytes) -> str | None:
    """Return which of E's limits keeps a memory out of E's files, if one does."""
    if len(fields["content"]) > _MAX_CONTENT:
        return f"content of over {_MAX_CONTENT:,} characters"
    if len(fields["category"]) > _MAX_CATEGORY:
        return f"category of over {_MAX_CATEGORY} characters"
    if len(fields["tags"]) > _MAX_TAGS:
        return f"more than {_MAX_TAGS} tags"
    if any(len(tag) > _MAX_TAG for tag in fields["tags"]):
        return f"tag of over {_MAX_TAG} characters"
    if len(line) > MAX_LINE_BYTES:
        return f"line of over {MAX_LINE_BYTES:,} bytes"
    return None
