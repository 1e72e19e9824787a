"""The messages of a conversation: who said what, what belongs together, what it costs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent_memory import estimate_tokens

Message = Mapping[str, Any]

_RECENT: Final = 6
"""Groups of messages at the end that are kept whole, as long as they fit."""
_CUT: Final = 200
"""Characters that are kept of a tool result that is shortened."""


def text_in(message: Message) -> str:
    """Return the text of a message, without tool calls, thoughts and images."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [
        block["text"] if isinstance(block, Mapping) else getattr(block, "text", "")
        for block in blocks
        if not isinstance(block, Mapping) or isinstance(block.get("text"), str)
    ]
    return "\n".join(text for text in texts if text)


def said_since(messages: Sequence[Message], prompt: str) -> list[str]:
    """Return what the assistant said since a prompt, or since the user's last words."""
    asked = [n for n, message in enumerate(messages) if message.get("role") == "user"]
    same = [n for n in asked if prompt and text_in(messages[n]).strip() == prompt.strip()]
    start = (same or asked or [-1])[-1]
    texts = [
        text_in(message) for message in messages[start + 1 :] if message.get("role") == "assistant"
    ]
    return [text for text in texts if text.strip()]


def tokens_of(messages: Iterable[Message]) -> int:
    """Estimate the tokens of messages, with everything in them."""
    return sum(
        estimate_tokens(json.dumps(dict(message), default=str, ensure_ascii=False))
        for message in messages
    )


def compacted(messages: Sequence[Message], budget: int) -> list[Message]:
    """Return messages that fit into ``budget`` tokens, as far as possible.

    First, tool results are shortened, oldest first; then the oldest messages are left out. A tool
    call and its results stay together or go together. System messages, the user's first and last
    words, and the last six groups stay; if that is still too much, all but the last of those six go
    too.
    """
    groups = grouped(messages)
    if _cost(groups) <= budget:
        return list(messages)
    kept = _kept(groups, _RECENT)
    groups = _shortened(groups, budget, spare=_RECENT)
    groups = _thinned(groups, budget, kept)
    if _cost(groups) > budget:
        groups = _shortened(groups, budget, spare=1)
        groups = _thinned(groups, budget, _kept(groups, 1))
    return [message for group in groups for message in group]


def grouped(messages: Sequence[Message]) -> list[list[Message]]:
    """Return messages in groups: a tool call with the results that follow it, others alone."""
    groups: list[list[Message]] = []
    for message in messages:
        if groups and is_result(message) and calls_tools(groups[-1][0]):
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def calls_tools(message: Message) -> bool:
    """Return whether an assistant's message calls tools."""
    return message.get("role") == "assistant" and (
        bool(message.get("tool_calls")) or bool(_blocks(message, "tool_call", "tool_use"))
    )


def is_result(message: Message) -> bool:
    """Return whether a message holds a tool's result."""
    return message.get("role") in ("tool", "function") or bool(_blocks(message, "tool_result"))


def _blocks(message: Message, *kinds: str) -> list[Message]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") in kinds]


def _cost(groups: Iterable[Sequence[Message]]) -> int:
    return sum(tokens_of(group) for group in groups)


def _kept(groups: Sequence[Sequence[Message]], recent: int) -> set[int]:
    """Return the ids of the first messages of the groups that are kept."""
    heads = [group[0] for group in groups]
    users = [
        message for message in heads if message.get("role") == "user" and not is_result(message)
    ]
    stay = [message for message in heads if message.get("role") in ("system", "developer")]
    return {id(message) for message in (*stay, *users[:1], *users[-1:], *heads[-recent:])}


def _thinned(groups: Sequence[list[Message]], budget: int, kept: set[int]) -> list[list[Message]]:
    """Leave out the oldest groups until the rest fits."""
    costs = [tokens_of(group) for group in groups]
    left = sum(costs)
    result = []
    for group, cost in zip(groups, costs, strict=True):
        if left > budget and id(group[0]) not in kept:
            left -= cost
        else:
            result.append(group)
    return result


def _shortened(groups: Sequence[list[Message]], budget: int, *, spare: int) -> list[list[Message]]:
    """Shorten tool results, oldest first, except in the last ``spare`` groups."""
    left = _cost(groups)
    result = []
    for place, group in enumerate(groups):
        short = group
        if left > budget and place < len(groups) - spare and len(group) > 1:
            short = [group[0], *map(_cut, group[1:])]
            left -= tokens_of(group) - tokens_of(short)
        result.append(short)
    return result


def _cut(message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, str) or len(content) <= 2 * _CUT:
        return message
    note = f"… [{len(content) - _CUT:,} more characters were left out to save room]"
    return {**message, "content": content[:_CUT] + note}
