"""Which of the memories that a text contradicts it is held against: the latest of each slot.

"The deploy is on March 3", "… on March 10", "… on March 17": the second was held against the first
when it was said, and whatever was decided then, the third is held against the second alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from agent_memory.extraction.rules.conflicts import Conflict, conflict
from agent_memory.extraction.rules.readings import Reading, read
from agent_memory.extraction.rules.statements import same_value
from agent_memory.extraction.types import RelatedMemory

_LAST: Final = datetime.max.replace(tzinfo=UTC)
"""When what has no time was said: in the conversation itself, after all that is known."""


class Contradicted(NamedTuple):
    """A memory that a text conflicts with, and how."""

    memory: RelatedMemory
    against: Conflict


def latest(fact: str, contradicted: Sequence[Contradicted]) -> list[Contradicted]:
    """Return what a text is to be held against, in the order given.

    Left out is what a later memory contradicts in the same way as the text does. If that one is no
    value ("My favourite colour is no longer green"), it takes the place of what it put in question.
    Memories without a time are the last said, last first.
    """
    new = read(fact)
    known_ids = {entry.memory.id for entry in contradicted}
    held: list[Contradicted] = []
    later: list[Reading] = []
    for entry in sorted(contradicted, key=_when, reverse=True):
        memory, against = entry
        old, correction = read(memory.text), memory.correction
        is_past = not against.is_of_any and any(
            _has_all_slots(other, new, old) and _is_alike(conflict(other, old), against)
            for other in later
        )
        if not is_past and correction is not None and correction.id not in known_ids:
            newer = read(correction.text)
            if is_past := _slots(new, old) != set() and _has_all_slots(newer, new, old):
                known_ids.add(correction.id)
                if not _says_as_much(newer, new):
                    held.append(Contradicted(correction, against._replace(is_sure=False)))
        if not is_past:
            held.append(entry)
        later.append(old)
    places = {entry.memory.id: place for place, entry in enumerate(contradicted)}
    return sorted(held, key=lambda entry: places.get(entry.memory.id, len(places)))


def _when(entry: Contradicted) -> tuple[datetime, bool]:
    """Return what orders memories; of those said at one time, what was corrected is earlier."""
    return entry.memory.at or _LAST, entry.memory.correction is None


def _slots(new: Reading, old: Reading) -> set[tuple[str, str]]:
    """Return the slots that both texts are about."""
    return {stated.slot for stated in new.statements} & {stated.slot for stated in old.statements}


def _has_all_slots(other: Reading, new: Reading, old: Reading) -> bool:
    return _slots(new, old) <= {stated.slot for stated in other.statements}


def _is_alike(other: Conflict | None, against: Conflict) -> bool:
    return other is not None and not other.may_stay and other.why == against.why


def _says_as_much(known: Reading, new: Reading) -> bool:
    """Return whether a text states a value that another states too."""
    return any(
        stated.slot == other.slot and same_value(stated, other)
        for stated in new.statements
        for other in known.statements
    )
