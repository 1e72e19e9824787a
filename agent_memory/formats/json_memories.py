"""Memories as JSON and JSONL, in A's shape and in C's: four formats with one reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import BinaryIO, Final

from agent_memory.errors import ValidationError
from agent_memory.formats.json_reader import JsonItem, may_stand_around, read_items, unwrapped
from agent_memory.formats.jsonl import read_lines
from agent_memory.formats.protocol import MEMORIES_ALONE, Codec, Sample, Source, Written
from agent_memory.formats.record_shapes import (
    ParsedItem,
    entries,
    line_of,
    memory_json,
    record_json,
)
from agent_memory.models.memory import Memory
from agent_memory.models.portable import Entry
from agent_memory.runtime.files import read_steadily, written_atomically

_AROUND_ITEMS: Final = re.compile(r'\{\s*"(results|memories|success)"\s*:')
_plain: Final = JSONDecoder()


@dataclass(slots=True)
class JsonArray(Codec):
    """An array with one memory per line. Items of any of the shapes can be read.

    It also reads objects in sequence, and an object around a list, as a search returns it.
    """

    name: str
    write_one: Callable[[Memory], str]

    def recognises(self, sample: Sample) -> bool:
        """Return whether it begins like JSON and is not JSONL."""
        if sample.is_folder:
            return False
        return sample.text().startswith(("[", "{")) and not _is_by_line(sample)

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the memories, and the agent that the first of them names."""
        with read_steadily(path) as file:
            try:
                yield from entries(_items_of(file))
            except ValidationError as error:
                raise ValidationError(f"{path}: {error}") from error

    def write(self, path: Path, source: Source) -> Written:
        """Write all memories."""
        written = Written(notes=[MEMORIES_ALONE])
        with written_atomically(path) as file:
            file.write(b"[")
            for memory in source.memories():
                file.write(b",\n" if written.memories else b"\n")
                file.write(line_of(memory, self.write_one))
                written.memories += 1
            file.write(b"\n]\n" if written.memories else b"]\n")
        return written


@dataclass(slots=True)
class JsonLines(Codec):
    """One memory per line. A line that cannot be read does not affect the next."""

    name: str
    write_one: Callable[[Memory], str]

    def recognises(self, sample: Sample) -> bool:
        """Return whether the first line is an object, and the second line another."""
        return not sample.is_folder and _is_by_line(sample)

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the memories, and the agent that the first of them names."""
        with read_steadily(path) as file:
            yield from entries(_lines_of(file))

    def write(self, path: Path, source: Source) -> Written:
        """Write all memories."""
        written = Written(notes=[MEMORIES_ALONE])
        with written_atomically(path) as file:
            for memory in source.memories():
                file.write(line_of(memory, self.write_one) + b"\n")
                written.memories += 1
        return written


def _items_of(file: BinaryIO) -> Iterator[ParsedItem]:
    for number, item in enumerate(read_items(file), start=1):
        yield ParsedItem(f"line {item.line}, item {number}", item.value, item.error)


def _lines_of(file: BinaryIO) -> Iterator[ParsedItem]:
    for line in read_lines(file):
        place = f"line {line.number}"
        if line.error is not None:
            yield ParsedItem(place, None, line.error)
        elif may_stand_around(line.item):
            for item in unwrapped(JsonItem(line.number, line.item)):
                yield ParsedItem(place, item.value, item.error)
        else:
            yield ParsedItem(place, line.item)


def _is_by_line(sample: Sample) -> bool:
    """Return whether a file has one object per line, judging by its beginning."""
    text = sample.text()
    if not text.startswith("{"):
        return False
    first, _, rest = text.partition("\n")
    second = rest.lstrip().partition("\n")[0].rstrip()
    try:
        end = _plain.raw_decode(first)[1]
    except JSONDecodeError:
        if _AROUND_ITEMS.match(first) or first.rstrip().endswith(("{", "[", ",", ":")):
            return False
        # One line, broken or longer than the sample; or a broken line before another.
        return len(first) == len(text) or rest.startswith("{")
    except (ValueError, RecursionError):
        return True  # complete, but with an unreadable number or depth: reported by line
    return not first[end:].strip() and second != "{"


JSON: Final = JsonArray("json", memory_json)
JSONL: Final = JsonLines("jsonl", memory_json)
RECORD_JSON: Final = JsonArray("record-json", record_json)
RECORD_JSONL: Final = JsonLines("record-jsonl", record_json)
