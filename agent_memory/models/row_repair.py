"""Repairs values that another program wrote and no import would accept: see ``check``.

A value is changed as little as possible to become valid, and the original is kept beside it. The
types of ``portable`` decide what is invalid; nothing here does.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from agent_memory.models.columns import ORIGINAL_CATEGORY
from agent_memory.models.fields import (
    decode_json,
    normalize_tags,
    to_json,
    validate_memory_content,
)
from agent_memory.models.limits import (
    MAX_MEMORY_CONTENT_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS_PER_MEMORY,
)
from agent_memory.models.memory_fields import MEMORY_FIELDS, TaskMetadata
from agent_memory.models.times import format_time, parse_time

NO_TEXT: Final = "(no text)"
"""The content given to a memory that has only white space."""
NO_NAME: Final = "no name"
KEPT_AS: Final = "unreadable_"
"""The prefix of the metadata key under which an original value is kept."""
_LONGEST_LABEL: Final = 200
_DEEPEST: Final = 18
"""Levels of metadata that are kept as they are; deeper values become JSON text."""
_LARGEST: Final = 2**53 - 1


def mended_column(name: str, value: Any, *, moment: str) -> Any:  # noqa: ANN401 - any column
    """Return a repaired value for a column of memories; ``None`` for its default.

    ``moment`` replaces a value that is not a time.
    """
    field = MEMORY_FIELDS.get(name)
    if field is None:  # seq, scratchpad: columns of deleted memories
        return None
    mend = _BY_NAME.get(name) or _BY_KIND[field.column.kind]
    mended = mend(value)
    if mended is None and not field.is_optional:
        return moment if field.column.kind == "time" else _column_default(name)
    return mended


def mended_row(row: Mapping[str, Any], wrong: set[str], *, moment: str) -> dict[str, Any]:
    """Return a row of memories with its invalid columns repaired and their originals in metadata.

    ``wrong`` are the columns that are invalid.
    """
    mended = {name: mended_column(name, row[name], moment=moment) for name in wrong}
    metadata = _object(mended.get("metadata", row["metadata"]))
    for name in sorted(wrong - {"metadata"}):
        if name == "category" and mended_label(row[name]) == row[name]:
            metadata[ORIGINAL_CATEGORY] = row[name]  # as an import does
        elif row[name] is not None and str(row[name]).strip():
            key = KEPT_AS + name
            while key in metadata:
                key += "_"
            metadata[key] = storable(
                _parsed(row[name]) if MEMORY_FIELDS[name].is_json else row[name]
            )
    return {**row, **mended, "metadata": to_json(metadata)}


def mended_text(text: object) -> str | None:
    """Return a text with its NULs escaped: other tools would cut it there."""
    return None if text is None else str(text).replace("\x00", "<00>")


def mended_label(text: object) -> str | None:
    """Return the name of a session, user or run: ``None`` for a blank one, a long one shortened.

    Different long names stay different: two users must never become one.
    """
    label = mended_text(text)
    if label is None or not label.strip():
        return None
    if len(label) <= _LONGEST_LABEL:
        return label
    digest = hashlib.sha256(label.encode(errors="replace")).hexdigest()[:16]
    return f"{label[: _LONGEST_LABEL - len(digest) - 1]}~{digest}"


def mended_name(text: object) -> str:
    """Return the name of an entity, or a verb, as one line; a long one is cut."""
    line = " ".join("".join(letter for letter in str(text) if letter >= " ").split())
    return line[:_LONGEST_LABEL].strip() or NO_NAME


def mended_time(text: object) -> str | None:
    """Return a time in its stored form, or ``None`` if the text is not a time."""
    try:
        return format_time(parse_time(str(text)))
    except ValueError:
        return None


def mended_count(value: object) -> int | None:
    """Return a number that any JSON reader can hold."""
    return min(max(value, 0), _LARGEST) if isinstance(value, int) else None


def _content(text: object) -> str:
    content = (mended_text(text) or "")[:MAX_MEMORY_CONTENT_LENGTH]
    return content if validate_memory_content(content)[0] else NO_TEXT


def _tags(text: object) -> str | None:
    tags = _parsed(text)
    if not isinstance(tags, list):
        return None
    texts = [tag if isinstance(tag, str) else to_json(storable(tag)) for tag in tags]
    shortened = [str(storable(tag)).strip()[:MAX_TAG_LENGTH] for tag in texts]
    return to_json(normalize_tags(shortened)[:MAX_TAGS_PER_MEMORY])


def _metadata(text: object) -> str | None:
    if text is None:
        return None
    value = _parsed(text)
    whole = value if isinstance(value, dict) else {f"{KEPT_AS}metadata": str(text)}
    return to_json(storable(whole))


def _task(text: object) -> str | None:
    """Return a task's metadata without the fields that are unknown or invalid."""
    value = _parsed(text)
    if not isinstance(value, dict):
        return None
    known = {name: storable(value[name]) for name in TaskMetadata.model_fields if name in value}
    for _ in range(len(known) + 1):
        try:
            task = TaskMetadata.model_validate(known)
        except ValidationError as error:
            for fault in error.errors():
                known.pop(str(fault["loc"][0]), None)
        else:
            return task.model_dump_json(exclude_none=True, exclude_defaults=True)
    return None


_BY_NAME: Final[dict[str, Callable[[object], Any]]] = {
    "content": _content,
    "category": lambda _: None,
    "version": lambda _: None,
}
_BY_KIND: Final[dict[str, Callable[[object], Any]]] = {
    "text": mended_label,
    "word": lambda _: None,
    "list": _tags,
    "object": _metadata,
    "task": _task,
    "time": mended_time,
    "flag": lambda value: int(bool(value)),
    "count": mended_count,
}


def _column_default(name: str) -> Any:  # noqa: ANN401 - of any column
    field = MEMORY_FIELDS[name]
    if field.is_json:
        return to_json(field.plain_default)
    return "sqlite3" if name == "created_by_session" else field.plain_default


def _parsed(text: object) -> Any:  # noqa: ANN401 - JSON data
    """Parse JSON; numbers that Python or other readers would change are kept as text."""
    try:
        return decode_json(str(text))
    except (ValueError, RecursionError):
        return text


def storable(value: Any, depth: int = 1) -> Any:  # noqa: ANN401 - JSON data
    """Return JSON data in a form that can be stored: texts without NULs and lone surrogates."""
    if isinstance(value, str):
        text = value.replace("\x00", "<00>")
        return "".join(
            f"<{ord(letter):04X}>" if "\ud800" <= letter <= "\udfff" else letter for letter in text
        )
    if isinstance(value, list | dict) and depth > _DEEPEST:
        return storable(json.dumps(value, ensure_ascii=False))
    if isinstance(value, list):
        return [storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item, depth + 1) for key, item in value.items()}
    return value


def _object(text: object) -> dict[str, Any]:
    value = _parsed(text)
    return value if isinstance(value, dict) else {}
