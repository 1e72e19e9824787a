"""What remains of a memory if only a part of it no longer holds.

"I speak French and German" and "I no longer speak German" leave "I speak French".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agent_memory.extraction.rules.conflicts import Reading, conflict, denied_by, read
from agent_memory.extraction.rules.corrections import is_of_a_value_alone
from agent_memory.extraction.rules.lists import SUBJECT, without_members
from agent_memory.extraction.rules.statements import speaker_and_text
from agent_memory.text.sentences import sentences
from agent_memory.text.stems import stems

_VERB: Final = r"(?:is|are|was|were|has|have|had|\w{2,}s)"
_CLAUSE_JOINT: Final = re.compile(
    rf"(?:[,;]|,? (?:and|but)) (?=(?:I|we)(?:['\u2019]\w+)? \w|(?:my|our) \w+ {_VERB} \w)"
)
"""What separates two clauses that can each stand alone, not "my dog and my cat"."""

_VERB_JOINT: Final = re.compile(
    r"(?<=\w),? (?:and|but) (?=(?:am|is|are|ha(?:ve|s)|works?|lives?|likes?|loves?|hates?) \w)"
)
"""What separates what one subject does: "I live in Oslo and work at Acme"."""


def remainder(text: str, newer: str) -> str | None:
    """Return what remains of a memory if a newer text is right: nothing, if it contradicts it all.

    ``None``: it contradicts only a part, and without that the rest cannot be said for certain.
    """
    label, spoken = _labelled(text)
    if not spoken:
        return ""
    if is_of_a_value_alone(speaker_and_text(newer)[1]):
        return None  # "No, I meant June 4": what it is about is in the older text alone
    new = read(newer)
    parts = sentences(spoken)
    left = [_left(new, label, part, is_all=len(parts) == 1) for part in parts]
    if None in left or (left == parts and conflict(new, read(text)) is not None):
        return None
    rest = " ".join(part for part in left if part)
    return "" if not rest or rest == spoken else label + rest


def remainder_without(text: str, words: frozenset[str], *, share: float) -> str:
    """Return what remains of a memory without what has that share of some stems.

    Nothing, if that is all of it, or if the rest cannot be said for certain.
    """
    label, spoken = _labelled(text)
    left = [
        without_members(part, words) if len(words & stems(part)) >= share * len(words) else part
        for part in sentences(spoken)
    ]
    rest = " ".join(part for part in left if part)
    return "" if None in left or rest in ("", spoken) else label + rest


def _labelled(text: str) -> tuple[str, str]:
    """Return the speaker's name before a text, with its colon, and what was said."""
    spoken = speaker_and_text(text)[1]
    return (text[: -len(spoken)], spoken) if text.endswith(spoken) else ("", "")


def _left(new: Reading, label: str, sentence: str, *, is_all: bool) -> str | None:
    """Return what is left of a sentence; ``is_all``: the memory has no other."""
    if not is_all and conflict(new, read(label + sentence)) is None:
        return sentence
    clauses = list(_clauses(sentence.rstrip(" .!")))
    left = [_left_of_clause(new, label, clause) for clause in clauses]
    if len(clauses) == 1 or left == clauses:
        return _without_denied(new, label, sentence)
    if None in left:
        return None
    rest = ", and ".join(clause for clause in left if clause)
    return f"{rest[0].upper()}{rest[1:]}." if rest else ""


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the clauses of a sentence, each with its subject: "I am married", "I have two kids"."""
    for clause in _CLAUSE_JOINT.split(sentence):
        subject = re.match(SUBJECT, clause)
        first, *others = _VERB_JOINT.split(clause) if subject else [clause]
        yield first
        for other in others:
            yield f"{clause[: subject.end() if subject else 0]} {other}"


def _left_of_clause(new: Reading, label: str, clause: str) -> str | None:
    is_denied = conflict(new, read(label + clause)) is not None
    return _without_denied(new, label, clause) if is_denied else clause


def _without_denied(new: Reading, label: str, text: str) -> str | None:
    denied = denied_by(new, read(label + text))
    return without_members(text, denied) if denied else ""
