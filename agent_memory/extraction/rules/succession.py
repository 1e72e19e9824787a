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


def latest(
    fact: str, contradicted: Sequence[Contradicted], same: Sequence[RelatedMemory] = ()
) -> list[Contradicted]:
    """Return what a text is to be held against, in the order given.

    Left out is what a later memory contradicts in the same way as the text does: one of the
    contradicted, or of ``same``, which say the same as the text. If that one is no value ("My
    favourite colour is no longer green"), it takes the place of what it put in question. Memories
    without a time are the last said, last first.
    """
    new = read(fact)
    against_of = {entry.memory.id: entry.against for entry in contradicted}
    known_ids = {*against_of}
    held: list[Contradicted] = []
    later: list[Reading] = []
    memories = [*(entry.memory for entry in contradicted), *same]
    for memory in sorted(memories, key=_when, reverse=True):
        against, old = against_of.get(memory.id), read(memory.text)
        if against is not None and not _is_past(new, old, against, later):
            held += _or_correction(Contradicted(memory, against), new, old, known_ids)
        later.append(old)
    places = {entry.memory.id: place for place, entry in enumerate(contradicted)}
    return sorted(held, key=lambda entry: places.get(entry.memory.id, len(places)))


def _when(memory: RelatedMemory) -> tuple[datetime, bool]:
    """Return what orders memories; of those said at one time, what was corrected is earlier."""
    return memory.at or _LAST, memory.correction is None


def _is_past(new: Reading, old: Reading, against: Conflict, later: Sequence[Reading]) -> bool:
    """Return whether a later text contradicts an older one in the same way as the new one does."""
    return not against.is_of_any and any(
        _has_all_slots(other, new, old) and _is_alike(conflict(other, old), against)
        for other in later
    )


def _or_correction(
    entry: Contradicted, new: Reading, old: Reading, known_ids: set[str]
) -> list[Contradicted]:
    """Return what a text is held against; a correction in its place is added to ``known_ids``."""
    correction = entry.memory.correction
    if correction is None or correction.id in known_ids or not _slots(new, old):
        return [entry]
    newer = read(correction.text)
    if not _has_all_slots(newer, new, old):
        return [entry]
    known_ids.add(correction.id)
    if _says_as_much(newer, new):
        return []
    return [Contradicted(correction, entry.against._replace(is_sure=False))]


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
