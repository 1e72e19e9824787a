"""How the hits of a search are printed, without importing models."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from agent_memory.cli.tables import clip, has_color, styled, table
from agent_memory.models.excerpt import UNDER_REVIEW
from agent_memory.models.limits import MAX_SEARCH_LIMIT

if TYPE_CHECKING:
    from agent_memory import (
        Memory,
        MemoryExcerpt,
        MemorySearchResult,
        ScoreExplanation,
        SearchMetadata,
        SearchResults,
    )
    from agent_memory.models.columns import MemoryValues
    from agent_memory.models.excerpt import HitValues, SearchMetadataValues, SearchResultValues

    Hit = MemorySearchResult | HitValues
    Metadata = SearchMetadata | SearchMetadataValues
    Results = SearchResults | SearchResultValues
    AnyMemory = Memory | MemoryExcerpt | MemoryValues

_WORD: Final = re.compile(r"\w+")
_LEAST_SHOWN: Final = 0.005
_EVIDENCE: Final = (
    "keyword", "keyword_neighbours", "keyword_session", "vector", "vector_neighbours",
    "vector_session", "subject", "date", "question",
)  # fmt: skip


def answer_text(outcome: Results, query: str) -> str:
    """Show hits, best first, those below the gate in brackets, and why there are few.

    In a terminal with colors the words of the query are highlighted, and hits below the gate are
    faint.
    """
    hits, metadata = outcome.results, outcome.search_metadata
    lines = [
        table(
            ("score", "id", "date", "category", "content"),
            [
                (
                    f"{hit.relevance_score:.2f}" if hit.passed_gate else f"({hit.similarity:.2f})",
                    *memory_cells(
                        hit.memory, repeats=len(hit.repeats), under_review=hit.under_review
                    ),
                )
                for hit in hits
            ],
            styles=_hit_styles(hits, query),
        )
        if hits
        else "nothing found"
    ]
    if metadata.explanation and not hits:
        lines[0] += f": {metadata.explanation}"
    if metadata.near_misses:
        lines.append("near misses:")
        lines += [
            f"  {clip(miss.content, 60)}  [{miss.memory_id}: {miss.reason}]"
            for miss in metadata.near_misses
        ]
    lines += _explanations(hits, metadata)
    return "\n".join(lines)


def notes_of(results: Results, limit: int) -> list[str]:
    """Return what was degraded in a search, and how many hits its limit may have cut."""
    hits = results.results
    is_cut = limit <= len(hits) < MAX_SEARCH_LIMIT and hits[-1].passed_gate  # others may be good
    repeated = sum(len(hit.repeats) for hit in hits)
    more = results.total_count - len(hits) - repeated if is_cut else 0
    return [*results.search_metadata.degraded, *notes_of_more(more)]


def notes_of_more(more: int | None) -> list[str]:
    """Return the note that a list was cut: by how many, or ``None`` if that is not known.

    A list that was cut looked complete.
    """
    if more is None:
        return ["there are more: a larger -n shows them"]
    return [f"{more:,} more: a larger -n shows them"] if more > 0 else []


def _hit_styles(hits: Sequence[Hit], query: str) -> Callable[[int, str], str]:
    if not has_color(sys.stdout):
        return lambda _, line: line
    from agent_memory.text.stems import stems  # noqa: PLC0415 - needed only for colors

    wanted = stems(query)

    def style_word(match: re.Match[str]) -> str:
        return styled(match[0], "strong") if stems(match[0]) & wanted else match[0]

    def style(number: int, line: str) -> str:
        if not hits[number].passed_gate:
            return styled(line, "faint")
        return _WORD.sub(style_word, line)

    return style


def _explanations(hits: Sequence[Hit], metadata: Metadata) -> list[str]:
    """Show how the parts of each score add up, line by line, if they were requested."""
    scores = [(hit.memory.id, hit.score) for hit in hits if hit.score]
    scores += [(m.memory_id, m.score) for m in metadata.near_misses if m.score]
    return [line for memory_id, score in scores for line in _explanation(memory_id, score)]


def _explanation(memory_id: str, score: ScoreExplanation) -> list[str]:
    parts = [
        f"{name.replace('_', ' ')} {value:.2f}"
        for name in _EVIDENCE
        if abs(value := getattr(score, name)) >= _LEAST_SHOWN
    ]
    cosine = "" if score.cosine is None else f"; cosine {score.cosine:.2f}"
    sign = "passes" if score.relative >= score.gate else "is below"
    total = " + ".join(parts).replace("+ question -", "- question ")
    similarity = score.relative * score.strength
    final = similarity * score.freshness * score.access_boost
    fresh, boost = f"{score.freshness:.2f}", f"{score.access_boost:.2f}"
    return [
        memory_id,
        f"  evidence {score.evidence:.2f} = {total}{cosine}",
        f"  relative to the best {score.relative:.2f}, which {sign} the gate {score.gate:.2f}",
        f"  similarity {similarity:.2f} = {score.relative:.2f} x strength {score.strength:.2f}",
        f"  score {final:.2f} = similarity x freshness {fresh} x access boost {boost}",
        *(["  in a place reserved for the closest in meaning"] if score.has_kept_place else []),
        *(f"  has {variant!r} for {asked!r}" for asked, variant in score.variants.items()),
    ]


def memory_cells(
    memory: AnyMemory, *, repeats: int = 0, under_review: bool = False
) -> tuple[str, str, str, str]:
    """Return a memory's id, date, category and text as the cells of a table."""
    text = memory.content + "".join(f" #{tag}" for tag in memory.tags)
    if repeats:
        text += f" (and {repeats} more that say the same)"
    if under_review:
        text += f" ({UNDER_REVIEW})"
    return memory.id, str(memory.timestamp.date()), memory.category, text


def memories_text(memories: Sequence[AnyMemory], filters: Mapping[str, Any]) -> str:
    """Show memories, one per line; ``filters`` are those that selected them."""
    if not memories:
        return "no memories match the filters" if filters else "no memories"
    return table(
        ("id", "date", "category", "content"), [memory_cells(memory) for memory in memories]
    )
