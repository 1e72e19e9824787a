"""Another amount, date or version of the same thing: "raised the biotin to 40 mg"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from agent_memory.extraction.rules.values import DATE, TIME
from agent_memory.text.stems import stems

_NOW: Final = re.compile(r"\b(?:now|these days|currently|nowadays)\b", re.IGNORECASE)
_CHANGED: Final = re.compile(
    r"\b(?:raised|lowered|increased|decreased|reduced|cut|bumped|changed|moved|upgraded|downgraded"
    r"|rebooked|rescheduled|postponed|put|make (?:it|that))\b",
    re.IGNORECASE,
)
_INSTEAD: Final = re.compile(r"\binstead\b", re.IGNORECASE)
_NUMBER: Final = r"\d+(?:[.,]\d+)*"
_NAME: Final = (
    r"(?!chapter|step|part|page|level|week|day|ticket|issue)(?-i:[A-Z])[\w+-]*[a-z+]"
    r"|port|version|room|gate|floor"
)
_AMOUNT: Final = re.compile(
    rf"(?P<time>\b{TIME}(?!\w))|(?P<date>\b{DATE}(?!\w))"
    rf"|\b(?P<name>{_NAME})(?: to)? v?(?P<count>{_NUMBER})(?!\w)"
    rf"|(?P<number>{_NUMBER}) ?(?P<unit>(?!(?:has|is|are|was|and|in|on|at|for|to|now)\b)[a-z%€]+)"
    r"(?: of (?P<of>[\w-]+))?",
    re.IGNORECASE,
)
_OF_OTHERS: Final = re.compile(r"(?:they|their|he|his|she|her|your?)\b", re.IGNORECASE)
_COMMON: Final = stems(
    "take takes taking come go goes run runs use uses cost costs weigh weighs need needs make makes"
    " start starts listen listens drink eat pay pays meet walk sleep read work works have put"
    " on off every each morning evening night afternoon day week month year port version room"
    " gate floor twice once up down these me"
)
"""Words that many things have in common."""


class Amount(NamedTuple):
    """An amount: of what kind it is, such as a unit, how it is written, and of what it is."""

    kind: str
    written: str
    number: str
    of: str


def other_amount(newer: str, older: str) -> str | None:
    """Return the words for an amount in a text that a newer one has another amount for."""
    if not (news := _news(newer)):
        return None
    olds = list(_amounts(older))
    for kind in dict.fromkeys(each.kind for each in olds):
        old, *more = (each for each in olds if each.kind == kind)
        values = [each for each in news if each.kind == kind]
        others = [new for new in values if new.number != old.number]
        if more or len(others) != 1:
            continue
        if others != values:  # "He can't come on Wednesday, Friday instead"
            words, known = (stems(_AMOUNT.sub(" ", text)) for text in (newer, older))
            is_same = _INSTEAD.search(newer) is not None and not words.isdisjoint(known)
        else:
            is_same = _is_of_same(newer, older, is_named=kind[:1].isupper())
        if is_same and (not others[0].of or others[0].of == old.of or not old.of):
            return old.written
    return None


def _is_of_same(newer: str, older: str, *, is_named: bool) -> bool:
    """Return whether the newer text is about the same thing, and says that it has changed.

    "We are on Node 20 now" names it with its version.
    """
    changed = _CHANGED.search(newer)
    is_theirs = is_named and _OF_OTHERS.match(newer) is not None
    if is_theirs or (changed is None and _NOW.search(newer) is None):
        return False
    # Who changed it, such as a doctor, is said before that.
    things = _things(newer if changed is None else newer[changed.end() :])
    others = _things(older)
    if not (things.keys() <= others.keys() or (changed is None and others.keys() <= things.keys())):
        return False
    return is_named or any(
        "" in (things[word], others[word]) or things[word] == others[word]
        for word in things.keys() & others.keys()
    )


@lru_cache(maxsize=128)  # each text is compared with some 25 others
def _news(text: str) -> tuple[Amount, ...]:
    """Return the amounts of a text that says that something is another now."""
    is_change = any(sign.search(text) for sign in (_NOW, _CHANGED, _INSTEAD))
    return tuple(_amounts(text)) if is_change else ()


def _amounts(text: str) -> Iterator[Amount]:
    for match in _AMOUNT.finditer(text):
        kind = match.lastgroup or ""
        if match["name"]:
            yield Amount(match["name"], match[0], match["count"], "")
        elif match["unit"]:
            unit = match["unit"].lower()
            yield Amount(unit, match[0], match["number"], (match["of"] or "").lower())
        else:
            yield Amount(kind, match[0], match[0].lower(), "")


def _things(text: str) -> dict[str, str]:
    """Return the words of a text besides its amounts, each with the one before it.

    A "web server" is no "dev server".
    """
    things: dict[str, str] = {}
    before = ""
    for word in _AMOUNT.sub(lambda match: f" , {match['of'] or ''} ", text).split():
        bare = next(iter(stems(word) - _COMMON), "")
        if bare:
            things[bare] = before
        before = bare
    return things
