"""What approving a review leaves of a memory, and which reviews a shorter text answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.models.decision import (
    ASKED_TO_FORGET,
    EDITED_SINCE,
    NEWER_EDITED_SINCE,
    Review,
)
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.storage.change_records import Change
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import Operation
from agent_memory.text.stems import stems

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory

_HANDED_ON: Final = timedelta(microseconds=1)
"""After a deletion, its reviews are handed on: the time tells which those are, if it is undone."""


def with_remainder(review: Review) -> Review:
    """Let a review read what remains of its memory, when somebody asks."""
    if (edited := _edited(review)) is not None:
        # It claimed that what was corrected by hand is contradicted, or is so by "I like tea".
        nobody_knows = {"reasoning": edited, "replaced_by": None, "confidence": None}
        return review.model_copy(update=nobody_knows)
    review._remainder = _remainder
    # An erasure clears the reasoning: then nobody knows any more what was to be forgotten.
    asked = ASKED_TO_FORGET if review.reasoning is None else review.reasoning
    if review._newer is None and asked.startswith(ASKED_TO_FORGET):
        from agent_memory.extraction.rules.remainders import denial  # noqa: PLC0415 - 30 ms

        review._newer = denial(review.content, asked.removeprefix(ASKED_TO_FORGET))
    return review


def _edited(review: Review) -> str | None:
    """Return what to say of a review if an edit left it unknown whether it is still right."""
    if review._is_edited:
        return EDITED_SINCE
    if review._is_newer_edited and not _contradicts(str(review._newer), review.content):
        return NEWER_EDITED_SINCE
    return None


def _contradicts(newer: str, older: str) -> bool:
    from agent_memory.extraction.rules.conflicts import conflict  # noqa: PLC0415 - 30 ms
    from agent_memory.extraction.rules.readings import read  # noqa: PLC0415

    return conflict(read(newer), read(older)) is not None


def rest_after(review: Review, text: str) -> str | None:
    """Return what a review leaves of a memory that others have shortened to a text already."""
    if text == review.content or not review.remaining:
        return review.remaining
    return text if _is_answered(review, text) else _remainder(text, str(review._newer))


def answered_by(engine: Engine, memory_id: str, text: str) -> list[int]:
    """Return the open reviews of a memory whose contradicted part a text, in its place, leaves out.

    Two may contradict the same part: approving the second would delete all the rest.
    """
    reviews = map(with_remainder, engine.reviews.of_memory(memory_id))
    return [review.review_id for review in reviews if _is_answered(review, text)]


def _is_answered(review: Review, text: str) -> bool:
    from agent_memory.extraction.rules.remainders import is_beside  # noqa: PLC0415 - 30 ms

    if review.remaining:
        return stems(text) <= stems(review.remaining)
    return review.remaining is None and is_beside(str(review._newer), text)


def hold_what_is_kept(engine: Engine, memory_id: str) -> None:
    """Let what a memory states in the graph hold if its reviews are dismissed, and only then.

    "I moved to Linz" has closed what "I live in Rome" states, which was then kept. While another
    review of it is open, as that of "I moved to Brno", nobody has said yet that it still holds.
    Must be called after the changes of the memory are signed.
    """
    reviews = engine.reviews.newer_and_closed(memory_id)
    if not reviews:
        return
    is_open = bool(engine.reviews.of_memory(memory_id))
    changes = engine.history.of_memory(memory_id)
    approved = {change.changed_at for change in changes if is_shorter(change)}
    for newer_id, closed_at in reviews:
        if closed_at not in approved:
            is_held = closed_at is not None and not is_open
            engine.graph_maintenance.hold(memory_id, newer_id, is_held=is_held)


def delete_and_hand_on(
    engine: Engine,
    memory_id: str,
    *,
    session_id: str,
    now: datetime,
    merged_into: Memory | None = None,
) -> None:
    """Delete a memory; what it put in question is in question because of what may replace it.

    "I live in Oslo", "I moved to Bergen", "I moved to Rome": without the second, the third still
    contradicts the first, which it was not held against. Of a memory that was merged into another,
    it is in question because of that one.
    """
    newer = merged_into or _newest(engine, memory_id)
    handed_on = [] if newer is None else _contradicted(engine, memory_id, newer)
    engine.memory_rows.delete(memory_id)
    for review in handed_on:
        asked_row_id = engine.memories.row_id_of(review.memory_id)
        if asked_row_id is not None and newer is not None:
            engine.reviews.add(
                asked_row_id,
                replaced_by=newer.id,
                confidence=review.confidence,
                reasoning=review.reasoning,
                session_id=session_id,
                now=now + _HANDED_ON,
            )


def _newest(engine: Engine, memory_id: str) -> Memory | None:
    """Return the newest memory that may replace a memory, if any may."""
    row_id = engine.memories.row_id_of(memory_id)
    newest = None if row_id is None else engine.reviews.newer_of([row_id]).get(row_id)
    return None if newest is None else engine.memories.get_many([newest]).get(newest)


def _contradicted(engine: Engine, memory_id: str, newer: Memory) -> list[Review]:
    """Return the open reviews of what a memory, and a newer one too, contradict."""
    return [
        review
        for review in engine.reviews.because_of(memory_id)
        if review.memory_id != newer.id
        and _contradicts(newer.content, review.content)
        and newer.id not in dict(engine.reviews.newer_and_closed(review.memory_id))
    ]


def take_back_handed_on(engine: Engine, deletion: Change) -> None:
    """Remove the reviews that were handed on when a memory was deleted, which is there again."""
    moment = read_stored_time(deletion.changed_at) + _HANDED_ON
    done = Operation(0, "add", 0, 0, format_time(moment), deletion.session_id)
    engine.reviews.take_back(done, None)


def is_shorter(change: Change) -> bool:
    """Return whether a change left words of a text out, as approving a review does."""
    if change.event != "UPDATE" or "content" not in change.columns:
        return False
    old, new = (stems(str(values.get("content"))) for values in (change.old, change.new))
    return new < old


def _remainder(text: str, newer: str) -> str | None:
    from agent_memory.extraction.rules.remainders import remainder  # noqa: PLC0415 - 30 ms

    return remainder(text, newer)
