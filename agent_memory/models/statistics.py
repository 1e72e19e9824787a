"""Statistics of a memory: numbers and ids; the only texts are questions from the event log."""

from typing import Literal

from pydantic import Field

from agent_memory.models.field_types import UtcDatetime
from agent_memory.models.record import Record

PeriodUnit = Literal["day", "week", "month", "year", "decade", "century"]


class Series(Record, frozen=True):
    """The memories that share a value: the total ``count``, and ``counts`` for each period.

    ``name`` is the value; ``None`` stands for memories without one. Memories dated after the last
    period are only in ``count``.
    """

    name: str | None
    count: int = Field(ge=0)
    counts: list[int]


class Breakdown(Record, frozen=True):
    """The memories by the values of one field, the most frequent first.

    ``value_count`` is the number of values. Those beyond the first ones are summed up in
    ``others``, by period.
    """

    value_count: int = Field(ge=0)
    series: list[Series]
    others: list[int]


class Growth(Record, frozen=True):
    """How a memory grew according to its history, by period.

    ``added``, ``changed`` and ``deleted`` count changes; restoring a deleted memory adds it.
    ``memories`` (including archived ones) and ``content_bytes`` (of their contents in UTF-8) are as
    of the end of each period. Erased memories are gone from the history, and from these figures.
    """

    added: list[int]
    changed: list[int]
    deleted: list[int]
    memories: list[int]
    content_bytes: list[int]


class RecallStatistics(Record, frozen=True):
    """How a memory was used according to the event log, by period.

    ``searches`` counts searches, ``unanswered`` those that returned nothing, or nothing with half
    of what was asked (a ``similarity`` of 0.5). ``memories`` counts the memories that searches and
    ``context`` returned, ``tokens`` their estimated tokens. ``memories_per_day`` is the mean since
    ``first_event``, the oldest event still in the log. All are zero for a time when the setting
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

    ``share`` is its accesses divided by all searches, 0 to 1; ``None`` if there were fewer searches
    than accesses, since an import brings accesses along. ``is_too_often`` means over half of all
    searches, of at least ten: what answers every question answers none.
    """

    memory_id: str
    access_count: int = Field(ge=1)
    share: float | None = None
    is_too_often: bool = False


class Gap(Record, frozen=True):
    """A question that the memory does not answer, together with all that use the same words.

    ``question`` is its latest wording, ``asked`` how often it was asked, ``unanswered`` how often
    in vain, including the last time: otherwise it would no longer be a gap. ``best_similarity`` is
    that of the best hit at that time.
    """

    question: str
    asked: int = Field(ge=1)
    unanswered: int = Field(ge=1)
    last_asked: UtcDatetime
    best_similarity: float = Field(ge=0.0, le=1.0)


class OldAnswer(Record, frozen=True):
    """A memory that was the first hit of at least three searches, and is at least 90 days old.

    ``age_days`` counts from when it was last written. ``questions`` are the last three, if the
    event log holds texts.
    """

    memory_id: str
    asked: int = Field(ge=1)
    last_asked: UtcDatetime
    age_days: int = Field(ge=0)
    questions: list[str] = Field(default_factory=list)


class Contradiction(Record, frozen=True):
    """A memory that another one seems to contradict: a review that awaits a decision."""

    review_id: int
    memory_id: str
    replaced_by: str | None = None


class Recommendation(Record, frozen=True):
    """Memories to review or to archive, the reason, and the one command that does it.

    ``review_id`` is the review that awaits a decision, ``same_as`` the memory that says the same as
    these: ``merge`` makes them one.
    """

    action: Literal["review", "archive"]
    memory_ids: list[str]
    reason: str
    command: str
    review_id: int | None = None
    same_as: str | None = None


class MemoryStatistics(Record, frozen=True):
    """Figures of a memory, from ``since`` (``None``: from the beginning) to ``until``.

    ``periods`` are the first days of the periods, ISO 8601, each one ``period_unit`` long; there
    are at most 31, except for centuries. Every list by period has the same length. Days are in UTC.

    ``memory_count`` counts the memories that are not archived, ``content_bytes`` their contents and
    those of the ``archived_count`` archived ones; ``file_bytes`` is the size of the file, or in a
    database that of the rows of memories, history and vectors. ``categories``, ``sources``
    (``metadata.source``) and ``sessions`` cover all memories dated within the period, including
    archived ones.

    ``never_recalled`` are memories that are not archived, were last written at least 30 days ago,
    and were never returned by a search. ``duplicates`` are groups of ids of memories that say the
    same; ``duplicate_count`` is how many memories could be removed. ``archivable_count`` is how
    many ``tidy`` would archive, by the agent's retention policy, or else by the ages of
    ``standard``. Lists, and each group of duplicates, have the first ``limit`` items; the counts
    beside them are complete. All of these describe the memory as it is now, regardless of
    ``since``; only gaps and old answers are from the searches since then.
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
