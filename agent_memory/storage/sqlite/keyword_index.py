"""The keyword index (FTS5): terms of a query, and the memories that share the rarest of them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.filters import Filter
from agent_memory.storage.records import Alternative, Term, WordCounts
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.filters import compiled
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.memories import MemoryTable

MAX_TERMS: Final = 64
"""Terms of a query: 100,000 joined by OR took FTS5 20 s, 1,000 took 2 ms."""
MAX_QUERY_CHARACTERS: Final = 10_000

SCAN_BUDGET: Final = 5_000
"""Memories that FTS5 scores for one search, where the rarest words leave a choice.

Scoring 27,000 of 100,000 takes 22 ms. The words that would go past the budget still count in the
ranking of what the rarer ones found."""
FILTERED_SCAN_BUDGET: Final = 15_000
"""The same under a filter, which is tested before scoring and may leave few of them."""

FEW_TEXTS: Final = 1_000
"""Memories whose texts are read instead of the index, some 10 ms: that takes as long whatever words
others have. In the index, each memory of another that has a word of the query takes 0.7 µs."""

LONG: Final = 500
"""Characters from which on the words of a text are kept for the next search, as those of any text
with other letters than ASCII: to cut the same ones up again took a search of messages of 2,700
characters a third of its time, of Japanese, whose pairs SQL makes, nearly all."""
MOST_KEPT: Final = 2_000_000
"""Words that are kept, of all texts together, in 16 MB: then those read first go."""

# Words that say nothing of what is asked for. Question words are here because they stand in every
# question; names, numbers and negations that change a meaning are not.
STOP_WORDS: Final = frozenset(
    """
    a about an and any are as at be been being but by can could did do does doing done for from
    had has have having he her hers him his how i if in into is it its itself just me might my
    of on or our ours out s shall she should so some such t than that the their theirs them then
    there these they this those to too up us was we were what when where which while who whom
    whose why will with would you your yours
    """.split()
)

# Scripts that are indexed by pairs of characters; memory_text in migrations/ has the same ranges.
_DENSE: Final = (
    "\u0e00-\u109f\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)

_WORDS: Final = re.compile(r"\w+")
_GOING_ON: Final = re.compile(r"(?<=[\w,;:'\u2019\-] )[\"'(\u2018\u201c]?(\w\w+)")
_ASKS: Final = re.compile(r"[?\uff1f][\"'\u2019\u201d)\]]*\s*(\[[^\[\]]*\]|\([^()]*\))?\s*\Z")
"""A question mark at the end; quotes and a caption in brackets may follow it."""
_ENDING: Final = 1_000
"""Characters at the end of a text that are looked at for it."""

_UNSTEMMED_ENDINGS: Final = ("", "e", "s", "es", "y", "ed", "ing", "er", "ity", "ation")
"""What is put after a stem until FTS5 makes that stem of it again."""

_SELECT_FREQUENCY: Final = "SELECT doc FROM memory_words WHERE term = ?"
_SELECT_FREQUENCY_OF_PREFIX: Final = """
SELECT sum(doc) FROM memory_words WHERE term >= ? AND term < ?"""
_SELECT_VOCABULARY: Final = """
SELECT term, doc FROM memory_words WHERE term IN (SELECT value FROM json_each(?))"""
_SELECT_VOCABULARY_OF_PREFIXES: Final = """
SELECT v.term, v.doc FROM json_each(?) AS p CROSS JOIN memory_words AS v
WHERE v.term >= p.value AND v.term < p.value || char(0x10FFFF)"""
_SELECT_CANDIDATES: Final = """
SELECT i.rowid FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition} ORDER BY {order} LIMIT ?"""
_SELECT_POSTINGS: Final = """
SELECT i.rowid FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition}"""
_SELECT_EXAMPLES: Final = """
SELECT m.content || ' ' || m.tags
FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition} ORDER BY i.rowid DESC LIMIT ?"""
_SELECT_TEXTS: Final = """
SELECT seq, content, tags || ' ' || dates || ' ' || pairs
FROM memory_text WHERE seq IN (SELECT value FROM json_each(?))"""


# Of texts that take long to cut up, what they are made from, and no words yet.
_SELECT_WORDS: Final = f"""
SELECT m.seq, m.content, m.tags, m.timestamp,
  CASE WHEN length(m.content) <= {LONG} AND length(m.content) = octet_length(m.content)
    THEN (SELECT tags || ' ' || dates || ' ' || pairs FROM memory_text WHERE seq = m.seq) END
FROM memories AS m NOT INDEXED WHERE m.seq IN (SELECT value FROM json_each(?))"""


class KeywordIndex(Table):
    """The FTS5 index of words."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._long_texts: dict[tuple[str, ...], list[str]] = {}
        self._kept_words = 0

    def terms_of(self, query: str) -> list[Term]:
        """Return the distinct terms of a query, 64 at most, without stop words.

        A query of nothing but stop words keeps them. Any text is a query.
        """
        text = query[:MAX_QUERY_CHARACTERS].replace("\x00", " ").encode(errors="replace").decode()
        terms: dict[str, Term] = {}
        stop_words: dict[str, Term] = {}
        names = _names(text)
        for piece, is_dense in _pieces(text):
            if is_dense:
                for term in self._dense_terms(piece):
                    terms.setdefault(term.match, term)
                continue
            for word, written in self._db.words(piece):
                kept = stop_words if written.lower() in STOP_WORDS else terms
                kept.setdefault(word, Term(word, written, is_name=written in names))
            if len(terms) >= MAX_TERMS:
                break
        return list((terms or stop_words).values())[:MAX_TERMS]

    def _dense_terms(self, run: str) -> Iterable[Term]:
        """Return the pairs of characters in a run without spaces; of one character, the prefix."""
        if len(run) == 1:
            return [Term(token, run, is_prefix=True) for token in self._db.tokenize([run])[0]]
        pairs = [here + following for here, following in pairwise(run)]
        # A pair with punctuation in it is no word, or two.
        tokenized = zip(pairs, self._db.tokenize(pairs), strict=True)
        return [Term(tokens[0], pair) for pair, tokens in tokenized if len(tokens) == 1]

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        return [
            self._frequency(term)
            + sum(min(map(self._doc, alternative.words)) for alternative in term.alternatives)
            for term in terms
        ]

    def _frequency(self, term: Term) -> int:
        if term.is_prefix:
            bounds = (term.word, term.word + "\U0010ffff")
            return int(self._db.value(_SELECT_FREQUENCY_OF_PREFIX, bounds) or 0)
        return self._doc(term.word)

    def _doc(self, word: str) -> int:
        # A search asks twice: which words are unknown, and how rare each is.
        return self._db.once(
            ("frequency", word), lambda: int(self._db.value(_SELECT_FREQUENCY, (word,)) or 0)
        )

    def tokens(self, words: Sequence[str]) -> list[str]:
        tokenized = self._db.tokenize(words)
        return [tokens[0] if len(tokens) == 1 else "" for tokens in tokenized]

    def vocabulary(
        self, words: Iterable[str], prefixes: Iterable[str], filters: Filter
    ) -> dict[str, int]:
        if filters.is_narrowing and (texts := self._few_texts(filters)) is not None:
            listed, beginnings = frozenset(words), tuple(prefixes)
            stored = Counter(word for _, _, tokens in texts for word in set(tokens))
            return {
                word: count
                for word, count in stored.items()
                if word in listed or word.startswith(beginnings)
            }
        exact = self._db.rows(_SELECT_VOCABULARY, (to_json(sorted(set(words))),))
        ranges = self._db.rows(_SELECT_VOCABULARY_OF_PREFIXES, (to_json(sorted(set(prefixes))),))
        return {word: count for word, count in [*exact, *ranges] if count}

    def examples(self, alternative: Alternative, filters: Filter, *, limit: int) -> list[str]:
        if filters.is_narrowing and (texts := self._few_texts(filters)) is not None:
            return [text for _, text, tokens in texts if _count(tokens, alternative)][:limit]
        condition = compiled(filters)
        sql = _SELECT_EXAMPLES.format(condition=condition.sql)
        (match,) = self._alternative_matches([alternative]) or ('""',)
        return [text for (text,) in self._db.rows(sql, (match, *condition.values, limit))]

    def _few_texts(self, filters: Filter) -> list[tuple[int, str, list[str]]] | None:
        """Return row, text and words of the memories that pass; ``None`` where they are many.

        A search asks for them a dozen times, for its words, their forms, and the postings of each.
        """
        return self._db.once(("few texts", repr(filters)), lambda: self._read_few_texts(filters))

    def _read_few_texts(self, filters: Filter) -> list[tuple[int, str, list[str]]] | None:
        row_ids = MemoryTable(self._db).row_ids(filters, limit=FEW_TEXTS + 1)
        if len(row_ids) > FEW_TEXTS:
            return None
        rows = self._db.rows(_SELECT_TEXTS, (to_json(list(row_ids)),))
        texts = [(row_id, f"{content} {rest}") for row_id, content, rest in rows]
        tokens = self._db.tokenize(text for _, text in texts)
        return [(row_id, text, words) for (row_id, text), words in zip(texts, tokens, strict=True)]

    def candidates(
        self,
        terms: Sequence[Term],
        frequencies: Sequence[int],
        filters: Filter,
        *,
        needed: int,
        limit: int,
    ) -> tuple[list[int], list[Term]]:
        """Return the rows that match best by FTS5's own measure, and the terms left out of it.

        The rows come best first, ``limit`` at most. The terms left out are the commonest, whose
        matches are too many to score. They are asked for only when the others leave less than
        ``needed`` rows, and then the newest that have them follow.
        """
        budget = FILTERED_SCAN_BUDGET if filters.is_narrowing else SCAN_BUDGET
        chosen, common = _split_by_budget(terms, frequencies, budget)
        # Sorted by FTS5 itself, every match is scored; otherwise only those that pass the
        # condition.
        order = "bm25(memory_index)" if filters.is_narrowing else "i.rank"
        row_ids = self._matching(chosen, filters, order, limit) if chosen else []
        if len(row_ids) < needed and common:
            newest = self._matching(common, filters, "i.rowid DESC", limit)
            row_ids = list(dict.fromkeys(row_ids + newest))[:limit]
        return row_ids, common

    def _matching(
        self, terms: Sequence[Term], filters: Filter, order: str, limit: int
    ) -> list[int]:
        condition = compiled(filters)
        sql = _SELECT_CANDIDATES.format(condition=condition.sql, order=order)
        alternatives = [alternative for term in terms for alternative in term.alternatives]
        matches = [*(term.match for term in terms), *self._alternative_matches(alternatives)]
        match = " OR ".join(matches)
        return [row_id for (row_id,) in self._db.rows(sql, (match, *condition.values, limit))]

    def postings(self, terms: Sequence[Term], filters: Filter) -> list[list[int]]:
        """Return, for each term, the rows that have it, of the memories that pass the filters.

        Where few pass, their texts are read: see ``FEW_TEXTS``.
        """
        texts = self._few_texts(filters)
        if texts is not None:
            return [
                [row_id for row_id, _, words in texts if _stands_in(words, term)] for term in terms
            ]
        condition = compiled(filters)
        sql = _SELECT_POSTINGS.format(condition=condition.sql)
        matches = (
            " OR ".join([term.match, *self._alternative_matches(term.alternatives)])
            for term in terms
        )
        rows_of = (self._db.rows(sql, (match, *condition.values)) for match in matches)
        return [[row_id for (row_id,) in rows] for rows in rows_of]

    def _alternative_matches(self, alternatives: Sequence[Alternative]) -> list[str]:
        """Return the FTS5 query of each alternative."""
        tokens = {word for alternative in alternatives for word in alternative.words}
        unstemmed = self._unstemmed(sorted(tokens)) if tokens else {}
        matches = []
        for alternative in alternatives:
            if unstemmed.keys() >= set(alternative.words):
                quoted = [f'"{unstemmed[word]}"' for word in alternative.words]
                joint = " + " if alternative.is_phrase else " AND "
                matches.append(f"({joint.join(quoted)})")
        return matches

    def _unstemmed(self, tokens: Sequence[str]) -> dict[str, str]:
        """Return, for words as the index has them, some word that FTS5 makes such a one of.

        It stems what it is asked for: of "databas" it makes "databa".
        """
        guesses = [token + ending for token in tokens for ending in _UNSTEMMED_ENDINGS]
        stems = zip(guesses, self.tokens(guesses), strict=True)
        wanted = set(tokens)
        return {token: guess for guess, token in reversed(list(stems)) if token in wanted}

    def words(self, row_ids: Sequence[int], terms: Sequence[Term]) -> dict[int, WordCounts]:
        rows = self._db.rows(_SELECT_WORDS, (to_json(list(row_ids)),))
        short = [(row_id, f"{content} {rest}") for row_id, content, *_, rest in rows if rest]
        tokens = dict(self._tokenized(short))
        tokens |= self._words_of_long(
            {row_id: tuple(map(str, parts)) for row_id, *parts, rest in rows if not rest}
        )
        counter = _TermCounter(terms)
        return {
            row_id: counter.count(tokens[row_id], asks=_asks(content))
            for row_id, content, *_ in rows
        }

    def _tokenized(self, texts: Sequence[tuple[int, str]]) -> Iterable[tuple[int, list[str]]]:
        words = self._db.tokenize(text for _, text in texts)
        return zip((row_id for row_id, _ in texts), words, strict=True)

    def _words_of_long(self, keys: Mapping[int, tuple[str, ...]]) -> dict[int, list[str]]:
        """Return the words of texts that take long to cut up, which are kept: see ``LONG``."""
        kept = self._long_texts
        missing = [row_id for row_id, key in keys.items() if key not in kept]
        rows = self._db.rows(_SELECT_TEXTS, (to_json(missing),)) if missing else []
        texts = [(row_id, f"{content} {rest}") for row_id, content, rest in rows]
        words_of = {
            row_id: list(map(sys.intern, words)) for row_id, words in self._tokenized(texts)
        }
        words_of |= {row_id: kept[key] for row_id, key in keys.items() if row_id not in words_of}
        for row_id in missing:
            if keys[row_id] not in kept:  # else two memories have the same text, tags and time
                kept[keys[row_id]] = words_of[row_id]
                self._kept_words += len(words_of[row_id])
        while self._kept_words > MOST_KEPT:
            self._kept_words -= len(kept.pop(next(iter(kept))))
        return words_of


class _TermCounter:
    """Counts the terms of a query in texts.

    A search does so in hundreds of them, most of which have one term or two: what is not there is
    told from the sets of words, in a third of the time.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = terms
        self._words = {term.word for term in terms}
        self._has_prefixes = any(term.is_prefix for term in terms)
        self._alternatives = [
            (place, term, alternative)
            for place, term in enumerate(terms)
            for alternative in term.alternatives
        ]
        self._other_words = {
            word for _, _, alternative in self._alternatives for word in alternative.words
        }

    def count(self, tokens: Sequence[str], *, asks: bool) -> WordCounts:
        """Count the terms in a text of these words."""
        stored = set(tokens)
        counts: dict[int, float] = {}
        variants: dict[str, str] = {}
        if self._has_prefixes or not stored.isdisjoint(self._words):
            for place, term in enumerate(self._terms):
                if term.is_prefix:
                    count = _count_prefix(tokens, term.word)
                else:
                    count = tokens.count(term.word) if term.word in stored else 0
                if count:
                    counts[place] = count
        if not stored.isdisjoint(self._other_words):
            for place, term, alternative in self._alternatives:
                if count := _count(tokens, alternative):
                    counts[place] = counts.get(place, 0) + count * alternative.weight
                    variants.setdefault(term.written, alternative.written)
            counts = dict(sorted(counts.items()))
        opens = bool(tokens) and tokens[0] in self._words
        return WordCounts(counts, len(tokens), opens, asks, variants)


def _count(tokens: Sequence[str], alternative: Alternative) -> int:
    """Return how often an alternative stands in a text."""
    count = min(map(tokens.count, alternative.words))
    if count and alternative.is_phrase:
        return sum(pair == alternative.words for pair in pairwise(tokens))
    return count


def _stands_in(tokens: Sequence[str], term: Term) -> bool:
    """Return whether a term, or an alternative of it, stands in a text."""
    if term.is_prefix:
        return _count_prefix(tokens, term.word) > 0
    return term.word in tokens or any(_count(tokens, other) for other in term.alternatives)


def _names(text: str) -> frozenset[str]:
    """Return the words that are written as names: with a capital, where a sentence goes on.

    Words in capitals throughout are no names ("NOT", "API"), nor those of a text that has most of
    its words with one, as a title has.
    """
    words = _WORDS.findall(text)
    names = [
        word
        for word in _GOING_ON.findall(text)
        if word[0].isupper() and not word.isupper() and word.lower() not in STOP_WORDS
    ]
    return frozenset() if 2 * len(names) > len(words) + 1 else frozenset(names)


def _pieces(text: str) -> Iterable[tuple[str, bool]]:
    """Part a text into runs of scripts that are indexed by pairs, and what is between."""
    if text.isascii():
        return [(text, False)]
    pieces = _dense_runs().split(text)  # the runs stand at the odd places
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


@cache
def _dense_runs() -> re.Pattern[str]:
    """Compile the pattern when it is needed: that takes 5 ms, which most queries do without."""
    return re.compile(f"([{_DENSE}]+)")


def _split_by_budget(
    terms: Sequence[Term], frequencies: Sequence[int], budget: int
) -> tuple[list[Term], list[Term]]:
    """Part the terms that stand anywhere: the rarest, while their matches are few; and the rest.

    The rarest of all is taken even where its matches are up to four times too many.
    """
    counted = sorted(
        ((count, place) for place, count in enumerate(frequencies) if count),
        key=lambda entry: entry[0],
    )
    chosen: list[Term] = []
    common: list[Term] = []
    scanned = 0
    for count, place in counted:
        scanned += count
        fits = scanned <= (budget if chosen or common else 4 * budget)
        (chosen if fits else common).append(terms[place])
    return chosen, common


def _asks(content: str) -> bool:
    if "?" not in content and "\uff1f" not in content:
        return False  # in a tenth of the time, and most are none
    return _ASKS.search(content, max(0, len(content) - _ENDING)) is not None


def _count_prefix(tokens: Iterable[str], prefix: str) -> int:
    return sum(token.startswith(prefix) for token in tokens)
