"""Everything in a store, as YAML: the portable backup, made for line-by-line diffs.

Each field of a memory is on its own line, and a text of several lines keeps its lines, so that a
changed word is a changed line. What is known about the memories follows them, one thing per line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.formats.protocol import Codec, Sample, Source, Written
from agent_memory.formats.record_shapes import LEFT_OUT
from agent_memory.formats.scratchpad import memory_entry
from agent_memory.formats.yaml_reader import MAX_ITEM_BYTES, Item, read_items
from agent_memory.formats.yaml_writer import block, fields, flow, name
from agent_memory.models.portable import Entry, Section
from agent_memory.runtime.files import written_atomically
from agent_memory.text.counts import counted

VERSION: Final = 1
"""The version of the format that is written; newer ones cannot be read."""

_FORMAT: Final = "agent-memory store"
_KEYS: Final = {
    Section.AGENT: "agent",
    Section.MEMORY: "memories",
    Section.SCRATCHPAD: "scratchpad",
    Section.REJECTION: "rejections",
    Section.ENTITY: "entities",
    Section.RELATIONSHIP: "relationships",
    Section.REVIEW: "reviews",
    Section.MODEL: "models",
    Section.VECTOR: "vectors",
    Section.CHANGE: "changes",
    Section.TOMBSTONE: "tombstones",
}
_SECTIONS: Final = {key: section for section, key in _KEYS.items()}
_BEGINS: Final = re.compile(
    rf"(?:\s|[#%].*+|---(?=\s))*+[\"']?format[\"']?\s*:\s+[\"']?{_FORMAT}[\"']?\s*$", re.MULTILINE
)


class StoreYaml(Codec):
    """A whole store in one file that people can read and compare."""

    name = "store"

    def recognises(self, sample: Sample) -> bool:
        """Return whether the first line says so."""
        return not sample.is_folder and _BEGINS.match(sample.text()) is not None

    def read(self, path: Path) -> Iterator[Entry]:
        """Yield the entries in the order of the file."""
        header: dict[str, Item] = {}
        end, is_whole = None, False
        for item in read_items(path):
            if item.key == "end":
                end = item.value
                continue
            if item.key in ("format", "version"):
                header[item.key] = item
                _refuse_other(path, item)
                continue
            if len(header) < 2:
                message = "`format` and `version` must come first"
                raise ValidationError(f"{path}: line {item.line}: {message}")
            if _is_entry(path, item):
                is_whole = is_whole or (item.key == "agent" and "created_at" in str(item.value))
                yield _entry(item)
        if len(header) < 2:
            raise ValidationError(
                f"{path}: is not a store export: `format` and `version` are missing"
            )
        # A handwritten file need not mark its end.
        if is_whole and end is None:
            error = "the file is cut off: its last line, `end`, is missing"
            yield Entry(Section.AGENT, {}, "the end", error)

    def write(self, path: Path, source: Source) -> Written:
        """Write all entries of the store."""
        written = Written()
        too_long = 0
        with written_atomically(path) as file:
            file.write(f"format: {_FORMAT}\nversion: {VERSION}\n".encode())
            for section, entries in groupby(source.entries(), key=attrgetter("section")):
                file.write(f"{_KEYS[section]}:\n".encode())
                lines = _LINES.get(section, _one_line)
                for entry in entries:
                    text = _written(lines, entry).encode()
                    file.write(text)
                    too_long += len(text) > MAX_ITEM_BYTES
                    written.memories += section is Section.MEMORY
            # Without a last line, a file that was cut off between two entries would pass as
            # complete.
            file.write(b"end: true\n")
        if too_long:
            noun = counted(too_long, "entry is", "entries are")
            note = f"{noun} longer than {MAX_ITEM_BYTES:,} bytes, and cannot be imported"
            written.notes.append(note)
        return written


CODEC: Final[Codec] = StoreYaml()


# Writing ------------------------------------------------------------------------------------


def _written(lines: Callable[[Mapping[str, Any]], str], entry: Entry) -> str:
    try:
        return lines(entry.fields)
    except RecursionError as error:
        memory_id = entry.fields.get("id")
        message = f"{_KEYS[entry.section]}: {memory_id} is nested too deeply to be written"
        raise ValidationError(message) from error


def _agent(fields: Mapping[str, Any]) -> str:
    return "".join(f"  {name(key)}{flow(value)}\n" for key, value in fields.items()) or "  {}\n"


def _memory(values: Mapping[str, Any]) -> str:
    lines = []
    for key, value in values.items():
        if key in LEFT_OUT and value == LEFT_OUT[key]:
            continue
        text = block(value, "      ") if isinstance(value, str) else flow(value)
        lines.append(f"    {name(key)}{text}\n")
    return "  - " + "".join(lines)[4:] if lines else "  - {}\n"


def _one_line(values: Mapping[str, Any]) -> str:
    return f"  - {fields(values)}\n"


_LINES: Final[Mapping[Section, Callable[[Mapping[str, Any]], str]]] = {
    Section.AGENT: _agent,
    Section.MEMORY: _memory,
}


# Reading ------------------------------------------------------------------------------------


def _refuse_other(path: Path, item: Item) -> None:
    """Refuse a file that says that it is something else, or newer."""
    place = f"{path}: line {item.line}"
    if item.key == "format" and (item.number is not None or item.value != _FORMAT):
        raise ValidationError(f"{place}: is not a store export: its format must be `{_FORMAT}`")
    if item.key == "version" and (
        item.number is not None or type(item.value) is not int or item.value < 1
    ):
        raise ValidationError(f"{place}: version: must be a number from 1 to {VERSION}")
    if item.key == "version" and item.value != VERSION:
        raise ValidationError(
            f"{place}: has version {item.value} of the format, but this program reads only up"
            f" to {VERSION}: upgrade agent-memory"
        )


def _is_entry(path: Path, item: Item) -> bool:
    """Return whether an item is an entry; an empty section has none."""
    place = f"{path}: line {item.line}"
    if item.key not in _SECTIONS:
        raise ValidationError(f"{place}: {item.key!r:.80} is not a section of a store export")
    if item.key == "agent":
        return item.error is not None or item.value is not None
    if item.number is None and (item.error is not None or item.value not in (None, [])):
        raise ValidationError(f"{place}: {item.key}: {item.error or 'must be a list'}")
    return item.number is not None


def _entry(item: Item) -> Entry:
    section = _SECTIONS[item.key]
    if section is Section.MEMORY:
        entry = memory_entry(item)
        return (
            entry._replace(fields={**entry.fields, **LEFT_OUT, **entry.fields})
            if entry.fields
            else entry
        )
    place, value, error = f"line {item.line}", item.value, item.error
    is_list = section is Section.AGENT and item.number is not None
    if error is None and (is_list or not isinstance(value, dict)):
        error = "must be a mapping"
    return Entry(section, value if isinstance(value, dict) else {}, place, error)
