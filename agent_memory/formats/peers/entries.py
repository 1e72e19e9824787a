"""What other programs' memories have in common: times, tags, long texts, odd characters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from agent_memory.formats.record_shapes import LATEST_SECONDS
from agent_memory.models.fields import normalize_tags, validate_memory_content
from agent_memory.models.limits import (
    MAX_MEMORY_CONTENT_LENGTH,
    MAX_TAG_LENGTH,
    MAX_TAGS_PER_MEMORY,
)
from agent_memory.models.portable import Entry, PassedOver, Section
from agent_memory.models.times import format_time, parse_time

EMPTY: Final = PassedOver("empty texts")
_MOST_DEPTH: Final = 12
_LONGEST_LABEL: Final = 200


def memories(
    place: str,
    content: object,
    *,
    source: str,
    timestamp: object = None,
    tags: object = None,
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,  # noqa: ANN401 - fields of a memory
) -> Iterator[Entry | PassedOver]:
    """Yield the memory of a text, or several if it is longer than a memory can be.

    ``timestamp``, ``tags`` and ``metadata`` are as the other program has them; ``fields`` are our
    own. ``source`` is the format's name.
    """
    if not isinstance(content, str):
        kind = "null" if content is None else type(content).__name__
        yield Entry(Section.MEMORY, {}, place, f"the text is a JSON {kind}, not a string")
        return
    listed = _tags(tags)
    known = {**kept(metadata or {}), "source": source}
    fit = [tag for tag in listed if len(tag) <= MAX_TAG_LENGTH][:MAX_TAGS_PER_MEMORY]
    if fit != listed:
        known["tags"] = listed
    moment = time_of(timestamp)
    if moment is None and timestamp not in (None, ""):
        known["time"] = kept(timestamp)
    shared = {"tags": fit or None, "timestamp": moment, "metadata": known, **fields}
    text = text_of(content).strip()
    if not validate_memory_content(text[:MAX_MEMORY_CONTENT_LENGTH])[0]:
        yield EMPTY
        return
    for piece in pieces(text):
        values = {"content": piece, **shared}
        present = {name: value for name, value in values.items() if value is not None}
        yield Entry(Section.MEMORY, present, place)


def pieces(text: str) -> Iterator[str]:
    """Yield a text, split between paragraphs if it is longer than a memory can be."""
    while len(text) > MAX_MEMORY_CONTENT_LENGTH:
        head = text[:MAX_MEMORY_CONTENT_LENGTH]
        cut = max(head.rfind("\n\n"), 0) or max(head.rfind("\n"), 0) or head.rfind(" ")
        cut = cut if cut > 0 else MAX_MEMORY_CONTENT_LENGTH
        yield text[:cut].strip()
        text = text[cut:].strip()
    if text:
        yield text


def time_of(value: object) -> str | None:
    """Return a time as the file holds it, from ISO 8601, or from seconds or parts since 1970."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if not abs(value) <= LATEST_SECONDS * 10**9:  # nor is "not a number" a time
            return None
        seconds = float(value)
        while abs(seconds) > LATEST_SECONDS:  # it counts thousandths
            seconds /= 1000
        return format_time(datetime.fromtimestamp(seconds, UTC))
    try:
        return format_time(parse_time(value)) if isinstance(value, str) else None
    except ValueError:
        return None


def list_of(value: object) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def texts_in(content: object) -> Iterator[str]:
    """Yield the texts of a message: itself, or those of its text blocks."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for block in blocks:
        is_text = isinstance(block, dict) and block.get("type") == "text"
        if is_text and isinstance(text := block.get("text"), str):
            yield text


def text_of(text: str) -> str:
    """Return a text as a store can hold it: without NUL, and with half characters made visible."""
    if text.isascii():
        return text.replace("\x00", "")
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\x00", "")


def kept(value: object, depth: int = 0) -> Any:  # noqa: ANN401 - JSON data
    """Return another program's data as metadata can hold it, without empty values."""
    if isinstance(value, str):
        return text_of(value)
    if value is None or isinstance(value, bool | int | float):
        return _number(value)
    if depth >= _MOST_DEPTH or not isinstance(value, Mapping | list | tuple):
        return f"a {type(value).__name__}"
    if isinstance(value, Mapping):
        plain = {text_of(str(name)): kept(item, depth + 1) for name, item in value.items()}
        return {name: item for name, item in plain.items() if item not in (None, "", [], {})}
    return [kept(item, depth + 1) for item in value]


def _number(value: float | None) -> float | str | None:
    """Return a number, as a text where JSON or the file cannot hold it."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"an integer of {value.bit_length()} bits"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def label(value: object) -> str | None:
    """Return another program's session name as a valid one here, or ``None``."""
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    text = text_of(str(value)).strip()
    return text[:_LONGEST_LABEL] or None


def _tags(value: object) -> list[str]:
    if isinstance(value, str):
        value = re.split(r"[,;\n]", value)
    if not isinstance(value, list | tuple):
        return []
    return normalize_tags(text_of(str(tag)).lstrip("#") for tag in value if isinstance(tag, str))
