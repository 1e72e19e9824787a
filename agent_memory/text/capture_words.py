"""The words without which no capture pattern of document A's finds anything.

They stand by themselves so that a text that has none of them costs nothing more than this look.
"""

from __future__ import annotations

from typing import Final

CAPTURE_WORDS: Final = (
    *("remember", "important", "decided to", "learned that", "discovered", "solved by"),
    *("preference:", "todo:", "fixme:", "note:"),
)
"""In lower case."""


def has_capture_word(text: str) -> bool:
    """Return whether a text has one of the words; where it has none, nothing is captured of it."""
    lower = text.lower()
    return any(word in lower for word in CAPTURE_WORDS)
