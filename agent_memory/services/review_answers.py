"""What follows for texts, reviews and the graph when a review is answered, or a memory deleted."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.models.decision import (
    ASKED_TO_FORGET,
    EDITED_SINCE,
    IS_UNKNOWN,
    NEWER_EDITED_SINCE,
    Review,
)
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.services.writing.update import update
from agent_memory.storage.change_records import Change
from agent_memory.storage.engine import Engine
from agent_memory.storage.fingerprints import fingerprint_of
from agent_memory.storage.records import Operation
from agent_memory.text.stems import stems

if TYPE_CHECKING:
    from agent_memory.models.memory import Memory

_HANDED_ON: Final = timedelta(microseconds=1)
"""After a deletion, its reviews are handed on: the time tells which those are, if it is undone."""
_COPIES: Final = 100
"""The most memories that say the same as a deleted one among which another is looked for."""


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


def rest_of(memory: Memory, reviews: Sequence[Review]) -> str:
    """Return what approving reviews of one memory leaves of it, or raise ``ValidationError``."""
    rest = memory.content
    for review in reviews:
        if review.reasoning in IS_UNKNOWN:
            message = (
                f"memory {memory.id}, or what contradicted it, has changed since: dismiss the"
                " review, or delete the memory"
            )
            raise ValidationError.of("review_id", message, review.review_id)
        left = _rest_after(review, rest) if rest else ""
        if left is None:
            message = (
                f"only a part of memory {memory.id} is contradicted, and nothing was decided:"
                " update or delete the memory, or dismiss the review"
            )
            raise ValidationError.of("review_id", message, review.review_id)
        rest = left
    return rest


def _rest_after(review: Review, text: str) -> str | None:
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
    kept: Container[int] = (),
) -> None:
    """Delete a memory; what it put in question is in question because of what stands behind it.

    "I live in Oslo", "I moved to Bergen", "I moved to Rome": without the second, the third still
    contradicts the first, which it was not held against. Of a memory that was merged into another,
    it is in question because of that one. The reviews ``kept`` are dismissed at the same time.
    """
    handed_on = list(_still_asked(engine, memory_id, merged_into))
    engine.memory_rows.delete(memory_id)
    for review, newer_id in handed_on:
        asked_row_id = engine.memories.row_id_of(review.memory_id)
        if asked_row_id is not None and review.review_id not in kept:
            engine.reviews.add(
                asked_row_id,
                replaced_by=newer_id,
                confidence=review.confidence,
                reasoning=review.reasoning,
                session_id=session_id,
                now=now + _HANDED_ON,
            )


def _still_asked(
    engine: Engine, memory_id: str, merged_into: Memory | None
) -> Iterator[tuple[Review, str]]:
    """Yield the reviews because of a memory that are open without it, and because of what."""
    gone = engine.memories.get(memory_id)
    for review, closed_at in engine.reviews.because_of(memory_id):
        older = engine.memories.get(review.memory_id)
        if gone is None or older is None:
            continue
        if merged_into is None:
            behind = _behind(engine, gone, older, closed_at)
        else:
            behind = iter([merged_into] if closed_at is None else ())
        for newer in behind:
            if newer.id != older.id and _contradicts(newer.content, older.content):
                if newer.id not in dict(engine.reviews.newer_and_closed(older.id)):
                    yield review, newer.id
                break


def _behind(engine: Engine, gone: Memory, older: Memory, closed_at: str | None) -> Iterator[Memory]:
    """Yield what was said after an older memory and says the same as one that contradicts it.

    Then what may replace that one, what may replace this, and so on. If the older memory was kept,
    at ``closed_at``, only what takes the place of the other, and was not stored yet.
    """
    if closed_at is None:
        fingerprint = fingerprint_of(gone.content, gone.user_id, gone.run_id)
        copies = engine.fingerprints.same(fingerprint, limit=_COPIES)
        memories = engine.memories.get_many([copy.row_id for copy in copies])
        newest_first = (memories[row_id] for row_id in sorted(memories, reverse=True))
        yield from (
            copy
            for copy in newest_first
            if copy.id != gone.id and copy.timestamp >= older.timestamp
        )
    seen, waiting = {gone.id}, deque([gone.id])
    while waiting:
        for newer_id, kept_at in reversed(engine.reviews.newer_and_closed(waiting.popleft())):
            newer = engine.memories.get(newer_id)
            if newer is None or newer_id in seen or (closed_at is not None and kept_at is not None):
                continue
            seen.add(newer_id)
            waiting.append(newer_id)
            is_new = closed_at is None or _is_stored_since(engine, newer_id, closed_at)
            if is_new and newer.timestamp >= older.timestamp:
                yield newer


def _is_stored_since(engine: Engine, memory_id: str, moment: str) -> bool:
    """Return whether a memory got its text after a time, in stored form."""
    changes = engine.history.of_memory(memory_id)
    return any(each.changed_at > moment and "content" in each.new for each in changes)


def take_back_handed_on(engine: Engine, deletion: Change) -> None:
    """Remove the reviews that were handed on when a memory was deleted, which is there again."""
    moment = read_stored_time(deletion.changed_at) + _HANDED_ON
    done = Operation("add", 0, 0, format_time(moment), deletion.session_id)
    engine.reviews.take_back(done, None)


def shorten(
    engine: Engine, memory: Memory, text: str, reviews: Sequence[Review], *, now: datetime
) -> None:
    """Leave of a memory what is not contradicted; the graph and its reviews follow."""
    from agent_memory.services.graph.changes import forget_part  # noqa: PLC0415 - seldom asked for

    answered = answered_by(engine, memory.id, text)
    update(engine, memory, {"content": text}, now=now)
    forget_part(engine, memory, text, now=now)
    for review_id in {*answered, *(review.review_id for review in reviews)}:
        engine.reviews.dismiss(review_id, now=now)
    engine.reviews.renew(memory.id)  # another may contradict another part


def shortened_by(engine: Engine, review_id: int) -> int | None:
    """Return the change that shortened a memory when a review was approved, if one did."""
    memory_id, closed_at = engine.reviews.closed(review_id) or (None, None)
    if memory_id is None:
        return None
    changes = engine.history.of_memory(memory_id)
    shorter = [each for each in changes if each.changed_at == closed_at and is_shorter(each)]
    return shorter[-1].change_id if shorter else None


def is_shorter(change: Change) -> bool:
    """Return whether a change left words of a text out, as approving a review does."""
    if change.event != "UPDATE" or "content" not in change.columns:
        return False
    old, new = (stems(str(values.get("content"))) for values in (change.old, change.new))
    return new < old


def _remainder(text: str, newer: str) -> str | None:
    from agent_memory.extraction.rules.remainders import remainder  # noqa: PLC0415 - 30 ms

    return remainder(text, newer)
