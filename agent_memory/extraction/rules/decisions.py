"""Decisions without a language model: what is sure is done, what is possible is reviewed.

The same words change nothing, unless something that may correct them, or that they may correct, was
said in the meantime: then they are news, and kept. Another value of a slot that has one value at a
time replaces it if both are of one kind and the new one is surely meant to (``conflicts``); "loves"
replaces "likes" for the same thing. Everything else is added, and if it may correct a memory, that
memory is put under review. A memory is deleted only if somebody asks for it, and even then somebody
else reviews it. What follows after the words of a memory is added beside it: "I love Ben" and "I
love Ben and Jerry's" are both true.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from heapq import nlargest
from typing import Final

from agent_memory.extraction.decision_checks import DecisionChecks
from agent_memory.extraction.rules.conflicts import Conflict, conflict, says_alike
from agent_memory.extraction.rules.readings import Reading, read
from agent_memory.extraction.rules.statements import (
    Statement,
    same_value,
    speaker_and_text,
    statement,
)
from agent_memory.extraction.rules.succession import Contradicted, latest
from agent_memory.extraction.types import Fact, OperationPlan, RelatedMemory, ReplacedBy
from agent_memory.models.conversation import OperationEvent
from agent_memory.models.decision import ASKED_TO_FORGET
from agent_memory.models.fields import new_memory_id
from agent_memory.text.normalize import exact_form, near_form
from agent_memory.text.speech_acts import is_request_to_forget, may_tell_of_forgetting
from agent_memory.text.stems import stems

ADD, UPDATE, DELETE, NONE = OperationEvent

_FORGET: Final = 0.5
"""The confidence that a memory should be deleted: it is for review."""
_NEW_VALUE: Final = 0.8
_SAYS_MORE: Final = 0.7
_MAYBE: Final = 0.5
"""The confidence that a memory is corrected, if it is reviewed."""
_SHARE: Final = 0.6
"""The share of the words of what is to be forgotten that the memory must have."""
_ASKS: Final = frozenset(
    stems(
        "please forget delete erase remove stop remembering memory memories everything that all"
        " bitte vergiss vergessen sie dass por favor olvida olvide oublie oubliez que qu"
        " s'il te vous plaît 请 忘了 忘记 忘掉"
    )
)
_COMPARED: Final = 25
"""The new facts that a fact is compared with: the last so many, and so many with the same words."""
_OF_A_WORD: Final = 200
"""Of the facts with the same word, so many of the last are considered."""
_REPLACED: Final = "the conversation itself replaces it, by what is known already"
_LIKES: Final = re.compile(r"^(\w+) (?:like|enjoy)s?\b", re.IGNORECASE)
_LOVES: Final = re.compile(r"^(\w+) (?:love|adore)s?\b", re.IGNORECASE)


def decide_by_rules(
    facts: Sequence[Fact],
    related: Sequence[Sequence[RelatedMemory]],
    replaced_by: ReplacedBy | None = None,
) -> OperationPlan:
    """Return what to do about facts, by their words alone: see ``decisions.decide``."""
    checks = DecisionChecks(facts, related, replaced_by)
    apply_rules(checks, range(len(facts)))
    return checks.plan()


def apply_rules(checks: DecisionChecks, places: Sequence[int]) -> None:
    """Decide about the facts at some positions."""
    checks.related = _as_this_conversation_ends(checks, places)
    replaced = _replaced_by_known(checks, places)
    # If several facts have a value for the same memory, the last one wins.
    changes: dict[str, int] = {}
    for place in places:
        if (same := _same(checks, place)) is not None:
            changes.pop(same.id, None)  # what changes it is not said last
        elif place not in replaced and (change := _change(checks, place)) is not None:
            changes[change[0].id] = place
    earlier = EarlierFacts()
    for place in places:
        if place in replaced:
            text = checks.facts[place].text
            checks.note(NONE, [place], text, confidence=1.0, reasoning=_REPLACED)
        elif _decide(checks, place, changes, earlier):
            checks.new_ids[place] = earlier.take(checks.facts[place].text)


def _decide(
    checks: DecisionChecks, place: int, changes: dict[str, int], earlier: EarlierFacts
) -> bool:
    """Decide about a fact; return whether it will be a memory of its own.

    What the conversation said earlier is reviewed at most, never changed.
    """
    fact = checks.facts[place]
    before, related = earlier.related(fact.text), checks.related[place]
    if is_request_to_forget(fact.text) and _forget(checks, place, [*before, *related]):
        return False
    same = _same(checks, place)
    if same is not None and contradicted_since(fact.text, same.text, before) is None:
        checks.note(
            NONE, [place], same.text, memory=same, confidence=1.0, reasoning="it is known already"
        )
        return False
    change = _change(checks, place)
    if change is not None and changes.get(change[0].id) == place:
        memory, sure, why = change
        checks.note(UPDATE, [place], fact.text, memory=memory, confidence=sure, reasoning=why)
        # The fact is stored by this update: earlier facts are only reviewed for whether they hold.
        _ask(checks, place, changes, before, earlier, event=DELETE)
        return False
    if not _ask(checks, place, changes, [*before, *related], earlier):
        checks.note(ADD, [place], fact.text, confidence=fact.confidence, reasoning="it is new")
    if any(_says_the_same(memory.text, fact.text) for memory in related):
        checks.said_again.add(place)
    return True


def _replaced_by_known(checks: DecisionChecks, places: Sequence[int]) -> set[int]:
    """Return the facts that this conversation itself replaces by what is known already.

    "I am 34", and later "I am 35", which replaced it in the memory when that was said: when the
    conversation is added again, 34 neither replaces 35 nor is stored beside it. Nor is "I live in
    Oslo" before "I no longer live in Oslo", if a review of the two was approved.
    """
    replaced: set[int] = set()
    if len(places) < 2:
        return replaced
    replaced_by = cache(checks.replaced_by or (lambda _: {}))
    later = EarlierFacts()
    ids: dict[str, str] = {}
    """By the forms of later facts, the memories that say them, or did until that was approved."""
    for place in reversed(places):
        text = checks.facts[place].text
        same = _same(checks, place)
        memory_id = None if same is None else same.id
        if same is None:
            others = later.related(text)
            memory_id = _approved(text, others, ids, replaced_by)
            is_sure = any(_surely_replaces(other.text, text) for other in others)
            if memory_id is None and not is_sure:
                continue  # new, and perhaps still so
            replaced.add(place)
        later.take(text)
        if memory_id is not None:
            ids.setdefault(_form(text), memory_id)
    return replaced


def _approved(
    text: str, others: Sequence[RelatedMemory], ids: dict[str, str], replaced_by: ReplacedBy
) -> str | None:
    """Return the memory that said a text until somebody approved that one of others replaces it.

    The history is read only for what contradicts it, and in either direction: "I smoke again" is
    no contradiction of "I quit smoking", which was a contradiction of "I smoke".
    """
    for other in others:
        new, old, newer_id = read(other.text), read(text), ids.get(_form(other.text))
        if newer_id and (conflict(new, old) is not None or conflict(old, new) is not None):
            for was, memory_id in replaced_by(newer_id).items():
                if _form(was) == _form(text):
                    return memory_id
    return None


def _surely_replaces(text: str, other: str) -> bool:
    against = conflict(read(text), read(other))
    return (against is not None and against.is_sure) or _says_it_more(text, other)


def _as_this_conversation_ends(
    checks: DecisionChecks, places: Sequence[int]
) -> list[Sequence[RelatedMemory]]:
    """Return the related memories; what a conversation itself corrects later is not said again.

    A client may add the whole conversation after each turn: all of it is said again, in its order.
    """
    related = list(checks.related)
    again = [
        place
        for place in places
        for memory in related[place]
        if memory.correction is not None and _says_the_same(memory.text, checks.facts[place].text)
    ]
    if not again:
        return related
    conversation = EarlierFacts()
    last: dict[str, int] = {}
    for place, fact in enumerate(checks.facts):
        conversation.take(fact.text)
        last[_form(fact.text)] = place
    for place in again:
        text = checks.facts[place].text
        is_corrected_later = any(
            last[_form(other.text)] > place and conflict(read(other.text), read(text)) is not None
            for other in conversation.related(text)
        ) or any(
            memory.correction is not None and last.get(_form(memory.correction.text), -1) > place
            for memory in related[place]
        )
        if is_corrected_later:
            related[place] = [memory._replace(correction=None) for memory in related[place]]
    return related


def _same(checks: DecisionChecks, place: int) -> RelatedMemory | None:
    """Return a memory that says a fact already, and that nothing changes or may have corrected."""
    fact = checks.facts[place].text
    for memory in checks.related[place]:
        is_open = memory.correction is not None or checks.is_touched(memory)
        if not is_open and _says_the_same(memory.text, fact):
            return memory
    return None


def contradicted_since(
    fact: str, text: str, later: Sequence[RelatedMemory]
) -> RelatedMemory | None:
    """Return what was said after a text that says a fact, and that the fact contradicts, if any.

    "The talk is off", a new talk, and "The talk is off": the second is about the new talk. What
    contradicts the text was asked about when it was said, and somebody may have kept both.
    """
    if not later or not _says_the_same(text, fact):
        return None
    for other in later:
        against = conflict(read(fact), read(other.text))
        if against is None or against.may_stay or _says_the_same(other.text, fact):
            continue
        if conflict(read(other.text), read(text)) is None:
            return other
    return None


def _says_the_same(text: str, fact: str) -> bool:
    """Return whether a text says a fact already."""
    if _form(text) == _form(fact):
        return True
    stated = statement(fact)
    if not stated or stated.says_more or stated.says_when or stated.origin:
        return False
    known = statement(text)
    return known is not None and _is_held(text, known, stated)


def _is_held(text: str, known: Statement, stated: Statement) -> bool:
    """Return whether a memory states the same, and that still holds according to all of it.

    "I moved to Oslo, then to Rome" does not say that somebody lives in Oslo.
    """
    if (known.slot, known.whose) != (stated.slot, stated.whose) or not same_value(known, stated):
        return False
    whole = read(text)
    change = whole.change
    is_limited = change.is_beside or change.is_unreal or change.is_guessed
    return whole.is_one_sentence and not known.says_more and not is_limited


def _change(checks: DecisionChecks, place: int) -> tuple[RelatedMemory, float, str] | None:
    """Return what a fact that no memory says surely replaces, how sure that is, and why."""
    fact = checks.facts[place]
    if is_request_to_forget(fact.text):
        return None
    held = {
        entry.memory.id: entry.against
        for entry in _held_against(fact.text, checks.related[place])
        if entry.memory.correction is None  # else it is for review, and so is this
    }
    for memory in checks.related[place]:
        if checks.is_touched(memory):
            continue
        against = held.get(memory.id)
        if against is not None and against.is_sure and not (against.is_bare and fact.is_beside):
            return memory, _NEW_VALUE, against.why
        if _says_it_more(fact.text, memory.text):
            return memory, _SAYS_MORE, "it says more of the same"
    return None


def _held_against(
    fact: str,
    related: Sequence[RelatedMemory],
    refuted: Collection[RelatedMemory] = (),
    earlier: EarlierFacts | None = None,
) -> list[Contradicted]:
    """Return what a fact is held against: of what is related to it, and of what may correct that.

    What was there when the same was said before was held against it then: "I live in Oslo" and "I
    moved to Bergen" in turn, 24 in all, opened 144 reviews.
    """
    new = read(fact)
    memories = {memory.id: memory for memory in related}
    for memory in related:
        if memory.correction is not None:
            memories.setdefault(memory.correction.id, memory.correction)
    contradicted, same = [], []
    for memory in memories.values():
        against = conflict(new, read(memory.text) if earlier is None else earlier.read(memory.text))
        if against is None and memory in refuted:
            against = Conflict("what it may have corrected is said again")
        if against is not None:
            contradicted.append(Contradicted(memory, against))
        elif _says_the_same(memory.text, fact):
            same.append(memory)
    return latest(fact, contradicted, same)


def _ask(
    checks: DecisionChecks,
    place: int,
    changes: dict[str, int],
    related: Sequence[RelatedMemory],
    earlier: EarlierFacts,
    *,
    event: OperationEvent = UPDATE,
) -> bool:
    """Ask for a review of each memory that a fact may correct; return whether there is one.

    A memory that another fact surely changes (``changes``) is left to that fact.
    """
    fact = checks.facts[place]
    asked = False
    refuted = _refuted(fact.text, related)
    for memory, against in _held_against(fact.text, related, refuted, earlier):
        is_left = memory.id in changes or checks.is_touched(memory)
        if against.may_stay or is_left or _says_the_same(memory.text, fact.text):
            continue
        if against.is_of_any and asked:
            continue
        checks.note(
            event,
            [place],
            memory.text if event is DELETE else fact.text,
            memory=memory,
            confidence=_MAYBE,
            reasoning=against.why,
            in_question=True,
        )
        asked = True
    return asked


def _refuted(fact: str, related: Sequence[RelatedMemory]) -> list[RelatedMemory]:
    """Return the corrections of what a fact says again: "I quit smoking" by "I smoke again"."""
    return [
        memory.correction
        for memory in related
        if memory.correction is not None
        and (_says_the_same(memory.text, fact) or says_alike(read(fact), read(memory.text)))
    ]


def _says_it_more(text: str, other: str) -> bool:
    """Return whether a text says "love" where another says "like", and nothing else differs."""
    name, loves = speaker_and_text(text)
    other_name, likes = speaker_and_text(other)
    loves, likes = _form(loves), _form(likes)
    return (
        name.lower() == other_name.lower()
        and _LOVES.match(loves) is not None
        and _LIKES.match(likes) is not None
        and _LOVES.sub(r"\1 like", loves) == _LIKES.sub(r"\1 like", likes)
    )


@lru_cache(maxsize=128)  # each fact is compared with some 25 similar ones, three times
def _form(text: str) -> str:
    """Return a form that is equal for texts that say the same in the same words."""
    return near_form(exact_form(text))


def _forget(checks: DecisionChecks, place: int, related: Sequence[RelatedMemory]) -> bool:
    """Propose to forget the memory that a fact asks to forget; return whether it asks for that."""
    wanted = stems(speaker_and_text(checks.facts[place].text)[1]) - _ASKS
    memory = _nearest(checks, place, wanted, related)
    if memory is None:
        if may_tell_of_forgetting(checks.facts[place].text):
            return False
        checks.note(
            NONE,
            [place],
            checks.facts[place].text,
            confidence=1.0,
            reasoning="it asks to forget what is not there",
        )
        return True
    # It may be asked of a part of the memory alone: a review shows of which.
    asked = " ".join(word for word in memory.text.split() if stems(word) & wanted)
    checks.note(
        DELETE,
        [place],
        memory.text,
        memory=memory,
        confidence=_FORGET,
        reasoning=f"{ASKED_TO_FORGET}{asked}",
    )
    return True


def _nearest(
    checks: DecisionChecks, place: int, wanted: frozenset[str], related: Sequence[RelatedMemory]
) -> RelatedMemory | None:
    """Return the memory that has most of some words, if it has enough of them."""
    best, most = None, 0.0
    speaker = speaker_and_text(checks.facts[place].text)[0].lower()
    for memory in related:
        if checks.is_touched(memory) or not wanted:
            continue
        name, text = speaker_and_text(memory.text)
        share = len(wanted & stems(text)) / len(wanted)
        if share >= _SHARE and share > most and name.lower() == speaker:
            best, most = memory, share
    return best


class EarlierFacts:
    """The facts of a conversation that will be memories, each with the id that it will have.

    New facts of a conversation are not memories yet while it is being processed. A later fact may
    correct one all the same: "I live in Berlin." and, ten turns later, "I moved to Lisbon."
    """

    def __init__(self) -> None:
        self._memories: list[RelatedMemory] = []
        self._readings: dict[str, Reading] = {}
        self._forms: set[str] = set()
        self._having: defaultdict[object, list[int]] = defaultdict(list)

    def take(self, text: str) -> str:
        """Add a fact that will be a memory, and return that memory's id."""
        memory = RelatedMemory(new_memory_id(), text)
        form = _form(text)
        if form not in self._forms:  # else it will be the memory that says so already
            self._forms.add(form)
            self._readings[text] = read(text)
            for key in _keys(text):
                self._having[key].append(len(self._memories))
            self._memories.append(memory)
        return memory.id

    def read(self, text: str) -> Reading:
        """Read a text, or return the cached reading: reading anew takes three times as long."""
        return self._readings.get(text) or read(text)

    def related(self, text: str) -> list[RelatedMemory]:
        """Return what a fact is to be compared with, last first."""
        if not self._memories:
            return []
        count = len(self._memories)
        alike = Counter(
            place for key in _keys(text) for place in self._having.get(key, ())[-_OF_A_WORD:]
        )
        places = [
            *range(count - 1, max(-1, count - 1 - _COMPARED), -1),
            # Among those with as many words in common, the last: any other order would be random.
            *(
                place
                for _, place in nlargest(_COMPARED, ((n, place) for place, n in alike.items()))
            ),
        ]
        return [self._memories[place] for place in sorted({*places}, reverse=True)]


def _keys(text: str) -> Iterator[object]:
    """Yield the keys of a text: its words, and the slots for which it states a value."""
    yield from read(text).stems
    yield from {stated.slot for stated in read(text).statements}
