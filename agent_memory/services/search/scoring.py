"""Scoring: the evidence that a candidate answers a query, part by part. Pure.

Words and meaning are each read at three scales: the memory itself, what was said just before and
after it in its session, and its whole session. The answer to a question need not repeat its words:
those stand in what it answers to.

==================  ======  =======================================================================
part                weight  what it is
==================  ======  =======================================================================
words               1       BM25 over the words of the query, each as often as the query has it; the
                            best candidate 1
words around it     1.5     BM25 over the memory with its neighbours' words, counted less the
                            farther they are; the best candidate 1
words of session    0.5     BM25 over the session as one text; the best session 1
meaning             model's its cosine with the query, see ``CosineScale``
meaning around it   0.3     of the meaning of those next to it in its session,
                    0.1     and of those one farther
meaning of session  0.2     of the mean of its session's best three meanings
subject             0.25    its first word is asked for: who speaks, or whom it is about
date                0.5     it is of a time that the query speaks of
question           -20 %    of all that, where it ends with a question: it asks, and does not answer
==================  ======  =======================================================================

What stands around a memory says what a short one leaves out. A long one says it itself, and a long
question tells as well as asks. So beyond ``SHORT`` words the surroundings fade, their share going
to the memory's own words, and so does what the first word is worth; beyond ``SHORT_QUESTION`` what
is taken off for asking does. That fades too where what comes next is long: people answer each other
in a few words, and what gets a page was told an assistant, as a request.

The three of words count as much as the share of the query that the best candidate has of it: where
no memory has more than a word or two of a question, its meaning decides. ``bench/locomo.py`` takes
each part away in turn and measures what it was worth.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from types import MappingProxyType
from typing import Final, NamedTuple

from agent_memory.models.embedding_traits import DEFAULT_FLOOR_LEEWAY
from agent_memory.text.dates import Span

BM25_SATURATION: Final = 0.4
"""k1: how soon repeating a word stops to count."""
BM25_LENGTH: Final = 0.7
"""b: how much a long text is held back."""
QUERY_SATURATION: Final = 8.0
"""k3: how soon repeating a word in the query does: a log that is pasted has one again and again."""
PIVOT: Final = 30
"""Words of a text that is held back no more than k1 says: a few sentences.

BM25 measures lengths against the mean of the texts. But how far a word is there by chance follows
from how many others stand beside it, not from what else is stored. With the mean, either the long
replies of an assistant stood first (b = 0.4), or what short turns say was lost (b = 0.75)."""
SESSION_SATURATION: Final = 1.2
SESSION_LENGTH: Final = 0.4
"""k1 and b for whole sessions, whose lengths are measured against the mean of them."""
SHORT: Final = 60
"""Words up to which a memory's surroundings count in full; of twice as many, they count half."""
SHORT_QUESTION: Final = 20
"""The same for what is taken off where it ends with a question. "My app keeps its sessions in
Redis. Can you suggest a timeout?" is an answer too."""

AROUND_WORDS: Final = {-2: 0.3, -1: 0.7, 1: 0.7, 2: 0.3}
"""What a neighbour's word counts, by distance in the session, in both directions."""
AROUND_MEANING: Final = {-2: 0.33, -1: 1.0, 1: 1.0, 2: 0.33}
"""What a neighbour's meaning counts, likewise."""
SESSION_BEST: Final = 3
"""So many of a session's meanings are its meaning: the best."""

NEAR_COSINE: Final = 0.5
"""A centred cosine that says much."""
MEANING_POWER: Final = 1.5
"""The power of a cosine in that unit that it is worth: two weak resemblances are worth less than a
strong one. With 3 the nearest stood too far before the next: Cranfield's nDCG@10 was 37.5 for 38.3,
Debian's 86.0 for 87.0, of LoCoMo's turns 62.1 for 63.1 (MiniLM 64.6 for 65.3)."""

NAME_WEIGHT: Final = 4.0
"""How much more a name matters than another word, where it is asked what a memory has of a query:
a question about somebody who is in no memory is not answered by one about somebody else."""
LIGHT_WEIGHT: Final = 0.5
"""How much less a word that says how is asked, and not what for ("kind", "feel", "after")."""
_COVERED_WORDS: Final = 5
"""Of a longer query the weightiest words alone must be found: agents search with whole messages,
and two rare words that are found are an answer, whatever the other twenty are."""
_COVERED_PAIRS: Final = 8
"""The same in pairs of characters, where words are not told apart. Their mean is taken so many
times: the weightiest are those that stand across two words, and in no memory."""
TOGETHER: Final = 0.2
"""The power of the share of a query's words that a memory has, whatever their weights, by which
those count: any word of a language is in some memory, and a rare one weighs as much as three others
of a question; but those three are seldom in the same by chance."""
TOGETHER_WORDS: Final = 10
"""Of so many words at most that share is taken."""
_RARITY_POWER: Final = 0.6
"""The power of a word's rarity that is its weight, where it is asked what a memory has of a query.
By the whole of it a single rare word, met by chance, makes up for three that are missing."""
_CHANCE_OF_LENGTH: Final = 0.5
"""How much less a word is a sign, by the logarithm of how many times ``PIVOT`` the text is long: a
page has many words. With these two the share that 98 of 100 questions have at least is much the
same for turns, observations, chats, code and documents (0.36 to 0.41; with neither 0.3 to 0.52)."""
_PIVOT_OF_PAIRS: Final = 2 * PIVOT
"""Where a query is cut into pairs: a text has two for each word."""
_BACKGROUND_SIZE: Final = 1_000
"""Memories that a store is thought to have at least, when it is asked how rare a word is that the
query and a memory share: in a store of three, how often a word stands there tells nothing."""
_DATE_RARITY: Final = 0.01
"""How often a date is thought to be met, when a query's date is one of the words to be found."""
_MEANING_STRENGTH: Final = 8.0
"""What a cosine above the floor adds to the strength of an answer: a twentieth adds 0.4."""
_MEANING_DOUBT: Final = 0.5
"""What one below it takes away: words in common, and nothing in common."""
_FLOOR_SIZE: Final = 300
"""Memories from which on the model's floor holds. It is what the best of so many that have nothing
to do with a query may reach. The best of fewer reaches less, as their logarithm is less."""
_FLOOR_LEAST: Final = 0.3
"""The least share of the floor that holds in the smallest store."""


class Weights(NamedTuple):
    """What each part of the evidence counts. The memory's own words count 1.

    That of its own meaning is the model's, see ``CosineScale``. ``question`` is the share of all
    the rest that is taken off.
    """

    words_around: float = 1.5
    words_of_session: float = 0.5
    meaning_around: float = 0.3
    meaning_of_session: float = 0.2
    subject: float = 0.25
    date: float = 0.5
    question: float = 0.2


WEIGHTS: Final = Weights()


class Candidate(NamedTuple):
    """A memory that may be an answer, with the signals that scoring reads.

    ``counts`` has how often terms of the query stand in it, by their place there and in its order;
    ``length`` is its number of words. ``neighbours`` has the row ids around it in its session, by
    distance. ``cosine`` is that of its vector and the query's, both centred, if it has one. ``day``
    is that of its timestamp. ``opens`` is whether its first word is one of the query's, ``asks``
    whether it ends with a question. ``variants`` has what stands in it for words of the query, by
    the word asked for.
    """

    row_id: int
    session: str
    counts: Mapping[int, float]
    length: int
    day: date
    age_days: int = 0
    access_count: int = 0
    neighbours: Mapping[int, int] = MappingProxyType({})
    cosine: float | None = None
    opens: bool = False
    asks: bool = False
    variants: Mapping[str, str] = MappingProxyType({})


class CosineScale(NamedTuple):
    """What the cosines of one embedding model are worth.

    ``weight`` is how much a cosine of ``NEAR_COSINE`` counts beside the best by words; at ``floor``
    and below, two texts have nothing to do with each other. By words and meaning an answer needs
    ``leeway`` less strength than by words alone.
    """

    weight: float
    floor: float
    leeway: float = DEFAULT_FLOOR_LEEWAY


class QueryProfile(NamedTuple):
    """What scoring knows of a query.

    ``frequencies`` has, for each of its terms, how many of the ``corpus_size`` memories contain it;
    ``times`` how often the query does, once each where nothing is said. ``name_terms`` are the
    places of the terms that are names, ``light_terms`` of those that say little of what is asked
    for, ``pair_terms`` of pairs of characters. ``spans`` are the dates that the query speaks of,
    ``date_terms`` the places of the terms that say them. ``cosine_scale`` is that of the
    candidates' cosines, if they have any.
    """

    frequencies: Sequence[int]
    corpus_size: int
    times: Sequence[int] = ()
    name_terms: Collection[int] = ()
    light_terms: Collection[int] = ()
    pair_terms: Collection[int] = ()
    is_english: bool = True
    spans: Sequence[Span] = ()
    date_terms: AbstractSet[int] = frozenset()
    cosine_scale: CosineScale | None = None


class Evidence(NamedTuple):
    """The score of a candidate, part by part, each times its weight: see the table above.

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
    the query's words that one candidate has, ``strength`` how good the best answer is by words and
    meaning, both 0 to 1.
    """

    parts: Mapping[int, tuple[float, ...]]
    coverage: float
    strength: float

    @property
    def evidence(self) -> dict[int, Evidence]:
        """Return the evidence for each candidate, by row id."""
        return {row_id: self.evidence_for(row_id) for row_id in self.parts}

    def evidence_for(self, row_id: int) -> Evidence:
        """Return the evidence for one candidate: few are ever looked at."""
        return Evidence._make(self.parts[row_id])


def weigh(
    candidates: Sequence[Candidate], query: QueryProfile, weights: Weights = WEIGHTS
) -> Scores:
    """Weigh the evidence for each candidate."""
    if not candidates:
        return Scores({}, 0.0, 0.0)
    coverage, sign = _coverage(candidates, query)
    share = coverage if _has_meaning(candidates, query) else 1.0
    of_words = _weigh_words(candidates, query, weights, share)
    of_meaning = _weigh_meaning(candidates, query, weights)
    parts: dict[int, tuple[float, ...]] = {}
    lengths = {candidate.row_id: candidate.length for candidate in candidates}
    for candidate, words, meaning in zip(candidates, of_words, of_meaning, strict=True):
        own, around, of_session = words
        own_meaning, meaning_around, meaning_of_session = meaning
        subject = weights.subject * _fade(candidate.length, SHORT) if candidate.opens else 0.0
        date = weights.date * _nearness(candidate, query) if query.spans else 0.0
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
    strength = min(1.0, max(0.0, sign + _strength_of_meaning(candidates, query)))
    return Scores(parts, coverage, strength)


Parts = tuple[float, float, float]
"""What speaks for a candidate: its own, that of those around it, and of its session."""
_NOTHING: Final[Parts] = (0.0, 0.0, 0.0)


# Words ------------------------------------------------------------------------------------------


def _weigh_words(
    candidates: Sequence[Candidate], query: QueryProfile, weights: Weights, share: float
) -> list[Parts]:
    """Weigh the words of each candidate, of those around it, and of its session."""
    k3 = QUERY_SATURATION
    times = [n * (k3 + 1) / (k3 + n) for n in query.times] or [1.0] * len(query.frequencies)
    counted = zip(times, query.frequencies, strict=True)
    rarities = [count * rarity(frequency, query.corpus_size) for count, frequency in counted]
    texts = {candidate.row_id: (candidate.counts, candidate.length) for candidate in candidates}
    own = [_bm25(counts, length, rarities) if counts else 0.0 for counts, length in texts.values()]
    around = [
        _bm25(counts, length, rarities) if counts else 0.0
        for counts, length in _texts_around(candidates, texts)
    ]
    of_sessions = _score_sessions(candidates, times)
    # The best of each is 1.
    best_own, best_around, best_of_session = (
        max(scores, default=0.0) or math.inf for scores in (own, around, of_sessions.values())
    )
    surroundings = weights.words_around + weights.words_of_session
    parts: list[Parts] = []
    for candidate, of_own, of_around in zip(candidates, own, around, strict=True):
        of_session = of_sessions.get(candidate.session, 0.0)
        if not (of_around or of_session):
            parts.append(_NOTHING)  # nor has it words of its own
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
    """Return 1 for a memory of ``short`` words at most, and less the longer it is."""
    return 1.0 if length <= short else short / length


Text = tuple[Mapping[int, float], float]
"""How often terms of the query stand in a text, by their place there, and how many words it has."""


def _texts_around(candidates: Sequence[Candidate], texts: Mapping[int, Text]) -> Iterator[Text]:
    """Yield each candidate's text with those of its neighbours, as far as they are candidates."""
    # In whatever order they come.
    mean = math.fsum([length for _, length in texts.values()]) / len(texts)
    unknown: Text = ({}, mean)
    for candidate in candidates:
        counts, length = texts[candidate.row_id]
        merged: dict[int, float] | None = None
        for distance, other in candidate.neighbours.items():
            weight = AROUND_WORDS.get(distance, 0.0)
            other_counts, other_length = texts.get(other, unknown)
            length += weight * other_length
            if other_counts:
                if merged is None:
                    merged = dict(counts)
                for place, count in other_counts.items():
                    merged[place] = merged.get(place, 0.0) + weight * count
        yield (counts if merged is None else merged), length


def _texts_of_sessions(candidates: Sequence[Candidate]) -> dict[str, Text]:
    """Return each session as one text, as far as its memories are candidates."""
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
    """Score each session by its words; a word is the rarer, the fewer sessions have it."""
    texts = _texts_of_sessions(candidates)
    frequencies = Counter(place for counts, _ in texts.values() for place in counts)
    rarities = {
        place: times[place] * rarity(count, len(texts)) for place, count in frequencies.items()
    }
    mean = math.fsum(length for _, length in texts.values()) / len(texts) or 1.0
    return {
        session: _bm25(counts, length, rarities, SESSION_SATURATION, SESSION_LENGTH, mean)
        for session, (counts, length) in texts.items()
        if counts
    }


def rarity(frequency: float, corpus_size: float) -> float:
    """Weigh a word by how rare it is. Never negative, even for a word in every memory."""
    size = max(corpus_size, frequency)
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def _bm25(
    counts: Mapping[int, float],
    length: float,
    rarities: Sequence[float] | Mapping[int, float],
    k1: float = BM25_SATURATION,
    b: float = BM25_LENGTH,
    pivot: float = PIVOT,
) -> float:
    """Score a text by its words."""
    slowness = k1 * (1 - b + b * length / pivot)
    if len(counts) == 1:  # as most have
        ((place, count),) = counts.items()
        return rarities[place] * count / (count + slowness)
    return math.fsum(
        [rarities[place] * count / (count + slowness) for place, count in counts.items()]
    )


# Meaning ----------------------------------------------------------------------------------------


def _has_meaning(candidates: Iterable[Candidate], query: QueryProfile) -> bool:
    has_vector = any(candidate.cosine is not None for candidate in candidates)
    return query.cosine_scale is not None and has_vector


def _weigh_meaning(
    candidates: Sequence[Candidate], query: QueryProfile, weights: Weights
) -> list[Parts]:
    """Weigh the meaning of each candidate, of those around it, and of its session."""
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


# Strength ---------------------------------------------------------------------------------------


def _coverage(candidates: Iterable[Candidate], query: QueryProfile) -> tuple[float, float]:
    """Return the largest share of the query that one memory has: its words, weighed, its date.

    "Last week" need not stand in a memory of last week. The second share is how far the words are a
    sign of an answer: less where there is but one, or the memory is long.
    """
    size = max(query.corpus_size, _BACKGROUND_SIZE)
    weights = _weights_of_terms(query, size)
    of_date = rarity(_DATE_RARITY * size, size) ** _RARITY_POWER if query.spans else 0.0
    asked = [weight for weight in [*weights, of_date] if weight]
    whole = _whole(weights, of_date, query.pair_terms)
    if not whole:
        return 0.0, 0.0
    pivot = _PIVOT_OF_PAIRS if query.pair_terms else PIVOT
    most = most_sure = 0.0
    for candidate in candidates:
        if not (of_date or candidate.counts):
            continue
        dated = of_date and of_date * (
            1 if _says_date(candidate, query) else _nearness(candidate, query)
        )
        # A guess at what was meant counts less than 1.
        met = [
            (weights[place] * min(1.0, count), count)
            for place, count in candidate.counts.items()
            if weights[place]
        ]
        share = math.fsum([weight for weight, _ in met]) + dated
        if share <= most_sure:
            continue  # nor is what it is a sign of more
        most = max(most, share)
        known = len(met) + (dated > 0)
        if known == len(asked):
            sure = share  # all of them are no chance, however long the text
        else:
            chance = _CHANCE_OF_LENGTH * math.log(max(1.0, candidate.length / pivot))
            sure = dated + math.fsum(
                [weight / (1 + chance / max(1.0, count)) for weight, count in met]
            )
        together = min(1.0, known / min(len(asked), TOGETHER_WORDS))
        most_sure = max(most_sure, min(whole, sure) * together**TOGETHER)
    return min(1.0, most / whole), most_sure / whole


def _whole(weights: Sequence[float], of_date: float, pairs: Collection[int]) -> float:
    """Return what all of a query counts, as far as it must be found."""
    words = [weight for place, weight in enumerate(weights) if place not in pairs]
    whole = sum(sorted([*words, of_date], reverse=True)[:_COVERED_WORDS])
    of_pairs = [weights[place] for place in pairs if weights[place]]
    if of_pairs:
        share = min(len(of_pairs), _COVERED_PAIRS) / len(of_pairs)
        whole += share * math.fsum(of_pairs)
    return whole


def _weights_of_terms(query: QueryProfile, size: int) -> list[float]:
    """Return what each word of the query counts, where it is asked what a memory has of it."""
    ignored = query.date_terms | (frozenset(query.light_terms) & frozenset(query.pair_terms))
    return [
        0.0
        if place in ignored
        else rarity(frequency, size) ** _RARITY_POWER
        * (NAME_WEIGHT if place in query.name_terms else 1.0)
        * (LIGHT_WEIGHT if place in query.light_terms else 1.0)
        for place, frequency in enumerate(query.frequencies)
    ]


def _says_date(candidate: Candidate, query: QueryProfile) -> bool:
    """Return whether the words of the date stand in a memory: "June" may be somebody's name."""
    return bool(query.date_terms) and query.date_terms <= candidate.counts.keys()


def _nearness(candidate: Candidate, query: QueryProfile) -> float:
    return max((span.nearness(candidate.day) for span in query.spans), default=0.0)


def _strength_of_meaning(candidates: Iterable[Candidate], query: QueryProfile) -> float:
    """Return what the best cosine adds to the strength, or takes away where it is below the floor.

    Nothing is taken away while a memory waits for its vector, which may be the answer, nor where a
    time is asked for: what happened then need not be like the question.
    """
    if query.cosine_scale is None:
        return 0.0
    cosines = [candidate.cosine for candidate in candidates]
    best = max((cosine for cosine in cosines if cosine is not None), default=0.0)
    above = best - floor_of(query)
    if above > 0:
        return above * _MEANING_STRENGTH
    return 0.0 if None in cosines or query.spans else above * _MEANING_DOUBT


def floor_of(query: QueryProfile) -> float:
    """Return the cosine up to which a memory has nothing to do with the query."""
    if query.cosine_scale is None:
        return 1.0
    share = math.log1p(query.corpus_size) / math.log1p(_FLOOR_SIZE)
    return query.cosine_scale.floor * min(1.0, max(_FLOOR_LEAST, share))
