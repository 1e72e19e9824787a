"""The order of search results: candidates in, order out. Pure: no database, no clock.

Similarity is built from evidence, each part on a scale where the best candidate has 1:

=============  ======  ===========================================================================
part           weight  why
=============  ======  ===========================================================================
own words      1       BM25 over the words of the query
own meaning    model's the cosine with the query, where there are vectors: it counts 0.5 for MiniLM,
                       0.3 for a static model, whose cosines say less
neighbours     0.3     what was said just before and after in the same session is about the same
               0.1     thing: the answer to a question need not repeat its words
session        0.4     the mean of the session's three best: a session about the matter counts
=============  ======  ===========================================================================

``bench/locomo.py`` measures each of them. Then the gate and the order of DESIGN's stages 2 and 3:
good answers by age and use, the rest by similarity.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_memory.models.memory import ACCESS_BOOST_RATE, FRESHNESS_DECAY_RATE, relevance_score
from agent_memory.vocabulary import DEFAULT_SIMILARITY_THRESHOLD

BM25_SATURATION: Final = 1.2
"""k1: how soon repeating a word stops to count."""
BM25_LENGTH: Final = 0.4
"""b: how much a long text is held back. Memories are short, so less than the usual 0.75."""
NEIGHBOUR_WEIGHTS: Final = {1: 0.3, 2: 0.1}
"""By distance in the session, in both directions."""
SESSION_WEIGHT: Final = 0.4
SESSION_BEST: Final = 3

STRENGTH_FLOOR: Final = 0.1
"""Below this share of the query's words (weighed by rarity) nothing is an answer."""
_STRENGTH_WORDS: Final = 5
"""Of a longer query the rarest words alone are asked for: agents search with whole messages, and
one hit among twenty words that stand nowhere is still a hit."""
_BACKGROUND_SIZE: Final = 1_000
"""Memories that a store is thought to have at least, when a query's strength is weighed: in a
store of three, how often a word stands there tells nothing."""

OFTEN_ACCESSED: Final = 5
STALE_DAYS: Final = 30
THRESHOLD_STEP_OFTEN: Final = -0.05
THRESHOLD_STEP_STALE: Final = 0.10
"""B's gate: 0.70 for what was accessed over 5 times, 0.85 for what never was and is over 30 days
old, 0.75 else. A different middle moves all three."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be an answer.

    ``counts`` has how often each term of the query stands in it, ``length`` all its words;
    ``neighbours`` the ``seq`` of those around it in its session, by distance; ``cosine`` how near
    its vector is to the query's, if it has one.
    """

    seq: int
    session: str
    counts: tuple[int, ...]
    length: int
    age_days: int
    access_count: int
    neighbours: Mapping[int, int]
    cosine: float | None = None


@dataclass(frozen=True, slots=True)
class Space:
    """What the cosines of a model are worth.

    ``weight`` is how much the best of a query counts beside the best by words; at ``floor`` and
    below, two texts have nothing to do with each other.
    """

    weight: float
    floor: float


@dataclass(frozen=True, slots=True)
class Rates:
    """A's rates, and the middle of B's gate."""

    decay: float = FRESHNESS_DECAY_RATE
    boost: float = ACCESS_BOOST_RATE
    gate: float = DEFAULT_SIMILARITY_THRESHOLD


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate in its place. ``similarity`` is 0 to 1.

    ``matches`` tells whether it has a word asked for or, by its vector, something to do with the
    query; ``by_words`` whether it has a word.
    """

    seq: int
    similarity: float
    relevance: float
    passed_gate: bool
    matches: bool
    by_words: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates in order, and how strong the best is (0 to 1)."""

    order: list[Ranked]
    strength: float


def rank(
    candidates: Sequence[Candidate],
    frequencies: Sequence[int],
    corpus_size: int,
    rates: Rates,
    space: Space | None = None,
) -> Ranking:
    """Put candidates in order.

    ``frequencies`` has in how many of the ``corpus_size`` memories each term of the query stands;
    ``space`` is that of the candidates' cosines, if they have any.
    """
    if not candidates:
        return Ranking([], 0.0)
    weights = [_rarity(frequency, corpus_size) for frequency in frequencies]
    words = _relative(_bm25(candidates, weights))
    meaning = _meaning(candidates, space)
    own = {seq: words[seq] + meaning.get(seq, 0.0) for seq in words}
    if not any(own.values()):
        return Ranking([], 0.0)
    evidence = _with_surroundings(candidates, own)
    best = max(evidence.values())
    strength = max(
        _strength(candidates, frequencies, corpus_size), _strength_of_meaning(candidates, space)
    )
    relative = {seq: value / best for seq, value in evidence.items()}
    floor = 1.0 if space is None else space.floor
    ranked = [
        Ranked(
            seq=candidate.seq,
            similarity=relative[candidate.seq] * strength,
            relevance=relevance_score(
                relative[candidate.seq] * strength,
                age_days=candidate.age_days,
                access_count=candidate.access_count,
                decay_rate=rates.decay,
                boost_rate=rates.boost,
            ),
            passed_gate=relative[candidate.seq] >= gate(candidate, rates.gate),
            matches=words[candidate.seq] > 0
            or (candidate.cosine is not None and candidate.cosine > floor),
            by_words=words[candidate.seq] > 0,
        )
        for candidate in candidates
        if relative[candidate.seq] > 0
    ]
    return Ranking(sorted(ranked, key=_place), strength)


def gate(candidate: Candidate, middle: float) -> float:
    """Return the share of the best similarity that a good answer must have (B)."""
    if candidate.access_count > OFTEN_ACCESSED:
        return middle + THRESHOLD_STEP_OFTEN
    if candidate.access_count == 0 and candidate.age_days > STALE_DAYS:
        return min(1.0, middle + THRESHOLD_STEP_STALE)
    return middle


def _place(ranked: Ranked) -> tuple[bool, float, float, int]:
    score = ranked.relevance if ranked.passed_gate else ranked.similarity
    return not ranked.passed_gate, -score, -ranked.similarity, -ranked.seq


def _rarity(frequency: int, corpus_size: int) -> float:
    """Weigh a word by how rare it is. Never negative, even for a word in every memory."""
    size = max(corpus_size, frequency)
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def _bm25(candidates: Sequence[Candidate], weights: Sequence[float]) -> dict[int, float]:
    """Score each candidate by its own words; lengths are measured against the candidates' mean."""
    mean_length = sum(candidate.length for candidate in candidates) / len(candidates) or 1.0
    scores: dict[int, float] = {}
    for candidate in candidates:
        slowness = BM25_SATURATION * (
            1 - BM25_LENGTH + BM25_LENGTH * candidate.length / mean_length
        )
        scores[candidate.seq] = sum(
            weight * count / (count + slowness)
            for weight, count in zip(weights, candidate.counts, strict=True)
            if count
        )
    return scores


def _relative(scores: Mapping[int, float]) -> dict[int, float]:
    best = max(scores.values(), default=0.0)
    return {seq: score / best if best else 0.0 for seq, score in scores.items()}


def _meaning(candidates: Iterable[Candidate], space: Space | None) -> dict[int, float]:
    """Return what each candidate's cosine is worth: the best of this query its model's weight.

    Min-max over the candidates: where the cosines of a model begin, and how far apart they are,
    differs from model to model and from query to query.
    """
    cosines = {found.seq: found.cosine for found in candidates if found.cosine is not None}
    if space is None or not cosines:
        return {}
    least, most = min(cosines.values()), max(cosines.values())
    span = most - least
    return {
        seq: space.weight * ((cosine - least) / span if span > 0 else 1.0)
        for seq, cosine in cosines.items()
    }


def _strength_of_meaning(candidates: Iterable[Candidate], space: Space | None) -> float:
    """Return how near the best cosine is: at the model's floor as little as an answer may have."""
    best = max((found.cosine for found in candidates if found.cosine is not None), default=-1.0)
    if space is None or best <= space.floor:
        return 0.0
    share = min(1.0, (best - space.floor) / (1.0 - space.floor))
    return STRENGTH_FLOOR + (1.0 - STRENGTH_FLOOR) * share


def _with_surroundings(
    candidates: Iterable[Candidate], own: Mapping[int, float]
) -> dict[int, float]:
    """Add to each candidate's own score what its neighbours and its session give."""
    by_session: dict[str, list[float]] = defaultdict(list)
    candidates = list(candidates)
    for candidate in candidates:
        by_session[candidate.session].append(own[candidate.seq])
    of_session = {
        session: sum(sorted(scores, reverse=True)[:SESSION_BEST]) / SESSION_BEST
        for session, scores in by_session.items()
    }
    return {
        candidate.seq: own[candidate.seq]
        + sum(
            NEIGHBOUR_WEIGHTS.get(abs(distance), 0.0) * own.get(seq, 0.0)
            for distance, seq in candidate.neighbours.items()
        )
        + SESSION_WEIGHT * of_session[candidate.session]
        for candidate in candidates
    }


def _strength(
    candidates: Sequence[Candidate], frequencies: Sequence[int], corpus_size: int
) -> float:
    """Return the largest share of the query's words, weighed by rarity, that one memory has."""
    if not frequencies:
        return 0.0
    size = max(corpus_size, _BACKGROUND_SIZE)
    weights = [_rarity(frequency, size) for frequency in frequencies]
    best = max(
        sum(weight for weight, count in zip(weights, candidate.counts, strict=True) if count)
        for candidate in candidates
    )
    return min(1.0, best / sum(sorted(weights, reverse=True)[:_STRENGTH_WORDS]))
