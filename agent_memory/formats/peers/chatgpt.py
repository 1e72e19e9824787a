"""ChatGPT's export: ``conversations.json``, whole or in numbered parts, zipped or unpacked.

A conversation is a tree of messages; the branch that was shown last is read. What ChatGPT
remembered while talking, and what users told it about themselves, become memories of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agent_memory.formats.peers.conversations import (
    Content,
    Conversation,
    Conversations,
    Spoken,
    with_ids,
)
from agent_memory.formats.peers.entries import memories, text_of, time_of
from agent_memory.formats.peers.parts import Part, heads, items, opened_parts
from agent_memory.formats.protocol import Sample
from agent_memory.models.portable import Entry, PassedOver, Section

_NAME: Final = "chatgpt"
_FILE: Final = re.compile(r"conversations(-\d+)?\.json")
_MARK: Final = re.compile(r'"mapping"\s*:\s*\{')
_TEXTS: Final = ("text", "multimodal_text", "audio_transcription")
_ABOUT: Final = {"about_user_message": "about the user", "about_model_message": "instructions"}


def _recognises(sample: Sample) -> bool:
    return any(_MARK.search(head) for head in heads(sample, _FILE))


def _contents(path: Path) -> Iterator[Content]:
    with opened_parts(path) as parts:
        chosen = [part for part in parts if _FILE.fullmatch(part.stem)] or parts
        for part in chosen:
            yield from _of_part(part)


def _of_part(part: Part) -> Iterator[Content]:
    for number, item in enumerate(items(part), 1):
        place = f"{part.name}, conversation {number}"
        talk = item.value
        if item.error is not None or not isinstance(talk, dict):
            error = item.error or "is not a conversation: it must be an object with a mapping"
            yield Entry(Section.MEMORY, {}, place, error)
        elif not isinstance(talk.get("mapping"), dict):
            yield Entry(Section.MEMORY, {}, place, "mapping: is not an object of messages")
        elif talk.get("is_do_not_remember") is True:
            yield PassedOver("conversations that are not to be remembered")
        else:
            yield from _conversation(talk, place)


def _conversation(talk: Mapping[str, Any], place: str) -> Iterator[Content]:
    name = str(talk.get("conversation_id") or talk.get("id") or place)
    about = {"title": talk.get("title"), "conversation": name}
    spoken: list[Spoken] = []
    silent = 0
    for key, message in _branch(talk["mapping"], talk.get("current_node")):
        remembered = list(_remembered(message, place, about))
        text = _text(message)
        yield from remembered
        if text and not remembered:
            moment = time_of(message.get("create_time"))
            spoken.append(Spoken(message["author"]["role"], text, moment, key))
        elif not remembered:
            silent += 1
    yield PassedOver("non-dialogue messages (tools, files, thoughts)", silent)
    yield Conversation(place, name, spoken, about)


def _branch(nodes: dict[str, Any], leaf: object) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages from the first to the one that was shown last, by their keys."""
    if not isinstance(leaf, str) or leaf not in nodes:
        leaf = next(reversed(nodes), None)
    branch: dict[str, dict[str, Any]] = {}
    while (
        isinstance(leaf, str) and isinstance(node := nodes.get(leaf), dict) and leaf not in branch
    ):
        message = node.get("message")
        branch[leaf] = message if isinstance(message, dict) else {}
        leaf = node.get("parent")
    return [(key, message) for key, message in reversed(branch.items()) if message]


def _text(message: Mapping[str, Any]) -> str:
    """Return what the user or the assistant said to the other; nothing where it is no speech."""
    author, content = message.get("author"), message.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict):
        return ""
    metadata = message.get("metadata")
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    is_said = author.get("role") in ("user", "assistant")
    is_to_all = message.get("recipient") in (None, "all")
    if is_hidden or not is_said or not is_to_all or content.get("content_type") not in _TEXTS:
        return ""
    return _parts(content)


def _parts(content: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    listed = parts if isinstance(parts, list) else [content.get("text")]
    texts = [part.get("text") if isinstance(part, dict) else part for part in listed]
    return "\n".join(text_of(text).strip() for text in texts if isinstance(text, str)).strip()


def _remembered(
    message: Mapping[str, Any], place: str, about: Mapping[str, Any]
) -> Iterator[Entry]:
    """Yield what ChatGPT put down while talking, and what the user wrote about themselves."""
    content, metadata = message.get("content"), message.get("metadata")
    if message.get("recipient") == "bio" and isinstance(content, dict):
        entries = memories(
            place,
            _parts(content),
            source=_NAME,
            timestamp=message.get("create_time"),
            metadata={**about, "kind": "saved memory"},
        )
        yield from _only_entries(with_ids(entries, str(about["conversation"])))
    context = metadata.get("user_context_message_data") if isinstance(metadata, dict) else None
    texts = context if isinstance(context, dict) else {}
    for key, kind in _ABOUT.items():
        if isinstance(texts.get(key), str):
            # The same in each conversation, so that it is one memory.
            entries = memories(place, texts[key], source=_NAME, metadata={"kind": kind})
            yield from _only_entries(entries)


def _only_entries(entries: Iterator[Entry | PassedOver]) -> Iterator[Entry]:
    return (entry for entry in entries if isinstance(entry, Entry))


READER: Final = Conversations(_NAME, _recognises, _contents)
