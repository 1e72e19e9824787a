"""The retention policy, which is off by default, and the reports of ``tidy`` and ``undo``."""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from agent_memory.models.enums import MemoryKind
from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record


class KindLimit(Record, extra="forbid", frozen=True):
    """The maximum number and size of the memories of a kind that are not archived.

    ``max_bytes`` is the size of their contents in UTF-8. A ``hard`` limit refuses a memory that
    would exceed it; above a ``soft`` one, ``tidy`` archives the least used memories.
    """

    max_memories: int | None = Field(default=None, ge=1)
    max_bytes: int | None = Field(default=None, ge=1)
    enforcement: Literal["hard", "soft"] = "soft"


class RetentionPolicy(Record, extra="forbid", frozen=True):
    """What ``tidy`` archives; ``None`` turns a rule off. Core memories are never archived by age.

    Learnings are archived ``archive_learnings_after_days`` after they were last used or changed,
    tasks ``archive_tasks_after_days`` after they were completed. Memories that were used or changed
    within ``recent_days``, are of high importance, were promoted by hand, or may correct a memory
    that is under review and not archived, are never touched. A day has 24 hours; a memory of
    exactly the given number of days is no longer recent, and old enough to be archived.
    """

    archive_learnings_after_days: int | None = Field(default=None, ge=1)
    archive_tasks_after_days: int | None = Field(default=None, ge=1)
    recent_days: int = Field(default=7, ge=0)
    limits: dict[MemoryKind, KindLimit] = Field(default_factory=dict)


RETENTION_PRESETS: Final[dict[str, dict[str, Any]]] = {
    "standard": {
        "archive_learnings_after_days": 90,
        "archive_tasks_after_days": 30,
        "limits": {
            "core": {"max_memories": 1000, "max_bytes": 10_000_000, "enforcement": "hard"},
            "learning": {"max_memories": 500, "max_bytes": 5_000_000, "enforcement": "soft"},
            "task": {"max_memories": 200, "max_bytes": 2_000_000, "enforcement": "soft"},
        },
    },
}
"""Policies by name: ``standard`` archives tasks after 30 days, and learnings after 90."""


def _preset(value: object) -> object:
    """Replace a preset's name by its policy."""
    if not isinstance(value, str):
        return value
    if value not in RETENTION_PRESETS:
        raise ValueError(
            f"{value!r:.80} is not a policy: use {', '.join(RETENTION_PRESETS)}, or an object"
        )
    return RETENTION_PRESETS[value]


Retention = Annotated[RetentionPolicy, BeforeValidator(_preset)]
"""A field for a policy or the name of a preset."""


class TidyItem(Record, frozen=True):
    """A memory that ``tidy`` archives, and why.

    ``last_used`` is when a search last returned it, or when it was last stored or changed.
    """

    memory_id: str
    kind: MemoryKind
    content: str
    reason: str
    last_used: UtcDatetime


class TidyReport(Record, frozen=True):
    """What ``tidy`` archived, or with ``dry_run`` would archive.

    ``kept`` says which limits are still exceeded, and why; ``backup`` is the path of the backup
    that was made first, if any.
    """

    dry_run: bool
    archived: list[TidyItem] = Field(default_factory=list)
    kept: list[str] = Field(default_factory=list)
    backup: str | None = None


class Undone(Record, frozen=True):
    """What ``undo`` undid: a verb, or the event of one change; its changes and their memories.

    Each of ``memory_ids`` is in one of ``removed``, ``restored`` (it had been deleted) and
    ``changed``, which say what the undo made of it.
    """

    verb: str
    change_ids: list[int]
    memory_ids: list[str]
    removed: list[str] = Field(default_factory=list)
    restored: list[str] = Field(default_factory=list)
    changed: list[str] = Field(default_factory=list)
