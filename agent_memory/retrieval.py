"""The steps of a search over the file: terms, candidates, their surroundings, ranking, reasons."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from agent_memory import keyword, ranking, records, vectors
from agent_memory.connection import Database
from agent_memory.filters import Condition
from agent_memory.models.memory import Memory
from agent_memory.models.search import (
    MemorySearchResult,
    NearMiss,
    SearchFilters,
    SearchMetadata,
    SearchResults,
)
from agent_memory.nearest import Nearest, QueryMeaning, QueryVector, nearest
from agent_memory.ranking import Candidate, Ranked, Ranking, Rates, Space
from agent_memory.records import Signals
from agent_memory.times import age_in_days, read_stored_time
from agent_memory.vocabulary import MatchType

BY_HAND: Final = "sqlite3"
"""What the file says for the session of a row that another program inserted."""
CANDIDATES: Final = 256
"""Memories that are ranked: the best by FTS5's measure."""
SURROUNDED: Final = 100
"""The best of them, whose neighbours become candidates too."""
SURROUNDED_BY_MEANING: Final = 30
"""The same of those whose vectors are nearest."""
NEAR_MISSES: Final = 3


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search found: the hits in order, how many matched, and, if few, why.

    ``reason`` and ``explanation`` are those of ``SearchMetadata``; ``near`` are the best that did
    not make it, each with its reason; ``degraded`` says what was not looked at.
    """

    hits: list[Ranked]
    total_count: int
    keyword_ms: float
    vector_ms: float = 0.0
    by_meaning: bool = False
    reason: str | None = None
    explanation: str | None = None
    near: Sequence[tuple[Ranked, str]] = ()
    degraded: Sequence[str] = ()

    def seqs(self) -> list[int]:
        """Return the rows of all hits and near misses."""
        return [hit.seq for hit in self.hits] + [hit.seq for hit, _ in self.near]


@dataclass(frozen=True, slots=True)
class Request:
    """What is searched for, and how.

    ``scope`` is the part of ``condition`` that says whose memories may be seen at all, in near
    misses too. ``threshold`` is the least similarity (0 to 1) that the caller accepts, if any;
    ``uncounted`` has accesses that are not in the file yet, by row number; ``meaning`` is the
    query's vector, if it is searched for by meaning too.
    """

    query: str
    condition: Condition
    scope: Condition
    limit: int
    threshold: float | None
    rates: Rates
    now: datetime
    uncounted: Mapping[int, int]
    meaning: QueryVector | None = None


@dataclass(slots=True)
class _Gathered:
    """What was ranked, how, and what was not looked at."""

    ranking: Ranking
    degraded: list[str]
    vector_ms: float = 0.0


def find(database: Database, request: Request) -> Findings:
    """Search. Must run inside ``database.read()``."""
    started = time.perf_counter()
    request, stale = _current(database, request)
    terms = keyword.terms_of(database, request.query)
    if not terms and request.meaning is None:
        explanation = "the query has no letter or digit to search for"
        return Findings([], 0, _ms_since(started), reason="empty_query", explanation=explanation)
    gathered = _ranked(database, terms, request)
    found = gathered.ranking
    result = Findings(
        [],
        total_count=sum(hit.matches for hit in found.order),
        keyword_ms=_ms_since(started) - gathered.vector_ms,
        vector_ms=gathered.vector_ms,
        by_meaning=request.meaning is not None,
        degraded=[*stale, *gathered.degraded],
    )
    if found.order and found.strength < ranking.STRENGTH_FLOOR:
        least = f"{ranking.STRENGTH_FLOOR:.0%} of the query's words, weighed by rarity"
        fault, explanation = f"has less than {least}", f"no memory has even {least}"
        if request.meaning is not None:
            fault, explanation = f"{fault}, and another meaning", f"{explanation}, or its meaning"
        near = [(hit, fault) for hit in found.order[:NEAR_MISSES]]
        return replace(result, reason="below_floor", explanation=explanation, near=near)
    least_similarity = request.threshold or 0.0
    hits = [hit for hit in found.order if hit.similarity >= least_similarity]
    result = replace(result, hits=hits[: request.limit])
    if len(result.hits) >= request.limit:
        return result
    if len(found.order) > len(hits):
        return _below_threshold(result, found, least_similarity)
    return _explained(database, terms, request, result)


def _below_threshold(result: Findings, found: Ranking, threshold: float) -> Findings:
    """Say that the caller's threshold cut hits off."""
    cut = [hit for hit in found.order if hit.similarity < threshold]
    return replace(
        result,
        reason="few_matches" if result.hits else "below_similarity_threshold",
        explanation=f"{len(cut)} more matched, below the similarity threshold {threshold}",
        near=[
            (hit, f"similarity {hit.similarity:.2f} is below the threshold {threshold:.2f}")
            for hit in cut[:NEAR_MISSES]
        ],
    )


def _explained(
    database: Database, terms: Sequence[keyword.Term], request: Request, result: Findings
) -> Findings:
    """Say why there are fewer hits than were asked for: the filters, the words, or no memories."""
    if request.condition.is_narrowing or not result.hits:
        anything = _ranked(database, terms, replace(request, condition=request.scope)).ranking
        kept = {hit.seq for hit in result.hits}
        left_out = [hit for hit in anything.order if hit.matches and hit.seq not in kept]
        if left_out:
            why = "is left out by the filters" if request.condition.is_narrowing else "is archived"
            return replace(
                result,
                reason="few_matches" if result.hits else "filtered_out",
                explanation=f"of what matches the query, {len(left_out)} more: each {why}",
                near=[(hit, why) for hit in left_out[:NEAR_MISSES]],
            )
    if result.hits:
        words = f"only {len(result.hits)} memories match, or stand beside one that does"
        return replace(result, reason="few_matches", explanation=words)
    if database.row("SELECT 1 FROM memories LIMIT 1") is None:
        words = "this agent has no memories yet"
        return replace(result, reason="nothing_stored", explanation=words)
    sought = ", ".join(term.written for term in terms[:10])
    whose = " of this user, run or agent" if request.scope.is_narrowing else ""
    words = f"no memory{whose} has any of these words or their forms: {sought}"
    return replace(result, reason="no_match", explanation=words)


def results_of(
    findings: Findings,
    memories: Mapping[int, Memory],
    scratchpad_reasons: Mapping[int, str],
    *,
    filters: SearchFilters,
    now: datetime,
    milliseconds: float,
    meaning: QueryMeaning,
) -> SearchResults:
    """Make the models of what was found; ``memories`` has those of ``findings.seqs()``."""
    return SearchResults.model_construct(
        results=[
            MemorySearchResult.model_construct(
                memory=memories[hit.seq],
                relevance_score=hit.relevance,
                similarity=hit.similarity,
                passed_gate=hit.passed_gate,
                match_type=_match_type(hit, scratchpad_reasons.get(hit.seq)),
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
                    memory_id=memories[hit.seq].id,
                    content=memories[hit.seq].content,
                    similarity=hit.similarity,
                    reason=reason,
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


def _current(database: Database, request: Request) -> tuple[Request, list[str]]:
    """Drop the query's vector when its model went since it was made; say so."""
    if request.meaning is None:
        return request, []
    asked = request.meaning
    for model in vectors.models(database):
        if model.model_id == asked.model.model_id and model.state == "active":
            return replace(request, meaning=QueryVector(model, asked.data)), []
    reason = "searched by keyword only: the embedding model was changed during this search"
    return replace(request, meaning=None), [reason]


def _ranked(database: Database, terms: Sequence[keyword.Term], request: Request) -> _Gathered:
    """Gather the candidates with all that ranking needs of them, and rank them."""
    condition = request.condition
    frequencies = keyword.frequencies(database, terms)
    best, common = keyword.candidates(
        database, terms, frequencies, condition, needed=request.limit, limit=CANDIDATES
    )
    degraded = [f"not every memory with {term.written!r} was looked at" for term in common]
    started = time.perf_counter()
    near = _nearest(database, request)
    vector_ms = _ms_since(started)
    if near.degraded:
        degraded.append(near.degraded)
    chosen = list(dict.fromkeys([*best, *near.cosines]))
    if not chosen:
        return _Gathered(Ranking([], 0.0), degraded, vector_ms)
    signals = {found.seq: found for found in records.signals(database, chosen, condition)}
    neighbours = records.neighbours(database, chosen)
    centers = [*best[:SURROUNDED], *_first(near.cosines, SURROUNDED_BY_MEANING)]
    around = {
        seq for center in centers for seq in neighbours.get(center, {}).values()
    } - signals.keys()
    signals.update(
        (found.seq, found) for found in records.signals(database, list(around), condition)
    )
    for seq in around & signals.keys():
        neighbours[seq] = {}
    _complete(neighbours)
    words = keyword.words(database, list(signals), terms)
    cosines = _cosines(database, request, near, list(signals))
    candidates = [
        _candidate(found, words[seq], neighbours.get(seq, {}), cosines.get(seq), request)
        for seq, found in signals.items()
    ]
    size = records.last_seq(database)
    space = _space(request.meaning)
    ranked = ranking.rank(candidates, frequencies, size, request.rates, space)
    return _Gathered(ranked, degraded, vector_ms)


def _nearest(database: Database, request: Request) -> Nearest:
    if request.meaning is None:
        return Nearest({})
    return nearest(database, request.meaning, request.condition)


def _first(cosines: Mapping[int, float], count: int) -> list[int]:
    return heapq.nlargest(count, cosines, key=cosines.__getitem__)


def _cosines(
    database: Database, request: Request, near: Nearest, seqs: Sequence[int]
) -> Mapping[int, float]:
    """Return the cosines of all candidates: those found by their words have one too."""
    if request.meaning is None:
        return {}
    others = [seq for seq in seqs if seq not in near.cosines]
    model_id = request.meaning.model.model_id
    return near.cosines | vectors.cosines(database, model_id, others, request.meaning.data)


def _space(meaning: QueryVector | None) -> Space | None:
    if meaning is None:
        return None
    return Space(meaning.model.vector_weight, meaning.model.similarity_floor or 0.0)


def _complete(neighbours: dict[int, dict[int, int]]) -> None:
    """Make nearness mutual: a memory found only as a neighbour has the finder for a neighbour."""
    for seq, places in list(neighbours.items()):
        for distance, other in places.items():
            if other in neighbours:
                neighbours[other].setdefault(-distance, seq)


def _candidate(
    found: Signals,
    words: keyword.Words,
    neighbours: Mapping[int, int],
    cosine: float | None,
    request: Request,
) -> Candidate:
    return Candidate(
        seq=found.seq,
        # Rows written by hand are of no common session, though they say the same word there.
        session=f"{BY_HAND} {found.seq}" if found.session == BY_HAND else found.session,
        counts=words.counts,
        length=words.length,
        age_days=age_in_days(read_stored_time(found.timestamp), request.now),
        access_count=found.access_count + request.uncounted.get(found.seq, 0),
        neighbours=neighbours,
        cosine=cosine,
    )


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
