"""The candidates of a search: memories near by words, vector or date, and their neighbours."""

import heapq
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from agent_memory.models.embedding_traits import DEFAULT_SIMILARITY_FLOOR, MODEL_TRAITS
from agent_memory.models.limits import MAX_SEARCH_LIMIT
from agent_memory.models.times import to_utc
from agent_memory.services.search.request import OwnWords, SearchRequest
from agent_memory.services.search.signals import Candidate, CosineScale, QueryProfile, rarity
from agent_memory.storage.engine import Engine
from agent_memory.storage.records import NearestVectors, QueryVector, Term
from agent_memory.text.dates import Span
from agent_memory.text.languages import FUNCTION_WORDS
from agent_memory.text.questions import asks_for_several

MATCHING: Final = MAX_SEARCH_LIMIT
"""The maximum number of memories ranked for their words, the best by FTS5's measure: as many as may
be asked for. With 256 no corpus had another recall@10 by more than two questions, and a search took
nearly twice as long."""
DATED: Final = 50
"""The maximum number of memories ranked for being of a requested time: the newest."""
SURROUNDED: Final = 24
"""The number of best matches by words whose neighbours become candidates too."""
SURROUNDED_BY_MEANING: Final = 24
"""The same for the memories whose vectors are nearest."""
_NOBODY: Final[Mapping[int, int]] = MappingProxyType({})
_WORDS: Final = re.compile(r"\w+")
_LOOKED_AT: Final = 300
"""Words of a query among which a function word is looked for."""


class Candidates(NamedTuple):
    """The candidates of one search, and what ranking needs to know about the query.

    ``degraded`` lists what was not searched; ``vector_ms`` is the time spent on vectors.
    """

    candidates: list[Candidate]
    query: QueryProfile
    degraded: list[str]
    vector_ms: float


def gather(engine: Engine, request: SearchRequest) -> Candidates:
    """Gather the candidates of a search. Must run inside ``engine.read()``."""
    matches = _matches(engine, request)
    degraded = [
        f"{term.written!r} is too common: not every memory with it was considered"
        for term in matches.left_out
    ]
    started = time.perf_counter()
    by_meaning = (
        NearestVectors({})
        if request.vector is None
        else engine.vectors.nearest(request.vector, request.passing)
    )
    vector_ms = (time.perf_counter() - started) * 1000
    if by_meaning.degraded:
        degraded.append(by_meaning.degraded)
    dates = request.dates
    dated = engine.memories.between(request.passing, dates, limit=DATED)
    query = QueryProfile(
        frequencies=matches.frequencies,
        corpus_size=matches.corpus_size,
        times=[term.times for term in request.terms],
        name_terms=_places(request.terms, lambda term: term.is_name),
        is_lower=request.query.islower(),
        is_english=request.is_english,
        is_phrased=request.is_english and _is_phrased(request.query),
        pair_terms=_places(request.terms, lambda term: term.is_pair),
        light_terms=_places(request.terms, lambda term: term.is_light),
        spans=dates,
        date_terms=_places_of_dates(request, dates),
        relative_terms=_places_of_dates(request, [span for span in dates if span.is_relative]),
        cosine_scale=_cosine_scale(request.vector),
        asks_for_several=asks_for_several(request.query),
    )
    row_ids = list(dict.fromkeys([*matches.row_ids, *by_meaning.cosines, *dated]))
    cosines = by_meaning.cosines
    nearest = heapq.nlargest(SURROUNDED_BY_MEANING, cosines, key=cosines.__getitem__)
    centers = [*matches.row_ids[:SURROUNDED], *nearest]
    candidates = _candidates(engine, request, row_ids, centers, by_meaning)
    return Candidates(candidates, query, degraded, vector_ms)


class _Matches(NamedTuple):
    """The memories that contain words of a query, best first, and how rare each word is.

    ``frequencies`` has, for each term, how many of ``corpus_size`` memories contain it.
    ``left_out`` has the terms with too many matches to check them all.
    """

    row_ids: Sequence[int]
    frequencies: Sequence[int]
    corpus_size: int
    left_out: Sequence[Term] = ()


def _matches(engine: Engine, request: SearchRequest) -> _Matches:
    """Look up the words of a query in the whole file, or in the part its owner may see."""
    if request.own_words is not None:
        return _matches_of_owner(engine, request, request.own_words)
    frequencies = engine.keywords.frequencies(request.terms)
    row_ids, left_out = engine.keywords.candidates(
        request.terms, frequencies, request.passing, needed=request.limit, limit=MATCHING
    )
    is_whole = request.user_id is None
    size = engine.memories.last_row_id() if is_whole else engine.memories.count(request.scope)
    return _Matches(row_ids, frequencies, size, left_out)


def own_words_of(engine: Engine, request: SearchRequest) -> OwnWords | None:
    """Look up the words of a query in its owner's memories alone, if others have memories too.

    BM25 covers the whole file: the rarity of a word there, and the time that a search
    for several words takes, revealed whether others have it.
    """
    if request.owner is None:
        return None
    postings = engine.keywords.postings(request.terms, request.scope)
    return OwnWords(postings, engine.memories.count(request.scope))


def _matches_of_owner(engine: Engine, request: SearchRequest, own: OwnWords) -> _Matches:
    """Choose memories by how rare the words are among the owner's."""
    frequencies = [len(row_ids) for row_ids in own.postings]
    size = own.corpus_size
    scores: dict[int, float] = {}
    for row_ids in own.postings:
        weight = rarity(len(row_ids), size)
        for row_id in row_ids:
            scores[row_id] = scores.get(row_id, 0.0) + weight
    best: list[int] = []
    ordered = (row_id for _, row_id in sorted(zip(scores.values(), scores, strict=True))[::-1])
    looked_at = 2 * MATCHING
    while len(best) < MATCHING and (row_ids := list(islice(ordered, looked_at))):
        passing = set(engine.memories.row_ids(request.passing, among=row_ids))
        best += [row_id for row_id in row_ids if row_id in passing]
        looked_at *= 2
    return _Matches(best[:MATCHING], frequencies, size)


def _places(terms: Sequence[Term], has: Callable[[Term], bool]) -> frozenset[int]:
    return frozenset(place for place, term in enumerate(terms) if has(term))


def _is_phrased(query: str) -> bool:
    words = (match[0].lower() for match in islice(_WORDS.finditer(query), _LOOKED_AT))
    return not FUNCTION_WORDS["english"].isdisjoint(words)


def _places_of_dates(request: SearchRequest, dates: Sequence[Span]) -> frozenset[int]:
    words = {word.lower() for span in dates for word in _WORDS.findall(span.phrase)}
    return _places(request.terms, lambda term: term.written.lower() in words)


def _cosine_scale(vector: QueryVector | None) -> CosineScale | None:
    if vector is None:
        return None
    model = vector.model
    floor = DEFAULT_SIMILARITY_FLOOR if model.similarity_floor is None else model.similarity_floor
    traits = MODEL_TRAITS.get(model.model)
    return CosineScale(model.vector_weight, floor, traits["doubt"] if traits else 0.0)


def _candidates(
    engine: Engine,
    request: SearchRequest,
    row_ids: Sequence[int],
    centers: Sequence[int],
    nearest: NearestVectors,
) -> list[Candidate]:
    """Read the signals of some rows, and of the neighbours of those that are ``centers``."""
    signals = {row.row_id: row for row in engine.memories.ranking_signals(row_ids, request.passing)}
    in_sessions = [row.row_id for row in signals.values() if row.is_in_session]
    neighbours = engine.memories.neighbours(in_sessions, request.owner)
    around = {
        row_id for center in centers for row_id in neighbours.get(center, {}).values()
    } - signals.keys()
    signals.update(
        (row.row_id, row) for row in engine.memories.ranking_signals(list(around), request.passing)
    )
    around &= signals.keys()
    neighbours |= _finders(neighbours, around)
    words = engine.keywords.words(list(signals), request.terms)
    cosines = _cosines(engine, request, nearest, list(signals))
    now, uncounted = to_utc(request.moment), request.uncounted
    candidates: list[Candidate] = []
    for row_id, session, is_in_session, moment, access_count in signals.values():
        counts, length, opens, asks, variants = words[row_id]
        age = (now - moment).days
        candidates.append(
            Candidate(
                row_id,
                # Unnamed sessions do not connect memories: for five notes of one process, "Buy oat
                # milk" was the second hit for the Postgres password.
                session if is_in_session else f"{session} {row_id}",
                counts,
                length,
                moment.date(),
                max(0, age),
                access_count + uncounted.get(row_id, 0),
                neighbours.get(row_id, _NOBODY),
                cosines.get(row_id),
                opens,
                asks,
                variants,
            )
        )
    return candidates


def _cosines(
    engine: Engine, request: SearchRequest, nearest: NearestVectors, row_ids: Sequence[int]
) -> Mapping[int, float]:
    """Return the cosines of all candidates, including those found by words."""
    if request.vector is None:
        return {}
    others = [row_id for row_id in row_ids if row_id not in nearest.cosines]
    model_id = request.vector.model.model_id
    return nearest.cosines | engine.vectors.cosines(model_id, others, request.vector.asked)


def _finders(
    neighbours: Mapping[int, Mapping[int, int]], around: Collection[int]
) -> dict[int, dict[int, int]]:
    """Return the neighbours of memories found as a neighbour: their finders, by distance."""
    finders: dict[int, dict[int, int]] = {row_id: {} for row_id in around}
    for row_id, places in neighbours.items():
        for distance, other in places.items():
            if other in finders:
                finders[other].setdefault(-distance, row_id)
    return finders
