"""Memories as resources that a user attaches to a conversation, and the scratchpad as a prompt.

Memories are recalled data, and are rendered as such: anyone who could store a memory wrote it.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote

from agent_memory import (
    Memory,
    MemoryContextConfig,
    MemoryExcerpt,
    ValidationError,
    render_memories,
)
from agent_memory.integrations.mcp.errors import INVALID_PARAMS, RequestFailed, ResourceNotFound
from agent_memory.integrations.mcp.memory_handle import NoMemoriesYet, ServedMemory
from agent_memory.models.times import format_time

MOST_LISTED: Final = 50
"""The most memories that are listed; the others are read by their ids."""
SCRATCHPAD: Final = "scratchpad"
"""The name of the resource and of the prompt. (A memory of this id is not a resource.)"""

_SCHEME: Final = "memory://"
_MARKDOWN: Final = "text/markdown"
_TITLE_LENGTH: Final = 80
_NO_LIMIT: Final = 10**9
_BARE: Final = MemoryContextConfig(
    include_timestamps=False,
    include_categories=False,
    include_tags=False,
    include_sources=False,
)
_EMPTY: Final = "The scratchpad of this agent is empty: memory_promote puts a memory into it."
_PROMPT: Final = {
    "name": SCRATCHPAD,
    "title": "What I should know",
    "description": "The memories that always matter: the agent's scratchpad, to begin a session.",
    "arguments": [
        {
            "name": "token_budget",
            "description": "How many tokens it may take, estimated. 2,000 unless given.",
            "required": False,
        }
    ],
}


class Resources:
    """The resources of one agent's memory, by URI: ``memory://{agent}/{memory_id}``."""

    def __init__(self, served: ServedMemory) -> None:
        self._served = served

    def list_resources(self) -> list[dict[str, Any]]:
        """Describe the scratchpad and the newest memories, newest first."""
        try:
            newest = self._served.to_read().list_recent(MOST_LISTED)
        except NoMemoriesYet:
            newest = []
        described = [self._described(memory) for memory in newest if memory.id != SCRATCHPAD]
        return [self._scratchpad(), *described]

    def list_templates(self) -> list[dict[str, Any]]:
        """Describe the URIs of all memories."""
        return [
            {
                "uriTemplate": f"{self._uri('')}{{memory_id}}",
                "name": "memory",
                "title": "A memory by its id",
                "description": "One memory, as memory_search and memory_list_recent name it.",
                "mimeType": _MARKDOWN,
            }
        ]

    def read(self, uri: str) -> list[dict[str, Any]]:
        """Return the resource at a URI. Raises ``ResourceNotFound``."""
        agent, slash, place = uri.removeprefix(_SCHEME).partition("/")
        name = self._served.name()
        if not uri.startswith(_SCHEME) or not slash or unquote(agent) != name:
            raise ResourceNotFound(uri, f"they begin with {self._uri('')}")
        text = self._pad(None) if place == SCRATCHPAD else self._text_of(uri, unquote(place))
        return [{"uri": uri, "mimeType": _MARKDOWN, "text": text}]

    def list_prompts(self) -> list[dict[str, Any]]:
        """Describe the prompt."""
        return [_PROMPT]

    def prompt(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the scratchpad as a user's message."""
        if name != SCRATCHPAD:
            fault = f"unknown prompt {name!r:.80}: there is only {SCRATCHPAD}"
            raise RequestFailed(INVALID_PARAMS, fault)
        if unknown := [name for name in arguments if name != "token_budget"]:
            fault = f"the prompt has no argument {unknown[0]!r:.80}: it has token_budget"
            raise RequestFailed(INVALID_PARAMS, fault)
        text = self._pad(_budget(arguments.get("token_budget")))
        message = {"role": "user", "content": {"type": "text", "text": text}}
        return {"description": _PROMPT["description"], "messages": [message]}

    def _pad(self, token_budget: int | None) -> str:
        try:
            memory = self._served.to_read()
            text = memory.context(token_budget)
        except NoMemoriesYet:
            return _EMPTY
        except ValidationError as error:
            raise RequestFailed(INVALID_PARAMS, str(error)) from error
        if text or not memory.scratchpad().memories:
            return text or _EMPTY
        return "No memory in the scratchpad fits the token budget: raise token_budget."

    def _text_of(self, uri: str, memory_id: str) -> str:
        try:
            served = self._served.to_read()
            memory = served.get(memory_id)
        except NoMemoriesYet as error:
            raise ResourceNotFound(uri, str(error)) from error
        if memory is None:
            raise ResourceNotFound(uri, "memory_search and memory_list_recent list the ids")
        is_under_review = memory.id in served.under_review([memory.id])
        shown = MemoryExcerpt.of(memory)._replace(under_review=is_under_review)
        return render_memories([shown], _NO_LIMIT, agent_id=memory.agent_id)

    def _scratchpad(self) -> dict[str, Any]:
        return {
            "uri": self._uri(SCRATCHPAD),
            "name": SCRATCHPAD,
            "title": "Scratchpad",
            "description": "The memories that always matter, as recalled data.",
            "mimeType": _MARKDOWN,
        }

    def _described(self, memory: Memory) -> dict[str, Any]:
        return {
            "uri": self._uri(memory.id),
            "name": memory.id,
            "title": _title(memory),
            "description": f"Recalled data: a memory ({memory.category})"
            f" of {memory.timestamp.date()}",
            "mimeType": _MARKDOWN,
            "annotations": {"lastModified": format_time(memory.updated_at or memory.timestamp)},
        }

    def _uri(self, place: str) -> str:
        return f"{_SCHEME}{quote(self._served.name(), safe='')}/{quote(place, safe=':')}"


def _title(memory: Memory) -> str:
    """Return the beginning of a memory on one line, with nothing in it but plain text."""
    begin = memory.model_copy(update={"content": memory.content[:_TITLE_LENGTH]})
    lines = render_memories([begin], _NO_LIMIT, config=_BARE).split("\n")
    title = next((line[2:] for line in lines if line.startswith("- ")), "")
    return f"{title}…" if len(memory.content) > _TITLE_LENGTH else title or memory.id


def _budget(value: object) -> int | None:
    """Return the number of tokens that a user typed: prompt arguments are strings."""
    if value is None or value == "":
        return None
    try:
        return int(str(value).strip())
    except ValueError as error:
        message = f"token_budget: must be a whole number of tokens, not {value!r:.80}"
        raise RequestFailed(INVALID_PARAMS, message) from error
