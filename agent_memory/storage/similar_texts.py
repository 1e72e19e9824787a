"""Decides when two texts are similar, and when a newer one corrects an older one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from agent_memory.storage.change_records import DuplicateQuery
from agent_memory.storage.records import Term
from agent_memory.text.normalize import (
    SIMILAR_SHARE,
    SIMILAR_WORDS,
    DuplicateGrade,
    grade_of,
    share_of_words,
    words_of,
)

if TYPE_CHECKING:
    from agent_memory.models.duplicate import Duplicate

SIMILAR_LOOKED_AT: Final = 20
"""Memories whose words are compared to find similar ones: the best by FTS5's score."""
CORRECTIONS_LOOKED_AT: Final = 50
"""The same, to find corrections of an echo."""
SCAN_BUDGET: Final = 1_000
"""Memories scored to find similar ones: FTS5 needs 1 ms for that."""
CORRECTION_BUDGET: Final = 10_000
"""The same for an echo, which must not undo a correction: 10 ms at most."""
_SIMILAR: Final = 5
"""The most similar memories reported."""
_CORRECTION_SHARE: Final = 0.5
_SHORT_CORRECTION_SHARE: Final = 1 / 3
"""Shares of words from which on a newer memory may correct an echo; this one for short texts."""


def is_long_enough(content: str) -> bool:
    """Return whether a text has enough words to be called similar to another."""
    return len(words_of(content)) >= SIMILAR_WORDS


def rarest_terms(terms: Sequence[Term], counts: Sequence[int], budget: int) -> list[Term]:
    """Return the rarest terms of a text: as many as the budget allows, and at least one."""
    chosen: list[Term] = []
    scanned = 0
    for count, term in sorted(zip(counts, terms, strict=True), key=lambda entry: entry[0]):
        scanned += count
        if count and (scanned <= budget or not chosen):
            chosen.append(term)
    return chosen


def most_similar(
    question: DuplicateQuery, others: Iterable[tuple[str, str]], *, without: Sequence[str]
) -> list[Duplicate]:
    """Return up to five of the given memories, id and content each, that are most similar."""
    words = words_of(question.content)
    duplicates: list[Duplicate] = []
    for memory_id, content in others:
        other_words = words_of(content)
        share = share_of_words(words, other_words)
        if memory_id in without or share < SIMILAR_SHARE or len(other_words) < SIMILAR_WORDS:
            continue
        from agent_memory.models.duplicate import Duplicate  # noqa: PLC0415 - only for duplicates

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


def may_correct(content: str, newer: Iterable[str]) -> bool:
    """Return whether any of the newer texts may correct a text, rather than say the same.

    Similarity is defined more broadly than in ``most_similar``: storing an echo costs less than
    losing a correction.
    """
    words = words_of(content)
    return any(
        _shares_enough(words, words_of(other)) and grade_of(other, content) is None
        for other in newer
    )


def _shares_enough(words: frozenset[str], others: frozenset[str]) -> bool:
    is_short = max(len(words), len(others)) < SIMILAR_WORDS
    least = _SHORT_CORRECTION_SHARE if is_short else _CORRECTION_SHARE
    return share_of_words(words, others) >= least
