"""What is asked of a search, and what it gives back."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from pydantic import Field

from agent_memory.models.enums import Importance, MatchType, MemoryKind, MemoryType, TaskStatus
from agent_memory.models.field_types import Tags, Text, UtcDatetime, UtcEnd
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record


class DateRange(Record, extra="forbid", frozen=True):
    """From ``start`` to ``end``, both included, either open. A date alone ends with its day."""

    start: UtcDatetime | None = None
    end: UtcEnd | None = None


class SearchFilters(Record, extra="forbid", frozen=True):
    """What a memory must be like to be found at all.

    Each field that is given must hold; of ``ids``, it must have one. ``custom_filters`` are
    conditions on ``metadata``: a mapping of key to value, or of key to ``{operator: value}`` with
    the operators ``eq, ne, gt, gte, lt, lte, in, nin, contains, icontains``; ``AND`` and ``OR``
    take a list of such mappings, ``NOT`` one. A key with dots reaches into nested metadata. A key
    that a memory does not have makes every condition on it false but ``ne`` and ``nin``.
    ``archived`` is false unless given: true finds archived memories alone, ``None`` both.
    """

    ids: list[Text] | None = None
    user_id: Text | None = None
    agent_id: Text | None = None
    run_id: Text | None = None
    memory_type: MemoryType | None = None
    category: Text | list[Text] | None = None
    tags: Tags = Field(default_factory=list)
    tags_match: Literal["all", "any"] = "all"
    date_range: DateRange | None = None
    custom_filters: dict[str, Any] = Field(default_factory=dict)
    kind: MemoryKind | None = None
    importance: Importance | None = None
    task_status: TaskStatus | None = None
    session_id: Text | None = None
    min_access_count: int | None = Field(default=None, ge=0, lt=2**63)
    archived: bool | None = False

    def are_narrowing(self) -> bool:
        """Return whether they leave out any memory that is not archived."""
        filters = self.model_dump(exclude_defaults=True, exclude={"tags_match"})
        if filters.get("archived", False) is None:
            filters.pop("archived")
        return any(value is not None and value != {} for value in filters.values())


class ScoreExplanation(Record, frozen=True):
    """How a hit came to its place, part by part. Which weights they have, ``evidence.py`` says.

    ``keyword`` is what its own words are worth, ``keyword_neighbours`` what is said around it in
    its session, ``keyword_session`` the whole session; ``vector`` and the next two the same of
    its meaning. ``subject`` is for a first word that was asked for, ``date`` for a time that was
    asked for, ``question`` what is taken off a memory that ends with a question. Their sum is
    ``evidence``.

    ``relative`` is the evidence beside that of the best hit, squared: this must reach ``gate``.
    Times ``strength``, how much of the query the best memory has at all, it is the ``similarity``;
    times ``freshness`` and ``access_boost``, the ``relevance_score``. ``cosine`` is that of its
    vector and the query's, seen from the middle of all vectors. ``has_kept_place`` tells that it
    stands where it does by its meaning alone: where no memory has half of the query's words, every
    fourth place is kept for that. ``variants`` has, for words of the query, what stands in the
    memory in their place: another form, its parts, or the word that was meant by a misspelt one.
    """

    keyword: float
    keyword_neighbours: float
    keyword_session: float
    vector: float
    vector_neighbours: float
    vector_session: float
    subject: float
    date: float
    question: float
    evidence: float
    cosine: float | None
    relative: float
    strength: float
    freshness: float
    access_boost: float
    gate: float
    has_kept_place: bool
    variants: dict[str, str] = Field(default_factory=dict)


class MemorySearchResult(Record, frozen=True):
    """One memory that a search found.

    ``similarity`` is 0 to 1; ``relevance_score`` is similarity × freshness × access boost,
    without an upper bound. ``confidence`` (0 to 1) means the same in every store: of the hits that
    have it, about that share is relevant. ``passed_gate`` tells a good answer from one
    that only fills up the limit. ``repeats`` are the ids of memories that say the same in the same
    words, and were left out for it. ``score`` takes the score apart, when that was asked for with
    ``explain``.
    """

    memory: Memory
    relevance_score: float = Field(ge=0.0)
    match_type: MatchType
    similarity: float = Field(default=0.0, ge=0.0, le=1.0)
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    passed_gate: bool = True
    repeats: list[str] = Field(default_factory=list)
    score: ScoreExplanation | None = None


class NearMiss(Record, frozen=True):
    """A memory that a search did not return, and why; with ``explain``, its score."""

    memory_id: str
    content: str
    similarity: float
    reason: str
    score: ScoreExplanation | None = None


class SearchMetadata(Record, frozen=True):
    """How a search went: its time, what it was limited to, and why it found little.

    ``reason`` is ``None`` when it returned as many as were asked for, else one of ``empty_query``,
    ``nothing_stored``, ``filtered_out``, ``no_match``, ``below_floor``, ``few_matches``,
    ``below_similarity_threshold`` and ``below_confidence``; ``explanation`` says it in words.
    Times are milliseconds.
    """

    query_time: UtcDatetime
    processing_time_ms: float
    keyword_search_time_ms: float = 0.0
    embedding_time_ms: float = 0.0
    vector_search_time_ms: float = 0.0
    filters_applied: dict[str, Any] = Field(default_factory=dict)
    backend: str = "file"
    degraded: list[str] = Field(default_factory=list)
    reason: str | None = None
    explanation: str | None = None
    near_misses: list[NearMiss] = Field(default_factory=list)


class SearchResults(Record, Sequence[MemorySearchResult], frozen=True):
    """What a search returns: a sequence of hits, best first, and how it went.

    ``total_count`` is how many memories matched, of which the hits are the first ``limit``; it
    stops counting at the number of candidates that a search looks at, and is never less than the
    hits: those found for their neighbours alone count as well.
    """

    results: list[MemorySearchResult]
    total_count: int
    search_metadata: SearchMetadata

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[MemorySearchResult]:  # type: ignore[override]
        return iter(self.results)

    @overload
    def __getitem__(self, index: int) -> MemorySearchResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[MemorySearchResult]: ...
    def __getitem__(self, index: int | slice) -> MemorySearchResult | list[MemorySearchResult]:
        return self.results[index]
