"""MCP's server-memory: a graph of entities with observations, one object per line.

An observation becomes a memory, with its entity's name before it; entities and relations become the
graph.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from agent_memory.formats.jsonl import Line, read_lines
from agent_memory.formats.peers.entries import memories
from agent_memory.formats.protocol import Reader, Sample
from agent_memory.models.fields import to_json
from agent_memory.models.graph import clean_name
from agent_memory.models.portable import Entry, PassedOver, Section, content_id
from agent_memory.models.times import format_time, from_epoch
from agent_memory.runtime.files import read_steadily

_NAME: Final = "mcp-memory"
_KINDS: Final = {"entity": ("name",), "relation": ("from", "to", "relationType")}
"""What a line is of, and the names that it then has."""
_ENDS: Final = {"source_id": "from", "target_id": "to"}
_FIRST: Final = re.compile(r'\{\s*"type"\s*:\s*"(entity|relation)"')


class McpMemory(Reader):
    """Reads ``memory.jsonl``, which older versions called ``memory.json``."""

    name = _NAME

    def recognises(self, sample: Sample) -> bool:
        """Return whether the first line is an entity or a relation."""
        return not sample.is_folder and _FIRST.match(sample.text()) is not None

    def read(self, path: Path) -> Iterator[Entry | PassedOver]:
        """Yield a memory for each observation, then the graph to which they belong."""
        with read_steadily(path) as file:
            sources: dict[str, list[str]] = {}
            for line in read_lines(file):
                yield from _observations(line, sources)
            file.seek(0)
            yield from _graph(file, sources, path)


def _observations(line: Line, sources: dict[str, list[str]]) -> Iterator[Entry | PassedOver]:
    """Yield the memories of an entity, and put down whose they are."""
    place, item = f"line {line.number}", line.item
    error = line.error or _fault(item)
    if error is not None:
        yield Entry(Section.MEMORY, {}, place, error)
    elif item["type"] == "entity":
        name, kind = clean_name(item["name"]), item.get("entityType")
        of_entity = sources.setdefault(name, [])
        for observation in item["observations"]:
            about = {"entity": item["name"], "entity_type": kind, "observation": observation}
            text = f"{item['name']}: {observation}" if isinstance(observation, str) else observation
            for entry in memories(place, text, source=_NAME, metadata=about):
                if isinstance(entry, Entry) and entry.error is None:
                    memory_id = content_id(entry.fields["content"], None, None, None)
                    entry.fields["id"] = memory_id
                    of_entity.append(memory_id)
                yield entry
    elif item["type"] not in _KINDS:
        yield PassedOver(f"lines of the type {item['type']!r:.40}")


def _fault(item: dict[str, Any]) -> str | None:
    """Say what is wrong with a line, which can be of another version or of nobody's."""
    kind = item.get("type")
    if not isinstance(kind, str):
        return "type: is missing: each line is an entity or a relation"
    if kind == "entity" and not isinstance(item.get("observations"), list):
        return "observations: is not a list"
    for key in _KINDS.get(kind, ()):
        try:
            clean_name(item[key] if isinstance(item.get(key), str) else "")
        except ValueError as error:
            return f"{key}: {error}"
    return None


def _graph(file: BinaryIO, sources: dict[str, list[str]], path: Path) -> Iterator[Entry]:
    """Yield the entities, those that only relations name too, and then the relations."""
    names = dict.fromkeys(sources, False)
    relations: list[tuple[str, dict[str, Any]]] = []
    for line in read_lines(file):
        if line.error is not None or _fault(line.item) is not None:
            continue
        place, item = f"line {line.number}", line.item
        if item["type"] == "relation":
            relations.append((place, item))
        elif item["type"] == "entity" and not names[name := clean_name(item["name"])]:
            names[name] = True
            yield _entity(place, name, sources[name], item.get("entityType"))
    since = format_time(from_epoch(path.stat().st_mtime))
    for place, item in relations:
        for end in (clean_name(item["from"]), clean_name(item["to"])):
            if end not in names:
                names[end] = True
                yield _entity(place, end, [])
    for place, item in relations:
        yield _relation(place, item, since)


def _entity(place: str, name: str, sources: list[str], kind: object = None) -> Entry:
    fields: dict[str, Any] = {"id": _id("ent", name), "name": name, "by_hand": not sources}
    if sources:
        fields["sources"] = list(dict.fromkeys(sources))
    if isinstance(kind, str) and kind:
        fields["type"] = kind
    return Entry(Section.ENTITY, fields, place)


def _relation(place: str, item: dict[str, Any], since: str) -> Entry:
    """Return a relation; since when it holds the file does not say: at the latest since then."""
    ends = {end: _id("ent", clean_name(item[key])) for end, key in _ENDS.items()}
    verb = item["relationType"]
    fields = {"id": _id("rel", *ends.values(), verb), "relationship": verb, "valid_from": since}
    return Entry(Section.RELATIONSHIP, {**fields, **ends}, place)


def _id(kind: str, *words: str) -> str:
    return f"{kind}-{hashlib.sha256(to_json(words).encode()).hexdigest()[:12]}"


READER: Final = McpMemory()
