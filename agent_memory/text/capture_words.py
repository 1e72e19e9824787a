"""The words without which no capture pattern of document A matches anything.

They have a module of their own so that a text without any of them costs nothing but this check.
"""

from __future__ import annotations

from typing import Final

CAPTURE_WORDS: Final = (
    *("remember", "important", "decided to", "learned that", "discovered", "solved by"),
    *("preference:", "todo:", "fixme:", "note:"),
)
"""In lower case."""


def has_capture_word(text: str) -> bool:
    """Return whether a text has one of the words; without one, nothing is captured from it."""
    lower = text.lower()
    return any(word in lower for word in CAPTURE_WORDS)
