"""Lists in a sentence: "I speak French and German", without one of their members."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.text.stems import stems

_JOINT: Final = re.compile(r",? (and|or|und|oder|et|ou|y) |, ")
_OWNER: Final = "(?:[Mm]y|[Oo]ur|[Tt]he|[Hh]is|[Hh]er|[Tt]heir)"
SUBJECT: Final = rf"(?:{_OWNER} [\w-]+|(?!{_OWNER}\b)[\w-]+)"
_SUBJECT_AND_VERB: Final = rf"{SUBJECT}(?: [\w\u2019'-]+|['\u2019](?:m|re|ve|s))"
_BEGINS: Final = re.compile(rf"{_SUBJECT_AND_VERB} \S")
"""How a sentence begins if all of a list is behind its verb, unlike "Ann and Bob live here"."""
_PREPOSITION: Final = r"(?:to|in|at|with|on|for|from|by|of|about)"
_FIRST: Final = re.compile(
    rf"(?P<lead>{_SUBJECT_AND_VERB}(?:(?: [\w-]+)? {_PREPOSITION})? )"
    r"(?P<member>(?:(?:an?|the|my|our) )?(?:[A-Z]\S*(?: [A-Z]\S*)*|\S+))"
)
"""The first member of a list: all behind the verb, or behind its preposition."""
_SELF: Final = re.compile(r"(?:I|we|me|us)\b")
_ARTICLE: Final = re.compile(r"(?:an?|the|my|our) ")
_COUNTED: Final = re.compile(r"\d|\b(?:two|three|four|five|both|all|between)\b", re.IGNORECASE)
"""Marks a list whose members are counted, or of which something is said together."""


def without_members(sentence: str, words: frozenset[str]) -> str | None:
    """Return a sentence without the members of its list that have only these stems.

    Nothing is left of a sentence without a list. ``None``: it has other members, and cannot be said
    without these for certain.
    """
    body = sentence.rstrip(" .!")
    pieces = _JOINT.split(body)
    first, *others = pieces[::2]
    conjunctions = [word for word in pieces[1::2] if word]
    is_joint = any(_SELF.match(member) for member in others)  # "My brother and I run a bakery"
    if not conjunctions or (stems(body) <= words and not is_joint):
        return ""
    is_gone = [bool(stems(member)) and stems(member) <= words for member in others]
    head = _FIRST.fullmatch(first)
    is_first_gone = head is not None and stems(head["member"]) <= words
    is_any_gone = is_first_gone or any(is_gone)
    is_list = not (is_joint or _COUNTED.search(body)) and _BEGINS.match(first) is not None
    if not (is_any_gone and is_list):
        return None
    left = [member for member, gone in zip(others, is_gone, strict=True) if not gone]
    if is_first_gone and head is not None:
        if not left:
            return ""
        if _shape(left[0]) != _shape(head["member"]):
            return None  # "I like dogs and read books" is no list of things
        left[0] = head["lead"] + left[0]
    else:
        left.insert(0, first)
    *before, last = left
    listed = f"{', '.join(before)} {conjunctions[-1]} {last}" if before else last
    return listed + sentence[len(body) :]


def _shape(member: str) -> tuple[bool, bool, int]:
    """Return what members of a list have in common: an article, a capital, how many words."""
    bare = _ARTICLE.sub("", member)
    is_name = bare[:1].isupper()
    return bare != member, is_name, 0 if is_name else len(bare.split())
