"""JSONL in: one JSON object per line. A bad line is refused with its number, never guessed at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from pydantic_core import from_json, to_json

from agent_memory.errors import ValidationError
from agent_memory.formats.json_reader import parse

MAX_LINE_BYTES: Final = 1_000_000
"""A memory's content is at most 10,000 characters; the rest is room for its metadata."""


class Line(NamedTuple):
    """A line: its number from 1, and the object, or its error."""

    number: int
    item: dict[str, Any]
    error: str | None = None


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines that are not blank. A byte order mark and CRLF are accepted.

    The file is split as bytes: text would also be split at U+2028, which may occur inside a JSON
    string.
    """
    number = 0
    is_ours = True  # as far as read: another program's lines would only be parsed twice
    while raw := file.readline(MAX_LINE_BYTES + 2):
        number += 1
        line = raw.rstrip(b"\r\n")
        if len(line) > MAX_LINE_BYTES:
            while raw and not raw.endswith(b"\n"):
                raw = file.readline(MAX_LINE_BYTES)
            yield Line(number, {}, f"is longer than {MAX_LINE_BYTES:,} bytes")
            continue
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if is_ours and (item := _as_written(line)) is not None:
            yield Line(number, item)
        elif line.strip():
            is_ours = False
            yield _line(number, line)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the object in a line.

    Raises ``ValidationError``, with a message to put after a place, if the line is not JSON or not
    an object, and for NaN, numbers too large to store, duplicate keys and unbounded nesting.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ValidationError(f"is not JSON: it is not UTF-8 (byte {error.start + 1})") from error
    value = parse(text)
    if not isinstance(value, dict):
        raise ValidationError(f"is a JSON {type(value).__name__}, not an object with a content")
    return value


def _as_written(line: bytes) -> dict[str, Any] | None:
    """Return the object of a line that is, byte for byte, what this library writes for it.

    Such a line has no duplicate key and no number that cannot be stored, so ``parse_object`` would
    return the same, in nearly twice the time.
    """
    try:
        value = from_json(line, allow_inf_nan=False)
        is_same = isinstance(value, dict) and to_json(value) == line
    except ValueError:
        return None
    return value if is_same else None


def _line(number: int, raw: bytes) -> Line:
    try:
        return Line(number, parse_object(raw))
    except ValidationError as error:
        return Line(number, {}, str(error))
