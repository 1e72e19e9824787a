"""Who or what somebody else has taken the place of: "Leonie took over the project from Karim".

Of the older text it must be certain that it is about the one who is named as no longer so, and
about the same. The older text is asked about, never replaced.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from agent_memory.extraction.rules.changes import PAST, change_of
from agent_memory.extraction.rules.readings import SIGNS, Reading, content_of
from agent_memory.text.stems import stems

_CAPITAL: Final = r"(?:(?:Dr|Mrs?|Ms|Prof)\. )?[A-Z\u00c0-\u00de][\w'\u2019-]*"
_NAME: Final = rf"(?P<gone>(?-i:{_CAPITAL}(?: {_CAPITAL}){{0,2}}))"
_THING: Final = r"(?P<what>[^,;.!?]{1,60}?)"
_STOP: Final = (
    r"(?=[,;:.!?]|$| (?:and|but|because|since|as of|after|last|this|on|in|now|yesterday)\b)"
)
_TOOK: Final = r"\b(?:took|taken|taking|takes)"
_MOVED: Final = r"(?:moved|passed|went|gone|switched|transferred|handed(?: over)?)"
_WENT: Final = r"(?:is out|stepped down|resigned|was removed) (?:as|of|from)"
_TAKEN_OVER: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_TOOK} over {_THING} from {_NAME}{_STOP}",
        rf"{_TOOK} {_THING} over from {_NAME}{_STOP}",
        rf"{_TOOK} over from {_NAME} as {_THING}{_STOP}",
        rf"\binherit(?:ed|s) {_THING} from {_NAME}{_STOP}",
        rf"\b(?:replac|succeed)(?:ed|es|s|ing) {_NAME} (?:as|on|for|in) {_THING}{_STOP}",
        rf"^\W*{_THING} (?:has |was |is )?{_MOVED} from {_NAME} to \S",
        rf"^\W*{_NAME} (?:has )?(?:handed|passed|turned)(?: over)? {_THING}(?: over)? to \S",
        rf"^\W*{_NAME} {_WENT} {_THING}{_STOP}",
        rf"^\W*{_NAME} used to (?:be )?{_THING}{_STOP}",
        rf"\bhat {_THING} von {_NAME} \u00fcbernommen",
        rf"\bhat {_NAME} als {_THING} (?:abgel\u00f6st|ersetzt)",
        rf"\ba repris {_THING} (?:de |d['\u2019]){_NAME}{_STOP}",
        rf"\ba remplac\u00e9 {_NAME} comme {_THING}{_STOP}",
        rf"\b(?:asumi\u00f3|ha asumido) {_THING} de {_NAME}{_STOP}",
        rf"\b(?:reemplaz\u00f3|sustituy\u00f3) a {_NAME} como {_THING}{_STOP}",
    )
)
"""What is in other hands, and whose it was."""
_NOT: Final = r"(?:not|no longer|nicht(?: mehr)?|pas|plus|no|ya no)"
_INSTEAD_OF: Final = (
    r"(?:instead of|in place of|rather than|(?:an)?statt|anstelle von|au lieu de|\u00e0 la place de"
    r"|en lugar de|en vez de)"
)
_NOT_ANY_MORE: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:,| and| but) {_NOT} {_NAME}(?: any ?more)?\W*$",
        rf"\b{_INSTEAD_OF} {_NAME}{_STOP}",
        rf"\b(?:it|that|this) (?:used to be|was) {_NAME}(?: before)?\W*$",
        rf"(?:^\W*|[,;] (?:and )?){_NAME} (?:is|was) out(?=[,;:.!?]| and\b|$)",
        rf"\bno longer(?= [^,;:.!?]{{1,40}} by {_NAME}\W*$)",
    )
)
"""Who is no longer what the rest of the sentence says somebody else is."""
_CHOICE: Final = re.compile(
    r"\bwe(?:['\u2019]re|['\u2019]ll)?(?: (?:now|are|will))* (?:use|using|take|rely on"
    rf"|(?:go|going|work|working|stick) with) (?P<what>(?-i:{_CAPITAL}(?: {_CAPITAL}){{0,2}}))",
    re.IGNORECASE,
)
"""What was chosen, in any of the words for it: "We go with Adyen", "we now use Mollie"."""
_ROLELESS: Final = (
    stems("know use like love hate enjoy prefer want need miss praise mention") | SIGNS
)
"""What anybody may go on to do with what somebody else has taken over."""
_MOST_BESIDE: Final = 8
"""Maximum words of a text per word of what was taken over."""
_SHARE: Final = 0.6
"""The share of what a text says of somebody that must be said of somebody else."""


class _Successor(NamedTuple):
    """Whom somebody else has taken the place of, and in what; none if it is all of the sentence."""

    gone: str
    what: frozenset[str]
    rest: str


def succeeded_by(new: Reading, old: Reading) -> str:
    """Return why an older text may no longer hold after what a newer says of a successor."""
    if not old.is_one_sentence or new.is_quoted or PAST.search(old.text) or old.change.is_negated:
        return ""
    for successor in _successors(new.text):
        if not change_of(successor.rest).is_unreal and _is_of(successor, old):
            return f"{successor.gone} is said to be no longer the one"
    return ""


def names_another(new: Reading, old: Reading) -> bool:
    """Return whether a newer text says who is no longer the one, and an older is about others."""
    gone = [stems(successor.gone) for successor in _successors(new.text)]
    return bool(gone) and not any(words <= old.stems for words in gone)


@lru_cache(maxsize=128)  # a text is compared with some 50 older ones
def _successors(text: str) -> tuple[_Successor, ...]:
    taken = (match for pattern in _TAKEN_OVER for match in pattern.finditer(text))
    named = (match for pattern in _NOT_ANY_MORE for match in pattern.finditer(text))
    takeovers = [
        _Successor(match["gone"], content_of(match["what"]), text[: match.start()])
        for match in taken
    ]
    others = [
        _Successor(match["gone"], frozenset(), text.replace(match[0], " ")) for match in named
    ]
    return (*(each for each in takeovers if each.what), *others)


def _is_of(successor: _Successor, old: Reading) -> bool:
    """Return whether an older text says of somebody what is now somebody else's."""
    gone = successor.gone.lower()
    about = successor.what or content_of(successor.rest)
    for known in old.statements:
        attribute = stems(known.attribute)
        if known.value.form == gone and attribute and attribute <= about:
            return True
    if not old.text.lower().startswith(f"{gone} "):
        chosen = _CHOICE.match(old.text)
        is_that = chosen is not None and chosen["what"].lower() == gone
        return is_that and _CHOICE.search(successor.rest) is not None
    verb = old.text[len(gone) :].split()[0].strip(".,")
    root = stems(verb)
    rest = old.stems - stems(gone) - root - SIGNS
    if not rest or not root.isdisjoint(_ROLELESS):
        return False
    if successor.what:  # "manager of the project" is of who "manages the project"
        what = {word for word in successor.what if not any(map(word.startswith, root))}
        return bool(what) and what <= rest and len(rest) <= _MOST_BESIDE * len(what)
    if not root:
        return verb.lower() in successor.rest.lower().split() and rest <= about
    return root <= about and len(rest & about) >= _SHARE * len(rest)
