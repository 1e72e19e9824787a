"""Statistics of a memory: numbers and ids, and no texts but questions that the event log holds."""

from typing import Literal

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record

PeriodUnit = Literal["day", "week", "month", "year", "decade", "century"]


class Series(Record, frozen=True):
    """The memories that share a value: ``count`` in all, and ``counts``, how many in each period.

    ``name`` is the value; ``None`` stands for memories without one. What is dated after the last
    period is in ``count`` alone.
    """

    name: str | None
    count: int = Field(ge=0)
    counts: list[int]


class Breakdown(Record, frozen=True):
    """The memories by the values of one field, the most frequent first.

    ``value_count`` is how many values there are. Those beyond the first are ``others``, together,
    by period.
    """

    value_count: int = Field(ge=0)
    series: list[Series]
    others: list[int]


class Growth(Record, frozen=True):
    """What the history tells of how a memory grew, by period.

    ``added``, ``changed`` and ``deleted`` count changes; bringing a deleted memory back adds it.
    ``memories``, archived ones too, and ``content_bytes``, of their contents in UTF-8, are at the
    end of each period. What was erased for good has left the history, and these figures too.
    """

    added: list[int]
    changed: list[int]
    deleted: list[int]
    memories: list[int]
    content_bytes: list[int]


class RecallStatistics(Record, frozen=True):
    """What the event log tells of the use of a memory, by period.

    ``searches`` counts searches, ``unanswered`` those of them that returned nothing, or nothing
    that has half of what was asked (a ``similarity`` of 0.5). ``memories`` counts the memories that
    searches and ``context`` returned, ``tokens`` their tokens, estimated. ``memories_per_day`` is
    the mean since ``first_event``, the first that the log still has. All are zero where the setting
    ``event_log`` was ``off``.
    """

    event_log: Literal["off", "brief", "full"]
    first_event: UtcDatetime | None = None
    searches: list[int]
    unanswered: list[int]
    memories: list[int]
    tokens: list[int]
    memories_per_day: float = Field(ge=0.0)


class RecalledMemory(Record, frozen=True):
    """A memory that searches return often.

    ``share`` is its accesses as a share of all searches, 0 to 1; ``None`` where there were fewer
    searches: an import brings accesses along. ``is_too_often``: over half of all searches, of ten
    at least. What answers every question answers none.
    """

    memory_id: str
    access_count: int = Field(ge=1)
    share: float | None = None
    is_too_often: bool = False


class Gap(Record, frozen=True):
    """A question that the memory does not answer, with all that are asked in the same words.

    ``question`` is how it was last asked, ``asked`` how often, ``unanswered`` how often in vain:
    the last time too, else it is no gap any more. ``best_similarity`` is that of the best hit then.
    """

    question: str
    asked: int = Field(ge=1)
    unanswered: int = Field(ge=1)
    last_asked: UtcDatetime
    best_similarity: float = Field(ge=0.0, le=1.0)


class OldAnswer(Record, frozen=True):
    """A memory that was the first hit of three searches or more, and is 90 days old or more.

    ``age_days`` counts from when it was last written. ``questions`` are the last three, where the
    event log holds texts.
    """

    memory_id: str
    asked: int = Field(ge=1)
    last_asked: UtcDatetime
    age_days: int = Field(ge=0)
    questions: list[str] = Field(default_factory=list)


class Contradiction(Record, frozen=True):
    """A memory that another one seems to contradict: a review that waits for a decision."""

    review_id: int
    memory_id: str
    replaced_by: str | None = None


class Recommendation(Record, frozen=True):
    """Memories to look at, or to archive, why, and the one command that does it.

    ``review_id`` is the review that waits for a decision, ``same_as`` the memory that says what
    these say: ``merge`` makes one of them.
    """

    action: Literal["review", "archive"]
    memory_ids: list[str]
    reason: str
    command: str
    review_id: int | None = None
    same_as: str | None = None


class MemoryStatistics(Record, frozen=True):
    """Figures of a memory, from ``since`` (``None``: from the beginning) to ``until``.

    ``periods`` are the first days of the periods, ISO 8601, each one ``period_unit`` long: 31 of
    them at most, but for centuries. Every list by period has their length. A day is a day in UTC.

    ``memory_count`` counts the memories that are not archived, ``content_bytes`` their contents and
    those of ``archived_count`` archived ones; ``file_bytes`` is the size of the file, in a database
    that of the rows of memories, history and vectors. ``categories``, ``sources``
    (``metadata.source``) and ``sessions`` are of all memories dated within the time, archived ones
    too.

    ``never_recalled`` are not archived, were last written 30 days ago or earlier, and no search
    ever returned them. ``duplicates`` are groups of ids that say the same, of which each has its
    first; ``duplicate_count`` is how many memories could go. ``archivable_count`` is how many
    ``tidy`` would archive, by the agent's retention policy, else by ``standard``'s ages. Lists
    have the first ``limit``, the counts beside them count all. All of these describe the memory as
    it is now, whatever ``since`` is; but gaps and old answers are of the searches since.
    """

    agent_id: str
    since: UtcDatetime | None
    until: UtcDatetime
    period_unit: PeriodUnit
    periods: list[str]
    memory_count: int = Field(ge=0)
    archived_count: int = Field(ge=0)
    content_bytes: int = Field(ge=0)
    file_bytes: int = Field(ge=0)
    categories: Breakdown
    sources: Breakdown
    sessions: Breakdown
    growth: Growth
    recalls: RecallStatistics
    never_recalled_count: int = Field(ge=0)
    never_recalled: list[str]
    most_recalled: list[RecalledMemory]
    gap_count: int = Field(ge=0)
    gaps: list[Gap]
    old_answer_count: int = Field(ge=0)
    old_answers: list[OldAnswer]
    contradiction_count: int = Field(ge=0)
    contradictions: list[Contradiction]
    duplicate_count: int = Field(ge=0)
    duplicate_group_count: int = Field(ge=0)
    duplicates: list[list[str]]
    archivable_count: int = Field(ge=0)
    recommendations: list[Recommendation]
