"""Finds the memories that share most words with a text, and those that correct it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.models.fields import to_json
from agent_memory.storage import similar_texts
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.sql.fingerprints import decoded
from agent_memory.storage.sqlite.keyword_index import KeywordIndex
from agent_memory.storage.sqlite.tables import Table

if TYPE_CHECKING:
    from agent_memory.models.duplicate import Duplicate

_SELECT_NEWEST: Final = """
SELECT max(seq) FROM memories WHERE id IN (SELECT value FROM json_each(?))"""
_SELECT_NEWER: Final = f"""
SELECT CAST(m.content AS BLOB) FROM memory_index AS i JOIN memories AS m ON m.seq = i.rowid
WHERE memory_index MATCH ? AND i.rowid > ? AND m.archived = 0
  AND m.user_id IS ? AND m.run_id IS ?
ORDER BY bm25(memory_index) LIMIT {similar_texts.CORRECTIONS_LOOKED_AT}"""
_SELECT_SIMILAR: Final = f"""
SELECT CAST(m.id AS BLOB), CAST(m.content AS BLOB)
FROM memory_index AS i JOIN memories AS m ON m.seq = i.rowid
WHERE memory_index MATCH ? AND m.archived = 0 AND m.user_id IS ? AND m.run_id IS ?
ORDER BY bm25(memory_index) LIMIT {similar_texts.SIMILAR_LOOKED_AT}"""


class SimilarityQueries(Table):
    """Queries for the memories that share many words with a text."""

    def similar(self, question: DuplicateQuery, *, without: Sequence[str] = ()) -> list[Duplicate]:
        """Return up to five memories that share most words, leaving out those with some ids.

        They are found by the text's rarest words: if each is in over a thousand memories, some are
        missed.
        """
        if not similar_texts.is_long_enough(question.content):
            return []
        match = self._rarest(question.content, similar_texts.SCAN_BUDGET)
        if not match:
            return []
        rows = self._db.rows(_SELECT_SIMILAR, (match, question.user_id, question.run_id))
        others = ((decoded(memory_id), decoded(content)) for memory_id, content in rows)
        return similar_texts.most_similar(question, others, without=without)

    def is_corrected(self, question: DuplicateQuery, same: Sequence[Duplicate]) -> bool:
        """Return whether a memory newer than all with the same text says something similar.

        Then the text is no echo: the agent may be reverting that correction.
        """
        newest = self._db.value(
            _SELECT_NEWEST, (to_json([duplicate.memory_id for duplicate in same]),)
        )
        match = self._rarest(question.content, similar_texts.CORRECTION_BUDGET)
        if newest is None or not match:
            return False
        values = (match, newest, question.user_id, question.run_id)
        newer = (decoded(content) for (content,) in self._db.rows(_SELECT_NEWER, values))
        return similar_texts.may_correct(question.content, newer)

    def _rarest(self, content: str, budget: int) -> str:
        """Return an FTS5 query for the rarest words of a text, as many as the budget allows."""
        keywords = KeywordIndex(self._db)
        terms = keywords.terms_of(content)
        chosen = similar_texts.rarest_terms(terms, keywords.frequencies(terms), budget)
        return " OR ".join(term.match for term in chosen)
