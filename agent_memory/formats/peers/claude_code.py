"""Claude Code's transcripts, a file per session and a line per event, and the notes beside."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import StorageError, ValidationError
from agent_memory.formats.jsonl import parse_object, read_lines
from agent_memory.formats.markdown import CODEC as NOTES
from agent_memory.formats.peers.conversations import Content, Conversation, Conversations, Spoken
from agent_memory.formats.peers.entries import text_of, texts_in, time_of
from agent_memory.formats.protocol import Sample
from agent_memory.models.portable import Entry, PassedOver, Section
from agent_memory.runtime.files import read_steadily

_NAME: Final = "claude-code"
_SPEAKERS: Final = ("user", "assistant")
_SAMPLE: Final = 64 * 1024
_HELD: Final = 1_000
"""Messages of a session that are held at a time: some sessions go on for weeks."""
_NO_SPEECH: Final = re.compile(
    r"\s*(<(command-|local-command|bash-|system-reminder|user-prompt-submit-hook|task-notif)"
    r"|Caveat: The messages below|\[Request interrupted)"
)
"""How what Claude Code writes in the user's name begins."""
_OWN_EVENTS: Final = ("summary", "file-history-snapshot", "queue-operation", "system")


def _recognises(sample: Sample) -> bool:
    if not sample.is_folder:
        return _is_transcript(sample.text())
    return any(_is_transcript(_head(file)) for file in _transcripts(sample.path))


def _head(file: Path) -> str:
    """Return how a file begins, nothing of one that cannot be read."""
    with contextlib.suppress(ValidationError, StorageError), read_steadily(file) as opened:
        return opened.read(_SAMPLE).decode("utf-8-sig", "replace")
    return ""


def _is_transcript(text: str) -> bool:
    """Return whether one of the first lines is an event of a session: summaries may come before."""
    for line in text.split("\n"):
        if not line.startswith("{"):
            return False
        try:
            event = parse_object(line.strip().encode(errors="replace"))
        except ValidationError:
            continue
        if "sessionId" in event and "uuid" in event and "message" in event:
            return True
    return False


def _transcripts(path: Path) -> list[Path]:
    """Return the transcripts of a folder: of one project, or of all."""
    if not path.is_dir():
        return [path]
    return sorted(file for pattern in ("*.jsonl", "*/*.jsonl") for file in path.glob(pattern))


def _contents(path: Path) -> Iterator[Content]:
    for file in _transcripts(path):
        place = file.name if file == path else file.relative_to(path).as_posix()
        yield from _of_file(file, place)
    if path.is_dir():
        for notes in sorted((*path.glob("memory"), *path.glob("*/memory"))):
            if notes.is_dir():
                yield from NOTES.read(notes)


def _of_file(file: Path, place: str) -> Iterator[Content]:
    spoken: list[Spoken] = []
    about: dict[str, Any] = {}
    stem = Path(place).stem
    with read_steadily(file) as opened:
        for line in read_lines(opened):
            if line.error is not None:
                yield Entry(Section.MEMORY, {}, f"{place}, line {line.number}", line.error)
                continue
            event = line.item
            about = about or _about(event)
            text, why = _text(event)
            if text:
                moment = time_of(event.get("timestamp"))
                key = str(event.get("uuid") or line.number)
                spoken.append(Spoken(str(event["type"]), text, moment, key))
            else:
                yield PassedOver(why)
            if len(spoken) >= _HELD:
                yield _conversation(place, spoken, about, stem)
                spoken = []
    yield _conversation(place, spoken, about, stem)


def _conversation(
    place: str, spoken: list[Spoken], about: Mapping[str, Any], stem: str
) -> Conversation:
    name = str(about.get("conversation") or stem)
    return Conversation(place, name, spoken, {"conversation": name, **about})


def _about(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what all of a session's memories tell: the session, and where it was at work."""
    if not isinstance(event.get("sessionId"), str):
        return {}
    known = {"conversation": event["sessionId"], "project": event.get("cwd")}
    return {name: value for name, value in known.items() if isinstance(value, str)}


def _text(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the user or the assistant said, or else what an event is."""
    if event.get("type") not in _SPEAKERS:
        is_own = event.get("type") in _OWN_EVENTS
        other = f"lines of the type {event.get('type')!r:.40}"
        return "", "events of the program" if is_own else other
    if event.get("isSidechain") is True:
        return "", "messages of subagents"
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    texts = [text_of(text) for text in texts_in(content) if not _NO_SPEECH.match(text)]
    is_own = event.get("isMeta") is True or event.get("isCompactSummary") is True
    return ("" if is_own else "\n".join(texts).strip()), "non-dialogue messages"


READER: Final = Conversations(_NAME, _recognises, _contents)
