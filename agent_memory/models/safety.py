"""What is kept out of memories: secrets, reported without showing them, and rejected texts."""

from collections.abc import Callable

from pydantic import Field

from agent_memory.models.enums import OnSecret
from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record


class FoundSecrets(Record, frozen=True):
    """Apparent secrets in one memory: their kinds, and the fields that contain them.

    ``kinds`` are like "GitHub token" and "password", ``fields`` like ``content`` and
    ``metadata.config.url``; the field ``history`` is what a memory said before it was changed or
    deleted. ``index`` is its position (from 0) in ``store_many``. ``decision`` is what the setting
    decides for a memory that is to be stored.
    """

    memory_id: str
    kinds: list[str] = Field(min_length=1)
    fields: list[str] = Field(min_length=1)
    index: int | None = None
    decision: OnSecret | None = None

    def __str__(self) -> str:
        """Return a summary: "GitHub token, password in content"."""
        return f"{', '.join(self.kinds)} in {', '.join(self.fields)}"


OnSecretCall = Callable[[FoundSecrets], str | None]
"""Takes secrets and returns ``warn``, ``mask``, ``refuse`` or ``keep``; with ``None`` the setting
decides."""
SecretPolicy = str | OnSecretCall
"""What ``on_secret`` may be: one of the four words, or a function that returns one."""


class Rejection(Record, frozen=True):
    """A text that no memory may contain until the rejection is lifted. The text is not kept.

    ``rejection_id`` identifies it when lifting it. ``words_hash`` is the SHA-256 of its words (in
    lower case, separated by spaces) as 64 hexadecimal digits, ``word_count`` the number of words,
    and ``reason`` why it was rejected, if a reason was given.
    """

    rejection_id: int
    words_hash: str = Field(pattern="^[0-9a-f]{64}$")
    word_count: int = Field(ge=1)
    reason: str | None = None
    rejected_at: UtcDatetime
