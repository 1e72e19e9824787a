"""Turns what a search found into what users get: models, or plain tuples with the same names."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agent_memory.models.excerpt import (
    HitValues,
    MemoryExcerpt,
    NearMissValues,
    SearchFilterValues,
    SearchMetadataValues,
    SearchResultValues,
)
from agent_memory.services.search.pipeline import SearchOutcome
from agent_memory.services.search.ranking import RankedHit, RankingRates, confidence
from agent_memory.services.search.request import QueryMeaning, SearchRequest

if TYPE_CHECKING:
    from agent_memory.models.columns import MemoryValues
    from agent_memory.models.memory import Memory
    from agent_memory.models.search import SearchFilters
else:
    Memory = MemoryValues = SearchFilters = object


class ResultTypes(NamedTuple):
    """The constructors of the parts of a result, with the fields of ``SearchResults``.

    ``score`` explains a hit's score, and ``applied`` lists the filters that were set.
    """

    results: Callable[..., Any]
    hit: Callable[..., Any]
    metadata: Callable[..., Any]
    near_miss: Callable[..., Any]
    match_type: Callable[[str], str]
    score: Callable[[RankedHit, float, RankingRates], Any]
    applied: Callable[[SearchFilters | SearchFilterValues | None], dict[str, Any]]


PLAIN: ResultTypes = ResultTypes(
    SearchResultValues,
    HitValues,
    SearchMetadataValues,
    NearMissValues,
    match_type=str,
    score=lambda *_: None,
    applied=lambda filters: filters.applied() if isinstance(filters, SearchFilterValues) else {},
)
"""Plain tuples, for searches without explanations."""


class Finds(NamedTuple):
    """What a search found; ``memories`` has the memories of ``outcome.row_ids()``."""

    request: SearchRequest
    outcome: SearchOutcome
    memories: Mapping[int, Memory] | Mapping[int, MemoryExcerpt] | Mapping[int, MemoryValues]
    scratchpad_reasons: Mapping[int, str]


def results_of(
    finds: Finds, meaning: QueryMeaning, types: ResultTypes, *, milliseconds: float
) -> Any:  # noqa: ANN401 - what ``types`` makes
    """Build the results that users get."""
    request, outcome, memories, scratchpad_reasons = finds
    return types.results(
        results=[
            types.hit(
                memory=memories[hit.row_id],
                relevance_score=hit.relevance,
                similarity=hit.similarity,
                confidence=confidence(hit.similarity, by_meaning=outcome.by_meaning),
                passed_gate=hit.passed_gate and not outcome.is_below_floor,
                repeats=[memories[row_id].id for row_id in outcome.repeats.get(hit.row_id, ())],
                under_review=hit.row_id in outcome.under_review,
                match_type=types.match_type(_match_type(hit, scratchpad_reasons.get(hit.row_id))),
                score=types.score(hit, outcome.strength, request.rates)
                if request.explain
                else None,
            )
            for hit in outcome.hits
        ],
        total_count=max(outcome.total_count, len(outcome.hits)),
        search_metadata=types.metadata(
            query_time=request.moment,
            processing_time_ms=milliseconds,
            keyword_search_time_ms=outcome.keyword_ms,
            embedding_time_ms=meaning.milliseconds,
            vector_search_time_ms=outcome.vector_ms,
            filters_applied=types.applied(request.filters),
            backend="vector" if outcome.by_meaning else "file",
            degraded=[*meaning.degraded, *outcome.degraded],
            reason=outcome.reason,
            explanation=outcome.explanation,
            near_misses=[
                types.near_miss(
                    memory_id=memories[hit.row_id].id,
                    content=memories[hit.row_id].content,
                    similarity=hit.similarity,
                    reason=reason,
                    score=types.score(hit, outcome.strength, request.rates)
                    if request.explain
                    else None,
                )
                for hit, reason in outcome.near
            ],
        ),
    )


def _match_type(hit: RankedHit, scratchpad_reason: str | None) -> str:
    """Label a hit as ``MatchType`` does: in the scratchpad as new, promoted there, or found."""
    if scratchpad_reason is None:
        return "keyword" if hit.by_words else "vector"
    return "scratchpad" if scratchpad_reason == "stored" else "promoted"
