"""Scoring: the evidence that a candidate answers a query, part by part. Pure.

Words and meaning are each measured at three scales: the memory itself, what was said just before
and after it in its session, and its whole session. The answer to a question need not repeat the
question's words: those are in the message that it replies to.

==================  ======  =======================================================================
part                weight  what it is
==================  ======  =======================================================================
words               1       BM25 over the words of the query, each as often as the query has it; the
                            best candidate scores 1
words around it     1.5     BM25 over the memory together with its neighbours' words, which count
                            less with distance; the best candidate scores 1
words of session    0.5     BM25 over the session as one text; the best session scores 1
meaning             model's its cosine with the query, see ``CosineScale``
meaning around it   0.3     of the meaning of its direct neighbours in the session,
                    0.1     and of those at distance two
meaning of session  0.2     of the mean of its session's best three meanings
subject             0.25    its first word is in the query: who speaks, or whom it is about
date                0.5     it is from a time that the query mentions
question           -20 %    of all the above, if it ends with a question: it asks instead of answers
==================  ======  =======================================================================

The surroundings of a memory supply what a short one leaves out. A long one says it itself, and a
long question informs as well as asks. So beyond ``SHORT`` words the surroundings fade, their share
going to the memory's own words, and so does the value of the first word; beyond ``SHORT_QUESTION``
words the deduction for asking fades. That deduction also fades if the next memory is long: people
answer each other in a few words, and a message that gets a page in reply was a request to an
assistant.

With vectors, the three parts for words are multiplied by the largest share of the query that one
candidate has: if no memory has more than a word or two of a question, its meaning decides.
``bench/locomo.py`` removes each part in turn and measures what it was worth.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from agent_memory.services.search.signals import PIVOT, Candidate, QueryProfile, nearness, rarity
from agent_memory.services.search.strength import strength_of

BM25_SATURATION: Final = 0.4
"""k1: how soon repeating a word stops counting."""
BM25_LENGTH: Final = 0.7
"""b: how strongly long texts are penalized."""
QUERY_SATURATION: Final = 8.0
"""k3: how soon repeating a word in the query stops counting: a pasted log repeats it endlessly."""
SESSION_SATURATION: Final = 1.2
SESSION_LENGTH: Final = 0.4
"""k1 and b for whole sessions, whose lengths are compared to their mean."""
SHORT: Final = 60
"""Words up to which a memory's surroundings count in full; for twice as many, they count half."""
SHORT_QUESTION: Final = 20
"""The same for the deduction for ending with a question. "My app keeps its sessions in Redis. Can
you suggest a timeout?" is an answer too."""

AROUND_WORDS: Final = {-2: 0.3, -1: 0.7, 1: 0.7, 2: 0.3}
"""The weight of a neighbour's words by distance in the session, in both directions."""
AROUND_MEANING: Final = {-2: 0.33, -1: 1.0, 1: 1.0, 2: 0.33}
"""The weight of a neighbour's meaning, likewise."""
SESSION_BEST: Final = 3
"""The number of best meanings in a session whose mean is the meaning of the session."""

NEAR_COSINE: Final = 0.5
"""A centred cosine that says much."""
MEANING_POWER: Final = 1.5
"""The power to which a cosine, in that unit, is raised: two weak resemblances are worth less than a
strong one. With 3 the nearest stood too far ahead of the next: Cranfield's nDCG@10 was 37.5 instead
of 38.3, Debian's 86.0 instead of 87.0, that of LoCoMo's turns 62.1 instead of 63.1 (MiniLM 64.6
instead of 65.3)."""


class Weights(NamedTuple):
    """The weight of each part of the evidence. The memory's own words count 1.

    The weight of its own meaning is the model's, see ``CosineScale``. ``question`` is the share of
    everything else that is deducted.
    """

    words_around: float = 1.5
    words_of_session: float = 0.5
    meaning_around: float = 0.3
    meaning_of_session: float = 0.2
    subject: float = 0.25
    date: float = 0.5
    question: float = 0.2


WEIGHTS: Final = Weights()


class Evidence(NamedTuple):
    """The score of a candidate, part by part, each already weighted: see the table above.

    ``total`` is the sum of the parts.
    """

    words: float = 0.0
    words_around: float = 0.0
    words_of_session: float = 0.0
    meaning: float = 0.0
    meaning_around: float = 0.0
    meaning_of_session: float = 0.0
    subject: float = 0.0
    date: float = 0.0
    question: float = 0.0
    total: float = 0.0


class Scores(NamedTuple):
    """The scores of the candidates.

    ``parts`` has the values of each one's evidence, by row id. ``coverage`` is the largest share of
    the query's words that one candidate has, ``strength`` is how good the best answer is by words
    and meaning; both are 0 to 1.
    """

    parts: Mapping[int, tuple[float, ...]]
    coverage: float
    strength: float

    def evidence_for(self, row_id: int) -> Evidence:
        """Return the evidence for one candidate, built on request: few are ever needed."""
        return Evidence._make(self.parts[row_id])


def weigh(
    candidates: Sequence[Candidate], query: QueryProfile, weights: Weights = WEIGHTS
) -> Scores:
    """Weigh the evidence for each candidate."""
    if not candidates:
        return Scores({}, 0.0, 0.0)
    coverage, strength = strength_of(candidates, query)
    has_vectors = any(candidate.cosine is not None for candidate in candidates)
    share = coverage if query.cosine_scale is not None and has_vectors else 1.0
    of_words = _weigh_words(candidates, query, weights, share)
    of_meaning = _weigh_meaning(candidates, query, weights)
    parts: dict[int, tuple[float, ...]] = {}
    lengths = {candidate.row_id: candidate.length for candidate in candidates}
    for candidate, words, meaning in zip(candidates, of_words, of_meaning, strict=True):
        own, around, of_session = words
        own_meaning, meaning_around, meaning_of_session = meaning
        subject = weights.subject * _fade(candidate.length, SHORT) if candidate.opens else 0.0
        date = weights.date * nearness(candidate, query) if query.spans else 0.0
        total = (
            own + around + of_session
            + own_meaning + meaning_around + meaning_of_session
            + subject + date
        )  # fmt: skip
        question = 0.0
        if candidate.asks:
            reply = lengths.get(candidate.neighbours.get(1, -1), 0)
            asking = _fade(candidate.length, SHORT_QUESTION) * _fade(reply, SHORT)
            question = -weights.question * asking * total
        parts[candidate.row_id] = (*words, *meaning, subject, date, question, total + question)
    return Scores(parts, coverage, strength)


Parts = tuple[float, float, float]
"""The evidence from a candidate itself, from its neighbours, and from its session."""
_NOTHING: Final[Parts] = (0.0, 0.0, 0.0)


# Words ------------------------------------------------------------------------------------------


def _weigh_words(
    candidates: Sequence[Candidate], query: QueryProfile, weights: Weights, share: float
) -> list[Parts]:
    """Weigh the words of each candidate, of its neighbours, and of its session."""
    k3 = QUERY_SATURATION
    times = [n * (k3 + 1) / (k3 + n) for n in query.times] or [1.0] * len(query.frequencies)
    if any(nearness(candidate, query) == 1 for candidate in candidates if query.relative_terms):
        # "Every second week" says nothing about last week, if a candidate is from last week.
        times = [0.0 if place in query.relative_terms else n for place, n in enumerate(times)]
    counted = zip(times, query.frequencies, strict=True)
    rarities = [count * rarity(frequency, query.corpus_size) for count, frequency in counted]
    texts = {candidate.row_id: (candidate.counts, candidate.length) for candidate in candidates}
    own = _bm25(texts.values(), rarities)
    around = _bm25(_texts_around(candidates, texts), rarities)
    of_sessions = _score_sessions(candidates, times)
    # The best of each scores 1.
    best_own, best_around, best_of_session = (
        max(scores, default=0.0) or math.inf for scores in (own, around, of_sessions.values())
    )
    surroundings = weights.words_around + weights.words_of_session
    parts: list[Parts] = []
    for candidate, of_own, of_around in zip(candidates, own, around, strict=True):
        of_session = of_sessions.get(candidate.session, 0.0)
        if not (of_around or of_session):
            parts.append(_NOTHING)  # then it has no words of its own either
            continue
        fade = _fade(candidate.length, SHORT)
        parts.append(
            (
                share * (1 + (1 - fade) * surroundings) * (of_own / best_own),
                share * fade * weights.words_around * (of_around / best_around),
                share * fade * weights.words_of_session * (of_session / best_of_session),
            )
        )
    return parts


def _fade(length: int, short: int) -> float:
    """Return 1 for a memory of at most ``short`` words, and less the longer it is."""
    return 1.0 if length <= short else short / length


Text = tuple[Mapping[int, float], float]
"""How often each query term occurs in a text, by its position in the query; the text's length."""


def _texts_around(candidates: Sequence[Candidate], texts: Mapping[int, Text]) -> Iterator[Text]:
    """Yield each candidate's text merged with its neighbours', if those are candidates."""
    # fsum: the mean must not depend on the order of the candidates.
    mean = math.fsum([length for _, length in texts.values()]) / len(texts)
    unknown: Text = ({}, mean)
    text_of = texts.get
    for candidate in candidates:
        counts, length = texts[candidate.row_id]
        merged: dict[int, float] | None = None
        for distance, other in candidate.neighbours.items():
            weight = AROUND_WORDS.get(distance, 0.0)
            other_counts, other_length = text_of(other, unknown)
            length += weight * other_length
            if other_counts:
                if merged is None:
                    merged = {**counts} if counts else {}  # to copy an empty proxy takes 0.5 µs
                for place, count in other_counts.items():
                    merged[place] = merged.get(place, 0.0) + weight * count
        yield (counts if merged is None else merged), length


def _texts_of_sessions(candidates: Sequence[Candidate]) -> dict[str, Text]:
    """Return each session as one text, made of those of its memories that are candidates."""
    counts: dict[str, dict[int, float]] = {}
    lengths: dict[str, int] = {}
    for candidate in candidates:
        session = candidate.session
        lengths[session] = lengths.get(session, 0) + candidate.length
        if candidate.counts:
            of_session = counts.setdefault(session, {})
            for place, count in candidate.counts.items():
                of_session[place] = of_session.get(place, 0.0) + count
    return {session: (counts.get(session, {}), length) for session, length in lengths.items()}


def _score_sessions(candidates: Sequence[Candidate], times: Sequence[float]) -> dict[str, float]:
    """Score each session by its words; the fewer sessions have a word, the rarer it is."""
    texts = _texts_of_sessions(candidates)
    frequencies = Counter(place for counts, _ in texts.values() for place in counts)
    rarities = {
        place: times[place] * rarity(count, len(texts)) for place, count in frequencies.items()
    }
    mean = math.fsum(length for _, length in texts.values()) / len(texts) or 1.0
    scores = _bm25(texts.values(), rarities, SESSION_SATURATION, SESSION_LENGTH, mean)
    return dict(zip(texts, scores, strict=True))


def _bm25(
    texts: Iterable[Text],
    rarities: Sequence[float] | Mapping[int, float],
    k1: float = BM25_SATURATION,
    b: float = BM25_LENGTH,
    pivot: float = PIVOT,
) -> list[float]:
    """Return the score of each text."""
    scores: list[float] = []
    for counts, length in texts:
        slowness = k1 * (1 - b + b * length / pivot)
        if len(counts) == 1:  # as in most texts
            ((place, count),) = counts.items()
            scores.append(rarities[place] * count / (count + slowness))
        elif counts:
            parts = [
                rarities[place] * count / (count + slowness) for place, count in counts.items()
            ]
            scores.append(math.fsum(parts))
        else:
            scores.append(0.0)
    return scores


# Meaning ----------------------------------------------------------------------------------------


def _weigh_meaning(
    candidates: Sequence[Candidate], query: QueryProfile, weights: Weights
) -> list[Parts]:
    """Weigh the meaning of each candidate, of its neighbours, and of its session."""
    if query.cosine_scale is None:
        return [_NOTHING] * len(candidates)
    weight = query.cosine_scale.weight
    own: dict[int, float] = {}
    by_session: dict[str, list[float]] = defaultdict(list)
    for candidate in candidates:
        own[candidate.row_id] = 0.0
        if candidate.cosine is not None and candidate.cosine > 0:
            meaning = weight * (candidate.cosine / NEAR_COSINE) ** MEANING_POWER
            own[candidate.row_id] = meaning
            by_session[candidate.session].append(meaning)
    of_session = {
        session: sum(sorted(meanings, reverse=True)[:SESSION_BEST]) / SESSION_BEST
        for session, meanings in by_session.items()
    }
    parts: list[Parts] = []
    for candidate in candidates:
        fade = _fade(candidate.length, SHORT)
        around = sum(
            [
                AROUND_MEANING.get(distance, 0.0) * own[row_id]
                for distance, row_id in candidate.neighbours.items()
                if row_id in own
            ]
        )
        parts.append(
            (
                own[candidate.row_id],
                fade * weights.meaning_around * around,
                fade * weights.meaning_of_session * of_session.get(candidate.session, 0.0),
            )
        )
    return parts
