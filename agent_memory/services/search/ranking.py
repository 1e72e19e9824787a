"""The order of search results: candidates in, order out. Pure: no engine, no clock.

``scoring`` gives the evidence for each candidate. It is turned into a similarity of 0 to 1, on
which the gate and the order of DESIGN's stages 2 and 3 work: good answers by age and use, the rest
by similarity.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, overload

from agent_memory.models.limits import DEFAULT_SIMILARITY_THRESHOLD
from agent_memory.models.relevance import ACCESS_BOOST_RATE, FRESHNESS_DECAY_RATE, relevance_score
from agent_memory.services.search.scoring import WEIGHTS, Evidence, Scores, Weights, weigh
from agent_memory.services.search.signals import Candidate, QueryProfile
from agent_memory.services.search.strength import STRENGTH_FLOOR, floor_of, strength_floor

CONTRAST: Final = 2.0
"""The power to which evidence is raised. A memory's surroundings bring all candidates closer
together; without this, so many passed the gate that recall@5 lost two points to memories that were
merely newer (MiniLM, observations)."""

WELL_COVERED: Final = 0.5
"""If no memory has this share of a query's words, those that have some may have them by chance, and
each brings its neighbours along: of 40 questions that share no word with their answer, among 4,000
other memories, 22 % had it among the first five, while its vector was the nearest of all for 38 %.
Then every fourth place goes to the nearest by meaning, which makes it 50 %."""
MEANING_PLACE_STEP: Final = 4
"""One in this many places is kept for the nearest by meaning."""

CONFIDENCE_BY_WORDS: Final = (5.0, -4.6)
CONFIDENCE_BY_MEANING: Final = (3.9, -4.2)
"""Slope and offset of the logistic curve that turns a similarity into a confidence: the share of
hits with that similarity that are relevant. Fitted on chats, observations, code, documents and
package descriptions, English and German, where half of the questions have no answer in the store.
In corpora that the curve was not fitted on, 0.18 to 0.74 of the hits with a confidence of 0.4 are
relevant (0.36 and 0.37 in two people's chats), and 0.05 to 0.26 of those with 0.14."""

SAME_SESSION: Final = 0.8
"""The factor on a memory's score if a better one is in its session and the query asks for several
things. On LoCoMo's multi-hop questions recall@10 rises by 0.6 to 1.7, on all questions by -0.1 to
0.1; if applied to every question it falls by 0.4 to 1.0."""
OFTEN_ACCESSED: Final = 5
STALE_DAYS: Final = 30
THRESHOLD_STEP_OFTEN: Final = -0.05
THRESHOLD_STEP_STALE: Final = 0.10
"""B's gate: 0.70 after more than 5 accesses, 0.85 if never accessed and over 30 days old, otherwise
0.75. A different middle moves all three."""


class RankingRates(NamedTuple):
    """The rates of A's relevance formula, and the middle of B's gate."""

    decay: float = FRESHNESS_DECAY_RATE
    boost: float = ACCESS_BOOST_RATE
    gate: float = DEFAULT_SIMILARITY_THRESHOLD


class RankedHit(NamedTuple):
    """A candidate with its scores, at its place in the ranking.

    ``similarity`` is 0 to 1; ``relative`` is the same scaled so that the best candidate has 1, and
    is compared with the gate. ``by_words`` is whether it has a word or a date of the query;
    ``matches`` whether it has one or its cosine is above the floor; ``has_kept_place`` whether it
    has one of the places that are kept for the nearest by meaning.
    """

    candidate: Candidate
    evidence: Evidence
    relative: float
    similarity: float
    relevance: float
    gate: float
    matches: bool
    by_words: bool
    has_kept_place: bool = False

    @property
    def row_id(self) -> int:
        """Return the memory's row."""
        return self.candidate.row_id

    @property
    def passed_gate(self) -> bool:
        """Return whether it is a good answer."""
        return self.relative >= self.gate


class Ranking(NamedTuple):
    """All candidates in order, how strong the best is, and how strong an answer must be (0 to 1).

    ``matches`` is how many of them match, ``passed`` how many come before all that fail the gate;
    ``None`` if the two are mixed.
    """

    order: Sequence[RankedHit]
    strength: float
    floor: float = STRENGTH_FLOOR
    matches: int = 0
    passed: int | None = None


_DATE: Final = Evidence._fields.index("date")
_Place = tuple[bool, float, float, int, Candidate, float]
"""The sort key of a candidate: whether it is weak, and its score, similarity and row, all three
negated. A row occurs only once, so neither the candidate nor its evidence relative to the best,
which follow, is ever compared."""


class _Order(Sequence[RankedHit]):
    """The hits in order, built on request: a search looks at a few of hundreds."""

    def __init__(
        self, places: Sequence[_Place], scores: Scores, rates: RankingRates, floor: float
    ) -> None:
        self._places = places
        self._scores = scores
        self._rates = rates
        self._floor = floor

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> RankedHit: ...
    @overload
    def __getitem__(self, index: slice) -> list[RankedHit]: ...
    def __getitem__(self, index: int | slice) -> RankedHit | list[RankedHit]:
        if isinstance(index, slice):
            return list(map(self._hit, self._places[index]))
        return self._hit(self._places[index])

    def __iter__(self) -> Iterator[RankedHit]:
        return map(self._hit, self._places)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment] # as a list has none

    def _hit(self, place: _Place) -> RankedHit:
        *_, candidate, relative = place
        evidence = self._scores.evidence_for(candidate.row_id)
        similarity = relative * self._scores.strength
        return RankedHit(
            candidate,
            evidence,
            relative,
            similarity,
            _relevance(candidate, similarity, self._rates),
            gate(candidate, self._rates.gate),
            _matches(candidate, evidence.date, self._floor),
            _has_words(candidate, evidence.date),
        )


def rank(
    candidates: Sequence[Candidate],
    query: QueryProfile,
    rates: RankingRates,
    weights: Weights = WEIGHTS,
) -> Ranking:
    """Put candidates in order."""
    scores = weigh(candidates, query, weights)
    totals = [parts[-1] for parts in scores.parts.values()]
    best = max(totals, default=0.0)
    if best <= 0:
        return Ranking([], 0.0)
    floor = floor_of(query)
    least_gate = min(_gates(rates.gate))
    matches_otherwise = bool(query.spans) or query.cosine_scale is not None
    strength = scores.strength
    places: list[_Place] = []
    matches = passed = 0
    for candidate, total in zip(candidates, totals, strict=True):
        if total <= 0:
            continue
        row_id = candidate.row_id
        if candidate.counts or (
            matches_otherwise and _matches(candidate, scores.parts[row_id][_DATE], floor)
        ):
            matches += 1
        relative = (total / best) ** CONTRAST
        similarity = relative * strength
        # Most are so weak that their age and use do not matter.
        is_weak = relative < least_gate or relative < gate(candidate, rates.gate)
        if is_weak:
            score = similarity
        else:
            score = _relevance(candidate, similarity, rates)
            passed += 1
        places.append((is_weak, -score, -similarity, -row_id, candidate, relative))
    places.sort()
    if query.asks_for_several:
        places = sorted(_spread_over_sessions(places))
    ranking = Ranking(
        _Order(places, scores, rates, floor),
        scores.strength,
        strength_floor(query),
        matches,
        passed,
    )
    if query.cosine_scale is not None and scores.coverage < WELL_COVERED:
        order = _with_places_for_meaning(list(ranking.order), least=floor / 2)
        return ranking._replace(order=order, passed=None)
    return ranking


def _spread_over_sessions(places: Iterable[_Place]) -> Iterator[_Place]:
    """Hold back memories with a better one in their session, so that different things are found."""
    sessions: set[str] = set()
    for is_weak, score, similarity, row_id, candidate, relative in places:
        share = SAME_SESSION if candidate.session in sessions else 1.0
        sessions.add(candidate.session)
        yield is_weak, score * share, similarity, row_id, candidate, relative


def _with_places_for_meaning(order: Sequence[RankedHit], *, least: float) -> list[RankedHit]:
    """Give every fourth place to the nearest by meaning that is not placed yet.

    The best of an unrelated text may reach the floor, so half of that is ``least`` for one that
    comes after three others.
    """
    near = [(hit.candidate.cosine or 0.0, hit) for hit in order]
    nearest = [hit for cosine, hit in sorted(near, key=lambda pair: -pair[0]) if cosine > least]
    placed: dict[int, RankedHit] = {}
    for hit in order:
        if len(placed) % MEANING_PLACE_STEP == MEANING_PLACE_STEP - 1:
            best = next((other for other in nearest if other.row_id not in placed), None)
            if best is not None and best.row_id != hit.row_id:
                placed[best.row_id] = best._replace(has_kept_place=True)
        placed.setdefault(hit.row_id, hit)
    return list(placed.values())


def _has_words(candidate: Candidate, date: float) -> bool:
    """Return whether a candidate has a word or a date of the query."""
    return bool(candidate.counts) or date > 0


def _matches(candidate: Candidate, date: float, floor: float) -> bool:
    """Return whether it has one, or is nearer by meaning than the floor."""
    is_near = candidate.cosine is not None and candidate.cosine > floor
    return is_near or _has_words(candidate, date)


def _relevance(candidate: Candidate, similarity: float, rates: RankingRates) -> float:
    return relevance_score(
        similarity,
        age_days=candidate.age_days,
        access_count=candidate.access_count,
        decay_rate=rates.decay,
        boost_rate=rates.boost,
    )


def confidence(similarity: float, *, by_meaning: bool) -> float:
    """Return the share of hits with this similarity that are relevant."""
    slope, intercept = CONFIDENCE_BY_MEANING if by_meaning else CONFIDENCE_BY_WORDS
    return 1 / (1 + math.exp(-(slope * similarity + intercept)))


def gate(candidate: Candidate, middle: float) -> float:
    """Return the share of the best similarity that a good answer must reach (B)."""
    often, stale, other = _gates(middle)
    if candidate.access_count > OFTEN_ACCESSED:
        return often
    return stale if candidate.access_count == 0 and candidate.age_days > STALE_DAYS else other


def _gates(middle: float) -> tuple[float, float, float]:
    """Return the gates for memories that are accessed often, stale, and neither."""
    return middle + THRESHOLD_STEP_OFTEN, min(1.0, middle + THRESHOLD_STEP_STALE), middle
