"""Maps the rows of other programs' databases to memories: which column means what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from agent_memory.formats.peers.entries import label, list_of, memories, time_of
from agent_memory.models.enums import MemoryCategory
from agent_memory.models.fields import is_memory_id
from agent_memory.models.portable import Entry, PassedOver

Row = Mapping[str, Any]
_LABELS: Final = ("request", "investigated", "learned", "completed", "next_steps", "notes")


class Columns(NamedTuple):
    """The meaning of a table's columns; a column that is not named is kept in the metadata."""

    text: Callable[[Row], object]
    spent: tuple[str, ...]
    """The columns that the text is made of, and those that say nothing elsewhere."""
    time: tuple[str, ...] = ("created_at",)
    """When it was learned: the first of these that is a time."""
    gone: tuple[str, ...] = ()
    """Columns that, where they say anything, say that it is there no more."""
    session: tuple[str, ...] = ("session_id",)
    """Which session it is of: the first of these that says so."""
    tags: str = "tags"
    keeps_id: str = ""
    """The column of an id that is unique in the world."""


def _of_langgraph(row: Row) -> object:
    """Return the text of a value: under its usual keys, else the JSON of it."""
    value = row["value"]
    for _ in range(2):
        if isinstance(value, dict):
            value = next((value[key] for key in _TEXT_KEYS if value.get(key)), value)
    return value if isinstance(value, str) else json.dumps(row["value"], ensure_ascii=False)


_TEXT_KEYS: Final = ("content", "text", "memory", "data")


def _of_claude_mem(row: Row) -> object:
    lines = [f"- {fact}" for fact in list_of(row.get("facts")) if isinstance(fact, str)]
    words = [row.get("title"), row.get("subtitle"), row.get("narrative") or row.get("text")]
    return "\n".join([*(part for part in words if isinstance(part, str) and part), *lines])


def _of_summary(row: Row) -> object:
    return "\n".join(f"{name}: {row[name]}" for name in _LABELS if row.get(name))


def _of_engram(row: Row) -> object:
    title, content = row.get("title"), row.get("content")
    if not isinstance(title, str) or not isinstance(content, str) or title in content:
        return content
    return f"{title}\n{content}"


def _column(name: str) -> Callable[[Row], object]:
    return lambda row: row.get(name)


_MNEMOSYNE: Final = Columns(
    _column("content"),
    spent=("rowid", "content", "binary_vector"),
    time=("timestamp", "created_at"),
    gone=("superseded_by",),
)
_TABLES: Final[Mapping[tuple[str, str], Columns]] = {
    ("mcp-memory-service", "memories"): Columns(
        _column("content"),
        spent=("id", "content", "created_at_iso", "updated_at", "updated_at_iso"),
        time=("created_at", "created_at_iso"),
        gone=("deleted_at", "superseded_by"),
        session=("conversation_id",),
    ),
    ("mem0", "history"): Columns(
        _column("new_memory"),
        spent=("id", "memory_id", "old_memory", "new_memory", "event", "is_deleted", "newest"),
        gone=("is_deleted",),
        keeps_id="memory_id",
    ),
    ("langgraph", "store"): Columns(_of_langgraph, spent=("updated_at",)),
    ("claude-mem", "observations"): Columns(
        _of_claude_mem,
        spent=("id", "text", "title", "subtitle", "narrative", "facts", "created_at"),
        time=("created_at_epoch", "created_at"),
        session=("memory_session_id", "sdk_session_id"),
        tags="concepts",
    ),
    ("claude-mem", "session_summaries"): Columns(
        _of_summary,
        spent=("id", "created_at", *_LABELS),
        time=("created_at_epoch", "created_at"),
        session=("memory_session_id", "sdk_session_id"),
    ),
    ("engram", "observations"): Columns(
        _of_engram,
        spent=("id", "title", "content", "updated_at", "normalized_hash", "sync_id"),
        gone=("deleted_at",),
    ),
    ("mnemosyne", "working_memory"): _MNEMOSYNE,
    ("mnemosyne", "episodic_memory"): _MNEMOSYNE,
    ("basic-memory", "observation"): Columns(_column("content"), spent=("content", "updated_at")),
}
_PASSED_OVER: Final = {
    ("claude-mem", "user_prompts"): "prompts",
    ("engram", "user_prompts"): "prompts",
    ("basic-memory", "relation"): "relations (the folder of notes has them)",
}
_JSON: Final = ("value", "facts", "concepts", "tags", "metadata", "metadata_json", "files_read",
                "files_modified")  # fmt: skip
"""Columns that hold JSON, as text or as bytes."""
_CATEGORIES: Final = ("memory_type", "type", "category")


def entries_of(peer: str, table: str, row: Row, place: str) -> Iterator[Entry | PassedOver]:
    """Yield the memory of a row."""
    columns = _TABLES.get((peer, table))
    if columns is None:
        yield PassedOver(_PASSED_OVER[peer, table])
        return
    row = {name: _data(value) if name in _JSON else value for name, value in row.items()}
    if any(row.get(name) for name in columns.gone):
        yield PassedOver("memories that were deleted or replaced there")
        return
    used = {*columns.spent, *columns.time, *columns.session, columns.tags}
    rest = {name: value for name, value in row.items() if name not in used}
    metadata = {key: value for key, value in rest.items() if not isinstance(value, bytes)}
    sessions = (label(row.get(name)) for name in columns.session)
    fields: dict[str, Any] = {"created_by_session": next(filter(None, sessions), None)}
    if columns.keeps_id and is_memory_id(row.get(columns.keeps_id)):
        fields["id"] = row[columns.keeps_id]
    kinds = (row.get(name) for name in _CATEGORIES)
    fields["category"] = next((kind for kind in kinds if kind in list(MemoryCategory)), None)
    times = (row.get(name) for name in columns.time)
    yield from memories(
        place,
        columns.text(row),
        source=peer,
        timestamp=next((value for value in times if time_of(value)), None),
        tags=row.get(columns.tags),
        metadata=metadata,
        **fields,
    )


def _data(value: object) -> object:
    """Return what a column of JSON holds, or the column as it is."""
    if not isinstance(value, str | bytes) or value[:1] not in ("{", "[", b"{", b"["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
