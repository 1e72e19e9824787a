"""Searches of one agent's file, and the notes that are taken of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_memory.models.fields import to_json
from agent_memory.models.memory import Memory
from agent_memory.models.search import SearchFilters, SearchResults
from agent_memory.services.search import answers
from agent_memory.services.search import pipeline as retrieval
from agent_memory.services.search.nearest import Middles, QueryMeaning
from agent_memory.services.search.pipeline import Request
from agent_memory.services.search.ranking import Rates
from agent_memory.services.unit_of_work import Noting
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.filters import Condition, condition_of, scope_of
from agent_memory.storage.sqlite.tables import memories as records
from agent_memory.storage.sqlite.tables import scratchpad


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

    def __init__(self, database: Database, noting: Noting, *, agent_id: str) -> None:
        self._database = database
        self._noting = noting
        self._agent_id = agent_id
        self._middles = Middles()

    def search(self, question: Question, meaning: QueryMeaning, *, now: datetime) -> SearchResults:
        """Find the memories that answer a question, best first, and say how it went."""
        started = time.perf_counter()
        filters = question.filters
        with self._database.read():
            request = Request(
                query=question.query,
                condition=condition_of(filters, agent_id=self._agent_id),
                scope=scope_of(filters, agent_id=self._agent_id),
                limit=question.limit,
                threshold=question.threshold,
                rates=question.rates,
                now=now,
                uncounted=self._noting.accesses(),
                meaning=meaning.vector,
            )
            findings = retrieval.find(self._database, request, self._middles)
            memories = records.get_many(self._database, findings.seqs(), agent_id=self._agent_id)
            reasons = scratchpad.reasons(self._database) if findings.hits else {}
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
        among = Condition("m.id IN (SELECT value FROM json_each(?))", (to_json(list(memory_ids)),))
        condition = condition_of(filters, agent_id=self._agent_id).and_also(among)
        with self._database.read():
            passed = set(records.ids(self._database, condition))
            wanted = [memory_id for memory_id in memory_ids if memory_id in passed]
            found = [records.get(self._database, it, agent_id=self._agent_id) for it in wanted]
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
