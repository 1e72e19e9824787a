"""What is kept out of memories: secrets, told without showing them, and rejected values."""

from collections.abc import Callable

from pydantic import Field

from agent_memory.models.enums import OnSecret
from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record


class FoundSecrets(Record, frozen=True):
    """What looks like secrets in one memory: the kinds, and the fields that they stand in.

    ``kinds`` are like "GitHub token" and "password", ``fields`` like ``content`` and
    ``metadata.config.url``; ``history`` is what a memory said before it was changed or deleted.
    ``index`` is its place (from 0) in ``store_many``. ``decision`` is what the setting says of a
    memory that is to be stored.
    """

    memory_id: str
    kinds: list[str] = Field(min_length=1)
    fields: list[str] = Field(min_length=1)
    index: int | None = None
    decision: OnSecret | None = None

    def __str__(self) -> str:
        """Say what was found: "GitHub token, password in content"."""
        return f"{', '.join(self.kinds)} in {', '.join(self.fields)}"


OnSecretCall = Callable[[FoundSecrets], str | None]
"""Is told of secrets and says ``warn``, ``mask``, ``refuse`` or ``keep``; ``None`` is the setting's
decision."""
SecretPolicy = str | OnSecretCall
"""What ``on_secret`` may be: one of the four words, or a function that says one of them."""


class Rejection(Record, frozen=True):
    """A value that no memory may hold until it is lifted. The value itself is not kept.

    ``rejection_id`` is how to lift it, ``words_hash`` the SHA-256 of its words (in lower case, with
    a space between them) as 64 hexadecimal digits, ``word_count`` how many words it has, and
    ``reason`` why it was rejected, as far as somebody said so.
    """

    rejection_id: int
    words_hash: str = Field(pattern="^[0-9a-f]{64}$")
    word_count: int = Field(ge=1)
    reason: str | None = None
    rejected_at: UtcDatetime
