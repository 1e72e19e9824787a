"""The two shapes of a memory in JSON: A's, which is ``Memory`` itself, and C's Memory Record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from agent_memory.errors import ValidationError
from agent_memory.models.enums import MemoryType
from agent_memory.models.fields import to_json, validate_agent_id
from agent_memory.models.memory import Memory, given_back
from agent_memory.models.memory_fields import MEMORY_FIELDS, fields_beyond
from agent_memory.models.portable import Entry, Section
from agent_memory.models.times import format_time, is_time

KEPT: Final = "agent_memory"
"""The key of C's ``custom_metadata`` that holds what C's record has no place for."""

_OWN: Final = "metadata"
"""The key below ``KEPT`` for an entry of that name in the memory's own metadata."""
_FIELDS: Final = frozenset(Memory.model_fields)
_TYPES: Final = frozenset(memory_type.value for memory_type in MemoryType)
_IN_RECORD: Final = ("user_id", "agent_id", "run_id", "updated_at", "memory_type", "category")
_BEYOND_RECORD: Final[dict[str, object]] = {
    name: MEMORY_FIELDS[name].plain_default
    for name in fields_beyond(
        {"id", "content", "metadata", "tags", "timestamp", "version", *_IN_RECORD},
        "kind importance task_metadata archived access_count last_accessed created_by_session",
    )
}
"""The fields that C's record has no place for, with their values if they are absent."""
LEFT_OUT: Final[Mapping[str, Any]] = {
    name: row.plain_default
    for name, row in MEMORY_FIELDS.items()
    if row.default is not None and row.column.kind != "count"
}
"""What a memory has if a file of complete memories says nothing: omitted when writing, restored
when reading. If it were not restored, a memory that is replaced would keep its old value: archived,
for one.
"""
LATEST_SECONDS: Final = 32_503_680_000
"""A number from the year 3000 or later is not a time in seconds."""
_MARKS_OF_RECORD: Final = frozenset({"created_at", "updated_at", "memory_type", "custom_metadata"})
_ONLY_IN_A: Final = _FIELDS - {"id", "content", "embedding", "metadata", "version"}
_PLACED: Final = {"id", "content", "embedding", "metadata", "version", "score"}
_PLACED_IN_METADATA: Final = {*_IN_RECORD, "created_at", "tags", "custom_metadata"}


class ParsedItem(NamedTuple):
    """An item of a file: its place, its value, and its error, if any."""

    place: str
    value: object
    error: str | None = None


# Writing ------------------------------------------------------------------------------------


def line_of(memory: Memory, write_one: Callable[[Memory], str]) -> bytes:
    """Write a memory with one of the functions below, or raise ``ValidationError``."""
    try:
        return write_one(memory).encode()
    except (ValueError, RecursionError) as error:  # another program may have stored anything
        message = f"of the memory {memory.id} cannot be written as JSON: {error}"
        raise ValidationError.of("metadata", message, memory.id) from error


def memory_json(memory: Memory) -> str:
    """Write a memory on one line in A's shape, which is that of ``Memory.model_dump_json``."""
    return as_it_came(memory).model_dump_json()


def record_json(memory: Memory) -> str:
    """Write a memory on one line as C's Memory Record, without the optional fields that are None.

    What the record has no place for is put under the key ``agent_memory`` of its
    ``custom_metadata``, if it differs from the default.
    """
    fields = as_it_came(memory).model_dump(mode="json")
    custom = fields["metadata"]
    beyond = {name: fields[name] for name, usual in _BEYOND_RECORD.items() if fields[name] != usual}
    if KEPT in custom:
        beyond[_OWN] = custom[KEPT]
    metadata = {
        "user_id": fields["user_id"],
        "agent_id": fields["agent_id"],
        "run_id": fields["run_id"],
        "created_at": fields["timestamp"],
        "updated_at": fields["updated_at"],
        "memory_type": fields["memory_type"],
        "category": fields["category"],
        "tags": fields["tags"],
        "custom_metadata": {**custom, KEPT: beyond},
    }
    record = {
        "id": fields["id"],
        "content": fields["content"],
        "embedding": fields["embedding"],
        "metadata": {name: value for name, value in metadata.items() if value is not None},
        "version": fields["version"],
    }
    return to_json({name: value for name, value in record.items() if value is not None})


# Reading ------------------------------------------------------------------------------------


def entries(items: Iterable[ParsedItem]) -> Iterator[Entry]:
    """Yield the contents of a file, whichever shape each of its items has.

    The first agent that a memory names is yielded before that memory, as the file's agent. The name
    of another agent, further on, stays in the ``metadata`` of its memory.
    """
    agent_id: str | None = None
    for item in items:
        if item.error is not None:
            yield Entry(Section.MEMORY, {}, item.place, item.error)
            continue
        try:
            fields = _fields_of(item.value)
            named = fields.pop("agent_id", None)
            if agent_id is None and isinstance(named, str) and validate_agent_id(named):
                agent_id = named
                yield Entry(Section.AGENT, {"agent_id": named}, item.place)
            repairs: tuple[str, ...] = ()
            if named not in (None, agent_id):
                _keep(fields, "agent_id", named)
                repairs = (f"belongs to agent {named!r:.80}, which is now in its metadata",)
        except ValidationError as error:
            yield Entry(Section.MEMORY, {}, item.place, str(error))
        else:
            yield Entry(Section.MEMORY, fields, item.place, None, repairs)


def _fields_of(value: object) -> dict[str, Any]:
    """Return the fields of ``Memory`` in an item. Raises ``ValidationError``."""
    if not isinstance(value, dict):
        kind = "null" if value is None else type(value).__name__
        raise ValidationError(f"is a JSON {kind}, not an object with a content")
    item: dict[str, Any] = value
    if isinstance(item.get("memory"), dict) and "content" not in item:
        item = item["memory"]  # a search result (A); its score was for one query
    if isinstance(item.get("messages"), list) and "content" not in item:
        raise ValidationError("is a conversation, not a memory: use `add` to learn from it")
    metadata = item.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise ValidationError(f"metadata: is a JSON {type(metadata).__name__}, not an object")
    is_record = metadata is not None and _is_record(item, metadata)
    fields = _of_record(item, metadata or {}) if is_record else _of_memory(item)
    return {
        name: value
        for name, value in fields.items()
        if value is not None or name == "last_accessed"
    }


def _is_record(item: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return whether an item is C's: its fields are in its metadata, which is free in A."""
    return (
        not _MARKS_OF_RECORD.isdisjoint(metadata)
        and all(item.get(name) is None for name in _ONLY_IN_A)
        and item.get("session_id") is None
    )


def _of_memory(item: dict[str, Any]) -> dict[str, Any]:
    item = _in_our_names(item)
    if _FIELDS.issuperset(item):
        return item
    fields = {name: value for name, value in item.items() if name in _FIELDS}
    unknown = {name: value for name, value in item.items() if name not in _FIELDS}
    unknown.pop("relevance_score", None)  # D's search adds it
    if fields.get("created_by_session") is None and "session_id" in unknown:
        fields["created_by_session"] = unknown.pop("session_id")
    for name, value in unknown.items():
        _keep(fields, name, value)
    return fields


def _in_our_names(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return another program's fields of a memory under our names.

    mem0 calls the text ``memory``; mcp-memory-service writes times as seconds, and has types of its
    own. The time of writing becomes the timestamp, or everything would date from today.
    """
    named = dict(item)
    if "content" not in named and isinstance(named.get("memory"), str):
        named["content"] = named.pop("memory")
    for name in ("created_at", "updated_at"):
        moment = named.get(name)
        if isinstance(moment, (int, float)) and abs(moment) < LATEST_SECONDS:
            named[name] = format_time(datetime.fromtimestamp(moment, UTC))
    if "timestamp" not in named and is_time(named.get("created_at")):
        named["timestamp"] = named.pop("created_at")
        named.pop("created_at_iso", None)
        named.pop("updated_at_iso", None)
    kind = named.get("memory_type")
    if isinstance(kind, str) and kind not in _TYPES:
        named["original_type"] = named.pop("memory_type")
    return named


def _of_record(item: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    custom = metadata.get("custom_metadata")
    if custom is not None and not isinstance(custom, dict):
        raise ValidationError(
            f"metadata.custom_metadata: is a JSON {type(custom).__name__}, not an object"
        )
    fields = {name: item.get(name) for name in ("id", "content", "embedding", "version")}
    fields |= {name: metadata.get(name) for name in _IN_RECORD}
    fields |= {"tags": metadata.get("tags"), "timestamp": metadata.get("created_at")}
    if custom:
        fields |= _taken_out(custom)
    for part, placed in ((item, _PLACED), (metadata, _PLACED_IN_METADATA)):
        for name, value in part.items():
            if name not in placed:
                _keep(fields, name, value)
    return fields


def _taken_out(custom: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``custom_metadata`` as metadata, and separately what ``record_json`` added to it."""
    kept = custom.get(KEPT)
    if not isinstance(kept, dict) or "created_by_session" not in kept:
        return {"metadata": dict(custom)}
    if not kept.keys() <= {*_BEYOND_RECORD, _OWN}:
        return {"metadata": dict(custom)}
    own = {
        name: kept[_OWN] if name == KEPT else value
        for name, value in custom.items()
        if name != KEPT or _OWN in kept
    }
    usual = {name: LEFT_OUT[name] for name in _BEYOND_RECORD if name in LEFT_OUT}
    beyond = {name: value for name, value in kept.items() if name != _OWN}
    return {**usual, **beyond, "metadata": own}


def _keep(fields: dict[str, Any], name: str, value: object) -> None:
    """Put a value without a field into the metadata; null is ignored."""
    if value is None:
        return
    metadata = dict(fields.get("metadata") or {})
    if name in metadata:
        raise ValidationError(f"{name!r:.80} is both beside the metadata and in it: remove one")
    fields["metadata"] = {**metadata, name: value}


def as_it_came(memory: Memory) -> Memory:
    """Return a memory with the category that it had before an import changed it."""
    category, metadata = given_back(memory)
    if metadata is memory.metadata:
        return memory
    return memory.model_copy(update={"category": category, "metadata": metadata})
