"""Decisions about memories: ready to be carried out, carried out, or waiting for somebody."""

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record

if TYPE_CHECKING:  # a search reads of reviews, and does without the models of the graph
    from agent_memory.models.graph import GraphUpdate

Event = Literal["ADD", "UPDATE", "DELETE", "NONE"]

SAID_AT: Final = "said_at"
"""The metadata's key for when a conversation last said what a memory says, as ISO 8601."""


class Decision(NamedTuple):
    """One decision, ready to be carried out.

    ``memory`` is what is stored by an ADD, and by an UPDATE whose memory is not what it was any
    more: an UPDATE gives its content, and adds its metadata, to ``memory_id``, which stays as old
    as it is: when it was said stands in the metadata, as ``said_at``. ``seen`` is what that memory
    said when it was decided. With ``in_review`` nothing is deleted: the memory of a DELETE, or of
    an UPDATE, is put in question, beside the ``memory`` that is new. ``graph`` is what the new text
    says of the graph; with ``None`` the graph is left alone.
    """

    event: Literal["ADD", "UPDATE", "DELETE"]
    memory: Memory | None = None
    memory_id: str | None = None
    seen: str | None = None
    confidence: float | None = None
    reasoning: str | None = None
    in_review: bool = False
    graph: "tuple[GraphUpdate, ...] | None" = None


class DecisionOutcome(NamedTuple):
    """What became of a step: ``event`` is NONE where nothing was changed, ``problem`` says why."""

    event: Event
    memory_id: str | None
    content: str | None
    was: str | None = None
    problem: str | None = None
    review_id: int | None = None


class Review(Record, frozen=True):
    """A memory that a conversation seems to contradict, too unsurely to delete it.

    ``review_id`` is how to decide it, ``content`` what the memory says. ``replaced_by`` is the id
    of the memory that says otherwise, where there is one, ``confidence`` how sure that was (0 to
    1), ``reasoning`` why.
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
