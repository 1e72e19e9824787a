"""Converts the rows that engines keep to the values of memories, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from agent_memory.models.columns import COLUMNS, HISTORIC, Column, MemoryValues
from agent_memory.models.enums import Importance, MemoryKind, MemoryType
from agent_memory.models.fields import normalize_tags, to_json
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.storage.records import MEMORY_COLUMNS, read_json, read_list

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory
    from agent_memory.models.memory_fields import TaskMetadata
    from agent_memory.storage.change_records import Change


def is_same_value(value: object, other: object) -> bool:
    """Return whether two values of a field are stored alike: ``True`` and 1 are not."""
    return value == other and column_value(value) == column_value(other)


def column_value(value: object) -> object:
    """Return a field's value in stored form."""
    if isinstance(value, datetime):
        return format_time(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | dict):
        return to_json(value)
    if hasattr(value, "model_dump_json"):  # a task's metadata, the only model in a row
        return value.model_dump_json(exclude_none=True, exclude_defaults=True)
    return value


NEW_ROW: Final[dict[str, Any]] = {
    name: column_value(column.default) for name, column in COLUMNS.items()
}
"""The columns of a new memory, by name; ``None`` also for required ones."""


_IS_PLAIN: Final = {
    name: column.kind in ("text", "word", "count") for name, column in COLUMNS.items()
}
"""For each field, whether its column holds the same value."""


def row_of_memory(memory: Memory) -> dict[str, Any]:
    """Return the row of a memory, by column."""
    values = vars(memory)
    return {
        name: values[name] if is_plain else column_value(values[name])
        for name, is_plain in _IS_PLAIN.items()
    }


def read_values(row: Sequence[Any]) -> dict[str, Any]:
    """Read a row, in the order of ``MEMORY_COLUMNS``, without validation; return it by field.

    A row written by another program may contain what the library would refuse (a category of its
    own, damaged text): it must be readable all the same.
    """
    values = zip(_READERS.items(), row[1:], strict=True)
    return {name: read(value) if read else value for (name, read), value in values}


def values_of_row(row: Mapping[str, Any], *, agent_id: str) -> MemoryValues:
    """Build the values of a memory from a row given by column."""
    fields = read_values(tuple(map(row.get, MEMORY_COLUMNS)))
    return MemoryValues(agent_id=agent_id, embedding=None, **fields)


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as plain data, leaving out what is the same for every new memory."""
    fields: dict[str, Any] = {}
    for name, column in COLUMNS.items():
        value = row[name]
        if value is None or (column.kind == "count" and value == column.default):
            continue
        if name == "updated_at" and value == row["timestamp"]:
            continue
        fields[name] = _plain(column, value)
    return fields


def _plain(column: Column, value: Any) -> Any:  # noqa: ANN401 - any column
    """Return a column's value as plain data."""
    if column.kind == "flag":
        return bool(value)
    if not column.is_json:
        return value
    try:
        plain = json.loads(value)
    except (ValueError, RecursionError):  # another program's: `check` reports it
        return value
    if column.kind == "list" and _is_list_of_texts(plain):
        return normalize_tags(plain)
    return plain


def _is_list_of_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_WORDS: Final[dict[str, type[Enum]]] = {
    "kind": MemoryKind,
    "importance": Importance,
    "memory_type": MemoryType,
}


def _reader_of_word(default: Enum) -> Callable[[str], Enum]:
    """Return a reader of an enum's words; another program's word is read as the default."""
    words = type(default)

    def read(word: str) -> Enum:
        try:
            return words(word)
        except ValueError:
            return default

    return read


def _read_object(text: str | None) -> dict[str, Any]:
    value = read_json(text or "{}")
    return value if isinstance(value, dict) else {}


def _read_task(text: str | None) -> TaskMetadata | None:
    if text is None:
        return None
    from agent_memory.models.memory_fields import TaskMetadata  # noqa: PLC0415 - only for tasks

    try:
        return TaskMetadata.model_validate_json(text)
    except ValueError:
        return None


def _reader_of(name: str, column: Column) -> Callable[[Any], Any] | None:
    """Return the function that reads a field from its column; ``None`` if both hold the same."""
    if column.kind == "word":
        return _reader_of_word(_WORDS[name](column.default))
    if name == "last_accessed":
        return lambda text: read_stored_time(text) if text else None
    readers: dict[str, Callable[[Any], Any]] = {
        "list": read_list,
        "object": _read_object,
        "task": _read_task,
        "time": read_stored_time,
        "flag": bool,
    }
    return readers.get(column.kind)


_READERS: Final = {name: _reader_of(name, column) for name, column in COLUMNS.items()}


def is_as_it_was_added(change: Change, row: Mapping[str, Any] | None) -> bool:
    """Return whether a row is still what a change added: then exports need not repeat it."""
    return (
        change.event == "ADD"
        and row is not None
        and change.new == {name: row[name] for name in HISTORIC if row[name] is not None}
    )
