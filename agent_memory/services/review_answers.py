"""What approving a review leaves of a memory, and which reviews a shorter text answers."""

from __future__ import annotations

from agent_memory.models.decision import ASKED_TO_FORGET, Review
from agent_memory.storage.change_records import Change
from agent_memory.storage.engine import Engine
from agent_memory.text.stems import stems


def with_remainder(review: Review) -> Review:
    """Let a review read what remains of its memory, when somebody asks."""
    review._remainder = _remainder
    # An erasure clears the reasoning: then nobody knows any more what was to be forgotten.
    asked = ASKED_TO_FORGET if review.reasoning is None else review.reasoning
    if review._newer is None and asked.startswith(ASKED_TO_FORGET):
        from agent_memory.extraction.rules.remainders import denial  # noqa: PLC0415 - 30 ms

        review._newer = denial(review.content, asked.removeprefix(ASKED_TO_FORGET))
    return review


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
    from agent_memory.extraction.rules.conflicts import conflict, read  # noqa: PLC0415 - 30 ms

    if review.remaining:
        return stems(text) <= stems(review.remaining)
    newer = str(review._newer)
    is_all = review.remaining == "" or _remainder(text, newer) != ""
    return not is_all and conflict(read(newer), read(text)) is None


def hold(engine: Engine, review: Review | None, *, is_held: bool) -> None:
    """Let what a memory states in the graph hold once its review is dismissed, or no longer.

    "I moved to Linz" has closed what "I live in Rome" states, which was then kept.
    """
    if review is not None and review.replaced_by is not None:
        engine.graph_maintenance.hold(review.memory_id, review.replaced_by, is_held=is_held)


def is_shorter(change: Change) -> bool:
    """Return whether a change left words of a text out, as approving a review does."""
    if change.event != "UPDATE" or "content" not in change.columns:
        return False
    old, new = (stems(str(values.get("content"))) for values in (change.old, change.new))
    return new < old


def _remainder(text: str, newer: str) -> str | None:
    from agent_memory.extraction.rules.remainders import remainder  # noqa: PLC0415 - 30 ms

    return remainder(text, newer)
