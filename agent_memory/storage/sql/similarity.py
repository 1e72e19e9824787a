"""Finds the memories that share most words with a text, and those that correct it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.storage import similar_texts
from agent_memory.storage.records import BEFORE_ALL
from agent_memory.storage.sql import Table

if TYPE_CHECKING:
    from agent_memory.models.duplicate import Duplicate
    from agent_memory.storage.change_records import DuplicateQuery
    from agent_memory.storage.indexes import KeywordIndex
    from agent_memory.storage.records import Term

_SELECT_NEWEST: Final = "SELECT max(seq) FROM memories WHERE id {among}"


class SimilarityQueries(Table):
    """Queries for the memories that share many words with a text."""

    def similar(self, question: DuplicateQuery, *, without: Sequence[str] = ()) -> list[Duplicate]:
        if not similar_texts.is_long_enough(question.content):
            return []
        others = self._of_rarest_words(
            question,
            after=BEFORE_ALL,
            budget=similar_texts.SCAN_BUDGET,
            limit=similar_texts.SIMILAR_LOOKED_AT,
        )
        return similar_texts.most_similar(question, others, without=without)

    def is_corrected(self, question: DuplicateQuery, same: Sequence[Duplicate]) -> bool:
        ids = self._db.listed(duplicate.memory_id for duplicate in same)
        newest = self._db.value(_SELECT_NEWEST.format(among=self._db.AMONG), (ids,))
        if newest is None:
            return False
        newer = self._of_rarest_words(
            question,
            after=newest,
            budget=similar_texts.CORRECTION_BUDGET,
            limit=similar_texts.CORRECTIONS_LOOKED_AT,
        )
        return similar_texts.may_correct(question.content, (content for _, content in newer))

    def _of_rarest_words(
        self, question: DuplicateQuery, *, after: int, budget: int, limit: int
    ) -> Iterable[tuple[str, str]]:
        """Return the best for the rarest words of a text, as many words as the budget allows."""
        keywords = self._keywords()
        terms = keywords.terms_of(question.content)
        chosen = similar_texts.rarest_terms(terms, keywords.frequencies(terms), budget)
        return self._best(chosen, question, after=after, limit=limit) if chosen else ()

    @abstractmethod
    def _keywords(self) -> KeywordIndex: ...

    @abstractmethod
    def _best(
        self, terms: Sequence[Term], question: DuplicateQuery, *, after: int, limit: int
    ) -> Iterable[tuple[str, str]]:
        """Return id and content of the owner's memories after a row that match terms best."""
