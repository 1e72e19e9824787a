"""The keyword index (FTS5): terms of a query, and the memories that share the rarest of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.storage.filters import Filter
from agent_memory.storage.records import Term, WordCounts
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

_SELECT_FREQUENCY: Final = "SELECT doc FROM memory_words WHERE term = ?"
_SELECT_FREQUENCY_OF_PREFIX: Final = """
SELECT sum(doc) FROM memory_words WHERE term >= ? AND term < ?"""
_SELECT_CANDIDATES: Final = """
SELECT i.rowid FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition} ORDER BY {order} LIMIT ?"""
_SELECT_POSTINGS: Final = """
SELECT i.rowid FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition}"""
_SELECT_TEXTS: Final = """
SELECT seq, content, tags || ' ' || dates || ' ' || pairs
FROM memory_text WHERE seq IN (SELECT value FROM json_each(?))"""


class KeywordIndex(Table):
    """The FTS5 index of words."""

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
            int(
                self._db.value(_SELECT_FREQUENCY_OF_PREFIX, (term.word, term.word + "\U0010ffff"))
                or 0
            )
            if term.is_prefix
            else int(self._db.value(_SELECT_FREQUENCY, (term.word,)) or 0)
            for term in terms
        ]

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
        match = " OR ".join(term.match for term in terms)
        return [row_id for (row_id,) in self._db.rows(sql, (match, *condition.values, limit))]

    def postings(self, terms: Sequence[Term], filters: Filter) -> list[list[int]]:
        """Return, for each term, the rows that have it, of the memories that pass the filters.

        Where few pass, their texts are read: see ``FEW_TEXTS``.
        """
        row_ids = MemoryTable(self._db).row_ids(filters, limit=FEW_TEXTS + 1)
        if len(row_ids) <= FEW_TEXTS:
            return self._postings_of_texts(row_ids, terms)
        condition = compiled(filters)
        sql = _SELECT_POSTINGS.format(condition=condition.sql)
        matches = (self._db.rows(sql, (term.match, *condition.values)) for term in terms)
        return [[row_id for (row_id,) in rows] for rows in matches]

    def _postings_of_texts(self, row_ids: Sequence[int], terms: Sequence[Term]) -> list[list[int]]:
        rows = self._db.rows(_SELECT_TEXTS, (to_json(list(row_ids)),))
        texts = self._db.tokenize(f"{content} {rest}" for _, content, rest in rows)
        words_of = [(row[0], frozenset(tokens)) for row, tokens in zip(rows, texts, strict=True)]
        return [
            [
                row_id
                for row_id, words in words_of
                if (_count_prefix(words, term.word) if term.is_prefix else term.word in words)
            ]
            for term in terms
        ]

    def words(self, row_ids: Sequence[int], terms: Sequence[Term]) -> dict[int, WordCounts]:
        rows = self._db.rows(_SELECT_TEXTS, (to_json(list(row_ids)),))
        texts = (f"{content} {rest}" for _, content, rest in rows)
        sought = {term.word for term in terms}
        word_counts: dict[int, WordCounts] = {}
        for (row_id, content, _), tokens in zip(rows, self._db.tokenize(texts), strict=True):
            counts = tuple(
                _count_prefix(tokens, term.word) if term.is_prefix else tokens.count(term.word)
                for term in terms
            )
            opens = bool(tokens) and tokens[0] in sought
            word_counts[row_id] = WordCounts(counts, len(tokens), opens, _asks(content))
        return word_counts


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
    return _ASKS.search(content, max(0, len(content) - _ENDING)) is not None


def _count_prefix(tokens: Iterable[str], prefix: str) -> int:
    return sum(token.startswith(prefix) for token in tokens)
