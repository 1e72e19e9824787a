"""Postings as SQL: which memories contain the words of a query, and how often."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from agent_memory.storage.records import Alternative, Term
from agent_memory.storage.sql import Condition

# OFFSET 0 forces a word's postings to be looked up by the index.
_OF_WORDS: Final = """
SELECT a.place, a.rarity, i.seq, i.count, i.size
FROM unnest(%s::integer[], %s::float8[], %s::text[]) AS a (place, rarity, word)
CROSS JOIN LATERAL (
  SELECT seq, count, size FROM memory_index WHERE word = a.word OFFSET 0) AS i"""
_OF_PREFIX: Final = """
SELECT %s::integer AS place, %s::float8 AS rarity, i.seq, sum(i.count) AS count, max(i.size) AS size
FROM memory_index AS i WHERE i.word >= %s AND i.word < %s GROUP BY i.seq"""
_OF_WORD_BESIDE_OTHERS: Final = """
SELECT %s::integer AS place, %s::float8 AS rarity, i.seq, i.count, i.size
FROM memory_index AS i WHERE i.word = %s AND {all}"""
_OF_PHRASE: Final = """
SELECT %s::integer AS place, %s::float8 AS rarity, i.seq, c.count, i.size
FROM memory_index AS i CROSS JOIN LATERAL (
  SELECT count_phrase(t.tokens, %s) AS count FROM memory_text AS t
  WHERE t.seq = i.seq OFFSET 0) AS c
WHERE i.word = %s AND {all} AND c.count > 0"""
_HAS: Final = """EXISTS (
  SELECT 1 FROM memory_index AS o WHERE o.word = %s AND o.seq = i.seq OFFSET 0)"""
LAST_LETTER: Final = "\U0010ffff"
"""Sorts after every continuation of a prefix."""


_LONGEST: Final = 1_000
"""The most bytes of a word that is indexed unchanged: a key of a b-tree may have 2,700 in all."""


def key_of(word: str) -> str:
    """Return a word as the index has it: a long one, such as a text without spaces, is cut.

    ``words_in`` in the migrations does the same. No word contains a full stop.
    """
    encoded = word.encode()
    if len(encoded) <= _LONGEST:
        return word
    return f"{word[:200]}.{hashlib.sha256(encoded).hexdigest()}"


def is_cut(key: str) -> bool:
    """Return whether a key of the index is a shortened word."""
    return "." in key


class Phrase(NamedTuple):
    """Adjacent words that count as one, for the term at ``place`` in the query.

    Usually it is a single word. ``beside`` are words that the memory must also contain, anywhere.
    For a prefix it is the one word that others begin with.
    """

    place: int
    words: tuple[str, ...]
    beside: tuple[str, ...] = ()
    is_prefix: bool = False

    @property
    def is_word(self) -> bool:
        """Return whether it is a single word, literally in the index."""
        return len(self.words) == 1 and not self.is_prefix

    @property
    def is_alone(self) -> bool:
        """Return whether it is a single word, and nothing else is required of the memory."""
        return self.is_word and not self.beside


def all_phrases(terms: Sequence[Term]) -> list[Phrase]:
    """Return the phrases of terms, and those of their alternatives."""
    phrases = [
        Phrase(place, (term.word,), is_prefix=term.is_prefix) for place, term in enumerate(terms)
    ]
    for place, term in enumerate(terms):
        for alternative in term.alternatives:
            phrases += phrases_of(alternative, place)
    return phrases


def phrases_of(alternative: Alternative, place: int) -> list[Phrase]:
    """Return the phrases of an alternative: one, or each of its words beside the others."""
    words = alternative.words
    if alternative.is_phrase:
        return [Phrase(place, words)]
    return [
        Phrase(place, (word,), words[:number] + words[number + 1 :])
        for number, word in enumerate(words)
    ]


def postings(phrases: Sequence[Phrase], rarities: Sequence[float] | None = None) -> Condition:
    """Return the query of the postings: place and rarity of a phrase, row, count and size."""
    pairs = list(zip(phrases, rarities or [0.0] * len(phrases), strict=True))
    alone = [(phrase, rarity) for phrase, rarity in pairs if phrase.is_alone]
    parts = [_of_others(phrase, rarity) for phrase, rarity in pairs if not phrase.is_alone]
    if alone:
        places = [phrase.place for phrase, _ in alone]
        words = [key_of(phrase.words[0]) for phrase, _ in alone]
        parts.append(Condition(_OF_WORDS, (places, [rarity for _, rarity in alone], words)))
    sql = "\nUNION ALL ".join(part.sql for part in parts)
    return Condition(sql, tuple(value for part in parts for value in part.values))


def _of_others(phrase: Phrase, rarity: float) -> Condition:
    first, *others = phrase.words
    if phrase.is_prefix:
        return Condition(_OF_PREFIX, (phrase.place, rarity, first, first + LAST_LETTER))
    others += phrase.beside
    keys = [key_of(word) for word in (first, *others)]
    values = (phrase.place, rarity, *keys)
    sql = _OF_WORD_BESIDE_OTHERS
    if not phrase.is_word:
        sql = _OF_PHRASE
        values = (phrase.place, rarity, " ".join(phrase.words), *keys)
    return Condition(sql.format(all=" AND ".join([_HAS] * len(others)) or "true"), values)
