"""The words that carry a text's meaning, shortened so that "loves" and "loved" are the same."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.text.normalize import words_of

_STOP_WORDS: Final = frozenset(
    """
    a an and are as at be been being but by can could did do does doing done for from get gets
    getting got had has have having he her hers him his how i if in into is it its just let me
    mine might more most my of off oh ok on or our ours out over own really shall she should so some
    such than that the their them then there these they this those to too us user users very was we
    were what when where which while who whom why will with would you your yours yeah yes also about
    am any because i'm i've i'd i'll it's that's don't didn't can't isn't wasn't you're we're
    they're he's she's now said says say tell told
    """.split()
)
_EDGES: Final = re.compile(r"^[^\w]+|[^\w]+$")
_ENDINGS: Final = ("ings", "ing", "edly", "ies", "ied", "ed", "es", "ly", "s")
_DOUBLING: Final = frozenset(("ings", "ing", "edly", "ed"))
"""Endings before which the last letter of "run" and "stop" is doubled."""
_DOUBLED: Final = re.compile(r"(?<=\w\w)([bdgmnprt])\1$")


def stems(text: str) -> frozenset[str]:
    """Return the words of a text that carry meaning: no "the", no "I", no endings."""
    words = set()
    for word in words_of(text):
        bare = _EDGES.sub("", word).lower().replace("\u2019", "'").removesuffix("'s")
        if bare and bare not in _STOP_WORDS:
            words.add(_stem(bare))
    return frozenset(words)


def _stem(word: str) -> str:
    if not word.isascii() or not word.isalpha():
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if ending in _DOUBLING:
                word = _DOUBLED.sub(r"\1", word)
            break
    return word[:-1] if word.endswith(("e", "y", "i")) and len(word) > 3 else word
