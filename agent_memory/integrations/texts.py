"""Texts of any length as the content of a memory."""

from __future__ import annotations

import re
from typing import Final

from agent_memory import MAX_MEMORY_CONTENT_LENGTH, validate_memory_content

_HEAD: Final = MAX_MEMORY_CONTENT_LENGTH // 2
"""Characters of the start of a longer text that are kept as they are."""
_BETWEEN: Final = "\n…\n"
_WORDS: Final = re.compile(r"\w+")


def searchable(text: str, *, name: str) -> str:
    """Return a text as a content that searches find: itself, where it can be one.

    Of a text of over 10,000 characters it is the first half of that, and then the other words of
    the text, each once, as far as there is room. Where nothing can be seen of a text, it is
    ``name``.
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
