"""Letta's agent files (``.af``): the memory blocks of an agent, and its conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.formats.json_reader import parse
from agent_memory.formats.peers.conversations import Content, Conversation, Conversations, Spoken
from agent_memory.formats.peers.entries import list_of, memories, text_of, texts_in, time_of
from agent_memory.formats.peers.parts import Part, items
from agent_memory.formats.protocol import Sample
from agent_memory.models.portable import Entry, PassedOver, Section
from agent_memory.runtime.files import read_steadily

_NAME: Final = "letta"
_BEGINNING: Final = re.compile(r'"?\{(\\n|\s)*\\?"(agents|agent_type)\\?"\s*:')
"""Some of Letta's own files are a text of JSON in JSON."""
_SPEAKERS: Final = ("user", "assistant")
_SPEAKS: Final = "send_message"
"""The tool by which an agent speaks, where its own text is what it thought."""
_OF_AGENTS: Final = ("tools", "sources", "files", "groups")


def _recognises(sample: Sample) -> bool:
    return not sample.is_folder and _BEGINNING.match(sample.text()) is not None


def _contents(path: Path) -> Iterator[Content]:
    part = Part(path, path.name, lambda: read_steadily(path))
    item = next(items(part), None)
    value = None if item is None else item.value
    if isinstance(value, str):
        value = parse(value)
    if not isinstance(value, dict):
        problem = (item and item.error) or "is not an agent file: it must be an object"
        raise ValidationError(f"{path}: {problem}")
    yield from _agent_file(value)


def _agent_file(value: Mapping[str, Any]) -> Iterator[Content]:
    agents = value.get("agents")
    named = agents if isinstance(agents, list) else [value]
    for blocks in (value.get("blocks"), value.get("core_memory")):
        for number, block in enumerate(list_of(blocks), 1):
            yield from _block(block, f"block {number}")
    for number, agent in enumerate(named, 1):
        if isinstance(agent, dict):
            yield from _talk(agent, f"agent {number}")
        else:
            yield Entry(Section.MEMORY, {}, f"agent {number}", "is not an object")
    for key in _OF_AGENTS:
        yield PassedOver(f"{key} of agents", len(list_of(value.get(key))))


def _block(block: object, place: str) -> Iterator[Content]:
    if not isinstance(block, dict):
        yield Entry(Section.MEMORY, {}, place, "is not an object")
        return
    about = {key: block.get(key) for key in ("label", "description")}
    moment = block.get("created_at")
    text = block.get("value")
    yield from memories(place, text, source=_NAME, timestamp=moment, metadata=about)


def _talk(agent: Mapping[str, Any], place: str) -> Iterator[Content]:
    name = str(agent.get("name") or place)
    spoken: list[Spoken] = []
    silent = 0
    for number, message in enumerate(list_of(agent.get("messages"))):
        text = _text(message) if isinstance(message, dict) else ""
        if text:
            moment = time_of(message.get("created_at"))
            spoken.append(Spoken(message["role"], text, moment, str(message.get("id") or number)))
        else:
            silent += 1
    yield PassedOver("non-dialogue messages (system, tools, thoughts)", silent)
    yield Conversation(place, name, spoken, {"agent": name})


def _text(message: Mapping[str, Any]) -> str:
    """Return what was said; where an agent speaks by its tool, its text is what it thought."""
    if message.get("role") not in _SPEAKERS:
        return ""
    sent = [_sent(call) for call in list_of(message.get("tool_calls"))]
    if any(sent):
        return "\n".join(filter(None, sent))
    return "\n".join(filter(None, map(_unwrapped, texts_in(message.get("content"))))).strip()


def _sent(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or function.get("name") != _SPEAKS:
        return ""
    return str(_object(function.get("arguments")).get("message") or "").strip()


def _unwrapped(text: str) -> str:
    """Return what a user wrote, out of what Letta wraps it in; its own events are no speech."""
    if text.lstrip().startswith("<system-reminder>"):
        return ""
    event = _object(text)
    if "type" not in event:
        return text_of(text).strip()
    words = event.get("message") if event["type"] == "user_message" else ""
    return text_of(words).strip() if isinstance(words, str) else ""


def _object(text: object) -> dict[str, Any]:
    """Return the object that a text is as JSON, an empty one where it is none."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return {}
    try:
        value = parse(text)
    except ValidationError:
        return {}
    return value if isinstance(value, dict) else {}


READER: Final = Conversations(_NAME, _recognises, _contents)
