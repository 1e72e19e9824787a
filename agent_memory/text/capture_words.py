"""The words without which nothing is captured from a text.

They have a module of their own so that a text without any of them costs nothing but this check.
"""

from __future__ import annotations

from typing import Final

CAPTURE_WORDS: Final = (
    *("remember", "important", "decided to", "learned that", "discovered", "solved by"),
    *("preference:", "todo:", "fixme:", "note:"),
)
"""In lower case: those of document A's patterns."""
USER_WORDS: Final = (
    *("prefer", "rather", "like", "love", "hate", "stand ", "want", "always", "never", "usually"),
    *("normally", "from now on", "going forward", "future", "rule", "convention", "policy"),
    *("don't", "don\u2019t", "do not", "avoid", "stop ", "instead", ", not ", "in this", "in our"),
    *("for this", "by default", "everywhere", "answer", "respond", "reply", "call me", "before "),
    *("whenever", "every time", "every ", "all ", "each ", "we ", "we'", "we\u2019", "our ", "my "),
    *("team", "let's", "let\u2019s", "cause", "due to", "turned out", "turns out", "fixed by"),
    *("fixed it", "resolved", "found out", "figured out", "note that", "in mind", "aware that"),
    *("the fix", "workaround", "culprit", "solution", "problem was", "issue was", "bug was"),
    *("fyi", "for the record", "heads up", "heads-up", "so you know", "forget that", "i use "),
    *("i work ", "fixed the", "solved", "reason was", "failure was"),
)
"""In lower case: those with which a user states what lasts (``capture/statements.py``)."""


def has_capture_word(text: str, *, is_users: bool = False) -> bool:
    """Return whether a text has one of the words; without one, nothing is captured from it.

    ``is_users`` says that it is what the user wrote, of which more is kept.
    """
    lower = text.lower()
    return any(word in lower for word in CAPTURE_WORDS) or (
        is_users and any(word in lower for word in USER_WORDS)
    )
