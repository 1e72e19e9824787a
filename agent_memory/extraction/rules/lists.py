"""Lists in a sentence: "I speak French and German", without one of their members."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.text.stems import stems

_CONJUNCTION: Final = r"(?:and|or|und|oder|et|ou|y)"
_JOINT: Final = re.compile(rf"(,? +{_CONJUNCTION} +|, +)")
_PAIR: Final = re.compile(rf"(\w+)\W*(?:[&+]|\b(?:{_CONJUNCTION}|as well as)\b)\W*(?=(\w+))")
_OWNER: Final = "(?:[Mm]y|[Oo]ur|[Tt]he|[Hh]is|[Hh]er|[Tt]heir)"
_SUBJECT: Final = rf"(?:{_OWNER} +[\w-]+|(?!{_OWNER}\b)[\w-]+)"
_PREPOSITION: Final = r"(?:to|in|at|with|on|for|from|by|of|about)"
_MEMBER: Final = r"(?:(?:an?|the|my|our) +)?(?:[A-Z][\w-]*(?: +[A-Z][\w-]*)*|[\w-]+)"
_LIST: Final = re.compile(
    rf"(?P<lead>{_SUBJECT}(?: +[\w-]+|['\u2019](?:m|re|ve|s))(?:(?: +[\w-]+)? +{_PREPOSITION})? +)"
    rf"(?P<members>{_MEMBER}(?:, +{_MEMBER})*,? +{_CONJUNCTION} +{_MEMBER})(?P<end>[ .!]*)"
)
"""A sentence with one list, all of it behind its verb, unlike "Ann and Bob live here"."""
_UNSURE: Final = re.compile(
    r"\d|\b(?:two|three|four|five|both|all|each|between|together|not?|never|nor|neither|none|nobody"
    r"|only|but|if|especially|except|while|because|others?|etc|more)\b",
    re.IGNORECASE,
)
"""Marks a list whose members are counted or left out, or of which something is said together."""
_ARTICLE: Final = re.compile(r"(?:an?|the|my|our) +")
_THINGS: Final = re.compile(r"(?:\w+[^\Ws]s|\w{3,}ing)")


def without_member(sentence: str, words: frozenset[str], *, named: frozenset[str]) -> str | None:
    """Return a sentence without the one member of its list that has only these stems.

    ``None``: it has no such list, or not just one such member, another has one of the stems
    ``named``, or the rest may be no sentence.
    """
    listed = _LIST.fullmatch(sentence)
    if listed is None or _UNSURE.search(sentence):
        return None
    pieces = _JOINT.split(listed["members"])
    members, joints = pieces[::2], pieces[3::2]  # all but one joint: the first is a comma, or alone
    meant = [stems(member) for member in members]
    gone = [place for place, member in enumerate(meant) if member <= words]
    if len(gone) != 1 or not all(meant) or len({_shape(member) for member in members}) > 1:
        return None
    left = [member for place, member in enumerate(members) if place != gone[0]]
    if not named.isdisjoint(stems(" ".join(left))):
        return None
    if len(left) == 1 and gone == [0] and not _is_thing(listed["lead"], left[0]):
        return None
    if len(left) == 2:
        joints = [joints[0].lstrip(",")]
    rest = "".join(part for pair in zip(left, [*joints, ""], strict=True) for part in pair)
    return f"{listed['lead']}{rest}{listed['end']}"


def joined_words(text: str) -> frozenset[tuple[str, str]]:
    """Return the words on both sides of each "and" and the like."""
    return frozenset(_PAIR.findall(text.lower()))


def parts_of_list(sentence: str) -> list[str]:
    """Return what is between the commas and conjunctions of a sentence, if it has several."""
    pieces = _JOINT.split(sentence.rstrip(" .!"))[::2]
    return pieces if len(pieces) > 1 else []


def _shape(member: str) -> tuple[bool, bool]:
    """Return what members of a list have in common: whether with an article, and a capital."""
    bare = _ARTICLE.sub("", member)
    return bare != member, bare[:1].isupper()


def _is_thing(lead: str, member: str) -> bool:
    """Return whether the last of two is a thing, and nothing that is done: "cats and cook"."""
    if _shape(member) != (False, False):
        return True
    return _THINGS.fullmatch(member) is not None and lead.lower().startswith(("i ", "we "))
