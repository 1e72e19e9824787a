"""Decisions about memories: ready to be applied, applied, or under review."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

from pydantic import Field, PrivateAttr, computed_field, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record

if TYPE_CHECKING:  # a search needs reviews, but not the models of the graph
    from agent_memory.models.graph import GraphUpdate

Event = Literal["ADD", "UPDATE", "DELETE", "NONE"]

ASKED_TO_FORGET: Final = "somebody asks to forget: "
"""How the reasoning of a review begins if somebody asked for it; what follows is of the memory."""

EDITED_SINCE: Final = "it was edited since: dismiss the review if it is right now"
"""The reasoning of a review whose memory somebody has changed, so that nobody knows any more."""

NEWER_EDITED_SINCE: Final = (
    "what contradicted it was edited since: dismiss the review if it is right now"
)
"""The same where the other memory was changed, and the rules see no contradiction any more."""

IS_UNKNOWN: Final = (EDITED_SINCE, NEWER_EDITED_SINCE)
"""The reasonings of reviews that cannot be approved."""


class Decision(NamedTuple):
    """One decision, ready to be applied.

    ``memory`` is what an ADD stores. An UPDATE gives its content, and the time when that was said,
    to ``memory_id``, and adds its metadata. If that memory has changed in the meantime, the UPDATE
    stores ``memory`` as a new one. ``seen`` is the text of that memory at the time of the decision.
    With ``in_review`` nothing is deleted: the memory of a DELETE or an UPDATE is put under review,
    beside the new ``memory``. ``graph`` is what the new text says about the graph; with ``None``
    the graph is left alone. With ``said_again`` the new memory is stored although an older one says
    the same. ``contradicts`` has the ids of the memories that the new text replaces, or may
    replace: ``graph`` closes nothing that only others state.
    """

    event: Literal["ADD", "UPDATE", "DELETE"]
    memory: Memory | None = None
    memory_id: str | None = None
    seen: str | None = None
    confidence: float | None = None
    reasoning: str | None = None
    in_review: bool = False
    graph: "tuple[GraphUpdate, ...] | None" = None
    said_again: bool = False
    contradicts: frozenset[str] = frozenset()


class DecisionOutcome(NamedTuple):
    """The outcome of a decision: ``event`` is NONE if nothing changed; ``problem`` says why."""

    event: Event
    memory_id: str | None
    content: str | None
    was: str | None = None
    problem: str | None = None
    review_ids: tuple[int, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether nothing came of the decision, and ``problem`` says why."""
        return self.event == "NONE" and self.problem is not None and not self.review_ids


class Review(Record, frozen=True):
    """A memory that a conversation seems to contradict, but too uncertainly to delete it.

    ``review_id`` identifies the review when deciding it, ``content`` is what the memory says.
    ``replaced_by`` is the id of the contradicting memory, if there is one; ``confidence`` how
    certain the contradiction was (0 to 1), ``reasoning`` why. Once either memory is edited, only
    ``reasoning`` says so: whether one still contradicts the other is unknown, and it is not
    approved. Where the newer one was edited, and the rules still see that, all stays as it was.
    """

    review_id: int
    memory_id: str
    content: str
    replaced_by: str | None = None
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    reasoning: str | None = None
    proposed_at: UtcDatetime
    session_id: str | None = None
    user_id: str | None = None
    run_id: str | None = None
    _newer: str | None = PrivateAttr(default=None)
    """What contradicts the memory: another, or a request to forget, as a denial."""
    _is_edited: bool = PrivateAttr(default=False)
    """Whether the memory has been changed since the review was opened."""
    _is_newer_edited: bool = PrivateAttr(default=False)
    """Whether the text of the memory that contradicts it has been."""
    _remainder: Callable[[str, str], str | None] | None = PrivateAttr(default=None)

    # Both texts are read for it, which takes 3 ms: of 5,000 reviews only those shown need it.
    @computed_field  # type: ignore[prop-decorator]
    @property
    def remaining(self) -> str | None:
        """What approving leaves of the memory: "" if it is contradicted as a whole.

        ``None`` if only a part of it is, but the rest cannot be said without it. Then the review
        can be dismissed, but not approved. A review that is built from JSON says what that says;
        ``None`` if it says nothing.
        """
        kept = vars(self)
        if "remaining" not in kept:
            kept["remaining"] = self._computed_remaining()
        remaining: str | None = kept["remaining"]
        return remaining

    def _computed_remaining(self) -> str | None:
        if self._remainder is None:
            return None
        return "" if self._newer is None else self._remainder(self.content, self._newer)

    @model_validator(mode="wrap")
    @classmethod
    def _take_remaining(cls, values: object, build: ModelWrapValidatorHandler[Self]) -> Self:
        """Take over what remains: built anew from its JSON, any review said that nothing does."""
        review = build(values)
        if isinstance(values, Mapping) and "remaining" in values:
            remaining = values["remaining"]
            if not (remaining is None or isinstance(remaining, str)):
                raise ValueError("remaining must be a text or null")
            review.__dict__["remaining"] = remaining
        return review
