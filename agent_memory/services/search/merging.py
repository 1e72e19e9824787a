"""Hits of several memories as one list: a search that asks other agents' memories too.

The hits of each are in the order of its own ranking. Among all, only what beside the best answer of
all would pass the gate passes it, and what two memories say alike is one hit.
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
    """What the memory of one agent answered; ``is_own`` says whether it is the one that asks."""

    agent_id: str
    results: SearchResults
    is_own: bool

    def labelled(self, text: str) -> str:
        """Return a text about this memory; about another agent's, with its name."""
        return text if self.is_own else f"{self.agent_id}: {text}"


@dataclass(slots=True)
class Hit:
    """A hit, seen among those of all; ``copies`` are those of others that say the same."""

    result: MemorySearchResult
    answer: Answer
    copies: list[Hit] = field(default_factory=list)


def merge(answers: Sequence[Answer], *, limit: int, include_weak: bool) -> list[Hit]:
    """Return the best ``limit`` hits of all memories that say different things, best first.

    Without ``include_weak`` only what passes the gate among all is returned.
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
    """Return an answer with those of its hits that are among the best of all."""
    shown = [same for hit in page for same in (hit, *hit.copies)]
    hits = [same.result for same in shown if same.answer is answer]
    return answer.results.model_copy(update={"results": hits})


def _compare_to_best(result: MemorySearchResult, strongest: float) -> MemorySearchResult:
    """See a hit beside the best answer of all memories: there it must pass the gate.

    A similarity is the share of its own memory's best, times how strong that is: so similarities
    of two memories can be compared, but not what passed two gates. Something always passes, and in
    a memory that knows next to nothing of the query that would outrank good answers of another.
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
    """Put the hits of all memories in order; the first memory's come first among equals.

    A memory whose words say little keeps every fourth place for the nearest by meaning. That holds
    among all where something of it passes the gate: else the others say more.
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
                # None comes before what its own memory has before it: where several things are
                # asked for, that held it back.
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
    """Return what hits are ordered by, as ``ranking`` does."""
    result = hit.result
    score = result.relevance_score if result.passed_gate else result.similarity
    return not result.passed_gate, -score, -result.similarity


def _drop_repeats(hits: Iterable[Hit]) -> list[Hit]:
    """Keep the first of the hits of different memories that say the same about the same user.

    What a memory itself has twice, it has told apart by more than its words.
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
    """Return the results of a search: ``wanted`` are the agents that it named.

    ``failures`` say which of those could not be asked.
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
    """Return a hit as it is given out, with the ids of other agents' copies as ``agent:id``."""
    copies = [
        f"{copy.answer.agent_id}:{memory_id}"
        for copy in hit.copies
        for memory_id in (copy.result.memory.id, *copy.result.repeats)
    ]
    changes: dict[str, object] = {"repeats": [*hit.result.repeats, *copies]} if copies else {}
    if not explain:
        changes["score"] = None
    return hit.result.model_copy(update=changes)


def _near_misses(answers: Sequence[Answer], *, explain: bool) -> list[NearMiss]:
    """Return the best of what no memory returned, that of other agents as ``agent:id``."""
    near = []
    for answer in answers:
        for miss in answer.results.search_metadata.near_misses:
            changes: dict[str, object] = {} if explain else {"score": None}
            if not answer.is_own:
                changes["memory_id"] = f"{answer.agent_id}:{miss.memory_id}"
            near.append(miss.model_copy(update=changes))
    return sorted(near, key=lambda miss: -miss.similarity)[:NEAR_MISSES]
