"""The candidates of a search, with all that ranking needs to know of them."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_memory.models.embedding_traits import DEFAULT_SIMILARITY_FLOOR
from agent_memory.models.times import age_in_days, read_stored_time
from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.scoring import Candidate, Query, Space
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import NearestVectors, QueryVector, Signals, Term, WordCounts
from agent_memory.text.dates import date_spans

BY_HAND: Final = "sqlite3"
"""What the file says for the session of a row that another program inserted."""
MATCHING: Final = 256
"""Memories that are ranked for their words: the best by FTS5's measure."""
DATED: Final = 50
"""The same for being of a time that is asked for: the newest."""
SURROUNDED: Final = 64
"""The best by words, whose neighbours become candidates too."""
SURROUNDED_BY_MEANING: Final = 24
"""The same of those whose vectors are nearest."""
_WORDS: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates, what is known of the query, what was not looked at, and how long it took.

    ``vector_ms`` is the part of the time that went into finding the nearest vectors.
    """

    candidates: list[Candidate]
    query: Query
    degraded: list[str]
    vector_ms: float


def gather(engine: Engine, request: SearchRequest) -> Candidates:
    """Gather the candidates of a search. Must run inside ``engine.read()``."""
    frequencies = engine.keywords.frequencies(request.terms)
    best, common = engine.keywords.candidates(
        request.terms, frequencies, request.passing, needed=request.limit, limit=MATCHING
    )
    degraded = [f"not every memory with {term.written!r} was looked at" for term in common]
    started = time.perf_counter()
    near = _nearest(engine, request)
    vector_ms = (time.perf_counter() - started) * 1000
    if near.degraded:
        degraded.append(near.degraded)
    dates = date_spans(request.query, request.moment.date())
    dated = engine.memories.between(request.passing, dates, limit=DATED)
    said = {word.lower() for span in dates for word in _WORDS.findall(span.phrase)}
    query = Query(
        frequencies=frequencies,
        corpus_size=engine.memories.last_row_id(),
        names=_places(request.terms, lambda term: term.is_name),
        spans=dates,
        dated=_places(request.terms, lambda term: term.written.lower() in said),
        space=_space(request.vector),
    )
    chosen = list(dict.fromkeys([*best, *near.cosines, *dated]))
    centers = [*best[:SURROUNDED], *_first(near.cosines, SURROUNDED_BY_MEANING)]
    candidates = _candidates(engine, request, chosen, centers, near)
    return Candidates(candidates, query, degraded, vector_ms)


def _places(terms: Sequence[Term], has: Callable[[Term], bool]) -> frozenset[int]:
    return frozenset(place for place, term in enumerate(terms) if has(term))


def _nearest(engine: Engine, request: SearchRequest) -> NearestVectors:
    if request.vector is None:
        return NearestVectors({})
    return engine.vectors.nearest(request.vector, request.passing)


def _first(cosines: Mapping[int, float], count: int) -> list[int]:
    return heapq.nlargest(count, cosines, key=cosines.__getitem__)


def _space(meaning: QueryVector | None) -> Space | None:
    if meaning is None:
        return None
    floor = meaning.model.similarity_floor
    return Space(meaning.model.vector_weight, DEFAULT_SIMILARITY_FLOOR if floor is None else floor)


def _candidates(
    engine: Engine,
    request: SearchRequest,
    chosen: Sequence[int],
    centers: Sequence[int],
    near: NearestVectors,
) -> list[Candidate]:
    """Describe the rows that were chosen, and the neighbours of some of them."""
    signals = {row.row_id: row for row in engine.memories.ranking_signals(chosen, request.passing)}
    neighbours = engine.memories.neighbours(chosen)
    around = {
        row_id for center in centers for row_id in neighbours.get(center, {}).values()
    } - signals.keys()
    signals.update(
        (row.row_id, row) for row in engine.memories.ranking_signals(list(around), request.passing)
    )
    for row_id in around & signals.keys():
        neighbours[row_id] = {}
    _complete(neighbours)
    words = engine.keywords.words(list(signals), request.terms)
    cosines = _cosines(engine, request, near, list(signals))
    return [
        _candidate(row, words[row_id], neighbours.get(row_id, {}), cosines.get(row_id), request)
        for row_id, row in signals.items()
    ]


def _cosines(
    engine: Engine, request: SearchRequest, near: NearestVectors, row_ids: Sequence[int]
) -> Mapping[int, float]:
    """Return the cosines of all candidates: those found by their words have one too."""
    if request.vector is None:
        return {}
    others = [row_id for row_id in row_ids if row_id not in near.cosines]
    model_id = request.vector.model.model_id
    return near.cosines | engine.vectors.cosines(model_id, others, request.vector.asked)


def _complete(neighbours: dict[int, dict[int, int]]) -> None:
    """Make nearness mutual: a memory found only as a neighbour has the finder for a neighbour."""
    for row_id, places in list(neighbours.items()):
        for distance, other in places.items():
            if other in neighbours:
                neighbours[other].setdefault(-distance, row_id)


def _candidate(
    row: Signals,
    words: WordCounts,
    neighbours: Mapping[int, int],
    cosine: float | None,
    request: SearchRequest,
) -> Candidate:
    moment = read_stored_time(row.timestamp)
    return Candidate(
        row_id=row.row_id,
        # Rows written by hand are of no common session, though they say the same word there.
        session=f"{BY_HAND} {row.row_id}" if row.session == BY_HAND else row.session,
        counts=words.counts,
        length=words.length,
        day=moment.date(),
        age_days=age_in_days(moment, request.moment),
        access_count=row.access_count + request.uncounted.get(row.row_id, 0),
        neighbours=neighbours,
        cosine=cosine,
        opens=words.opens,
        asks=words.asks,
    )
