"""Finds the memories that share most words with a text, and those that correct it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.storage.sql import similarity
from agent_memory.storage.sql.fingerprints import decoded
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.keyword_index import KeywordIndex

if TYPE_CHECKING:
    from agent_memory.storage.change_records import DuplicateQuery
    from agent_memory.storage.records import Term

_SELECT_BEST: Final = """
SELECT CAST(m.id AS BLOB), CAST(m.content AS BLOB)
FROM memory_index AS i JOIN memories AS m ON m.seq = i.rowid
WHERE memory_index MATCH ? AND i.rowid > ? AND m.archived = 0
  AND m.user_id IS ? AND m.run_id IS ?
ORDER BY bm25(memory_index) LIMIT ?"""


class SimilarityQueries(similarity.SimilarityQueries):
    """Queries for the memories that share many words with a text."""

    _db: Database

    def _keywords(self) -> KeywordIndex:
        return KeywordIndex(self._db)

    def _best(
        self, terms: Sequence[Term], question: DuplicateQuery, *, after: int, limit: int
    ) -> Iterator[tuple[str, str]]:
        match = " OR ".join(term.match for term in terms)
        values = (match, after, question.user_id, question.run_id, limit)
        for memory_id, content in self._db.rows(_SELECT_BEST, values):
            yield decoded(memory_id), decoded(content)
