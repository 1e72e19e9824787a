"""Searches of one agent's file, and the notes that are taken of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_memory.models.memory import Memory
from agent_memory.models.search import SearchFilters, SearchResults
from agent_memory.services.search import answers
from agent_memory.services.search import pipeline as retrieval
from agent_memory.services.search.pipeline import Request
from agent_memory.services.search.ranking import Rates
from agent_memory.services.search.request import QueryMeaning
from agent_memory.services.unit_of_work import Noting
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import AmongIds, filter_of, scope_of


@dataclass(frozen=True, slots=True)
class Question:
    """What a search is for.

    ``threshold`` is the least similarity (0 to 1) that is accepted, if any; ``now`` the moment that
    ages are counted from, if it is not the present; ``explain`` asks for the parts of the scores.
    """

    query: str
    filters: SearchFilters
    limit: int
    threshold: float | None
    rates: Rates
    now: datetime | None
    explain: bool


class SearchStore:
    """Finds memories in a file. Threads may share it."""

    def __init__(self, engine: Engine, noting: Noting, *, agent_id: str) -> None:
        self._engine = engine
        self._noting = noting
        self._agent_id = agent_id

    def search(self, question: Question, meaning: QueryMeaning, *, now: datetime) -> SearchResults:
        """Find the memories that answer a question, best first, and say how it went."""
        started = time.perf_counter()
        filters = question.filters
        with self._engine.read():
            request = Request(
                query=question.query,
                filters=filter_of(filters, agent_id=self._agent_id),
                scope=scope_of(filters, agent_id=self._agent_id),
                limit=question.limit,
                threshold=question.threshold,
                rates=question.rates,
                now=now,
                uncounted=self._noting.accesses(),
                meaning=meaning.vector,
            )
            findings = retrieval.find(self._engine, request)
            memories = self._engine.memories.get_many(findings.row_ids(), agent_id=self._agent_id)
            reasons = self._engine.scratchpad.reasons() if findings.hits else {}
        milliseconds = meaning.milliseconds + (time.perf_counter() - started) * 1000
        return answers.results_of(
            findings,
            memories,
            reasons,
            filters=filters,
            now=now,
            milliseconds=milliseconds,
            meaning=meaning,
            rates=question.rates,
            explain=question.explain,
        )

    def those(self, memory_ids: Sequence[str], filters: SearchFilters) -> list[Memory]:
        """Return the memories with these ids that the filters let pass, in the order of the ids."""
        passing = filter_of(filters, agent_id=self._agent_id).and_also(AmongIds(tuple(memory_ids)))
        with self._engine.read():
            passed = set(self._engine.memories.ids(passing))
            wanted = [memory_id for memory_id in memory_ids if memory_id in passed]
            found = [self._engine.memories.get(it, agent_id=self._agent_id) for it in wanted]
        return [memory for memory in found if memory is not None]

    def note_search(self, results: SearchResults, *, count_accesses: bool) -> None:
        """Remember that a search was made, and what it gave to the agent."""
        self._noting.note_search(
            [hit.memory.id for hit in results if hit.passed_gate] if count_accesses else [],
            [hit.memory.id for hit in results],
            milliseconds=results.search_metadata.processing_time_ms,
            now=results.search_metadata.query_time,
        )

    def note_recalls(self, memory_ids: Sequence[str]) -> None:
        """Remember that memories were given to the agent."""
        self._noting.note_recalls(memory_ids)
