"""Finds the memories that share most words with a text, and those that correct it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.duplicate import Duplicate
from agent_memory.storage import similar_texts
from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.postgres.connection import Row
from agent_memory.storage.postgres.filters import Passing
from agent_memory.storage.postgres.keyword_index import KeywordIndex
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.sql import Condition

_OF_OWNER: Final = """
m.archived = 0 AND m.user_id IS NOT DISTINCT FROM %s AND m.run_id IS NOT DISTINCT FROM %s"""
_SELECT_NEWEST: Final = "SELECT max(seq) FROM memories WHERE id = ANY(%s)"
_SELECT_TEXTS: Final = """
SELECT m.id, m.content FROM unnest(%s::bigint[]) WITH ORDINALITY AS best (seq, place)
JOIN memories AS m ON m.seq = best.seq ORDER BY best.place"""


class SimilarityQueries(Table):
    """Queries for the memories that share many words with a text."""

    def similar(self, question: DuplicateQuery, *, without: Sequence[str] = ()) -> list[Duplicate]:
        """Return up to five memories that share most words, leaving out those with some ids.

        They are found by the text's rarest words: if each is in over a thousand memories, some are
        missed.
        """
        if not similar_texts.is_long_enough(question.content):
            return []
        others = self._best(
            question.content,
            Condition(_OF_OWNER, (question.user_id, question.run_id)),
            budget=similar_texts.SCAN_BUDGET,
            limit=similar_texts.SIMILAR_LOOKED_AT,
        )
        pairs = ((memory_id, content) for memory_id, content in others)
        return similar_texts.most_similar(question, pairs, without=without)

    def is_corrected(self, question: DuplicateQuery, same: Sequence[Duplicate]) -> bool:
        """Return whether a memory newer than all with the same text says something similar.

        Then the text is no echo: the agent may be reverting that correction.
        """
        newest = self._db.value(_SELECT_NEWEST, ([duplicate.memory_id for duplicate in same],))
        if newest is None:
            return False
        newer = self._best(
            question.content,
            Condition(f"m.seq > %s AND {_OF_OWNER}", (newest, question.user_id, question.run_id)),
            budget=similar_texts.CORRECTION_BUDGET,
            limit=similar_texts.CORRECTIONS_LOOKED_AT,
        )
        return similar_texts.may_correct(question.content, (content for _, content in newer))

    def _best(self, content: str, condition: Condition, *, budget: int, limit: int) -> list[Row]:
        """Return id and content of the memories that contain most of a text's rarest words."""
        keywords = KeywordIndex(self._db)
        terms = keywords.terms_of(content)
        chosen = similar_texts.rarest_terms(terms, keywords.frequencies(terms), budget)
        row_ids = keywords.best(chosen, Passing(condition), limit=limit)
        return self._db.rows(_SELECT_TEXTS, (row_ids,)) if row_ids else []
