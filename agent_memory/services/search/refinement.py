"""Refines a search: other wordings, what the first hits lead to, and an external order.

Each is requested by the caller. None is part of a plain search: on chats, a second look gained
nothing, and it costs one more search per hit followed (see the guide of measurements).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from agent_memory.models.search import MemorySearchResult, SearchResults
from agent_memory.services.search.request import SearchRequest

RERANKED: Final = 25
"""The minimum number of hits that are given to a reranker; more if the limit is higher."""
LEADS: Final = 3
"""The number of first hits that are followed."""
RANK_OFFSET: Final = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009)."""

Look = Callable[[SearchRequest], SearchResults]
FollowUp = Callable[[SearchRequest, str], str]


def refined(request: SearchRequest, look: Look, follow_up: FollowUp) -> SearchResults:
    """Search as a request asks, with its wordings, hops and reranker.

    ``look`` is a plain search; ``follow_up`` returns the query that a memory's text leads to, or an
    empty string. Failures are reported in ``degraded`` and take no hit away.
    """
    limit = request.limit
    wide = request._replace(limit=max(limit, RERANKED) if request.reranker else limit)
    results = look(wide)
    if request.language_model is not None:
        results = _with_other_wordings(results, wide, look)
    if request.hops > 1:
        results = _with_second_look(results, wide, look, follow_up)
    if request.reranker is not None:
        results = _reranked(results, request)
    return results.model_copy(update={"results": results.results[:limit]})


def _with_other_wordings(
    results: SearchResults, request: SearchRequest, look: Look
) -> SearchResults:
    """Combine the results of a question and its other wordings by their ranks."""
    from agent_memory.extraction.query_expansion import expand_query  # noqa: PLC0415 - seldom used

    assert request.language_model is not None  # noqa: S101
    wordings, problems = expand_query(request.query, request.language_model)
    lists = [results, *(look(request._replace(query=wording)) for wording in wordings)]
    worth: dict[str, float] = defaultdict(float)
    hits: dict[str, MemorySearchResult] = {}
    for of_wording in lists:
        for place, hit in enumerate(of_wording, start=1):
            worth[hit.memory.id] += 1 / (RANK_OFFSET + place)
            hits.setdefault(hit.memory.id, hit)
    order = sorted(hits, key=lambda memory_id: -worth[memory_id])
    notes = [f"other wordings of the query: {problem}" for problem in problems]
    return _of_hits(results, [hits[memory_id] for memory_id in order], notes)


def _with_second_look(
    results: SearchResults, request: SearchRequest, look: Look, follow_up: FollowUp
) -> SearchResults:
    """Replace hits below the gate with what the first good hits lead to."""
    good = [hit for hit in results if hit.passed_gate]
    queries = [follow_up(request, hit.memory.content) for hit in good[:LEADS]]
    leads = [
        hit
        for query in queries
        if query
        for hit in look(request._replace(query=query))
        if hit.passed_gate
    ]
    leads.sort(key=lambda hit: -hit.similarity)
    weak = [hit for hit in results if not hit.passed_gate]
    hits: dict[str, MemorySearchResult] = {}
    for hit in [*good, *leads, *weak]:
        hits.setdefault(hit.memory.id, hit)
    return _of_hits(results, list(hits.values()))


def _reranked(results: SearchResults, request: SearchRequest) -> SearchResults:
    """Sort hits by a reranker's scores, best first."""
    assert request.reranker is not None  # noqa: S101
    hits = list(results)
    try:
        answer: Iterable[float] = request.reranker(
            request.query, [hit.memory.content for hit in hits]
        )
        scores = [float(score) for score in answer]
        problem = _fault(scores, hits)
    except Exception as error:  # noqa: BLE001 - somebody else's code may raise anything
        scores, problem = [], f"{type(error).__name__}: {error!s:.200}"
    if problem is not None:
        return _of_hits(results, hits, [f"not reranked: {problem}"])
    places = sorted(range(len(hits)), key=lambda place: (-scores[place], place))
    return _of_hits(results, [hits[place] for place in places])


def _fault(scores: Sequence[float], hits: Sequence[MemorySearchResult]) -> str | None:
    if len(scores) != len(hits):
        return f"the reranker returned {len(scores)} scores for {len(hits)} texts"
    if any(math.isnan(score) for score in scores):
        return "the reranker returned a score that is not a number"
    return None


def _of_hits(
    results: SearchResults, hits: Sequence[MemorySearchResult], notes: Sequence[str] = ()
) -> SearchResults:
    """Return the results with other hits, and with notes about failures."""
    metadata = results.search_metadata
    updated = metadata.model_copy(update={"degraded": [*metadata.degraded, *notes]})
    return results.model_copy(
        update={
            "results": list(hits),
            "total_count": max(results.total_count, len(hits)),
            "search_metadata": updated,
        }
    )
