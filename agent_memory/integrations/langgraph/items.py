"""LangGraph's items as memories, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from langgraph.store.base import PutOp, SearchItem, SearchOp, get_text_at_path

from agent_memory import Memory, ValidationError
from agent_memory.integrations.langgraph.conditions import matches
from agent_memory.integrations.texts import searchable
from agent_memory.models.fields import clean_metadata, to_json
from agent_memory.models.times import format_time, parse_time

MAX_VALUE_LENGTH: Final = 1_000_000
"""The most characters of JSON in the value of an item. Storing that many takes 0.1 s."""

NAMESPACE: Final = "langgraph_namespace"
"""The metadata key for the labels, each followed by a dot: a prefix is a range of texts."""
ITEM: Final = "langgraph_item"
"""The metadata key for the item's own key, its value, and when it was first put."""

Name = tuple[tuple[str, ...], str]
"""What identifies an item: its namespace and its key."""
Fields = dict[str, Any]
"""The ``content`` and the ``value`` of an item that is put."""


def item_id(namespace: Sequence[str], key: str, prefix: str) -> str:
    """Return the id of an item's memory: always the same for the same namespace and key.

    ``prefix`` is the ``id_prefix`` of the memory, or of the session.
    """
    name = json.dumps([list(namespace), key])
    return f"{prefix}langgraph-{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def row_of(
    name: Name, fields: Mapping[str, Any], existing: Memory | None, now: datetime, prefix: str
) -> dict[str, Any]:
    """Return the fields of an item's memory; its other metadata is kept."""
    namespace, key = name
    others = {} if existing is None else existing.metadata
    created_at = None if existing is None else existing.metadata[ITEM]["created_at"]
    item = {"key": key, "created_at": created_at or format_time(now), "value": fields["value"]}
    return {
        "id": item_id(namespace, key, prefix),
        "content": fields["content"],
        "metadata": {**others, NAMESPACE: _path(namespace), ITEM: item},
        "timestamp": now,
    }


def item_of(memory: Memory, prefix: str, score: float | None = None) -> SearchItem | None:
    """Return a memory as an item, or ``None`` if it is not one."""
    path, item = memory.metadata.get(NAMESPACE), memory.metadata.get(ITEM)
    if not isinstance(path, str) or not isinstance(item, dict):
        return None
    namespace, key = tuple(path.split(".")[:-1]), item.get("key")
    value, created_at = item.get("value"), item.get("created_at")
    if not isinstance(key, str) or not isinstance(value, dict) or not isinstance(created_at, str):
        return None
    if memory.id != item_id(namespace, key, prefix):
        return None
    return SearchItem(
        namespace=namespace,
        key=key,
        value=value,
        created_at=parse_time(created_at),
        updated_at=memory.updated_at,
        score=score,
    )


def matching_item(
    memory: Memory, op: SearchOp, prefix: str, score: float | None = None
) -> SearchItem | None:
    """Return a memory's item if it meets a search's conditions."""
    item, labels = item_of(memory, prefix, score), tuple(op.namespace_prefix)
    # The file's filter has checked it; but one user's items must never reach another.
    if item is None or item.namespace[: len(labels)] != labels:
        return None
    return item if matches(item.value, op.filter or {}) else None


def _path(labels: Iterable[str]) -> str:
    """Return a namespace as a text that starts with those of its prefixes: ``users.bob.``."""
    return "".join(f"{label}." for label in labels)


def within(prefix: tuple[str, ...]) -> dict[str, Any]:
    """Return the filter for all items under a prefix: from ``users.`` to before ``users/``."""
    if not prefix:
        return {NAMESPACE: {"gte": ""}}
    path = _path(prefix)
    return {NAMESPACE: {"gte": path, "lt": f"{path[:-1]}/"}}


# Values -----------------------------------------------------------------------------------------


def _clean_value(value: Mapping[str, Any], namespace: tuple[str, ...], key: str) -> dict[str, Any]:
    """Return a value as it is stored, or raise ``ValidationError`` that names the item."""
    which = f"of the item {key!r:.200} in {namespace!r:.200}"
    try:
        # Its names are checked too, and its depth inside the metadata.
        cleaned = clean_metadata({ITEM: {"key": [*namespace, key], "value": value}})
        length = len(to_json(cleaned[ITEM]["value"]))
    except (ValueError, RecursionError) as error:
        raise ValidationError.of("value", f"{which} cannot be stored: {error}", None) from error
    if length > MAX_VALUE_LENGTH:
        message = (
            f"{which} has {length:,} characters of JSON: at most {MAX_VALUE_LENGTH:,} are allowed"
        )
        raise ValidationError.of("value", message, None)
    kept = cleaned[ITEM]["value"]
    if not isinstance(kept, dict):
        raise ValidationError.of("value", f"{which} must be a mapping", None)
    return kept


def fields_of(op: PutOp, paths: Sequence[str] | None) -> Fields | None:
    """Return the content and the value of a put, or ``None`` for a deletion.

    ``paths`` are those of the texts to search, unless the put names its own. Raises
    ``ValidationError`` for a value that cannot be stored.
    """
    if op.value is None:
        return None
    if op.ttl is not None:
        raise NotImplementedError("the items of this store do not expire: leave ttl out")
    namespace, key = tuple(op.namespace), op.key
    value = _clean_value(op.value, namespace, key)
    text = _text_of(value, paths if op.index is None else op.index)
    return {"content": searchable(text, name="/".join((*namespace, key))), "value": value}


def _text_of(value: dict[str, Any], paths: Sequence[str] | Literal[False] | None) -> str:
    """Return the text by which a value is found: all of it, or that at some paths."""
    if paths is False:
        return ""
    if paths is None or "$" in paths:
        leaves = list(_leaves(value, ""))
        if len(leaves) == 1:
            return leaves[0][1]
        return "\n".join(f"{name}: {text}" for name, text in leaves)
    return "\n".join(text for path in paths for text in get_text_at_path(value, path))


def _leaves(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers in a value, each with the keys that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name} {key}".strip())
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else to_json(value)
