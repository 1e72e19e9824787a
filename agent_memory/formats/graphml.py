"""The graph as a file for other programs: GraphML, and JSON with C's records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from agent_memory.errors import ValidationError
from agent_memory.models.graph import EdgeView, EntityView
from agent_memory.models.times import format_time
from agent_memory.runtime.files import written_atomically

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAMESPACE: Final = "http://graphml.graphdrawing.org/xmlns"
_OF_ENTITIES: Final = {
    "name": "string", "type": "string", "aliases": "string", "confidence": "double",
    "user_id": "string", "run_id": "string", "created_at": "string", "updated_at": "string",
    "source_memory_ids": "string",
}  # fmt: skip
_OF_EDGES: Final = {
    "relationship": "string", "confidence": "double", "temporal_context": "string",
    "valid_from": "string", "valid_to": "string", "user_id": "string", "run_id": "string",
    "created_at": "string", "updated_at": "string", "source_memory_ids": "string",
}  # fmt: skip


def refuse_target(place: Path) -> None:
    """Raise ``ValidationError`` for a path that no graph can be written to."""
    if not place.parent.is_dir() or (place.is_dir() and not place.is_symlink()):
        message = f"{place} cannot be written: name a file in an existing directory"
        raise ValidationError.of("path", message, str(place))


def write_graphml(path: Path, entities: Sequence[EntityView], edges: Sequence[EdgeView]) -> None:
    """Write a graph as GraphML. Lists become text with one line per item; times are ISO 8601.

    Raises ``StorageFull`` and ``StorageUnavailable``.
    """
    with written_atomically(path) as file:
        file.writelines(f"{line}\n".encode() for line in _graphml(entities, edges))


def _graphml(entities: Sequence[EntityView], edges: Sequence[EdgeView]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<graphml xmlns="{_NAMESPACE}">'
    for kind, names in (("node", _OF_ENTITIES), ("edge", _OF_EDGES)):
        for name, of in names.items():
            yield (f'  <key id="{kind}_{name}" for="{kind}" attr.name="{name}" attr.type="{of}"/>')
    yield '  <graph id="memory" edgedefault="directed">'
    for entity in entities:
        yield f"    <node id={_quoted(entity.id)}>"
        yield from _data("node", _OF_ENTITIES, entity.model_dump())
        yield "    </node>"
    for edge in edges:
        ends = f"source={_quoted(edge.source_id)} target={_quoted(edge.target_id)}"
        yield f"    <edge id={_quoted(edge.id)} {ends}>"
        yield from _data("edge", _OF_EDGES, edge.model_dump())
        yield "    </edge>"
    yield "  </graph>"
    yield "</graphml>"


def _data(kind: str, names: Mapping[str, str], attributes: Mapping[str, Any]) -> Iterator[str]:
    for name in names:
        value = attributes.get(name)
        if value is None or value == []:
            continue
        if isinstance(value, list):
            value = "\n".join(value)
        text = format_time(value) if isinstance(value, datetime) else str(value)
        yield f'      <data key="{kind}_{name}">{escape(_printable(text))}</data>'


def _quoted(text: str) -> str:
    return quoteattr(_printable(text))


def _printable(text: str) -> str:
    """Replace characters that XML cannot hold; another program may have written them."""
    return _NOT_IN_XML.sub("\ufffd", text)


def write_json(path: Path, entities: Sequence[EntityView], edges: Sequence[EdgeView]) -> None:
    """Write a graph as C's entities and relationships, with the period in which each is valid.

    Raises ``StorageFull`` and ``StorageUnavailable``.
    """
    with written_atomically(path) as file:
        file.write(b'{"entities": [')
        file.writelines(_items(entity.record().model_dump(mode="json") for entity in entities))
        file.write(b'\n], "relationships": [')
        file.writelines(_items(_relationship(edge) for edge in edges))
        file.write(b"\n]}\n")


def _items(values: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for number, value in enumerate(values):
        text = json.dumps(value, ensure_ascii=False)
        yield (",\n" * bool(number) or "\n").encode() + text.encode(errors="backslashreplace")


def _relationship(edge: EdgeView) -> dict[str, Any]:
    attributes = edge.record().model_dump(mode="json")
    dumped = edge.model_dump(mode="json")
    beside = ("valid_from", "valid_to", "source_id", "target_id", "source_memory_ids")
    return {**attributes, **{name: dumped[name] for name in beside if name in dumped}}


WRITERS: Final[Mapping[str, Callable[[Path, Sequence[EntityView], Sequence[EdgeView]], None]]] = {
    "graphml": write_graphml,
    "json": write_json,
}
