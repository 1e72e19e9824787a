"""The input of scoring: the signals of a query, and of each candidate. Pure."""

import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from types import MappingProxyType
from typing import Final, NamedTuple

from agent_memory.text.dates import Span

PIVOT: Final = 30
"""The length in words, a few sentences, at which a text's length neither helps nor hurts in BM25.

BM25 usually compares lengths with the mean of the texts. But how likely a word is there by chance
depends on how many other words the text has, not on what else is stored. With the mean, either the
long replies of an assistant came first (b = 0.4), or short turns were lost (b = 0.75)."""


class Candidate(NamedTuple):
    """A memory that may be an answer, with the signals that scoring reads.

    ``counts`` has how often terms of the query occur in it, by their position in the query and in
    its order; ``length`` is its number of words. ``neighbours`` has the row ids around it in its
    session, by distance. ``cosine`` is that of its vector and the query's, both centred, if it has
    a vector. ``day`` is the date of its timestamp. ``opens`` is whether its first word is in the
    query, ``asks`` whether it ends with a question. ``variants`` has the alternatives that matched
    in it, by the query's word.
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

    ``weight`` is how much a near cosine (``scoring.NEAR_COSINE``) counts relative to the best by
    words; at ``floor`` and below, two texts are unrelated. ``doubt`` is ``ModelTraits``' own.
    """

    weight: float
    floor: float
    doubt: float = 0.0


class QueryProfile(NamedTuple):
    """What scoring knows about a query.

    ``frequencies`` has, for each of its terms, how many of the ``corpus_size`` memories contain it;
    ``times`` has how often the query does (by default, once each). ``name_terms`` are the positions
    of the terms that are names, as the query writes them or, if it has no capitals, as the store
    does (``is_lower``), ``light_terms`` of those that say little about what is asked for,
    ``pair_terms`` of pairs of characters; ``is_english`` is whether the query is taken for English,
    ``is_phrased`` whether it is that and no list of keywords.
    ``spans`` are the dates that it mentions, ``date_terms`` the positions of the terms that name
    them, ``relative_terms`` of those that say how long ago. ``cosine_scale`` is that of the
    candidates' cosines, if they have any. ``asks_for_several`` is whether one answer is not enough.
    """

    frequencies: Sequence[int]
    corpus_size: int
    times: Sequence[int] = ()
    name_terms: Collection[int] = ()
    is_lower: bool = False
    light_terms: Collection[int] = ()
    pair_terms: Collection[int] = ()
    is_english: bool = True
    is_phrased: bool = True
    spans: Sequence[Span] = ()
    date_terms: AbstractSet[int] = frozenset()
    relative_terms: AbstractSet[int] = frozenset()
    cosine_scale: CosineScale | None = None
    asks_for_several: bool = False


def rarity(frequency: float, corpus_size: float) -> float:
    """Weigh a word by how rare it is. Never negative, even for a word in every memory."""
    size = max(corpus_size, frequency)
    return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))


def nearness(candidate: Candidate, query: QueryProfile) -> float:
    """Return how near a memory is to the times that a query mentions, 0 to 1."""
    return max((span.nearness(candidate.day) for span in query.spans), default=0.0)
