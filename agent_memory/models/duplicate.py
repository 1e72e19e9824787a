"""Memories that say what another one says."""

from collections.abc import Callable

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record
from agent_memory.text.normalize import DuplicateGrade


class Duplicate(Record, frozen=True):
    """A memory that is there and says what a new text says, or much of it.

    ``memory_id`` and ``content`` are those of the one that is there, ``new_content`` is the text
    that was compared with it, and ``index`` its place (from 0) in ``store_many``.
    ``shared_words`` is the share of all their words that both have, 0 to 1. ``recalled_at`` is set
    when a search or ``context`` gave that memory to the agent in the last hour: the new text is its
    echo. ``left_out`` names what was given with the new text and a merge would not take over.
    """

    grade: DuplicateGrade
    memory_id: str
    content: str
    new_content: str
    shared_words: float = Field(default=1.0, ge=0.0, le=1.0)
    recalled_at: UtcDatetime | None = None
    index: int | None = None
    left_out: list[str] = Field(default_factory=list)


class DuplicateGroup(Record, frozen=True):
    """Memories that all say the same, oldest first: ``count`` in all, of which 100 are here."""

    grade: DuplicateGrade
    count: int = Field(ge=2)
    memories: list[Memory]


OnDuplicateCall = Callable[[Duplicate], str | None]
"""Is told of a duplicate and says ``keep``, ``merge`` or ``refuse``; ``None`` is the default."""
DuplicatePolicy = str | OnDuplicateCall
"""What ``on_duplicate`` may be: one of the three words, or a function that says one of them."""
