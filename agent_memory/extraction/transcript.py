"""Messages in the formats of various programs, read as C's messages.

OpenAI's chat completions and responses, Anthropic's messages, LangChain's, Amplifier's and MCP's
differ only in their parts: each part is read as what it is, whoever wrote it. Parts that nobody
said (a tool call and its result, a thought, a file) are skipped and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pydantic

from agent_memory.errors import ValidationError
from agent_memory.models.conversation import Message, MessageRole

ROLES: Final = {
    **dict.fromkeys(("user", "human"), MessageRole.USER),
    **dict.fromkeys(("assistant", "ai", "model", "bot"), MessageRole.ASSISTANT),
    **dict.fromkeys(("system", "developer"), MessageRole.SYSTEM),
}
"""Names of the roles in various programs. LangChain has it as the message's ``type``."""
_NO_SPEECH: Final = frozenset(
    """
    tool function remove reasoning item_reference compaction compaction_trigger program
    additional_tools configuration_update mcp_list_tools mcp_approval_request mcp_approval_response
    """.split()
)
"""Roles and types of entries that nobody says."""
_CALLS: Final = ("_call", "_output")
"""How the types of tool calls and their results end: each year has more of them."""
_TEXTS: Final = frozenset(("text", "input_text", "output_text"))
_IMAGES: Final = frozenset(("image", "image_url", "input_image"))
_WRAPPERS: Final = ("data", "kwargs")
"""Keys under which LangChain's ``messages_to_dict`` and ``dumpd`` have the message itself."""


@dataclass(slots=True)
class Transcript:
    """The messages of a conversation, and what else its file has.

    ``passed_over`` counts messages and parts that nobody said. ``problems`` lists the messages that
    could not be read, a sentence each. ``request`` has the fields of C's Add Memory Request other
    than its messages.
    """

    messages: list[Message] = field(default_factory=list)
    passed_over: int = 0
    problems: list[str] = field(default_factory=list)
    request: dict[str, Any] = field(default_factory=dict)
    errors: list[ValidationError] = field(default_factory=list)
    is_strict: bool = False

    def take(self, value: object, *at: str | int) -> None:
        """Read one entry; an invalid one is left out, or raises if ``is_strict``."""
        try:
            self._read(value, *at)
        except ValidationError as error:
            self.leave_out(error, *at)

    def leave_out(self, error: ValidationError, *at: str | int) -> None:
        """Leave an entry out, and report it; if ``is_strict``, raise the error."""
        if self.is_strict:
            raise error
        self.errors.append(error)
        where = " ".join(str(part) for part in at)
        self.problems.append(f"{where} was skipped: {error}")

    def _read(self, value: object, *at: str | int) -> None:
        if isinstance(value, Message):
            self.messages.append(value)
            return
        entry = _entry(value)
        if entry is None:
            where = " ".join(str(part) for part in at)
            kind = type(value).__name__
            message = f"{where}: a {kind} is not a message: give role and content"
            raise ValidationError.of("messages", message, value)
        fields, passed_over = _fields(entry)
        self.passed_over += passed_over
        if fields is None:
            return
        try:
            self.messages.append(Message.model_validate(fields))
        except pydantic.ValidationError as error:
            raise ValidationError.from_pydantic(error, at=at) from None
        except RecursionError:  # of a role: an enum shows the unknown value
            message = f"{' '.join(str(part) for part in at)}: its role is nested too deeply"
            raise ValidationError.of("messages", message, value) from None


def plain(value: object) -> object:
    """Return a model as plain data: clients of providers return their answers as models."""
    return value.model_dump() if isinstance(value, pydantic.BaseModel) else value


def _entry(value: object) -> dict[str, Any] | None:
    """Return an entry as a mapping, unwrapped from LangChain's wrappers; ``None`` if it is none."""
    value = plain(value)
    if not isinstance(value, Mapping):
        return None
    for name in _WRAPPERS:
        inner = value.get(name)
        if isinstance(inner, Mapping) and "content" in inner and "content" not in value:
            return {"type": value.get("type"), **inner}
    return dict(value)


def _fields(entry: Mapping[str, Any]) -> tuple[dict[str, Any] | None, int]:
    """Return the fields of C's message, ``None`` if nobody spoke, and the number of skipped parts.

    Invalid values are left as they are, for the model to refuse.
    """
    speaker = entry.get("role") or entry.get("type")
    role: object = speaker
    if isinstance(speaker, str):
        word = speaker.strip().lower()
        name = word.removesuffix("chunk").removesuffix("message")  # LangChain's classes
        is_call = not entry.get("role") and name.endswith(_CALLS)
        if name in _NO_SPEECH or is_call:
            return None, 1
        role = ROLES.get(name, word)
    fields = {name: entry[name] for name in ("timestamp", "metadata") if name in entry}
    fields |= {"role": role} | ({"name": entry["name"]} if entry.get("name") else {})
    content = entry.get("content")
    if content is None and (role is MessageRole.ASSISTANT or entry.get("tool_calls")):
        return None, 1  # it calls tools, or refuses
    if isinstance(content, Mapping):  # MCP's, which has a single block
        content = [content]
    if not isinstance(content, Sequence) or isinstance(content, str | bytes):
        return {**fields, **({"content": content} if "content" in entry else {})}, 0
    blocks = [_block(block) for block in content]
    spoken = [block for block in blocks if block is not None]
    if not spoken and blocks:
        return None, 1
    return {**fields, "content": spoken}, len(blocks) - len(spoken)


def _block(block: object) -> object:
    """Return C's block for a part of a message, ``None`` if it is not speech."""
    block = plain(block)
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping):
        return block
    kind = block.get("type")
    if not isinstance(kind, str):
        return block
    if kind in _TEXTS:
        return {"type": "text", "text": block.get("text")}
    return _image(block) if kind in _IMAGES else None


def _image(block: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return C's block for an image; ``None`` if it is a file at the provider."""
    image = block.get("image_url")
    if isinstance(image, str):
        image = {"url": image, "detail": block.get("detail")}
    if image is None:
        source = block.get("source")
        source = source if isinstance(source, Mapping) else block
        data = source.get("data") or source.get("base64")
        kind = source.get("media_type") or source.get("mimeType") or source.get("mime_type")
        url = f"data:{kind or 'image'};base64,{data}" if data else source.get("url")
        image = None if url is None else {"url": url}
    return None if image is None else {"type": "image", "image_url": image}
