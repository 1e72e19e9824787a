"""Claude's export: its conversations and what it remembered of them, zipped or unpacked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agent_memory.formats.markdown import list_items
from agent_memory.formats.peers.conversations import (
    Content,
    Conversation,
    Conversations,
    Spoken,
)
from agent_memory.formats.peers.entries import list_of, memories, text_of, texts_in, time_of
from agent_memory.formats.peers.parts import ZIP, Part, heads, items, opened_parts
from agent_memory.formats.protocol import Sample
from agent_memory.models.portable import Entry, PassedOver, Section

_NAME: Final = "claude"
_FILE: Final = re.compile(r"(conversations(-\d+)?|memories)\.json")
_MARK: Final = re.compile(r'"(chat_messages|conversations_memory|project_memories)"\s*:')
_REMEMBERED: Final = frozenset({"conversations_memory", "project_memories", "memory_files"})
_ROLES: Final = {"human": "user", "assistant": "assistant"}
_NO_MEMORIES: Final = {"users.json": "accounts", "projects": "projects and their documents"}


def _recognises(sample: Sample) -> bool:
    return any(_MARK.search(head) for head in heads(sample, _FILE)) or _is_split(sample)


def _is_split(sample: Sample) -> bool:
    """Return whether it is one of the parts of 2026, which has memories in a folder."""
    if sample.is_folder or not sample.head.startswith(ZIP):
        return False
    with opened_parts(sample.path) as parts:
        return any(part.name.startswith("memories/") for part in parts)


def _contents(path: Path) -> Iterator[Content]:
    with opened_parts(path) as parts:
        for part in parts:
            what = _NO_MEMORIES.get(part.stem) or _NO_MEMORIES.get(part.name.split("/")[0])
            if what is not None and len(parts) > 1:
                yield PassedOver(what)
            else:
                yield from _of_part(part)


def _of_part(part: Part) -> Iterator[Content]:
    for number, item in enumerate(items(part), 1):
        place, value = f"{part.name}, item {number}", item.value
        if item.error is not None or not isinstance(value, dict):
            yield Entry(Section.MEMORY, {}, place, item.error or "is not an object")
        elif isinstance(value.get("chat_messages"), list):
            yield from _conversation(value, place)
        elif _REMEMBERED & value.keys():
            yield from _remembered(value, place)
        elif "chat_messages" in value:
            yield Entry(Section.MEMORY, {}, place, "chat_messages: is not a list")
        else:
            yield PassedOver("objects that are neither conversations nor memories")


def _conversation(talk: Mapping[str, Any], place: str) -> Iterator[Content]:
    name = str(talk.get("uuid") or place)
    spoken: list[Spoken] = []
    silent = files = 0
    for number, message in enumerate(talk["chat_messages"]):
        if not isinstance(message, dict) or message.get("sender") not in list(_ROLES):
            silent += 1
            continue
        files += sum(len(list_of(message.get(key))) for key in ("attachments", "files"))
        text = _text(message)
        if not text:
            silent += 1
            continue
        moment = time_of(message.get("created_at"))
        key = str(message.get("uuid") or number)
        spoken.append(Spoken(_ROLES[message["sender"]], text, moment, key))
    yield PassedOver("non-dialogue messages (tools, thoughts)", silent)
    yield PassedOver("files", files)
    yield Conversation(place, name, spoken, {"title": talk.get("name"), "conversation": name})


def _text(message: Mapping[str, Any]) -> str:
    """Return what was said: the blocks of text, or the text where a message has no blocks."""
    blocks = message.get("content")
    plain = "\n".join(map(text_of, texts_in(list_of(blocks)))).strip()
    if plain or not isinstance(message.get("text"), str):
        return plain
    return "" if blocks else text_of(message["text"]).strip()


def _remembered(value: Mapping[str, Any], place: str) -> Iterator[Content]:
    """Yield what Claude remembered, of all conversations and of each project: an item a memory."""
    texts = {"": value.get("conversations_memory")}
    projects = value.get("project_memories")
    texts |= projects if isinstance(projects, dict) else {}
    for project, text in texts.items():
        if not isinstance(text, str):
            continue
        for heading, item in list_items(text):
            about = {"kind": "memory", "project": project, "heading": heading}
            yield from memories(place, item, source=_NAME, metadata=about)
    yield PassedOver("memory files", len(list_of(value.get("memory_files"))))


READER: Final = Conversations(_NAME, _recognises, _contents)
