"""Finds the memories that share most words with a text, and those that correct it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.storage.postgres.connection import Database, Row
from agent_memory.storage.postgres.filters import Passing
from agent_memory.storage.postgres.keyword_index import KeywordIndex
from agent_memory.storage.sql import Condition, similarity

if TYPE_CHECKING:
    from agent_memory.storage.change_records import DuplicateQuery
    from agent_memory.storage.records import Term

_OF_OWNER: Final = """m.seq > %s AND m.archived = 0
AND m.user_id IS NOT DISTINCT FROM %s AND m.run_id IS NOT DISTINCT FROM %s"""
_SELECT_TEXTS: Final = """
SELECT m.id, m.content FROM unnest(%s::bigint[]) WITH ORDINALITY AS best (seq, place)
JOIN memories AS m ON m.seq = best.seq ORDER BY best.place"""


class SimilarityQueries(similarity.SimilarityQueries):
    """Queries for the memories that share many words with a text."""

    _db: Database

    def _keywords(self) -> KeywordIndex:
        return KeywordIndex(self._db)

    def _best(
        self, terms: Sequence[Term], question: DuplicateQuery, *, after: int, limit: int
    ) -> list[Row]:
        condition = Condition(_OF_OWNER, (after, question.user_id, question.run_id))
        row_ids = self._keywords().best(terms, Passing(condition), limit=limit)
        return self._db.rows(_SELECT_TEXTS, (row_ids,)) if row_ids else []
