"""The searches of one agent's file, and the access counts that they update."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.models.enums import MatchType
from agent_memory.models.excerpt import SearchFilterValues
from agent_memory.models.memory import Memory
from agent_memory.models.relevance import relevance_score
from agent_memory.models.search import (
    MemorySearchResult,
    NearMiss,
    ScoreExplanation,
    SearchFilters,
    SearchMetadata,
    SearchResults,
)
from agent_memory.services.search.pipeline import completed, find
from agent_memory.services.search.ranking import RankedHit, RankingRates
from agent_memory.services.search.request import QueryMeaning, SearchRequest
from agent_memory.services.search.results import Finds, ResultTypes, results_of
from agent_memory.services.search.terms import with_terms
from agent_memory.services.unit_of_work import UnitOfWork
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import AmongIds, filter_of, scope_of

MOST_LEADS: Final = 5
"""Words of a hit to search for next."""


class SearchService:
    """Finds memories in a file. Threads may share it."""

    def __init__(self, engine: Engine, unit_of_work: UnitOfWork) -> None:
        self._engine = engine
        self._unit_of_work = unit_of_work
        self._rows_read: dict[str, int] = {}
        """The rows of the memories that the last search read, by their ids."""

    def search(
        self, request: SearchRequest, meaning: QueryMeaning, *, now: datetime
    ) -> SearchResults:
        """Find the memories that answer a request, best first, and report how the search went."""
        started = time.perf_counter()

        def look() -> Finds:
            whole = request._replace(now=now, vector=meaning.vector)
            whole = completed(self._engine, whole, self._unit_of_work.accesses())
            outcome = find(self._engine, whole)
            memories = self._engine.memories.get_many(outcome.row_ids())
            reasons = self._engine.scratchpad.reasons([hit.row_id for hit in outcome.hits])
            return Finds(whole, outcome, memories, reasons)

        finds = self._engine.lookup(look)
        self._rows_read = {memory.id: row_id for row_id, memory in finds.memories.items()}
        milliseconds = meaning.milliseconds + (time.perf_counter() - started) * 1000
        results: SearchResults = results_of(finds, meaning, _MODELS, milliseconds=milliseconds)
        return results

    def with_terms(self, request: SearchRequest, *, now: datetime) -> SearchRequest:
        """Add the terms of its query to a request, as ``search`` does otherwise."""
        whole = request._replace(now=now)
        return self._engine.lookup(
            lambda: with_terms(self._engine, completed(self._engine, whole, {}))
        )

    def follow_up(self, request: SearchRequest, text: str) -> str:
        """Return the query that a hit's text leads to, or an empty string if it leads nowhere.

        It consists of the query's words that the text does not contain, and of the text's own
        rarest words that also occur elsewhere: the name of somebody's sister, when the query asks
        where that sister lives.
        """
        scope = scope_of(request.filters, agent_id=self._engine.agent_id)
        asked = self._engine.keywords.terms_of(request.query)
        stated = self._engine.keywords.terms_of(text)
        known = {term.word for term in asked}
        wanted = [term.word for term in stated if term.word not in known]
        counts = self._engine.lookup(lambda: self._engine.keywords.vocabulary(wanted, (), scope))
        covered = {term.word for term in stated}
        rarest = sorted((counts[term.word], term.written) for term in stated if term.word in counts)
        leads = [written for count, written in rarest if count > 1][:MOST_LEADS]
        left = [term.written for term in asked if term.word not in covered]
        return " ".join([*left, *leads]) if leads else ""

    def by_ids(
        self, memory_ids: Sequence[str], filters: SearchFilters | SearchFilterValues | None
    ) -> list[tuple[Memory, bool]]:
        """Return the memories with these ids that match the filters, in the order of the ids.

        With each comes whether a newer memory may correct it.
        """
        passing = filter_of(filters, agent_id=self._engine.agent_id).and_also(
            AmongIds(tuple(memory_ids))
        )
        with self._engine.read():
            memories = self._engine.memories.get_many(self._engine.memories.row_ids(passing))
            under_review = self._engine.reviews.newer_of(list(memories))
        by_id = {memory.id: (memory, row_id in under_review) for row_id, memory in memories.items()}
        return [by_id[memory_id] for memory_id in memory_ids if memory_id in by_id]

    def record_search(self, results: SearchResults, *, count_accesses: bool) -> None:
        """Record a search, its accesses and the memories it returned; waits for no write."""
        self._unit_of_work.record_search(
            [hit.memory.id for hit in results if hit.passed_gate] if count_accesses else [],
            [hit.memory.id for hit in results],
            milliseconds=results.search_metadata.processing_time_ms,
            now=results.search_metadata.query_time,
            rows_read=self._rows_read,
        )

    def record_recalls(self, memory_ids: Sequence[str]) -> None:
        """Record that memories were returned to the agent."""
        self._unit_of_work.record_recalls(memory_ids)


def _applied(filters: SearchFilters | SearchFilterValues | None) -> dict[str, Any]:
    if not isinstance(filters, SearchFilters) or not filters.model_fields_set:
        return {}
    return filters.model_dump(mode="json", exclude_defaults=True, exclude_none=True)


def _score(hit: RankedHit, strength: float, rates: RankingRates) -> ScoreExplanation:
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
        variants=dict(hit.candidate.variants),
    )


_MODELS: Final = ResultTypes(
    SearchResults.model_construct,
    MemorySearchResult.model_construct,
    SearchMetadata.model_construct,
    NearMiss.model_construct,
    match_type=MatchType,
    score=_score,
    applied=_applied,
)
