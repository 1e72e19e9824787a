"""The definitions of the tools: names, descriptions, and the form that each model's API expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from agent_memory.errors import ValidationError
from agent_memory.integrations.tools.arguments import (
    AddArguments,
    Arguments,
    GraphArguments,
    ListRecentArguments,
    MemoryArguments,
    ResolveArguments,
    ReviewsArguments,
    SearchArguments,
    StoreArguments,
    UpdateArguments,
    schema_of,
)

Style = Literal["openai", "openai-responses", "anthropic", "plain"]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, its purpose, its arguments, and how it may be used.

    ``is_read_only``: it changes nothing that a user would see. ``is_destructive``: it removes
    something. ``is_idempotent``: calling it twice has the same effect as once.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    is_read_only: bool = False
    is_destructive: bool = False
    is_idempotent: bool = True

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return schema_of(self.arguments)


TOOLS: Final = (
    Tool(
        "memory_store",
        "Remember something",
        "Store something worth knowing in later sessions: a preference, a decision and its reason,"
        " a lesson learned, a fact about the project or the user. One thing per call. It is kept"
        " for good. A fact that is known already is not stored twice.",
        StoreArguments,
        is_idempotent=False,
    ),
    Tool(
        "memory_search",
        "Search memories",
        "Find what was stored in earlier sessions, best match first. Search before you ask the"
        " user for something they may have told before, and before a decision that may have been"
        " taken already. Finding nothing is an answer too.",
        SearchArguments,
        is_read_only=True,
    ),
    Tool(
        "memory_list_recent",
        "List recent memories",
        "List the newest memories, newest first, when there is no question to search for.",
        ListRecentArguments,
        is_read_only=True,
    ),
    Tool(
        "memory_get",
        "Read a memory",
        "Read one memory whole, with its metadata: after a search that shortened its text.",
        MemoryArguments,
        is_read_only=True,
    ),
    Tool(
        "memory_update",
        "Correct a memory",
        "Change a memory that is wrong or out of date, instead of storing a second one beside it."
        " Only the fields that are given change. The old text stays in its history.",
        UpdateArguments,
    ),
    Tool(
        "memory_promote",
        "Keep a memory at hand",
        "Put a memory into the scratchpad, which is shown at the start of every session. For the"
        " few that always matter.",
        MemoryArguments,
    ),
    Tool(
        "memory_forget",
        "Forget a memory",
        "Delete a memory that is wrong, or that the user wants forgotten. Its owner can undo that.",
        MemoryArguments,
        is_destructive=True,
    ),
    Tool(
        "memory_add",
        "Learn from a conversation",
        "Keep what a conversation says: each fact in it is compared with what is known, and becomes"
        " a new memory, a correction, or nothing. At the end of a talk; memory_store is for one"
        " thing. What is unsure deletes nothing: it becomes a question (memory_reviews).",
        AddArguments,
        is_idempotent=False,
    ),
    Tool(
        "memory_reviews",
        "List open questions",
        "List the memories that something said later seems to contradict. Ask the user which is"
        " true, then use memory_resolve.",
        ReviewsArguments,
        is_read_only=True,
    ),
    Tool(
        "memory_resolve",
        "Answer an open question",
        "Keep or delete a memory that is in question, as the user said. Its owner can undo that.",
        ResolveArguments,
        is_destructive=True,
        is_idempotent=False,
    ),
    Tool(
        "memory_graph",
        "See what is related",
        "See how people, projects and things that memories speak of are related: all of their"
        " names, what is near one of them, or the way between two.",
        GraphArguments,
        is_read_only=True,
    ),
)
"""All tools, in the order in which they are offered."""


def describe(style: Style) -> list[dict[str, Any]]:
    """Return the tools in the form that a model's API expects: see ``MemoryTools.definitions``."""
    if style not in get_args(Style):
        raise ValidationError.of("style", f"must be one of {', '.join(get_args(Style))}", style)
    schema = "parameters" if style in ("openai", "openai-responses") else "input_schema"
    tools = [
        {"name": tool.name, "description": tool.description, schema: tool.input_schema}
        for tool in TOOLS
    ]
    if style == "openai-responses":  # not strict: optional arguments may be left out
        return [{"type": "function", **tool, "strict": False} for tool in tools]
    if style == "openai":
        return [{"type": "function", "function": tool} for tool in tools]
    return tools
