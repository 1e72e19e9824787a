"""Texts of any length as the content of a memory."""

from __future__ import annotations

import re
from typing import Final

from agent_memory import MAX_MEMORY_CONTENT_LENGTH, validate_memory_content

_HEAD: Final = MAX_MEMORY_CONTENT_LENGTH // 2
"""Characters at the start of a longer text that are kept as they are."""
_BETWEEN: Final = "\n…\n"
_WORDS: Final = re.compile(r"\w+")


def searchable(text: str, *, name: str) -> str:
    """Return a content under which searches find a text: the text itself, if it is a valid content.

    For a text of over 10,000 characters it is the first 5,000, followed by the other words of the
    text, each once, as far as there is room. For a text without visible characters it is ``name``.
    """
    content = text if len(text) <= MAX_MEMORY_CONTENT_LENGTH else _shortened(text.strip())
    return content if validate_memory_content(content)[0] else name[:MAX_MEMORY_CONTENT_LENGTH]


def _shortened(text: str) -> str:
    if len(text) <= MAX_MEMORY_CONTENT_LENGTH:
        return text
    head, rest = text[:_HEAD], text[_HEAD:]
    seen = {word.casefold() for word in _WORDS.findall(head)}
    room = MAX_MEMORY_CONTENT_LENGTH - len(head) - len(_BETWEEN)
    words: list[str] = []
    for word in _WORDS.findall(rest):
        folded = word.casefold()
        if folded in seen or len(word) + 1 > room:
            continue
        seen.add(folded)
        words.append(word)
        room -= len(word) + 1
    return head + _BETWEEN + " ".join(words)
