"""Reading a conversation: messages as mappings, as JSON, as JSONL, or as plain text."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.extraction.transcript import Transcript, plain
from agent_memory.models.conversation import Message, MessageRole
from agent_memory.text.quotations import Quotation, parted

_ROLES: Final = {
    **dict.fromkeys(("user", "human", "me", "q"), MessageRole.USER),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "model", "claude", "chatgpt", "gpt", "gemini", "copilot", "a"),
        MessageRole.ASSISTANT,
    ),
    "system": MessageRole.SYSTEM,
}
# Words before a colon that are not a speaker.
_LABELS: Final = frozenset(
    """
    note notes todo fixme important warning remember ps re subject from to date cc bcc http https
    preference decision example hint tip update edit summary title name address phone email result
    error info debug question answer ingredients steps warn fatal critical trace exception failed
    """.split()
)
_OF_ERROR: Final = re.compile(r"[A-Z]\w*(?:Error|Exception|Warning)")
"""A line of a traceback is nobody's: "KeyError: 'id'"."""
_LINE: Final = re.compile(
    r"(?:\[?(?P<time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?)\]?\s+)?"
    r"(?:\*\*)?(?P<name>[^\W\d_][\w .'\u2019-]{0,39}?)(?:\*\*)?:(?:\*\*)?\s+(?P<text>\S.*)"
)
_BLANK_LINES: Final = re.compile(r"\n[^\S\n]*\n\s*")

Source = str | Mapping[str, Any] | Message | Iterable[Mapping[str, Any] | Message]
"""What ``conversation`` accepts."""


def conversation(source: Source) -> list[Message]:
    """Return the messages of a conversation.

    ``source`` is a list of messages (mappings, or ``Message``), one of them, a mapping with
    ``messages``, or a text: JSON of any of these, JSONL with one message per line, or plain text.
    In plain text, a line that begins with a name and a colon begins a message: ``User``, ``Human``,
    ``Assistant``, ``AI`` and ``System`` are roles, any other name is a user's. Without such lines,
    each paragraph is a user's message, but a text that is quoted ("Tom's mail:") stays whole.
    Messages of OpenAI, Anthropic, LangChain, Amplifier and MCP are accepted as they are; parts that
    nobody said, such as tool calls, are skipped. The role of a message may be ``human`` for a user,
    ``ai``, ``model`` or ``bot`` for an assistant, and ``developer`` for the system.

    Raises ``ValidationError`` that names the line or the message.
    """
    return read_transcript(source, strict=True).messages


def read_transcript(source: Source | Transcript, *, strict: bool = False) -> Transcript:
    """Return the messages of a conversation, as ``conversation`` does, and what else there is.

    Unless ``strict``, an unreadable message is left out and reported, without affecting the others.
    Raises ``ValidationError`` if no message can be read.
    """
    if isinstance(source, Transcript):
        return source
    transcript = Transcript(is_strict=strict)
    if isinstance(source, str):
        _take_text(source.removeprefix("\ufeff"), transcript)
    else:
        _take_values(source, transcript)
    if not transcript.messages and transcript.errors:
        raise transcript.errors[0]
    if not transcript.messages and not transcript.passed_over:
        raise ValidationError.of("messages", "there are none: give at least one", source)
    return transcript


def _take_values(source: object, transcript: Transcript) -> None:
    source = source if isinstance(source, Message) else plain(source)
    if isinstance(source, Message):
        transcript.messages.append(source)
        return
    if isinstance(source, Mapping):
        if "messages" not in source:
            transcript.take(source, "messages", 0)
            return
        transcript.request = {name: value for name, value in source.items() if name != "messages"}
        source = source["messages"]
        if isinstance(source, str | Mapping):
            raise _not_messages(source)
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        raise _not_messages(source)
    for place, value in enumerate(source):
        transcript.take(value, "messages", place)


def _not_messages(value: object) -> ValidationError:
    return ValidationError.of(
        "messages", "give a list of messages, each with role and content, or a string", value
    )


# Texts ----------------------------------------------------------------------------------------


def _take_text(text: str, transcript: Transcript) -> None:
    start = text.strip()
    if start[:1] in ("[", '"') or start in ("null", "true", "false") or start.isdigit():
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            # which refuses JSON without messages
            _take_values(_json(start), transcript)
            return
    is_object = start.startswith("{")
    if not is_object and not re.match(r"\[\s*[\[{\]\"]", start):
        _take_plain_text(text, transcript)
        return
    try:
        _take_values(_json(text), transcript)
    except json.JSONDecodeError as error:
        if is_object and (error.msg == "Extra data" or _is_jsonl(text)):
            _take_lines(text, transcript)
            return
        raise _not_json(error, error.lineno) from None
    except RecursionError:
        raise ValidationError.of("messages", "the JSON is nested too deeply", text) from None


def _json(text: str) -> Any:  # noqa: ANN401 - JSON data
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # a number of 5,000 digits
        raise json.JSONDecodeError(f"{error!s:.60}", text, 0) from None


def _is_jsonl(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return len(lines) > 1 and all(line.startswith("{") and '"' in line for line in lines)


def _take_lines(text: str, transcript: Transcript) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            value = _json(line)
        except json.JSONDecodeError as error:
            transcript.leave_out(_not_json(error, number), place)
        except RecursionError:
            deep = ValidationError.of("messages", f"{place}: nested too deeply", line)
            transcript.leave_out(deep, place)
        else:
            transcript.take(value, place)


def _not_json(error: json.JSONDecodeError, line: int) -> ValidationError:
    return ValidationError.of(
        "messages", f"line {line} is not JSON: {error.msg} at column {error.colno}", error.doc
    )


def _take_plain_text(text: str, transcript: Transcript) -> None:
    lines = text.splitlines()
    named = [_speaker(line) for line in lines]
    if not _is_chat(lines, named):
        for number, part in enumerate(_paragraphs(text), 1):
            message = {"role": "user", "content": part}
            transcript.take(message, "paragraph", number)
        return
    entries: list[tuple[int, dict[str, Any]]] = []
    for number, (line, match) in enumerate(zip(lines, named, strict=True), 1):
        if match is not None:
            entries.append((number, _named(match)))
        elif entries:
            entries[-1][1]["content"] += f"\n{line}"
        elif line.strip():
            entries.append((number, {"role": "user", "content": line}))
    for number, value in entries:
        value["content"] = value["content"].strip()
        transcript.take(value, f"line {number}")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text; one that it quotes stays whole, with what leads to it."""
    for part in parted(text):
        if isinstance(part, Quotation):
            yield f"{part.lead}\n{part.text}".strip()
        else:
            yield from (piece.strip() for piece in _BLANK_LINES.split(part) if piece.strip())


def _speaker(line: str) -> re.Match[str] | None:
    """Return the parts of a line that begins a message, ``None`` for any other line."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    name = match["name"].strip()
    words = name.split()
    is_name = len(words) <= 3 and all(not word[0].islower() for word in words)
    is_name = is_name and not _OF_ERROR.fullmatch(name)
    if name.lower() in _ROLES or (is_name and name.lower() not in _LABELS):
        return match
    return None


def _is_chat(lines: Sequence[str], named: Sequence[re.Match[str] | None]) -> bool:
    """Return whether lines are a chat: the first that is not blank names its speaker."""
    written = [match for line, match in zip(lines, named, strict=True) if line.strip()]
    return bool(written) and written[0] is not None


def _named(match: re.Match[str]) -> dict[str, Any]:
    name = match["name"].strip()
    role = _ROLES.get(name.lower())
    value: dict[str, Any] = {"role": role or MessageRole.USER, "content": match["text"]}
    if role is None:
        value["name"] = name
    if match["time"]:
        value["timestamp"] = match["time"]
    return value
