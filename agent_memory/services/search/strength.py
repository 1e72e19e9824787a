"""How strong the best answer to a query is, and has to be. Pure.

By words, strength is the share of the query's words that one memory has, weighted by rarity; a near
meaning adds to it. Below the floor nothing is an answer.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from agent_memory.services.search.signals import (
    PIVOT,
    Candidate,
    QueryProfile,
    nearness,
    rarity,
)

STRENGTH_FLOOR: Final = 0.3
"""The floor in a store of ``MANY`` memories or more: if no memory has this share of the query's
words, weighted by rarity, there is no answer. Of ten corpora none loses more than 1.3 % of its own
questions; with 0.31 one loses 2 %, with 0.32 one loses 4 %."""
MANY: Final = 2_000
STRENGTH_FLOOR_OF_A_HANDFUL: Final = 0.21
"""The floor in a store of ``HANDFUL`` memories or fewer: the best of a few has little of a question
by chance, and somebody who stored a few should find them by any of their words. What the best of
more memories has by chance grows with the logarithm of their number, and so does the floor."""
HANDFUL: Final = 10
OTHER_LANGUAGES: Final = 0.12
"""What is subtracted from the floor if a query is not in English. Less is known about other
languages: which words are names, which say little, which are forms of one another. So only part of
a question in them is ever matched. At the floor of English, 1 to 12 % of a store's own questions
find nothing in twelve corpora of other languages, and 16 % in Arabic; with this, up to 1.3 % and
2.3 %, 0.7 % on average."""

NAME_WEIGHT: Final = 4.0
"""How much more a name matters than another word for the share of a query that a memory has: a
question about somebody who is in no memory is not answered by a memory about somebody else."""
LOWER_NAME_WEIGHT: Final = 2.0
"""The same in a query without capitals, whose names are known from the store alone. With 1,
recall@10 of LoCoMo's observations, asked in lower case, was 2.1 lower, and 6.9 % of the questions
found nothing; with 4, Debian's packages answered 15 % more of LoCoMo's."""
LIGHT_WEIGHT: Final = 0.5
"""The factor for a word that says how it is asked, and not what for ("kind", "feel", "after")."""
_COVERED_WORDS: Final = 5
"""In a longer query only the weightiest words must be found: agents search with whole messages, and
two rare words that match are an answer, whatever the other twenty are."""
_COVERED_PAIRS: Final = 8
"""The same for pairs of characters, in scripts that do not separate words. Their mean is taken so
many times: the weightiest are those that straddle two words, and are in no memory."""
TOGETHER: Final = 0.2
"""The exponent of the unweighted share of a query's words that a memory has, a factor of its
strength: any word of a language is in some memory, and a rare one weighs as much as three others of
a question; but those three are seldom in one memory by chance."""
TOGETHER_WORDS: Final = 10
"""At most so many words are expected for that share."""
_RARITY_POWER: Final = 0.6
"""The power to which a word's rarity is raised to get its weight in the share of a query that a
memory has. With the full rarity, a single rare word, matched by chance, makes up for three that are
missing."""
_CHANCE_OF_LENGTH: Final = 0.5
"""How much less a match means with the logarithm of the text's length in multiples of ``PIVOT``: a
page has many words. With these two, the share that 98 of 100 questions reach is much the same for
turns, observations, chats, code and documents (0.36 to 0.41; with neither 0.3 to 0.52)."""
_PIVOT_OF_PAIRS: Final = 2 * PIVOT
"""For queries that are cut into pairs: a text has two for each word."""
_BACKGROUND_SIZE: Final = 1_000
"""The minimum size assumed for a store when judging how rare a word is that the query and a memory
share: in a store of three, how often a word occurs there says nothing."""
_COMMON_SHARE: Final = 0.25
_COMMON_COUNT: Final = 4
"""A word in at least this share of a store, and in at least so many memories, is as common as it is
in that store: of many notes that begin with "Meeting", each was an answer to any question about a
meeting. Names are exempt: a person who is asked about is in half of LoCoMo's turns, which lost 1.3
points."""
_OTHERS: Final = 200
"""How many more memories, without that word, are assumed in a store of fewer than
``_BACKGROUND_SIZE``. That all of five notes are on tea says little of how common the word is, and
"tea preferences" found none of them. Of functions that share a word, 5 or 12 to a store, an eighth
more of the own questions find something with it (``bench/small_stores.py``)."""
_DATE_RARITY: Final = 0.01
"""The assumed frequency of a date, when a query's date is one of the words to be found."""
_MEANING_STRENGTH: Final = 8.0
"""What a cosine above the floor adds to the strength of an answer: a twentieth adds 0.4."""
_FLOOR_SIZE: Final = 300
"""The number of memories from which the model's full floor applies. That floor is what the best of
so many unrelated memories may reach. For fewer it shrinks with their logarithm."""
_FLOOR_LEAST: Final = 0.3
"""The smallest share of the floor, for the smallest stores."""
_TOLD_BY_VECTOR: Final = 90
"""The number of words up to which a vector tells what a memory is about. That of a page is the mean
of all that is on it: the longer, the less doubt a far meaning raises. Without this, BEAM lost 4.5
percent of its own questions, and not 0.6."""


def strength_of(candidates: Iterable[Candidate], query: QueryProfile) -> tuple[float, float]:
    """Return the largest share of the query in one memory, and the strength of the best answer.

    The share is that of the query's weighted words and of its date: a memory from last week need
    not contain "last week". Words and meaning are added up memory by memory: if one memory has the
    words and another is near, that is chance, by which two of a hundred questions to another store
    found something. A far meaning only takes away from words that it was measured to be right
    about: those of an English sentence in a short memory, with some models (``CosineScale.doubt``).
    Of keywords too it took half of those that had a slip, or stood beside an unknown one.
    """
    size = max(query.corpus_size, _BACKGROUND_SIZE)
    weights = _weights_of_terms(query, size)
    of_date = rarity(_DATE_RARITY * size, size) ** _RARITY_POWER if query.spans else 0.0
    asked = sum(weight > 0 for weight in [*weights, of_date])
    whole = _whole(weights, of_date, query.pair_terms) or math.inf
    pivot = _PIVOT_OF_PAIRS if query.pair_terms else PIVOT
    floor = floor_of(query)
    doubt = query.cosine_scale.doubt if query.cosine_scale and query.is_phrased else 0.0
    most = strongest = 0.0
    for candidate in candidates:
        cosine = candidate.cosine
        near = 0.0 if cosine is None else max(0.0, cosine - floor) * _MEANING_STRENGTH
        if not (of_date or candidate.counts):
            strongest = max(strongest, near)
            continue
        # The words of the date may occur in it: "June" may be somebody's name.
        says_date = bool(query.date_terms) and query.date_terms <= candidate.counts.keys()
        dated = of_date and of_date * (1 if says_date else nearness(candidate, query))
        # A guess at what was meant counts less than 1.
        parts = [
            weights[place] if count >= 1 else weights[place] * count
            for place, count in candidate.counts.items()
        ]
        share = math.fsum(parts) + dated
        most = max(most, share)
        if not share or share / whole + near <= strongest:
            strongest = max(strongest, near)
            continue
        met = [pair for pair in zip(parts, candidate.counts.values(), strict=True) if pair[0]]
        known = len(met) + (dated > 0)
        if known == asked:
            sure = share  # having all of them is no chance, however long the text
        else:
            chance = _CHANCE_OF_LENGTH * math.log(max(1.0, candidate.length / pivot))
            sure = dated + math.fsum(
                [weight / (1 + chance / max(1.0, count)) for weight, count in met]
            )
        together = min(1.0, known / min(asked, TOGETHER_WORDS)) ** TOGETHER
        trust = _trust(candidate, floor, doubt) if doubt else 1.0
        strongest = max(strongest, min(whole, sure) / whole * together * trust + near)
    return min(1.0, most / whole), min(1.0, strongest)


def _trust(candidate: Candidate, floor: float, doubt: float) -> float:
    """Return how much of its words counts, by how far its meaning is below the floor."""
    if floor <= 0 or candidate.cosine is None or candidate.cosine >= floor:
        return 1.0
    far = min(1.0, 1 - candidate.cosine / floor)
    return 1 - doubt * far * min(1.0, _TOLD_BY_VECTOR / max(1, candidate.length))


def _whole(weights: Sequence[float], of_date: float, pairs: Collection[int]) -> float:
    """Return the total weight of a query, as far as it must be found."""
    words = [weight for place, weight in enumerate(weights) if place not in pairs]
    whole = sum(sorted([*words, of_date], reverse=True)[:_COVERED_WORDS])
    of_pairs = [weights[place] for place in pairs if weights[place]]
    if of_pairs:
        share = min(len(of_pairs), _COVERED_PAIRS) / len(of_pairs)
        whole += share * math.fsum(of_pairs)
    return whole


def _weights_of_terms(query: QueryProfile, size: int) -> list[float]:
    """Return the weight of each word of the query in the share that a memory has."""
    ignored = query.date_terms | (frozenset(query.light_terms) & frozenset(query.pair_terms))
    least = max(_COMMON_COUNT, _COMMON_SHARE * query.corpus_size)
    among = min(size, query.corpus_size + _OTHERS)
    of_name = LOWER_NAME_WEIGHT if query.is_lower else NAME_WEIGHT
    weights: dict[int, float] = {}
    for place, frequency in enumerate(query.frequencies):
        is_name = place in query.name_terms
        is_common = frequency >= least and not is_name
        weight = rarity(frequency, among if is_common else size) ** _RARITY_POWER
        weights[place] = 0.0 if place in ignored else weight * (of_name if is_name else 1)
    # "How often do we deploy?" asks five notes on deploys, in which "deploy" is common, for it.
    most = max((weights[place] for place in weights.keys() - query.light_terms), default=0.0)
    return [
        LIGHT_WEIGHT * min(weight, most or weight) if place in query.light_terms else weight
        for place, weight in weights.items()
    ]


def floor_of(query: QueryProfile) -> float:
    """Return the cosine up to which a memory is unrelated to the query."""
    if query.cosine_scale is None:
        return 1.0
    share = math.log1p(query.corpus_size) / math.log1p(_FLOOR_SIZE)
    return query.cosine_scale.floor * min(1.0, max(_FLOOR_LEAST, share))


def strength_floor(query: QueryProfile) -> float:
    """Return how strong the best answer to a query must be, in a store of this size."""
    size = min(MANY, max(HANDFUL, query.corpus_size))
    grown = math.log(size / HANDFUL) / math.log(MANY / HANDFUL)
    span = STRENGTH_FLOOR - STRENGTH_FLOOR_OF_A_HANDFUL
    least = STRENGTH_FLOOR_OF_A_HANDFUL + grown * span
    return least if query.is_english else least - OTHER_LANGUAGES
