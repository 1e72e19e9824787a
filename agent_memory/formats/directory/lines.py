"""The lines of E's files: minified JSON, one object each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from io import FileIO
from typing import Any, BinaryIO, Final, NamedTuple

from agent_memory.errors import ValidationError
from agent_memory.formats.jsonl import parse_object

MAX_FURTHER_BYTES: Final = 10_000_000
"""The longest line of our own files: a memory's metadata has no limit."""

_MARK: Final = b"\xef\xbb\xbf"
# Some readers take these for the end of a line; half of a surrogate pair has no UTF-8.
_ESCAPED: Final = re.compile("[\x85\u2028\u2029\ud800-\udfff]")
_minified: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


def to_line(item: dict[str, Any]) -> bytes:
    """Return an object as a line without a line break. Raises ``ValidationError`` with its id."""
    try:
        return encoded(_minified(item))
    except (ValueError, RecursionError) as error:
        message = f"the memory {item.get('id')} cannot be written as JSON: {error}"
        raise ValidationError(message) from error


def encoded(text: str) -> bytes:
    """Encode JSON so that every reader counts the same number of lines."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


class RawLine(NamedTuple):
    """A line of a file: its number from 1, and where it begins, in bytes.

    If it is longer than the ``limit``, ``raw`` has only its beginning.
    """

    number: int
    offset: int
    raw: bytes
    limit: int | None = None

    def parsed(self) -> dict[str, Any]:
        """Return the object, or raise ``ValidationError`` that says what is wrong."""
        if self.limit is not None:
            raise ValidationError(f"is longer than {self.limit:,} bytes")
        return parse_object(self.raw)


def raw_lines(file: BinaryIO, max_bytes: int) -> Iterator[RawLine]:
    """Yield the lines that are not blank, without a byte order mark at the start."""
    number = offset = 0
    while raw := file.readline(max_bytes + 2):
        number += 1
        start, offset = offset, offset + len(raw)
        if len(raw.rstrip(b"\r\n")) > max_bytes:
            rest = raw
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(max_bytes)
                offset += len(rest)
            yield RawLine(number, start, raw, limit=max_bytes)
            continue
        if number == 1 and raw.startswith(_MARK):
            raw, start = raw.removeprefix(_MARK), start + len(_MARK)
        if raw.strip():
            yield RawLine(number, start, raw)


def digest_of(memory_id: str) -> bytes:
    """Return 16 bytes that identify an id, however long it is."""
    return hashlib.blake2b(memory_id.encode(errors="surrogatepass"), digest_size=16).digest()


def id_of(item: dict[str, Any]) -> str | None:
    """Return the id of an object, if it is a text, or a number that may stand for one."""
    value = item.get("id")
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value) if is_id else None


class LinesById:
    """The objects of a file by id. Only their positions are kept, and the file stays open.

    ``is_filled`` is whether the lines have been looked for.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.is_filled = False
        self._file = file
        self._unbuffered = FileIO(file.fileno(), "rb", closefd=False)
        self._places: dict[bytes, tuple[int, int]] = {}

    def fill(self) -> Iterator[tuple[int, str]]:
        """Find all lines; yield the number of each unusable one, and why."""
        self.is_filled = True
        for line in raw_lines(self._file, MAX_FURTHER_BYTES):
            try:
                memory_id = id_of(line.parsed())
            except ValidationError as error:
                yield line.number, str(error)
                continue
            if memory_id is None:
                yield line.number, "has no id"
            elif digest_of(memory_id) in self._places:
                yield line.number, f"an earlier line has the same id {memory_id!r:.80}"
            else:
                self._places[digest_of(memory_id)] = line.offset, len(line.raw)

    def get(self, digest: bytes) -> dict[str, Any] | None:
        """Return the object with an id."""
        if digest not in self._places:
            return None
        offset, length = self._places[digest]
        self._unbuffered.seek(offset)
        # The file was whole a moment ago. That it changed is noticed when it is closed.
        raw = self._unbuffered.read(length)
        try:
            return parse_object(raw)
        except ValidationError:
            return None
