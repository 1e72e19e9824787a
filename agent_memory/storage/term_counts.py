"""Counts the terms of a query in the words of texts."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from agent_memory.storage.records import Alternative, Term, WordCounts

FEW_TEXTS: Final = 1_000
"""Up to this many memories, texts are read instead of the index, in some 10 ms: that takes as long
whatever words other memories have. In the index, each memory of another that has a word of the
query takes 0.7 µs."""

_COUNTED_APART: Final = 200
"""If the query's words in a text, times the text's words, are at most this many, each is counted by
itself; otherwise all at once. A page of Thai has 20 of a query's 40 pairs of characters: searching
240 pages took 47 ms."""
_NONE: Final[Mapping[int, float]] = MappingProxyType({})
_NO_VARIANTS: Final[Mapping[str, str]] = MappingProxyType({})
_ASKS: Final = r"[?\uff1f][\"'\u2019\u201d)\]]*\s*(\[[^\[\]]*\]|\([^()]*\))?\s*\Z"
"""A question mark at the end; quotes and a caption in brackets may follow."""
_ENDING: Final = 1_000
"""Characters at the end of a text that are searched for it."""


class FewTexts(NamedTuple):
    """The row, text and words of each of a few memories, which are searched without an index."""

    texts: Sequence[tuple[int, str, Sequence[str]]]

    def vocabulary(self, words: Iterable[str], prefixes: Iterable[str]) -> dict[str, int]:
        """Return the words among ``words`` or with a prefix, and how many memories have each."""
        listed, beginnings = frozenset(words), tuple(prefixes)
        stored = Counter(word for _, _, tokens in self.texts for word in set(tokens))
        return {
            word: count
            for word, count in stored.items()
            if word in listed or word.startswith(beginnings)
        }

    def examples(self, alternative: Alternative, limit: int) -> list[str]:
        """Return texts that contain an alternative."""
        return [text for _, text, tokens in self.texts if _count(tokens, alternative)][:limit]

    def postings(self, terms: Sequence[Term]) -> list[list[int]]:
        """Return, for each term, the rows that contain it."""
        return [
            [row_id for row_id, _, words in self.texts if _stands_in(words, term)] for term in terms
        ]


class TermCounter:
    """Counts the terms of a query in texts.

    A search does so in hundreds of texts, most of which have one or two of the terms: which ones is
    determined in one step, and only those are counted.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        places = list(enumerate(terms))
        self._terms = [(place, term.word) for place, term in places if not term.is_prefix]
        self._prefixes = [(place, term.word) for place, term in places if term.is_prefix]
        self._words = frozenset(term.word for term in terms)
        self._alternatives = [
            (place, term, alternative)
            for place, term in enumerate(terms)
            for alternative in term.alternatives
        ]
        self._other_words = frozenset(
            word for _, _, alternative in self._alternatives for word in alternative.words
        )
        self._sought = self._words | self._other_words

    def count(self, tokens: Sequence[str], *, asks: bool) -> WordCounts:
        """Count the terms in a text of these words; ``asks`` is whether it ends with a question."""
        stored = self._sought.intersection(tokens)
        if not (stored or self._prefixes):
            return _counts_of_none(len(tokens), asks=asks)
        count_of = tokens.count
        if len(stored) * len(tokens) > _COUNTED_APART:
            count_of = Counter(filter(stored.__contains__, tokens)).__getitem__
        counts: dict[int, float] = {}
        for place, word in self._terms:
            if word in stored:
                counts[place] = count_of(word)
        variants = _NO_VARIANTS
        if self._prefixes or not self._other_words.isdisjoint(stored):
            for place, prefix in self._prefixes:
                if count := _count_prefix(tokens, prefix):
                    counts[place] = count
            variants = {}
            for place, term, alternative in self._alternatives:
                if count := _count(tokens, alternative):
                    counts[place] = counts.get(place, 0) + count * alternative.weight
                    variants.setdefault(term.written, alternative.written)
            counts = dict(sorted(counts.items()))
        opens = bool(tokens) and tokens[0] in self._words
        return WordCounts(counts, len(tokens), opens, asks, variants)


@lru_cache(maxsize=1_000)
def _counts_of_none(length: int, *, asks: bool) -> WordCounts:
    """Return the counts of a text in which no term of a query occurs: half of all that are read."""
    return WordCounts(_NONE, length, opens=False, asks=asks)


def _count(tokens: Sequence[str], alternative: Alternative) -> int:
    """Return how often an alternative occurs in a text."""
    count = min(map(tokens.count, alternative.words))
    if count and alternative.is_phrase:
        rows = (tokens[start:] for start in range(len(alternative.words)))
        return sum(run == alternative.words for run in zip(*rows, strict=False))
    return count


def _stands_in(tokens: Sequence[str], term: Term) -> bool:
    """Return whether a term, or an alternative of it, occurs in a text."""
    if term.is_prefix:
        return _count_prefix(tokens, term.word) > 0
    return term.word in tokens or any(_count(tokens, other) for other in term.alternatives)


def _count_prefix(tokens: Iterable[str], prefix: str) -> int:
    return sum(token.startswith(prefix) for token in tokens)


def asks(content: str) -> bool:
    """Return whether a text ends with a question."""
    if "?" not in content and "\uff1f" not in content:
        return False  # in a tenth of the time, and most are not questions
    return re.search(_ASKS, content[-_ENDING:]) is not None
