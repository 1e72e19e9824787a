"""The words without which no capture pattern of document A matches anything.

They have a module of their own so that a text without any of them costs nothing but this check.
What a user says may also hold from now on without one (``text.standing_orders``).
"""

from __future__ import annotations

import re
from typing import Final

CAPTURE_WORDS: Final = (
    *("remember", "important", "decided to", "learned that", "discovered", "solved by"),
    *("preference:", "todo:", "fixme:", "note:"),
)
"""In lower case."""
_ORDERING: Final = re.compile(
    r"(?i:\b(?:always|never|prefer|avoid|use|don['\u2019]t|do not|stop|instead|rather|over|not"
    r"|from now on|going forward|future|make sure|ensure|keep|must|should|shall|may|needs?|every"
    r"|each|all|whenever|before|after|when you|if you|you (?:can|have|need)|no|only|like|love|hate"
    r"|dislike|stand|want|expect|we|now|actually|correction|wrong|sorry|update|moved|renamed"
    r"|postponed|pushed|cancelled|replaced|deprecated|immer|niemals|nie|stets|k\u00fcnftig|zukunft"
    r"|ab jetzt|statt|anstatt|anstelle|toujours|jamais|d\u00e9sormais|dor\u00e9navant|au lieu"
    r"|plut\u00f4t|siempre|nunca|a partir|en adelante|en lugar|en vez)\b)"
)


def has_capture_word(text: str) -> bool:
    """Return whether a text has one of the words; without one, no pattern matches in it."""
    lower = text.lower()
    return any(word in lower for word in CAPTURE_WORDS)


def has_ordering_word(text: str) -> bool:
    """Return whether a user's text has a word without which nothing in it is an order for always.

    A hook asks this: the patterns that tell take a third of a second to load.
    """
    return _ORDERING.search(text) is not None
