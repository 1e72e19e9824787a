"""Decisions without a language model: few, and sound.

The same words change nothing; another value of what has one value at a time takes its place; what
says more takes the place of what it begins with. All else is added. A memory is only taken away
where somebody asks for it or says that it no longer holds, and so unsurely that somebody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from agent_memory.extraction.decision_checks import Settling
from agent_memory.extraction.rules.small_talk import is_request_to_forget
from agent_memory.extraction.rules.statements import Statement, speaker_and_text, statement
from agent_memory.extraction.types import Decided, Fact, Known
from agent_memory.models.conversation import OperationEvent, ProcessingMetadata
from agent_memory.models.times import now_utc
from agent_memory.text.normalize import exact_form, grade_of, near_form
from agent_memory.text.stems import stems

ADD, UPDATE, DELETE, NONE = OperationEvent

_FORGET: Final = 0.5
_NO_LONGER: Final = 0.4
"""How sure it is that a memory should go; both are for review."""
_NEW_VALUE: Final = 0.8
_OTHER_VALUE: Final = 0.7
_SAYS_MORE: Final = 0.7
_LOSES_MORE: Final = 0.5
"""Of another value for a memory that says something else too; it is for review."""
_SHARE: Final = 0.6
"""Of the words of what is to be forgotten, those that the memory must have."""
_LEAST_WORDS: Final = 3
"""Words of a text that another one begins with, for it to say more of the same."""
_ASKS: Final = frozenset(
    stems("please forget delete erase remove stop remembering memory memories everything that all")
)
_NO_LONGER_WORDS: Final = re.compile(
    r"\bno longer\b|\bany ?more\b|\bnot any longer\b|\b(?:I|we)(?:['\u2019]ve| have)? (?:just )?"
    r"(?:stopped|quit|gave up|given up)\b",
    re.IGNORECASE,
)
_DENIES: Final = frozenset(
    stems("no not longer any more anymore never stopped quit gave given up don't doesn't")
)
_LIKES: Final = re.compile(r"^(\w+) (?:like|love|adore|enjoy)s?\b", re.IGNORECASE)
_TAKES_BACK: Final = re.compile(
    r"\b(?:not|no|never|but|except|until|unless|used to|anymore|if|when|only)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


def decide_by_rules(
    facts: Sequence[Fact], related: Sequence[Sequence[Known]], *, now: datetime | None = None
) -> Decided:
    """Return what is to be done about facts, by their words alone: see ``decisions.decide``."""
    settling = Settling(facts, related)
    decided_by_rules(settling, range(len(facts)))
    metadata = ProcessingMetadata(
        total_operations=len(settling.operations),
        decision_time=now or now_utc(),
        model_used="rules",
        uuid_mapping_used=False,
    )
    return Decided(settling.operations, settling.covers, metadata, settling.problems, "rules")


def decided_by_rules(settling: Settling, places: Sequence[int]) -> None:
    """Decide about the facts at some places."""
    # Of several facts with a value for the same memory, the last has the say.
    changes: dict[str, int] = {}
    for place in places:
        if (change := _change(settling, place)) is not None:
            changes[change[0].id] = place
    for place in places:
        _decide(settling, place, changes)


def _decide(settling: Settling, place: int, changes: dict[str, int]) -> None:
    fact = settling.facts[place]
    if is_request_to_forget(fact.text):
        _forget(settling, place)
        return
    same = _same(settling, place)
    if same is not None:
        settling.note(
            NONE, [place], same.text, memory=same, confidence=1.0, reasoning="it is known already"
        )
        return
    change = _change(settling, place)
    if change is not None and changes.get(change[0].id) == place:
        memory, sure, why = change
        settling.note(UPDATE, [place], fact.text, memory=memory, confidence=sure, reasoning=why)
        return
    settling.note(ADD, [place], fact.text, confidence=fact.confidence, reasoning="it is new")
    if _NO_LONGER_WORDS.search(fact.text):
        _end(settling, place)


def _same(settling: Settling, place: int) -> Known | None:
    """Return a memory that says a fact already, and that nothing changes."""
    fact = settling.facts[place].text
    said = statement(fact)
    for memory in settling.related[place]:
        if settling.is_touched(memory):
            continue
        if grade_of(memory.text, fact) is not None or _begins_with(memory.text, fact):
            return memory
        there = statement(memory.text) if said else None
        if there and said and _key(there) == _key(said) and there.value == said.value:
            return memory
    return None


def _change(settling: Settling, place: int) -> tuple[Known, float, str] | None:
    """Return the memory that a fact takes the place of, how sure that is, and why."""
    fact = settling.facts[place].text
    if is_request_to_forget(fact) or _same(settling, place) is not None:
        return None
    said = statement(fact)
    for memory in settling.related[place]:
        if settling.is_touched(memory):
            continue
        there = statement(memory.text) if said else None
        if there and said and _key(there) == _key(said):
            # What is said of "the" something is only changed where it is said to be so now.
            if said.is_new or not said.attribute.startswith("the "):
                sure = _NEW_VALUE if said.is_new else _OTHER_VALUE
                sure = _LOSES_MORE if there.says_more else sure
                return memory, sure, f"another value of {said.attribute}"
        elif _begins_with(fact, memory.text, or_is=True):
            return memory, _SAYS_MORE, "it says more of the same"
    return None


def _key(said: Statement) -> tuple[str, str]:
    return said.subject, said.attribute


def _begins_with(longer: str, shorter: str, *, or_is: bool = False) -> bool:
    """Return whether a text says what a shorter one does, and then more that takes nothing back.

    With ``or_is``, it need not say more: to love something says more than to like it.
    """
    name, text = speaker_and_text(longer)
    other, start = speaker_and_text(shorter)
    whole, part = (_LIKES.sub(r"\1 like", near_form(exact_form(it))) for it in (text, start))
    if name.lower() != other.lower() or len(part.split()) < _LEAST_WORDS:
        return False
    if whole == part:
        return or_is
    rest = whole.removeprefix(part)
    return rest != whole and rest.startswith(" ") and _TAKES_BACK.search(rest) is None


def _forget(settling: Settling, place: int) -> None:
    """Propose to forget the memory that a fact asks to have forgotten."""
    wanted = stems(speaker_and_text(settling.facts[place].text)[1]) - _ASKS
    memory = _nearest(settling, place, wanted)
    if memory is None:
        settling.note(
            NONE,
            [place],
            settling.facts[place].text,
            confidence=1.0,
            reasoning="it asks to forget what is not there",
        )
        return
    settling.note(
        DELETE,
        [place],
        memory.text,
        memory=memory,
        confidence=_FORGET,
        reasoning="somebody asks to forget it",
    )


def _end(settling: Settling, place: int) -> None:
    """Propose to forget the memory of which a fact says that it no longer holds."""
    wanted = stems(speaker_and_text(settling.facts[place].text)[1]) - _DENIES
    memory = _nearest(settling, place, wanted)
    if memory is not None and not _NO_LONGER_WORDS.search(memory.text):
        settling.note(
            DELETE,
            [place],
            memory.text,
            memory=memory,
            confidence=_NO_LONGER,
            reasoning="it is said to hold no longer",
        )


def _nearest(settling: Settling, place: int, wanted: frozenset[str]) -> Known | None:
    """Return the memory that has most of some words, if it has enough of them."""
    best, most = None, 0.0
    speaker = speaker_and_text(settling.facts[place].text)[0].lower()
    for memory in settling.related[place]:
        if settling.is_touched(memory) or not wanted:
            continue
        name, text = speaker_and_text(memory.text)
        share = len(wanted & stems(text)) / len(wanted)
        if share >= _SHARE and share > most and name.lower() == speaker:
            best, most = memory, share
    return best
