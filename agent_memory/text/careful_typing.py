"""Texts as people type them with care: "i dont" is "I don't", "the boiler's broken" has an "is".

Texts are compared in this form, or a way of typing would hide that two of them contradict each
other. It is for comparison alone: what is stored stays as it was typed.
"""

from __future__ import annotations

import re
from typing import Final

_SHORT_FORMS: Final = {
    short.replace("'", ""): short
    for short in (
        "i'm i've don't doesn't didn't can't couldn't won't wouldn't shouldn't isn't aren't wasn't"
        " weren't haven't hasn't hadn't ain't you're you've they're they've we've he's she's that's"
        " there's"
    ).split()
}
"""Short forms by what is typed without the apostrophe, unless that is a word: "were", "its"."""
_SHORT: Final = re.compile(
    r"(?<![\w'\u2019@./-])"
    # Not German "im Krankenhaus", a man named Ive, French "le film dont je parle".
    r"(?!im (?-i:[^\Wa-z\d_])|ive (?:is|was|has|lives|works|likes|loves)\b"
    r"|dont (?:je|tu|ils?|elles?|on|nous|vous|l[ea]s?|une?|[mts](?:on|a|es)"
    r"|[nv]otre|personne|tout)\b|dont [jl]['\u2019]"
    r"|wont to\b|wont(?:(?<=(?:his|her|its|our|eir) wont)|(?<=my wont)))"
    rf"(?:{'|'.join(_SHORT_FORMS)})(?![\w'\u2019@/-]|\.\w)",
    re.IGNORECASE,
)
_GERMAN: Final = re.compile(
    r"\b(?:ich|wir|uns|nicht|und|ist|bin|habe|dem|der|das|eine?|januar|februar|märz|mai|juni|juli"
    r"|oktober|dezember|sommer|herbst|frühling|büro)\b",
    re.IGNORECASE,
)
"""A text with such a word has the German "im", also before a noun in lower case."""
_SMALL: Final = re.compile(
    # The first word of a sentence, unless it is code such as "main.py"; and "i" in a clause.
    r"(?:^\W{0,3}|(?<=[^\W_]{2}[.!?])\s)[a-z](?=[a-z]{0,30}(?:[\s,]|['\u2019]\w))"
    r"|(?:(?<=[,;:(]\s)|(?<=\band\s))i(?=['\u2019](?:m|ve|d|ll)\b| [a-z])"
)
_END: Final = r"(?=[,.;:!?)]|\s*$| (?:now|again|today|and|but|because|so|at|on|by|to|for|since)\b)"
_LAST: Final = r"(?: now)?(?=\W*$|[,;] )"
_HAS: Final = rf"(?:been|got|joined|started|stopped|died)\b|(?:moved|changed|left){_END}"
# What can follow "is" and is nothing that somebody owns: not "Ella's 9 dogs", "Ann's working day".
_IS: Final = (
    r"(?:an?|the|my|our|at|on|in|from|with|near|not|no longer|now|still|already|always)(?= )"
    r"|(?:broken|fixed|repaired|working|failing|down|up|back(?: up| online)?|off|on|over|out"
    r"|gone|dead|open|closed|out of order|cancell?ed|postponed|online|offline|ready|done|green|red"
    rf"|pregnant|single|married|divorced|separated|engaged|retired|unemployed|vegan|vegetarian){_END}"
    r"|(?:called|named) (?=\w)|\S{1,60}@\S{1,60}\W*$"
    r"|[$\u20ac\u00a3]?\d[\w.,:]{0,15}(?: (?:dollars|euros|pounds|years old|[ap]m))?" + _LAST
)
_IS_BEHIND_A_THING: Final = (  # "My boss's Ines", "the deadline's May 20", but not "Ann's Friday"
    # One has several friends, and "my friend's Toyota" is a car.
    r"(?<!(?:friend|cousin|sister)['\u2019]s )(?<!brother['\u2019]s )"
    r"(?:(?-i:[A-Z])[\w-]{0,30}|(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}(?= \d))(?: \d{1,2})?" + _LAST
)
_SHORT_VERB: Final = re.compile(
    r"(?:^\W{0,3}|(?<=[,.;:!?]\s)|(?<=\band\s)|(?<=\bbut\s))"
    r"(?P<who>(?P<owned>(?:the|my|our|his|her|their) (?:[\w-]{1,30} ){0,3})?"
    r"(?!(?:it|that|this|there|here|what|who|where|how|let|he|she)['\u2019])[\w-]{1,30})"
    rf"['\u2019]s (?:(?=(?P<has>{_HAS}))|(?={_IS}|(?(owned){_IS_BEHIND_A_THING}|(?!))))",
    re.IGNORECASE,
)
"""A noun with "is" or "has": the noun begins a clause, unlike that of "I stay at my mother's"."""


def carefully_typed(text: str) -> str:
    """Return a text with the apostrophes and capitals that its author left out.

    The first word of a sentence and "I" begin with a capital; names inside a sentence are as they
    were. "'s" behind a noun is written out where it can only be "is" or "has".
    """
    text = _SHORT.sub(_with_apostrophe, text)
    text = _SMALL.sub(lambda match: match[0].upper(), text)
    return _SHORT_VERB.sub(_with_verb, text)


def _with_apostrophe(match: re.Match[str]) -> str:
    if match[0].lower() == "im" and _GERMAN.search(match.string):
        return match[0]
    short = _SHORT_FORMS[match[0].lower()]
    return short[0].upper() + short[1:] if match[0][0].isupper() or short[0] == "i" else short


def _with_verb(match: re.Match[str]) -> str:
    begin = match[0][: match.end("who") - match.start()]
    return f"{begin} {'has' if match['has'] else 'is'} "
