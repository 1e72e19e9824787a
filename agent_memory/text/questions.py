"""What an English question asks for."""

import re
from itertools import islice, pairwise
from typing import Final

_WORDS: Final = re.compile(r"[\w'\u2019-]+")
_WHICH: Final = frozenset(["what", "which"])
_AUXILIARIES: Final = frozenset(
    """
    am are can could did do does had has have is may might must shall should was were will would
    """.split()
)
_NO_PLURALS: Final = ("'s", "\u2019s", "ss", "us", "is", "as")
_PLURALS: Final = frozenset(["children", "men", "people", "women"])
_ASKED: Final = 300
"""Words of a text that are examined: a real question has fewer."""


def asks_for_several(question: str) -> bool:
    """Return whether a question asks for several things.

    "Which books has Ann read?" and "how many times did we deploy?" do, by a noun in the plural
    before the verb; "what does Ann read?" may have one answer.
    """
    words = [match[0].lower() for match in islice(_WORDS.finditer(question), _ASKED)]
    if ("how", "many") in pairwise(words):
        return True
    is_named = False  # "which" or "what" occurred, and no verb yet
    for noun, verb in pairwise(words):
        is_named = noun in _WHICH or (is_named and noun not in _AUXILIARIES)
        if is_named and verb in _AUXILIARIES and _is_plural(noun):
            return True
    return False


def _is_plural(word: str) -> bool:
    ends_so = len(word) > 3 and word.endswith("s") and not word.endswith(_NO_PLURALS)
    return ends_so or word in _PLURALS
