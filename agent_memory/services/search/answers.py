"""What a search found, as the models that users get."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent_memory.models.enums import MatchType
from agent_memory.models.memory import Memory, relevance_score
from agent_memory.models.search import (
    MemorySearchResult,
    NearMiss,
    ScoreExplanation,
    SearchFilters,
    SearchMetadata,
    SearchResults,
)
from agent_memory.services.search.pipeline import Findings
from agent_memory.services.search.ranking import Ranked, Rates
from agent_memory.services.search.request import QueryMeaning


def results_of(
    findings: Findings,
    memories: Mapping[int, Memory],
    scratchpad_reasons: Mapping[int, str],
    *,
    filters: SearchFilters,
    now: datetime,
    milliseconds: float,
    meaning: QueryMeaning,
    rates: Rates,
    explain: bool,
) -> SearchResults:
    """Make the models of what was found; ``memories`` has those of ``findings.seqs()``."""
    return SearchResults.model_construct(
        results=[
            MemorySearchResult.model_construct(
                memory=memories[hit.row_id],
                relevance_score=hit.relevance,
                similarity=hit.similarity,
                passed_gate=hit.passed_gate,
                repeats=[memories[row_id].id for row_id in findings.repeats.get(hit.row_id, ())],
                match_type=_match_type(hit, scratchpad_reasons.get(hit.row_id)),
                score=_score(hit, findings.strength, rates) if explain else None,
            )
            for hit in findings.hits
        ],
        total_count=findings.total_count,
        search_metadata=SearchMetadata.model_construct(
            query_time=now,
            processing_time_ms=milliseconds,
            keyword_search_time_ms=findings.keyword_ms,
            embedding_time_ms=meaning.milliseconds,
            vector_search_time_ms=findings.vector_ms,
            filters_applied=_applied(filters),
            backend="vector" if findings.by_meaning else "file",
            degraded=[*meaning.degraded, *findings.degraded],
            reason=findings.reason,
            explanation=findings.explanation,
            near_misses=[
                NearMiss.model_construct(
                    memory_id=memories[hit.row_id].id,
                    content=memories[hit.row_id].content,
                    similarity=hit.similarity,
                    reason=reason,
                    score=_score(hit, findings.strength, rates) if explain else None,
                )
                for hit, reason in findings.near
            ],
        ),
    )


def _applied(filters: SearchFilters) -> dict[str, Any]:
    """Return the filters that were given, as JSON data."""
    if not filters.model_fields_set:
        return {}
    return filters.model_dump(mode="json", exclude_defaults=True, exclude_none=True)


def _match_type(hit: Ranked, scratchpad_reason: str | None) -> MatchType:
    """Label a hit: in the scratchpad because it is new, promoted there, or found."""
    if scratchpad_reason is None:
        return MatchType.KEYWORD if hit.by_words else MatchType.VECTOR
    return MatchType.SCRATCHPAD if scratchpad_reason == "stored" else MatchType.PROMOTED


def _score(hit: Ranked, strength: float, rates: Rates) -> ScoreExplanation:
    """Take a hit's score apart."""
    evidence = hit.evidence
    return ScoreExplanation.model_construct(
        keyword=evidence.words,
        keyword_neighbours=evidence.words_around,
        keyword_session=evidence.words_of_session,
        vector=evidence.meaning,
        vector_neighbours=evidence.meaning_around,
        vector_session=evidence.meaning_of_session,
        subject=evidence.subject,
        date=evidence.date,
        question=evidence.question,
        evidence=evidence.total,
        cosine=hit.candidate.cosine,
        relative=hit.relative,
        strength=strength,
        freshness=relevance_score(
            1.0, age_days=hit.candidate.age_days, access_count=0, decay_rate=rates.decay
        ),
        access_boost=relevance_score(
            1.0, age_days=0, access_count=hit.candidate.access_count, boost_rate=rates.boost
        ),
        gate=hit.gate,
        has_kept_place=hit.has_kept_place,
    )
