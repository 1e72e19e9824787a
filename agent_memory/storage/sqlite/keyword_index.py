"""The keyword index (FTS5): terms of a query, and the memories that contain the rarest of them."""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from agent_memory.models.fields import to_json
from agent_memory.storage import query_terms
from agent_memory.storage.filters import ARCHIVED, NOTHING, Filter
from agent_memory.storage.records import Alternative, Row, Term, WordCounts
from agent_memory.storage.sql import Condition
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.filters import (
    compiled,
    match_of_tags,
    tags_of,
    with_tags_looked_up,
)
from agent_memory.storage.sqlite.kept_rows import KeptRows
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.memories import MemoryTable
from agent_memory.storage.term_counts import FEW_TEXTS, FewTexts, TermCounter, asks

MOST_KEPT: Final = 16_000_000
"""The approximate size in bytes of texts and their words that are cached for the next search;
beyond it, those read first are evicted. Tokenizing the same texts again took a search of short ones
a third of its time; of Japanese ones, whose pairs SQL makes, nearly all."""

MOST_CURRENT: Final = 100_000
"""Memories remembered as unchanged since their words were cached."""

MOST_FREQUENCIES: Final = 20_000
"""Words for which the number of memories is cached."""

MANY_MATCHES: Final = 1_000
"""From this many matches on, the quickest way to the best of them under a filter is chosen."""
MANY_TAGGED: Final = 8
"""FTS5 counts this many memories with a tag in the time that it takes to look up a tag at one
match."""
MANY_ARCHIVED: Final = 200
"""From this many on, archived memories are not listed for each search."""
_SIZE_BESIDE: Final = 500
"""Bytes for the tags, the time, and the objects themselves."""

_UNSTEMMED_ENDINGS: Final = ("", "e", "s", "es", "y", "ed", "ing", "er", "ity", "ation")
"""Endings to append to a stem until FTS5 reduces the result to that stem."""

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
# Of memories that match alike the newest come first: of 120 notes with the same words the oldest
# hundred were ranked.
_BEST_FIRST: Final = "bm25(memory_index), i.rowid DESC"
# The tag is matched in a query of its own: beside the words it would count in the score.
_SELECT_TAGGED: Final = f"""
SELECT i.rowid FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ?1 AND +i.rowid IN
  (SELECT rowid FROM memory_index WHERE memory_index MATCH '(' || ?1 || ') AND ' || ?2)
  AND {{condition}} ORDER BY {_BEST_FIRST} LIMIT ?"""
# Ordered by ``rank``, or joined with the memories, this takes half as long again.
_SELECT_BEST_OF_ALL: Final = """
SELECT rowid FROM memory_index
WHERE memory_index MATCH ? AND +rowid NOT IN (SELECT seq FROM memories AS m WHERE {condition})
ORDER BY bm25(memory_index), rowid DESC LIMIT ?"""
# The limit makes SQLite keep the order of the inner query, and read no more memories than needed.
_SELECT_BEST: Final = """
SELECT i.rowid FROM
  (SELECT rowid FROM memory_index WHERE memory_index MATCH ?
   ORDER BY bm25(memory_index), rowid DESC LIMIT -1) AS i
CROSS JOIN memories AS m NOT INDEXED ON m.seq = i.rowid WHERE {condition} LIMIT ?"""
_SELECT_POSTINGS: Final = """
SELECT i.rowid FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition}"""
# The rows that pass are listed once for all terms. Without the plus FTS5 would restart for each.
_SELECT_POSTINGS_AMONG: Final = """
SELECT t.key, i.rowid FROM json_each(?) AS t CROSS JOIN memory_index AS i
WHERE memory_index MATCH t.value
  AND +i.rowid IN (SELECT m.seq FROM memories AS m WHERE {condition})"""
_FEW_OF: Final = 8
"""If at most one in this many memories is an owner's, the owner's rows are looked up first: of
1,000,000 memories, 25,000 belong to a user, and those among them with a word that is in 130,000 are
found in 8 ms; reading each of the 130,000 took 130."""
_SELECT_EXAMPLES: Final = """
SELECT m.content || ' ' || m.tags
FROM memory_index AS i JOIN memories AS m NOT INDEXED ON m.seq = i.rowid
WHERE memory_index MATCH ? AND {condition} ORDER BY i.rowid DESC LIMIT ?"""
# The texts of a memory's words, and what the index makes of its time and of dense scripts.
_SELECT_TEXTS: Final = """
SELECT m.seq, m.content, m.tags, m.timestamp, t.dates || ' ' || t.pairs
FROM memories AS m NOT INDEXED CROSS JOIN memory_text AS t ON t.seq = m.seq
WHERE m.seq IN (SELECT value FROM json_each(?))"""
_SELECT_SOURCES: Final = """
SELECT m.seq, m.content, m.tags, m.timestamp
FROM memories AS m NOT INDEXED WHERE m.seq IN (SELECT value FROM json_each(?))"""


_KeptText = tuple[Row, tuple[str, ...], bool, int]
"""The row of a memory, its words, which are current as long as the row is the same, whether it ends
with a question, and its approximate size in bytes. Plain tuples, as Python's garbage collector
stops looking at those of plain values: with named ones it took a twelfth of a search of 100,000."""


class _MatchQuery(NamedTuple):
    """A query for the best matches, its condition, and the FTS5 query for tags, if any."""

    sql: str
    condition: Condition
    tag_match: str = ""


class KeywordIndex(Table):
    """The FTS5 index of words."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._memories = MemoryTable(database)
        self._kept: OrderedDict[int, _KeptText] = OrderedDict()
        self._kept_size = 0
        self._current: KeptRows[int, _KeptText] = KeptRows(MOST_CURRENT)
        self._frequencies: KeptRows[str, int] = KeptRows(MOST_FREQUENCIES)

    def terms_of(self, query: str) -> list[Term]:
        return query_terms.terms_of(query, self._db)

    def frequencies(self, terms: Sequence[Term]) -> list[int]:
        words = [term.word for term in terms if not term.is_prefix]
        words += [
            word
            for term in terms
            for alternative in term.alternatives
            for word in alternative.words
        ]
        docs = self._docs(words)
        return [
            (self._frequency_of_prefix(term.word) if term.is_prefix else docs[term.word])
            + sum(min(map(docs.__getitem__, other.words)) for other in term.alternatives)
            for term in terms
        ]

    def _frequency_of_prefix(self, prefix: str) -> int:
        bounds = (prefix, prefix + "\U0010ffff")
        return int(self._db.value(_SELECT_FREQUENCY_OF_PREFIX, bounds) or 0)

    def _docs(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of memories that contain each word; others may be included.

        FTS5 visits all that contain a word: 0.1 ms for one in 100,000 memories.
        """
        kept = self._frequencies.current(self._db.stamp())
        missing = [word for word in words if word not in kept]
        if missing:
            kept.update(dict.fromkeys(missing, 0))
            kept.update(self._db.rows(_SELECT_VOCABULARY, (to_json(missing),)))
        return kept

    def tokens(self, words: Sequence[str]) -> list[str]:
        return query_terms.single_tokens(words, self._db)

    def vocabulary(
        self, words: Iterable[str], prefixes: Iterable[str], filters: Filter
    ) -> dict[str, int]:
        if filters.is_narrowing and (texts := self._few_texts(filters)) is not None:
            return texts.vocabulary(words, prefixes)
        listed = sorted(set(words))
        docs = self._docs(listed)
        counts = {word: docs[word] for word in listed}
        if beginnings := sorted(set(prefixes)):
            counts.update(self._db.rows(_SELECT_VOCABULARY_OF_PREFIXES, (to_json(beginnings),)))
        return {word: count for word, count in counts.items() if count}

    def examples(self, alternative: Alternative, filters: Filter, *, limit: int) -> list[str]:
        if filters.is_narrowing and (texts := self._few_texts(filters)) is not None:
            return texts.examples(alternative, limit)
        condition = compiled(filters)
        sql = _SELECT_EXAMPLES.format(condition=condition.sql)
        (match,) = self._alternative_matches([alternative]) or ('""',)
        return [text for (text,) in self._db.rows(sql, (match, *condition.values, limit))]

    def _few_texts(self, filters: Filter) -> FewTexts | None:
        """Return the texts of the memories that pass; ``None`` if they are many.

        A search needs them a dozen times, for its words, their forms, and the postings of each.
        """
        return self._db.once(("few texts", repr(filters)), lambda: self._read_few_texts(filters))

    def _read_few_texts(self, filters: Filter) -> FewTexts | None:
        row_ids = self._memories.row_ids(filters, limit=FEW_TEXTS + 1)
        if len(row_ids) > FEW_TEXTS:
            return None
        return FewTexts([(source[0], text, words) for source, text, words in self._cut_up(row_ids)])

    def candidates(
        self,
        terms: Sequence[Term],
        frequencies: Sequence[int],
        filters: Filter,
        *,
        needed: int,
        limit: int,
    ) -> tuple[list[int], list[Term]]:
        budget = query_terms.scan_budget(self._memories, filters, frequencies, limit)
        chosen, common = query_terms.rarest_of(terms, frequencies, budget)
        if self._memories.passes_nothing(filters):
            return [], common
        row_ids: list[int] = []
        if chosen:
            counted = zip(terms, frequencies, strict=True)
            most = sum(count for term, count in counted if term in chosen)
            query = self._best_first(filters, most, limit)
            row_ids = self._matching(chosen, query, limit)
        if len(row_ids) < needed and common:
            sql = _SELECT_CANDIDATES.replace("{order}", "i.rowid DESC")
            condition = self._memories.condition_of_first(filters, limit, "i.rowid")
            newest = self._matching(common, _MatchQuery(sql, condition), limit)
            row_ids = list(dict.fromkeys(row_ids + newest))[:limit]
        return row_ids, common

    def _best_first(self, filters: Filter, most: int, limit: int) -> _MatchQuery:
        """Return the quickest query for the best of ``most`` matches.

        Only matches that pass the condition are scored. If those are many, it is quicker to score
        all, and to read the best until enough have passed: reading a memory takes longer than
        scoring it.
        """
        condition = compiled(filters)
        if not filters.is_narrowing:
            if self._memories.are_fewer(ARCHIVED, than=MANY_ARCHIVED):
                left_out = ARCHIVED if filters.leaves_out_archived else NOTHING
                return _MatchQuery(_SELECT_BEST_OF_ALL, compiled(left_out))
            return _MatchQuery(_SELECT_BEST, condition)
        by_score = _SELECT_CANDIDATES.replace("{order}", _BEST_FIRST)
        if tags := tags_of(filters):
            tagged = self._memories.tagged(tags, limit=MANY_TAGGED * most)
            match = match_of_tags(filters) if tagged < MANY_TAGGED * most else ""
            # The tag is looked up before the memory is read.
            looked_up = with_tags_looked_up(condition, "i.rowid")
            return (
                _MatchQuery(_SELECT_TAGGED, looked_up, match)
                if match
                else _MatchQuery(by_score, looked_up)
            )
        if most < MANY_MATCHES:
            return _MatchQuery(by_score, condition)
        passing = most * self._memories.share_passing(filters)
        return _MatchQuery(_SELECT_BEST if passing > 2 * limit else by_score, condition)

    def _matching(self, terms: Sequence[Term], query: _MatchQuery, limit: int) -> list[int]:
        alternatives = [alternative for term in terms for alternative in term.alternatives]
        matches = [*(term.match for term in terms), *self._alternative_matches(alternatives)]
        asked = (" OR ".join(matches), *((query.tag_match,) if query.tag_match else ()))
        sql = query.sql.format(condition=query.condition.sql)
        return [row for (row,) in self._db.rows(sql, (*asked, *query.condition.values, limit))]

    def postings(self, terms: Sequence[Term], filters: Filter) -> list[list[int]]:
        texts = self._few_texts(filters)
        if texts is not None:
            return texts.postings(terms)
        matches = [
            " OR ".join([term.match, *self._alternative_matches(term.alternatives)])
            for term in terms
        ]
        condition = compiled(filters)
        if self._memories.count(filters) * _FEW_OF > self._memories.last_row_id():
            sql = _SELECT_POSTINGS.format(condition=condition.sql)
            rows_of = (self._db.rows(sql, (match, *condition.values)) for match in matches)
            return [[row_id for (row_id,) in rows] for rows in rows_of]
        sql = _SELECT_POSTINGS_AMONG.format(condition=condition.sql)
        postings: list[list[int]] = [[] for _ in terms]
        for place, row_id in self._db.rows(sql, (to_json(matches), *condition.values)):
            postings[place].append(row_id)
        return postings

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
        """Return, for words as the index holds them, some word that FTS5 stems to each.

        FTS5 stems what it is given: "databas" becomes "databa".
        """
        guesses = [token + ending for token in tokens for ending in _UNSTEMMED_ENDINGS]
        stems = zip(guesses, self.tokens(guesses), strict=True)
        wanted = set(tokens)
        return {token: guess for guess, token in reversed(list(stems)) if token in wanted}

    def words(self, row_ids: Sequence[int], terms: Sequence[Term]) -> dict[int, WordCounts]:
        current = self._current.current(self._db.stamp())
        if others := set(row_ids).difference(current):
            current.update(self._texts(sorted(others)))
        count = TermCounter(terms).count
        counts = {}
        for row_id in row_ids:
            if (text := current.get(row_id)) is not None:
                _, words, is_question, _ = text
                counts[row_id] = count(words, asks=is_question)
        while self._kept_size > MOST_KEPT:
            row_id, (_, _, _, size) = self._kept.popitem(last=False)
            self._kept_size -= size
            self._current.forget(row_id)
        return counts

    def _texts(self, row_ids: Sequence[int]) -> dict[int, _KeptText]:
        """Return the words of memories, tokenizing those that are not cached."""
        kept = self._kept
        known = [row_id for row_id in row_ids if row_id in kept]
        sources = self._db.rows(_SELECT_SOURCES, (to_json(known),)) if known else []
        texts = {source[0]: text for source in sources if (text := kept[source[0]])[0] == source}
        for source, _, cut in self._cut_up([row_id for row_id in row_ids if row_id not in texts]):
            row_id, content, *_ = source
            words = tuple(map(sys.intern, cut))
            size = sys.getsizeof(content) + sys.getsizeof(words) + _SIZE_BESIDE
            former = kept.pop(row_id, None)
            kept[row_id] = texts[row_id] = (source, words, asks(content), size)
            self._kept_size += size - (former[-1] if former else 0)
        return texts

    def _cut_up(self, row_ids: Sequence[int]) -> Iterable[tuple[Row, str, list[str]]]:
        """Yield, for each memory, the row that its words are made from, the text, and its words."""
        rows = self._db.rows(_SELECT_TEXTS, (to_json(row_ids),)) if row_ids else []
        texts = [f"{content} {tags} {rest}" for _, content, tags, _, rest in rows]
        for row, text, words in zip(rows, texts, self._db.tokenize(texts), strict=True):
            yield row[:4], text, words
