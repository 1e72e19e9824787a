"""Merges the hits of several memories: for searches that include other agents' memories.

The hits of each memory keep the order of its own ranking. In the merged list, a hit passes the gate
only if it also passes compared to the best answer of all, and hits of different memories that say
the same become one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent_memory.models.search import (
    MemorySearchResult,
    NearMiss,
    SearchMetadata,
    SearchResults,
)
from agent_memory.services.search.pipeline import NEAR_MISSES
from agent_memory.services.search.ranking import MEANING_PLACE_STEP
from agent_memory.text.normalize import exact_form, near_form


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The answer of one agent's memory; ``is_own`` is whether it is the one that asks."""

    agent_id: str
    results: SearchResults
    is_own: bool

    def labelled(self, text: str) -> str:
        """Return a text about this memory, prefixed with the agent's name if it is another's."""
        return text if self.is_own else f"{self.agent_id}: {text}"


@dataclass(slots=True)
class Hit:
    """A hit in the merged list; ``copies`` are those of other memories that say the same."""

    result: MemorySearchResult
    answer: Answer
    copies: list[Hit] = field(default_factory=list)


def merge(answers: Sequence[Answer], *, limit: int, include_weak: bool) -> list[Hit]:
    """Return the best ``limit`` hits of all memories that say different things, best first.

    Without ``include_weak``, only hits that pass the gate in the merged list are returned.
    """
    scores = [hit.score for answer in answers for hit in answer.results]
    strongest = max((score.strength for score in scores if score is not None), default=0.0)
    hits = [
        [Hit(_compare_to_best(hit, strongest), answer) for hit in answer.results]
        for answer in answers
    ]
    kept = _drop_repeats(_order(hits))
    return [hit for hit in kept if include_weak or hit.result.passed_gate][:limit]


def given_out(page: Sequence[Hit], answer: Answer) -> SearchResults:
    """Return an answer reduced to those of its hits that are in the merged page."""
    shown = [same for hit in page for same in (hit, *hit.copies)]
    hits = [same.result for same in shown if same.answer is answer]
    return answer.results.model_copy(update={"results": hits})


def _compare_to_best(result: MemorySearchResult, strongest: float) -> MemorySearchResult:
    """Compare a hit to the best answer of all memories: there too it must pass the gate.

    A similarity is the share of its own memory's best, times how strong that is: so similarities of
    two memories are comparable, but passing two different gates is not. Something always passes,
    and in a memory that knows next to nothing about the query it would outrank good answers.
    """
    score = result.score
    if score is None or score.strength >= strongest:
        return result
    relative = score.relative * score.strength / strongest
    passes = result.passed_gate and relative >= score.gate
    seen = score.model_copy(update={"relative": relative, "strength": strongest})
    return result.model_copy(update={"score": seen, "passed_gate": passes})


_Key = tuple[bool, float, float]


def _order(hits_by_memory: Sequence[Sequence[Hit]]) -> list[Hit]:
    """Order the hits of all memories; among equals, those of the first memory come first.

    A memory whose words say little keeps every fourth place for the nearest by meaning. In the
    merged list that applies only if one of its hits passes the gate: otherwise the others say more.
    """
    kept: list[tuple[float, Hit]] = []
    others: list[tuple[_Key, Hit]] = []
    for hits in hits_by_memory:
        is_answer = any(hit.result.passed_gate for hit in hits)
        last: dict[bool, _Key] = {}
        for hit in hits:
            score = hit.result.score
            if is_answer and score is not None and score.has_kept_place:
                kept.append((score.cosine or 0.0, hit))
            else:
                # No hit moves ahead of one that its own memory ranked before it: if a query asks
                # for several things, that ranking held it back.
                key, passed = _order_key(hit), hit.result.passed_gate
                last[passed] = max(key, last.get(passed, key))
                others.append((last[passed], hit))
    near = deque(hit for _, hit in sorted(kept, key=lambda pair: -pair[0]))
    rest = deque(hit for _, hit in sorted(others, key=lambda pair: pair[0]))
    order: list[Hit] = []
    while near or rest:
        is_kept_place = len(order) % MEANING_PLACE_STEP == MEANING_PLACE_STEP - 1
        order.append((near if near and (is_kept_place or not rest) else rest).popleft())
    return order


def _order_key(hit: Hit) -> _Key:
    """Return the sort key of a hit, as in ``ranking``."""
    result = hit.result
    score = result.relevance_score if result.passed_gate else result.similarity
    return not result.passed_gate, -score, -result.similarity


def _drop_repeats(hits: Iterable[Hit]) -> list[Hit]:
    """Keep the first of the hits of different memories that say the same about the same user.

    Repeats within one memory stay: it told them apart by more than their words.
    """
    first: dict[tuple[str, str | None], Hit] = {}
    kept: list[Hit] = []
    for hit in hits:
        memory = hit.result.memory
        earlier = first.setdefault((near_form(exact_form(memory.content)), memory.user_id), hit)
        if earlier.answer is hit.answer:
            kept.append(hit)
        else:
            earlier.copies.append(hit)
    return kept


def build_results(
    page: Sequence[Hit],
    answers: Sequence[Answer],
    wanted: Sequence[str],
    failures: Sequence[str],
    *,
    limit: int,
    explain: bool,
) -> SearchResults:
    """Return the results of a search; ``wanted`` are the agents that it named.

    ``failures`` say which of those could not be searched.
    """
    all_metadata = [answer.results.search_metadata for answer in answers]
    labelled = list(zip(answers, all_metadata, strict=True))
    is_full = len(page) >= limit
    degraded = [
        answer.labelled(text) for answer, metadata in labelled for text in metadata.degraded
    ]
    explanations = [
        answer.labelled(metadata.explanation)
        for answer, metadata in labelled
        if metadata.explanation
    ]
    return SearchResults.model_construct(
        results=[_build_result(hit, explain=explain) for hit in page],
        total_count=sum(answer.results.total_count for answer in answers),
        search_metadata=SearchMetadata.model_construct(
            query_time=all_metadata[0].query_time,
            processing_time_ms=sum(metadata.processing_time_ms for metadata in all_metadata),
            keyword_search_time_ms=sum(
                metadata.keyword_search_time_ms for metadata in all_metadata
            ),
            embedding_time_ms=sum(metadata.embedding_time_ms for metadata in all_metadata),
            vector_search_time_ms=sum(metadata.vector_search_time_ms for metadata in all_metadata),
            filters_applied={**all_metadata[0].filters_applied, "shared": list(wanted)},
            backend="vector"
            if any(metadata.backend == "vector" for metadata in all_metadata)
            else "file",
            degraded=[*degraded, *failures],
            reason=None if is_full else "few_matches" if page else all_metadata[0].reason,
            explanation=None if is_full else "; ".join(explanations) or None,
            near_misses=[] if is_full else _near_misses(answers, explain=explain),
        ),
    )


def _build_result(hit: Hit, *, explain: bool) -> MemorySearchResult:
    """Return a hit as users get it, with the ids of other agents' copies as ``agent:id``."""
    copies = [
        f"{copy.answer.agent_id}:{memory_id}"
        for copy in hit.copies
        for memory_id in (copy.result.memory.id, *copy.result.repeats)
    ]
    changes: dict[str, object] = {"repeats": [*hit.result.repeats, *copies]} if copies else {}
    if any(copy.result.under_review for copy in hit.copies):
        changes["under_review"] = True
    if not explain:
        changes["score"] = None
    return hit.result.model_copy(update=changes)


def _near_misses(answers: Sequence[Answer], *, explain: bool) -> list[NearMiss]:
    """Return the best near misses of all memories, those of other agents as ``agent:id``."""
    near = []
    for answer in answers:
        for miss in answer.results.search_metadata.near_misses:
            changes: dict[str, object] = {} if explain else {"score": None}
            if not answer.is_own:
                changes["memory_id"] = f"{answer.agent_id}:{miss.memory_id}"
            near.append(miss.model_copy(update=changes))
    return sorted(near, key=lambda miss: -miss.similarity)[:NEAR_MISSES]
