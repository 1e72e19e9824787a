"""The keyword index: terms of a query, and the memories that contain the rarest of them.

Words are split, and memories scored, as FTS5 does in a file: the same memories come in the same
order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from agent_memory.storage import query_terms
from agent_memory.storage.filters import Filter
from agent_memory.storage.indexed_text import indexed_text
from agent_memory.storage.postgres.connection import Row
from agent_memory.storage.postgres.filters import Passing, passing
from agent_memory.storage.postgres.postings import (
    LAST_LETTER,
    Phrase,
    all_phrases,
    is_cut,
    key_of,
    phrases_of,
    postings,
)
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.postgres.tables.memories import MemoryTable
from agent_memory.storage.records import Alternative, Term, WordCounts
from agent_memory.storage.sql import Condition
from agent_memory.storage.term_counts import FEW_TEXTS, FewTexts, TermCounter, asks

_PAGE: Final = 1_000
"""Memories whose words are computed at a time."""

_K1: Final = 1.2
_B: Final = 0.75
"""The constants of BM25 that FTS5 uses."""
_LEAST_RARITY: Final = 1e-6
"""The weight of a word that occurs in more than half of all memories."""

_SELECT_MISSING: Final = f"""
SELECT t.seq, m.content, m.tags, m.timestamp
FROM memory_text AS t JOIN memories AS m USING (agent_id, seq)
WHERE t.tokens IS NULL ORDER BY t.seq LIMIT {_PAGE}"""
# In the order of the index of missing words, which is mostly empty.
_SELECT_ONE_MISSING: Final = "SELECT 1 FROM memory_text WHERE tokens IS NULL ORDER BY seq LIMIT 1"
_PUT: Final = """
UPDATE memory_text AS t SET tokens = made.tokens
FROM unnest(%s::bigint[], %s::text[]) AS made (seq, tokens) WHERE t.seq = made.seq"""
_SELECT_VOCABULARY: Final = "SELECT word, doc FROM memory_words WHERE word = ANY(%s)"
_SELECT_VOCABULARY_OF_PREFIXES: Final = """
SELECT v.word, v.doc FROM unnest(%s::text[], %s::text[]) AS p (first, last)
CROSS JOIN LATERAL (
  SELECT word, doc FROM memory_words WHERE word >= p.first AND word < p.last) AS v"""
_SELECT_FREQUENCY_OF_PREFIX: Final = """
SELECT sum(doc) FROM memory_words WHERE word >= %s AND word < %s"""
_SELECT_SIZE: Final = "SELECT memories, words FROM memory_index_size"
# OFFSET 0 fixes the join order: from postings to their memories, one by one. Without it a plan for
# a table that was never analyzed took minutes for 2,500 memories.
_PASSING: Final = """
CROSS JOIN LATERAL (
  SELECT {columns} FROM memories AS m WHERE m.seq = p.seq AND {{memory}} OFFSET 0) AS m
WHERE {{row}}"""
# A sum of integers does not depend on the order of addition; here it is some 10^14, and a float8 is
# exact up to 9 * 10^15. As bigint it took half as long again.
_SELECT_BEST: Final = f"""
SELECT p.seq FROM (
  SELECT p.seq, sum(round(p.rarity * float8 '1e12' * p.count / (p.count
    + float8 '{_K1}' * (float8 '{1 - _B}' + float8 '{_B}' * p.size / %s::float8)))) AS score
  FROM ({{postings}}) AS p GROUP BY p.seq ORDER BY score DESC, p.seq DESC OFFSET 0) AS p
{_PASSING.format(columns="1")} ORDER BY p.score DESC, p.seq DESC LIMIT %s"""
# The newest for each word, so that not all are read.
_SELECT_NEWEST: Final = f"""
SELECT n.seq FROM unnest(%s::text[]) AS a (word) CROSS JOIN LATERAL (
  SELECT p.seq FROM (
    SELECT seq FROM memory_index WHERE word = a.word ORDER BY seq DESC OFFSET 0) AS p
  {_PASSING.format(columns="1")} ORDER BY p.seq DESC LIMIT %s) AS n"""
_SELECT_POSTINGS: Final = f"""
SELECT DISTINCT p.place, p.seq FROM ({{postings}}) AS p
{_PASSING.format(columns="1")} ORDER BY p.place, p.seq"""
_SELECT_EXAMPLES: Final = f"""
SELECT m.content || ' ' || m.tags FROM (
  SELECT DISTINCT seq FROM ({{postings}}) AS p ORDER BY seq DESC OFFSET 0) AS p
{_PASSING.format(columns="m.content, m.tags")} ORDER BY p.seq DESC LIMIT %s"""
# Newest first, so that not all memories with a common word are read.
_SELECT_EXAMPLES_OF_WORD: Final = f"""
SELECT m.content || ' ' || m.tags FROM (
  SELECT seq FROM memory_index WHERE word = %s ORDER BY seq DESC OFFSET 0) AS p
{_PASSING.format(columns="m.content, m.tags")} ORDER BY p.seq DESC LIMIT %s"""
_SELECT_TEXTS: Final = """
SELECT t.seq, t.tokens, m.content, m.tags, m.timestamp
FROM memory_text AS t JOIN memories AS m USING (agent_id, seq) WHERE t.seq = ANY(%s)
ORDER BY t.seq"""
# Words that are missing are computed from the last three columns.
_SELECT_WORDS: Final = """
SELECT t.seq, t.tokens,
  CASE WHEN m.content LIKE '%%?%%' OR m.content LIKE '%%\uff1f%%' THEN right(m.content, 1000) END,
  CASE WHEN t.tokens IS NULL THEN m.content END, m.tags, m.timestamp
FROM memory_text AS t JOIN memories AS m USING (agent_id, seq) WHERE t.seq = ANY(%s)"""


class KeywordIndex(Table):
    """The index of words in ordinary tables."""

    # Following the memories -------------------------------------------------------------------

    def is_stale(self) -> bool:
        """Return whether memories were stored or changed whose words are not in the index."""
        return self._db.row(_SELECT_ONE_MISSING) is not None

    def catch_up(self) -> None:
        """Compute the words of the memories that lack them. Must run inside ``write()``."""
        is_last = False
        while not is_last and (rows := self._db.rows(_SELECT_MISSING)):
            is_last = len(rows) < _PAGE
            tokens = [self.tokens_of(*columns) for _, *columns in rows]
            self._db.run(_PUT, ([row_id for row_id, *_ in rows], tokens))

    def tokens_of(self, content: str, tags: str, timestamp: str) -> str:
        """Return the words of a memory in the form of the table: a line for each indexed text."""
        tokenized = self._db.tokenize(indexed_text(content, tags, timestamp))
        return "\n".join(" ".join(words) for words in tokenized if words)

    def _follow(self) -> None:
        """Let a write transaction find what it has written."""
        if self._db.is_writing:
            self.catch_up()

    # Words ------------------------------------------------------------------------------------

    def terms_of(self, query: str) -> list[Term]:
        return query_terms.terms_of(query, self._db)

    def tokens(self, words: Sequence[str]) -> list[str]:
        return query_terms.single_tokens(words, self._db)

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        self._follow()
        doc = self._docs(
            word
            for term in terms
            for words in ((term.word,), *(alternative.words for alternative in term.alternatives))
            for word in words
        )
        return [
            (self._frequency_of_prefix(term.word) if term.is_prefix else doc[term.word])
            + sum(min(map(doc.__getitem__, other.words)) for other in term.alternatives)
            for term in terms
        ]

    def _docs(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of memories that contain each word.

        A search needs it twice: to learn which words are unknown, and how rare each is.
        """
        known: dict[str, int] = self._db.once("frequencies", dict)
        missing = {word for word in words if word not in known}
        if missing:
            known.update(dict.fromkeys(missing, 0))
            known.update(self._listed(missing))
        return known

    def _listed(self, words: Iterable[str]) -> dict[str, int]:
        """Return those words that are in the index, and the number of memories with each."""
        word_of = {key_of(word): word for word in words}
        rows = self._db.rows(_SELECT_VOCABULARY, (sorted(word_of),))
        return {word_of[key]: doc for key, doc in rows}

    def _frequency_of_prefix(self, prefix: str) -> int:
        bounds = (prefix, prefix + LAST_LETTER)
        return int(self._db.value(_SELECT_FREQUENCY_OF_PREFIX, bounds) or 0)

    def vocabulary(
        self, words: Iterable[str], prefixes: Iterable[str], filters: Filter
    ) -> dict[str, int]:
        self._follow()
        if filters.is_narrowing and (texts := self._few_texts(filters)) is not None:
            return texts.vocabulary(words, prefixes)
        first = sorted(set(prefixes))
        bounds = (first, [prefix + LAST_LETTER for prefix in first])
        ranges = self._db.rows(_SELECT_VOCABULARY_OF_PREFIXES, bounds)
        return self._listed(words) | {word: doc for word, doc in ranges if not is_cut(word)}

    def examples(self, alternative: Alternative, filters: Filter, *, limit: int) -> list[str]:
        self._follow()
        if filters.is_narrowing and (texts := self._few_texts(filters)) is not None:
            return texts.examples(alternative, limit)
        condition = passing(filters)
        phrases = phrases_of(alternative, place=0)
        if len(phrases) == 1 and phrases[0].is_alone:
            sql = _SELECT_EXAMPLES_OF_WORD.format(**condition.texts)
            words: tuple[object, ...] = (key_of(phrases[0].words[0]),)
        else:
            sql, words = postings(phrases)
            sql = _SELECT_EXAMPLES.format(postings=sql, **condition.texts)
        rows = self._db.rows(sql, (*words, *condition.values, limit))
        return [text for (text,) in rows]

    def _few_texts(self, filters: Filter) -> FewTexts | None:
        """Return the texts of the memories that pass; ``None`` if they are many.

        A search needs them a dozen times, for its words, their forms, and the postings of each.
        """
        return self._db.once(("few texts", repr(filters)), lambda: self._read_few_texts(filters))

    def _read_few_texts(self, filters: Filter) -> FewTexts | None:
        row_ids = MemoryTable(self._db).row_ids(filters, limit=FEW_TEXTS + 1)
        if len(row_ids) > FEW_TEXTS:
            return None
        rows = self._db.rows(_SELECT_TEXTS, (row_ids,))
        return FewTexts(
            [
                (row_id, str(indexed_text(*columns)), self._words(tokens, columns))
                for row_id, tokens, *columns in rows
            ]
        )

    def _words(self, tokens: str | None, columns: Sequence[str]) -> list[str]:
        """Return the words of a memory, computed now if they could not be stored."""
        return (self.tokens_of(*columns) if tokens is None else tokens).split()

    def words(self, row_ids: Sequence[int], terms: Sequence[Term]) -> dict[int, WordCounts]:
        count = TermCounter(terms).count
        counts: dict[int, WordCounts] = {}
        for row_id, tokens, ending, *columns in self._db.rows(_SELECT_WORDS, (list(row_ids),)):
            words = self._words(tokens, columns)
            counts[row_id] = count(words, asks=ending is not None and asks(ending))
        return counts

    # Memories ---------------------------------------------------------------------------------

    def candidates(
        self,
        terms: Sequence[Term],
        frequencies: Sequence[int],
        filters: Filter,
        *,
        needed: int,
        limit: int,
    ) -> tuple[list[int], list[Term]]:
        budget = query_terms.scan_budget(MemoryTable(self._db), filters, frequencies, limit)
        chosen, common = query_terms.rarest_of(terms, frequencies, budget)
        condition = passing(filters)
        row_ids = self.best(chosen, condition, limit=limit)
        if len(row_ids) < needed and common:
            newest = self._newest(common, condition, limit=limit)
            row_ids = list(dict.fromkeys(row_ids + newest))[:limit]
        return row_ids, common

    def best(self, terms: Sequence[Term], condition: Passing, *, limit: int) -> list[int]:
        """Return the rows that contain any of the terms and pass a condition, best first."""
        self._follow()
        memories, words = self._db.row(_SELECT_SIZE) or (0, 0)
        if not terms or not memories:
            return []
        query = self._scored_postings(all_phrases(terms), memories)
        sql = _SELECT_BEST.format(postings=query.sql, **condition.texts)
        values = (words / memories, *query.values, *condition.values, limit)
        return [row_id for (row_id,) in self._db.rows(sql, values)]

    def _scored_postings(self, phrases: Sequence[Phrase], memories: int) -> Condition:
        """Return the postings of phrases with the rarity of each, as FTS5 computes it."""
        doc = self._docs(phrase.words[0] for phrase in phrases if phrase.is_word)
        counts = (
            doc[phrase.words[0]] if phrase.is_word else self._count(phrase) for phrase in phrases
        )
        return postings(
            phrases,
            [
                max(math.log((memories - count + 0.5) / (count + 0.5)), _LEAST_RARITY)
                for count in counts
            ],
        )

    def _count(self, phrase: Phrase) -> int:
        query = postings([phrase])
        return int(self._db.value(f"SELECT count(*) FROM ({query.sql}) AS p", query.values))

    def _newest(self, terms: Sequence[Term], condition: Passing, *, limit: int) -> list[int]:
        phrases = all_phrases(terms)
        words = [key_of(phrase.words[0]) for phrase in phrases if phrase.is_alone]
        sql = _SELECT_NEWEST.format(**condition.texts)
        rows = self._db.rows(sql, (words, *condition.values, limit))
        others = [phrase for phrase in phrases if not phrase.is_alone]
        rows += [(row_id,) for _, row_id in self._passing(others, condition)]
        return sorted({row_id for (row_id,) in rows}, reverse=True)[:limit]

    def postings(self, terms: Sequence[Term], filters: Filter) -> list[list[int]]:
        self._follow()
        texts = self._few_texts(filters)
        if texts is not None:
            return texts.postings(terms)
        rows_of: list[list[int]] = [[] for _ in terms]
        for place, row_id in self._passing(all_phrases(terms), passing(filters)):
            rows_of[place].append(row_id)
        return rows_of

    def _passing(self, phrases: Sequence[Phrase], condition: Passing) -> list[Row]:
        """Return the places of phrases with the rows that contain them and pass a condition."""
        if not phrases:
            return []
        query = postings(phrases)
        sql = _SELECT_POSTINGS.format(postings=query.sql, **condition.texts)
        return self._db.rows(sql, (*query.values, *condition.values))
