"""A value that must not come back."""

from pydantic import ConfigDict, Field

from agent_memory.models.record import Record
from agent_memory.models.times import UtcDatetime


class Rejection(Record):
    """A value that no memory may hold until it is lifted. The value itself is not kept.

    ``rejection_id`` is how to lift it, ``words_hash`` the SHA-256 of its words (in lower case, with
    a space between them) as 64 hexadecimal digits, ``word_count`` how many words it has, and
    ``reason`` why it was rejected, as far as somebody said so.
    """

    model_config = ConfigDict(frozen=True)

    rejection_id: int
    words_hash: str = Field(pattern="^[0-9a-f]{64}$")
    word_count: int = Field(ge=1)
    reason: str | None = None
    rejected_at: UtcDatetime
