"""A memory that somebody is to look at, before it is deleted or kept."""

from pydantic import ConfigDict, Field

from agent_memory.models.record import Record
from agent_memory.models.times import UtcDatetime


class Review(Record):
    """A memory that a conversation seems to contradict, too unsurely to delete it.

    ``review_id`` is how to decide it, ``content`` what the memory says. ``replaced_by`` is the id
    of the memory that says otherwise, where there is one, ``confidence`` how sure that was (0 to
    1), ``reasoning`` why.
    """

    model_config = ConfigDict(frozen=True)

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
