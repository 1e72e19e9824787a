"""Finds the memories that have most words in common with a text, and those that correct it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.duplicate import Duplicate
from agent_memory.models.fields import to_json
from agent_memory.storage.records import DuplicateQuery
from agent_memory.storage.sqlite.keyword_index import KeywordIndex
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.fingerprints import decoded
from agent_memory.text.normalize import (
    SIMILAR_SHARE,
    SIMILAR_WORDS,
    DuplicateGrade,
    grade_of,
    share_of_words,
    words_of,
)

_SIMILAR: Final = 5
"""Similar memories that are named."""
_SCAN_BUDGET: Final = 1_000
"""Memories that FTS5 scores to find similar ones: 1 ms."""
_CORRECTION_BUDGET: Final = 10_000
"""The same for an echo, which must not undo a correction: 10 ms at most."""
_CORRECTION_SHARE: Final = 0.5
_SHORT_CORRECTION_SHARE: Final = 1 / 3
"""Shares of words from which on a newer memory may correct an echo; of texts of few words."""
_SELECT_NEWEST: Final = """
SELECT max(seq) FROM memories WHERE id IN (SELECT value FROM json_each(?))"""
_SELECT_NEWER: Final = """
SELECT CAST(m.content AS BLOB) FROM memory_index AS i JOIN memories AS m ON m.seq = i.rowid
WHERE memory_index MATCH ? AND i.rowid > ? AND m.archived = 0
  AND m.user_id IS ? AND m.run_id IS ?
ORDER BY bm25(memory_index) LIMIT 50"""
_SELECT_SIMILAR: Final = """
SELECT CAST(m.id AS BLOB), CAST(m.content AS BLOB)
FROM memory_index AS i JOIN memories AS m ON m.seq = i.rowid
WHERE memory_index MATCH ? AND m.archived = 0 AND m.user_id IS ? AND m.run_id IS ?
ORDER BY bm25(memory_index) LIMIT 20"""


class SimilarityQueries(Table):
    """Queries for the memories that have many words in common with a text."""

    def similar(self, question: DuplicateQuery, *, without: Sequence[str] = ()) -> list[Duplicate]:
        """Return the memories with most words in common, five at most, but those of some ids.

        They are looked for by the text's rarest words: where each is in over a thousand memories,
        some are missed.
        """
        words = words_of(question.content)
        if len(words) < SIMILAR_WORDS:
            return []
        match = self._rarest(question.content)
        if not match:
            return []
        duplicates: list[Duplicate] = []
        rows = self._db.rows(_SELECT_SIMILAR, (match, question.user_id, question.run_id))
        for memory_id, content in (map(decoded, row) for row in rows):
            others = words_of(content)
            share = share_of_words(words, others)
            if memory_id in without or share < SIMILAR_SHARE or len(others) < SIMILAR_WORDS:
                continue
            duplicates.append(
                Duplicate.model_construct(
                    grade=DuplicateGrade.SIMILAR,
                    memory_id=memory_id,
                    content=content,
                    new_content=question.content,
                    shared_words=round(share, 3),
                    recalled_at=None,
                    index=question.index,
                    left_out=[],
                )
            )
        return sorted(duplicates, key=lambda duplicate: -duplicate.shared_words)[:_SIMILAR]

    def is_corrected(self, question: DuplicateQuery, same: Sequence[Duplicate]) -> bool:
        """Return whether a memory newer than all with the same text says something similar.

        Then the text is no echo: the agent may be taking that correction back. What is similar is
        taken more widely than in ``similar``: an echo that is stored costs less than a change that
        is not.
        """
        newest = self._db.value(
            _SELECT_NEWEST, (to_json([duplicate.memory_id for duplicate in same]),)
        )
        match = self._rarest(question.content, budget=_CORRECTION_BUDGET)
        if newest is None or not match:
            return False
        words = words_of(question.content)
        values = (match, newest, question.user_id, question.run_id)
        return any(
            _may_correct(words, words_of(content)) and grade_of(content, question.content) is None
            for content in (decoded(content) for (content,) in self._db.rows(_SELECT_NEWER, values))
        )

    def _rarest(self, content: str, *, budget: int = _SCAN_BUDGET) -> str:
        """Return an FTS5 query for the rarest words of a text, as many as the budget allows."""
        terms = KeywordIndex(self._db).terms_of(content)
        counts = KeywordIndex(self._db).frequencies(terms)
        chosen: list[str] = []
        scanned = 0
        for count, term in sorted(zip(counts, terms, strict=True), key=lambda entry: entry[0]):
            scanned += count
            if count and (scanned <= budget or not chosen):
                chosen.append(term.match)
        return " OR ".join(chosen)


def _may_correct(words: frozenset[str], others: frozenset[str]) -> bool:
    is_short = max(len(words), len(others)) < SIMILAR_WORDS
    least = _SHORT_CORRECTION_SHARE if is_short else _CORRECTION_SHARE
    return share_of_words(words, others) >= least
