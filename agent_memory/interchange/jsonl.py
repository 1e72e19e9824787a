"""JSONL in: one JSON object a line. A line is refused with its number, never guessed at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

from agent_memory import ValidationError

MAX_LINE_BYTES: Final = 1_000_000
"""A memory's content is 10,000 characters; its metadata has room for the rest."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read: its number from 1, and the object, or what is wrong with it."""

    number: int
    item: dict[str, Any]
    error: str | None = None


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines that are not blank. A byte order mark and CRLF are accepted.

    The file is read by lines of bytes: text would also be split at U+2028, which may stand inside
    a JSON string.
    """
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 2):
        number += 1
        if len(raw.rstrip(b"\r\n")) > MAX_LINE_BYTES:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE_BYTES)
            yield Line(number, {}, f"is longer than {MAX_LINE_BYTES:,} bytes")
            continue
        if number == 1:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw.strip():
            yield _line(number, raw)


def _line(number: int, raw: bytes) -> Line:
    try:
        value = json.loads(
            raw.decode(), parse_constant=_refuse_constant, object_pairs_hook=_refuse_repetition
        )
    except RecursionError:
        return Line(number, {}, "is nested too deep")
    except ValueError as error:
        return Line(number, {}, f"is not JSON: {error}")
    if not isinstance(value, dict):
        return Line(number, {}, f"is a JSON {type(value).__name__}, not an object with a content")
    return Line(number, value)


def _refuse_constant(name: str) -> None:
    raise ValidationError(f"{name} is not JSON")


def _refuse_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValidationError(f"the key {key!r} stands twice")
        found[key] = value
    return found
