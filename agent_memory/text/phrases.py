"""Phrases as patterns, and the phrases that several tables share."""

from __future__ import annotations

import re
from typing import Final


def any_of(phrases: str) -> str:
    """Return a pattern that matches any of some phrases, one per line."""
    return "(?:" + "|".join(line.strip() for line in phrases.strip().splitlines()) + ")"


def words_of(words: str) -> str:
    """Return a pattern that matches any of some words."""
    return "(?:" + "|".join(words.split()) + ")"


def pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern in which an apostrophe matches either kind."""
    return re.compile(text.replace("'", "['\u2019]"), re.IGNORECASE)


ASSISTANTS: Final = words_of("claude chatgpt gpt siri alexa gemini copilot google cortana")
"""How people call an assistant."""
POINTING: Final = words_of("it this that these those them here above below again")
HAVE_A: Final = (
    "have (?:fun|an? (?:look|go|try|seat|think|chat|talk|rest|break|day|good|great|nice|safe|lovely"
    "|wonderful|fantastic|amazing|awesome|happy|merry|blast|pleasant|restful|peaceful))"
)
"""A wish or an order; but "Have a cat" states a fact."""
TAKE_CARE: Final = rf"take care(?! of (?!{POINTING}|your))"
"""But "take care of the cat" states something."""
NO_KIND: Final = words_of(
    """
    a an the this that these those it them me us my your our his her their some more one two three
    another other again here now as to for in with out up on off over at by from of how what why
    let's
    """
)
