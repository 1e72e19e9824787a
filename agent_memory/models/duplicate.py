"""Memories that say the same as another one."""

from collections.abc import Callable

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record
from agent_memory.text.normalize import DuplicateGrade


class Duplicate(Record, frozen=True):
    """An existing memory that says the same as a new text, or much of it.

    - ``memory_id``, ``content``: those of the existing memory.
    - ``new_content``: the text that was compared with it.
    - ``shared_words``: the share of all words of both that they have in common, 0 to 1.
    - ``recalled_at``: set if a search or ``context`` gave that memory to the agent within the last
      hour: the new text is its echo.
    - ``left_out``: the fields given with the new text that a merge would not take over.

    ``index`` is the position (from 0) of the new text in ``store_many``.
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
    """Memories that all say the same, oldest first: ``count`` in all, the first 100 listed."""

    grade: DuplicateGrade
    count: int = Field(ge=2)
    memories: list[Memory]


OnDuplicateCall = Callable[[Duplicate], str | None]
"""Takes a duplicate and returns ``keep``, ``merge`` or ``refuse``; ``None`` is the default."""
DuplicatePolicy = str | OnDuplicateCall
"""What ``on_duplicate`` may be: one of the three words, or a function that returns one."""
