"""The pipeline of a search: candidates, ranking, removal of repeats, reasons for few hits."""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.models.owner import Owner
from agent_memory.services.replacements import newer_of_all, newer_rows
from agent_memory.services.search import ranking
from agent_memory.services.search.candidates import Candidates, gather, own_words_of
from agent_memory.services.search.ranking import RankedHit, Ranking, confidence
from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.terms import with_terms
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import EVERYTHING, AmongIds, NoRepeatOf, filter_of, scope_of
from agent_memory.storage.records import QueryVector
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory.models.excerpt import SearchFilterValues
    from agent_memory.models.search import SearchFilters

NEAR_MISSES: Final = 3
_LEAST_SHOWN: Final = 0.005
"""The smallest share of a query that is not reported as "0%"."""
REPEATS_SOUGHT: Final = 20
"""The minimum number of top results that are checked for repeats."""


class SearchOutcome(NamedTuple):
    """What a search found: the hits in order, how many matched, and, if there are few, why.

    ``reason`` and ``explanation`` are those of ``SearchMetadata``; ``near`` has the best candidates
    that were not accepted, each with its reason; ``degraded`` lists what was not searched;
    ``repeats`` has, by the row of a hit, the rows that say the same and were left out;
    ``under_review`` has the rows that a newer memory may correct; ``strength`` is how good the best
    answer is overall (0 to 1), and ``is_below_floor`` whether that is too little for an answer.
    """

    hits: list[RankedHit]
    total_count: int
    keyword_ms: float
    vector_ms: float = 0.0
    by_meaning: bool = False
    strength: float = 0.0
    is_below_floor: bool = False
    reason: str | None = None
    explanation: str | None = None
    near: Sequence[tuple[RankedHit, str]] = ()
    degraded: Sequence[str] = ()
    repeats: Mapping[int, Sequence[int]] = MappingProxyType({})
    under_review: Collection[int] = ()

    def row_ids(self) -> list[int]:
        """Return the rows of all hits, of their repeats, and of near misses."""
        repeats = [row_id for row_ids in self.repeats.values() for row_id in row_ids]
        return [hit.row_id for hit in self.hits] + repeats + [hit.row_id for hit, _ in self.near]


def completed(
    engine: Engine, request: SearchRequest, uncounted: Mapping[int, int]
) -> SearchRequest:
    """Add to a request what only the store knows. Must run inside ``engine.read()``."""
    return request._replace(
        passing=filter_of(request.filters, agent_id=engine.agent_id),
        scope=scope_of(request.filters, agent_id=engine.agent_id),
        owner=_owner_among_others(engine, request.filters),
        uncounted=uncounted,
    )


def _owner_among_others(
    engine: Engine, filters: "SearchFilters | SearchFilterValues | None"
) -> Owner | None:
    """Return the owner to whose memories the search is limited; ``None`` if nobody else has any."""
    if filters is None or filters.user_id is None:
        return None
    owner = Owner(filters.user_id, filters.run_id)
    return owner if engine.memories.has_others(owner) else None


def find(engine: Engine, request: SearchRequest) -> SearchOutcome:
    """Search. Must run inside ``engine.read()``."""
    started = time.perf_counter()
    request, stale = _with_centered_vector(engine, request)
    request = request if request.terms else with_terms(engine, request)
    request = request._replace(own_words=own_words_of(engine, request))
    if not request.terms and request.vector is None:
        explanation = "the query has no letters or digits to search for"
        return SearchOutcome(
            [], 0, _ms_since(started), reason="empty_query", explanation=explanation
        )
    ranked, gathered = _ranked(engine, request)
    result = SearchOutcome(
        [],
        total_count=ranked.matches,
        keyword_ms=_ms_since(started) - gathered.vector_ms,
        vector_ms=gathered.vector_ms,
        by_meaning=request.vector is not None,
        strength=ranked.strength,
        is_below_floor=bool(ranked.order) and ranked.strength < ranked.floor,
        degraded=[*stale, *gathered.degraded],
    )
    if result.is_below_floor and not (request.has_no_floor and request.include_weak):
        return _below_floor(engine, request, result, ranked)
    hits, repeats = _without_repeats(engine, ranked, request)
    if len(hits) < request.limit and sum(map(len, repeats.values())) >= REPEATS_SOUGHT:
        # So many candidates were copies of a few: search again without those.
        kept = engine.fingerprints.of_rows([hit.row_id for hit in hits])
        others = request.passing.and_also(NoRepeatOf(tuple(kept.items())))
        ranked, _ = _ranked(engine, request._replace(passing=others))
        hits, more = _without_repeats(engine, ranked, request)
        repeats = {
            hit.row_id: [*repeats.get(hit.row_id, []), *more.get(hit.row_id, [])] for hit in hits
        }
    under_review = engine.reviews.newer_of([hit.row_id for hit in hits])
    result = result._replace(hits=hits, repeats=repeats, under_review=under_review)
    if len(hits) >= request.limit:
        return result
    cut = ranked.matches - sum(hit.matches for hit in _wanted(ranked, request))
    if cut:
        return _cut_off(request, result, ranked, cut)
    return _explained(engine, request, result)


def _wanted(ranked: Ranking, request: SearchRequest) -> Iterator[RankedHit]:
    """Yield the hits that the caller wants. Unwanted weak ones, the majority, are never built."""
    is_all = request.include_weak or ranked.passed is None
    order = ranked.order if is_all else islice(ranked.order, ranked.passed)
    return (hit for hit in order if _refusal(hit, request) is None)


def _refusal(hit: RankedHit, request: SearchRequest) -> str | None:
    """Return why the caller does not want a hit, or ``None``."""
    threshold, least = request.threshold or 0.0, request.min_confidence or 0.0
    if hit.similarity < threshold:
        return f"similarity {hit.similarity:.2f} is below the threshold {threshold:.2f}"
    share = confidence(hit.similarity, by_meaning=request.vector is not None) if least else 1.0
    if share < least:
        return f"confidence {share:.2f} is below {least:.2f}"
    if not (request.include_weak or hit.passed_gate):
        return f"{hit.relative:.2f} of the best hit's score, below the gate of {hit.gate:.2f}"
    return None


def _without_repeats(
    engine: Engine, ranked: Ranking, request: SearchRequest
) -> tuple[list[RankedHit], dict[int, list[int]]]:
    """Return the first hits that say different things, and the repeats of each, by row."""
    first: dict[int, RankedHit] = {}
    repeats: dict[int, list[int]] = {}
    limit = request.limit
    accepted = _wanted(ranked, request)
    while page := list(islice(accepted, max(limit, REPEATS_SOUGHT))):
        fingerprints = engine.fingerprints.of_rows([hit.row_id for hit in page])
        for hit in page:
            kept = first.setdefault(fingerprints[hit.row_id], hit)
            if kept is not hit:
                repeats.setdefault(kept.row_id, []).append(hit.row_id)
        if len(first) >= limit:
            break
    hits = list(first.values())[:limit]
    return hits, {hit.row_id: repeats[hit.row_id] for hit in hits if hit.row_id in repeats}


def _below_floor(
    engine: Engine,
    request: SearchRequest,
    result: SearchOutcome,
    ranked: Ranking,
) -> SearchOutcome:
    """Explain that the best candidate has too little of the query.

    If the filters left out a good enough answer, explain that instead.
    """
    if request.passing.is_narrowing:
        explained = _explained(engine, request, result)
        if explained.reason == "filtered_out":
            return explained
    floor = f"{ranked.floor:.0%}"
    asked = "the query's words, weighted by rarity"
    if request.vector is not None:
        asked += ", or is as close in meaning"
    why = f"matches {ranked.strength:.0%} of the query at most; an answer needs {floor}"
    if ranked.strength < _LEAST_SHOWN:  # a meaning that is not near enough counts as nothing
        why = f"matches too little of the query; an answer needs {floor}"
    return result._replace(
        reason="below_floor",
        explanation=f"no memory matches {floor} of {asked}",
        near=[(hit, why) for hit in ranked.order[:NEAR_MISSES]],
    )


def _cut_off(
    request: SearchRequest, result: SearchOutcome, ranked: Ranking, count: int
) -> SearchOutcome:
    """Explain that the remaining matches are below the caller's threshold, confidence or gate."""
    limits = [
        ("below_similarity_threshold", "the similarity threshold", request.threshold),
        ("below_confidence", "the confidence", request.min_confidence),
    ]
    asked = [(reason, f"{name} {least}") for reason, name, least in limits if least]
    words = " and ".join(name for _, name in asked) or "the gate"
    refused = ((hit, _refusal(hit, request)) for hit in ranked.order if hit.matches)
    cut = ((hit, why) for hit, why in refused if why is not None)
    return result._replace(
        reason=asked[0][0] if asked and not result.hits else "few_matches",
        explanation=f"{counted(count, 'more matched, but is', 'more matched, but are')} below"
        f" {words}",
        near=list(islice(cut, NEAR_MISSES)),
    )


def _explained(engine: Engine, request: SearchRequest, result: SearchOutcome) -> SearchOutcome:
    """Explain why there are fewer hits than the limit: filters, words, or an empty store."""
    if request.passing.is_narrowing or not result.hits:
        anything, _ = _ranked(engine, request._replace(passing=request.scope))
        kept = set(result.row_ids())
        is_answer = request.has_no_floor or anything.strength >= anything.floor
        left_out = [
            hit for hit in anything.order if is_answer and hit.matches and hit.row_id not in kept
        ]
        if left_out:
            why = "is excluded by the filters" if request.passing.is_narrowing else "is archived"
            more = counted(len(left_out), "more matches", "more match")
            return result._replace(
                reason="few_matches" if result.hits else "filtered_out",
                explanation=f"{more} the query: each {why}",
                near=[(hit, why) for hit in left_out[:NEAR_MISSES]],
            )
    if result.hits:
        matching = (
            "memory matches the query, or is next to one that does",
            "memories match the query, or are next to one that does",
        )
        words = f"only {counted(len(result.hits), *matching)}"
        return result._replace(reason="few_matches", explanation=words)
    # A user must not learn whether others have memories.
    if not request.scope.is_narrowing and engine.memories.is_empty():
        words = "this agent has no memories yet"
        return result._replace(reason="nothing_stored", explanation=words)
    sought = ", ".join(f"{term.written:.80}" for term in request.terms[:10])
    whose = " of this user, run or agent" if request.scope.is_narrowing else ""
    words = f"no memory{whose} contains any of these words or their forms: {sought}"
    if not request.terms:
        words = (
            f"no memory{whose} is close to the query in meaning, and it has no words to look for"
        )
    return result._replace(reason="no_match", explanation=words)


def _with_centered_vector(
    engine: Engine, request: SearchRequest
) -> tuple[SearchRequest, list[str]]:
    """Center the query's vector, as the vectors in the store are.

    It is dropped, with a warning, if its model was removed since it was made.
    """
    if request.vector is None:
        return request, []
    vector = request.vector
    for model in engine.embeddings.models():
        if model.model_id == vector.model.model_id and model.state == "active":
            within = EVERYTHING if request.owner is None else request.scope
            centered = engine.vectors.center(QueryVector(model, vector.data), within)
            return request._replace(vector=centered), []
    reason = "searched by keyword only: the embedding model was changed during this search"
    return request._replace(vector=None), [reason]


def _ranked(engine: Engine, request: SearchRequest) -> tuple[Ranking, Candidates]:
    gathered = gather(engine, request)
    ranked = ranking.rank(gathered.candidates, gathered.query, request.rates)
    under_review = [candidate.row_id for candidate in gathered.candidates]
    newer_of = newer_of_all(engine, under_review)
    if newer_of:
        order = _with_newer_first(engine, request, ranked.order, newer_of)
        ranked = ranked._replace(
            order=order, matches=sum(hit.matches for hit in order), passed=None
        )
    return ranked, gathered


def _with_newer_first(
    engine: Engine,
    request: SearchRequest,
    order: Sequence[RankedHit],
    newer_of: Mapping[int, int],
) -> list[RankedHit]:
    """Put the newer memory that may correct a memory under review before that memory.

    The newer one need not have a word of the query: "I moved to Rome", when the question is where
    somebody lives. It takes over the scores of the older one if those are better.
    """
    newer = engine.memories.get_many(list(newer_of.values()))
    ids = AmongIds(tuple(memory.id for memory in newer.values()))
    passed = set(engine.memories.ids(request.passing.and_also(ids)))
    hits = {hit.row_id: hit for hit in order}
    placed: dict[int, RankedHit] = {}
    for hit in order:
        chain = [row for row in newer_rows(newer_of, hit.row_id) if newer[row].id in passed]
        # Only its end: with 29 corrections before it, an exact match would be the 30th hit.
        row_id = chain[-1] if chain else None
        if row_id is not None and row_id not in placed:
            own = hits.get(row_id) or hit._replace(candidate=hit.candidate._replace(row_id=row_id))
            placed[row_id] = own._replace(
                relative=max(own.relative, hit.relative),
                similarity=max(own.similarity, hit.similarity),
                relevance=max(own.relevance, hit.relevance),
                gate=min(own.gate, hit.gate),
                matches=own.matches or hit.matches,
            )
        placed.setdefault(hit.row_id, hit)
    return list(placed.values())


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
