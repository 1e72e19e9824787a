"""The candidates of a search: rows near by words, by vector or by date, and their neighbours."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_memory.models.embedding_traits import DEFAULT_SIMILARITY_FLOOR
from agent_memory.models.fields import is_named_session
from agent_memory.models.times import age_in_days, read_stored_time
from agent_memory.services.search.request import SearchRequest
from agent_memory.services.search.scoring import Candidate, CosineScale, QueryProfile
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import NearestVectors, QueryVector, Signals, Term, WordCounts
from agent_memory.text.dates import date_spans

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
    """The candidates of one search, and what ranking needs to know of the query.

    ``degraded`` says what was not looked at; ``vector_ms`` is the time that the vectors took.
    """

    candidates: list[Candidate]
    query: QueryProfile
    degraded: list[str]
    vector_ms: float


def gather(engine: Engine, request: SearchRequest) -> Candidates:
    """Gather the candidates of a search. Must run inside ``engine.read()``."""
    frequencies = engine.keywords.frequencies(request.terms)
    by_words, common_terms = engine.keywords.candidates(
        request.terms, frequencies, request.passing, needed=request.limit, limit=MATCHING
    )
    degraded = [f"not every memory with {term.written!r} was looked at" for term in common_terms]
    started = time.perf_counter()
    by_meaning = _nearest(engine, request)
    vector_ms = (time.perf_counter() - started) * 1000
    if by_meaning.degraded:
        degraded.append(by_meaning.degraded)
    dates = date_spans(request.query, request.moment.date())
    dated = engine.memories.between(request.passing, dates, limit=DATED)
    date_words = {word.lower() for span in dates for word in _WORDS.findall(span.phrase)}
    query = QueryProfile(
        frequencies=frequencies,
        corpus_size=engine.memories.last_row_id(),
        name_terms=_places(request.terms, lambda term: term.is_name),
        spans=dates,
        date_terms=_places(request.terms, lambda term: term.written.lower() in date_words),
        cosine_scale=_cosine_scale(request.vector),
    )
    row_ids = list(dict.fromkeys([*by_words, *by_meaning.cosines, *dated]))
    centers = [*by_words[:SURROUNDED], *_first(by_meaning.cosines, SURROUNDED_BY_MEANING)]
    candidates = _candidates(engine, request, row_ids, centers, by_meaning)
    return Candidates(candidates, query, degraded, vector_ms)


def _places(terms: Sequence[Term], has: Callable[[Term], bool]) -> frozenset[int]:
    return frozenset(place for place, term in enumerate(terms) if has(term))


def _nearest(engine: Engine, request: SearchRequest) -> NearestVectors:
    if request.vector is None:
        return NearestVectors({})
    return engine.vectors.nearest(request.vector, request.passing)


def _first(cosines: Mapping[int, float], count: int) -> list[int]:
    return heapq.nlargest(count, cosines, key=cosines.__getitem__)


def _cosine_scale(vector: QueryVector | None) -> CosineScale | None:
    if vector is None:
        return None
    floor = vector.model.similarity_floor
    return CosineScale(
        vector.model.vector_weight, DEFAULT_SIMILARITY_FLOOR if floor is None else floor
    )


def _candidates(
    engine: Engine,
    request: SearchRequest,
    row_ids: Sequence[int],
    centers: Sequence[int],
    nearest: NearestVectors,
) -> list[Candidate]:
    """Read the signals of some rows, and of the neighbours of the ``centers`` among them."""
    signals = {row.row_id: row for row in engine.memories.ranking_signals(row_ids, request.passing)}
    neighbours = engine.memories.neighbours(
        [row.row_id for row in signals.values() if is_named_session(row.session)]
    )
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
    cosines = _cosines(engine, request, nearest, list(signals))
    return [
        _candidate(row, words[row_id], neighbours.get(row_id, {}), cosines.get(row_id), request)
        for row_id, row in signals.items()
    ]


def _cosines(
    engine: Engine, request: SearchRequest, nearest: NearestVectors, row_ids: Sequence[int]
) -> Mapping[int, float]:
    """Return the cosines of all candidates: those found by their words have one too."""
    if request.vector is None:
        return {}
    others = [row_id for row_id in row_ids if row_id not in nearest.cosines]
    model_id = request.vector.model.model_id
    return nearest.cosines | engine.vectors.cosines(model_id, others, request.vector.asked)


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
        # Five notes of one process: "Buy oat milk" was the second hit for the Postgres password.
        session=row.session if is_named_session(row.session) else f"{row.session} {row.row_id}",
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
