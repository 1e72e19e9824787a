"""The filters of a search, and its results."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from pydantic import Field, model_validator

from agent_memory.models.enums import Importance, MatchType, MemoryKind, MemoryType, TaskStatus
from agent_memory.models.field_types import Tags, Text, UtcDatetime, UtcEnd, UtcStart
from agent_memory.models.memory import Memory
from agent_memory.models.record import Record
from agent_memory.models.times import format_briefly


class DateRange(Record, extra="forbid", frozen=True):
    """From ``start`` to ``end``, both included, either optional. A date alone ends with its day."""

    start: UtcStart | None = None
    end: UtcEnd | None = None

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> "DateRange":
        if self.start is not None and self.end is not None and self.start > self.end:
            start, end = format_briefly(self.start), format_briefly(self.end)
            raise ValueError(f"no memory can be from {start} on and until {end}: swap the two")
        return self


class SearchFilters(Record, extra="forbid", frozen=True):
    """The conditions that a memory must meet to be returned at all.

    Every field that is given must match; with ``ids``, the memory must have one of them.
    ``custom_filters`` are conditions on ``metadata``: a mapping of key to value, or of key to
    ``{operator: value}`` with the operators ``eq, ne, gt, gte, lt, lte, in, nin, contains,
    icontains``; ``AND`` and ``OR`` take a list of such mappings, ``NOT`` takes one. A key with dots
    reaches into nested metadata. If a memory lacks a key, every condition on it is false except
    ``ne`` and ``nin``. ``archived`` is false by default; true matches archived memories only,
    ``None`` both.
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
        """Return whether the filters exclude any memory that is not archived."""
        filters = self.model_dump(exclude_defaults=True, exclude={"tags_match"})
        if filters.get("archived", False) is None:
            filters.pop("archived")
        return any(value is not None and value != {} for value in filters.values())


class ScoreExplanation(Record, frozen=True):
    """How a hit was scored, part by part. The weights are in ``services/search/scoring.py``.

    ``keyword`` is the score of the memory's own words, ``keyword_neighbours`` that of its
    neighbours in the session, ``keyword_session`` that of the whole session; ``vector`` and the
    next two are the same by meaning. ``subject`` is added if the query asks for the memory's first
    word, ``date`` if it asks for the memory's time; ``question`` is subtracted if the memory ends
    with a question. Their sum is ``evidence``.

    ``relative`` is the evidence as a share of the best hit's, squared; it must reach ``gate``.
    Multiplied by ``strength``, how much of the query the best memory covers at all, it is the
    ``similarity``; multiplied by ``freshness`` and ``access_boost`` as well, the
    ``relevance_score``. ``cosine`` is that of the memory's vector and the query's, measured from
    the mean of all vectors. ``has_kept_place`` means that the hit has its rank by meaning alone: if
    no memory has half of the query's words, every fourth place is reserved for such hits.
    ``variants`` maps words of the query to what the memory has in their place: another form, the
    parts of a word, or the correct spelling of a misspelt one.
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

    ``similarity`` is 0 to 1; ``relevance_score`` is similarity × freshness × access boost, without
    an upper bound. ``confidence`` (0 to 1) means the same in every store: of all hits with a given
    confidence, about that share is relevant. ``passed_gate`` tells a good answer from a hit that
    only fills up the limit. ``repeats`` are the ids of memories that were left out because they say
    the same in the same words. ``under_review`` warns that it may be out of date: a newer memory
    seems to contradict it, and nobody has decided yet (see ``reviews``). ``score`` is the breakdown
    that ``explain`` asks for.
    """

    memory: Memory
    relevance_score: float = Field(ge=0.0)
    match_type: MatchType
    similarity: float = Field(default=0.0, ge=0.0, le=1.0)
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    passed_gate: bool = True
    repeats: list[str] = Field(default_factory=list)
    under_review: bool = False
    score: ScoreExplanation | None = None


class NearMiss(Record, frozen=True):
    """A memory that a search did not return, and why; with ``explain``, its score."""

    memory_id: str
    content: str
    similarity: float
    reason: str
    score: ScoreExplanation | None = None


class SearchMetadata(Record, frozen=True):
    """How a search went: its timings, its filters, and why it found little.

    ``reason`` is ``None`` if the search returned as many hits as were asked for, else one of
    ``empty_query``, ``nothing_stored``, ``filtered_out``, ``no_match``, ``below_floor``,
    ``few_matches``, ``below_similarity_threshold`` and ``below_confidence``; ``explanation`` says
    it in words. Times are in milliseconds.
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
    """The result of a search: a sequence of hits, best first, and how the search went.

    ``total_count`` is the number of memories that matched, of which the hits are the first
    ``limit``. It counts no further than the number of candidates that a search considers, and is
    never less than the number of hits: those found only through their neighbours count as well.
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
