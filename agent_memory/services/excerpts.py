"""Reads for a process that lives for one question, without the models.

Importing those takes longer than everything that is done here: see ``Excerpts``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from agent_memory.models.columns import MemoryValues
from agent_memory.models.excerpt import MemoryExcerpt, SearchFilterValues, SearchResultValues
from agent_memory.models.fields import is_memory_id
from agent_memory.services.rendering import PLAIN, render_context
from agent_memory.services.replacements import under_review
from agent_memory.services.scratchpad import promoted_first
from agent_memory.services.search import results
from agent_memory.services.search.pipeline import completed, find
from agent_memory.services.search.request import QueryMeaning, SearchRequest
from agent_memory.services.unit_of_work import UnitOfWork
from agent_memory.storage.filters import filter_of
from agent_memory.storage.opening import open_engine

_PROMOTION_THRESHOLD: Final = 3
"""As in ``MemoryContextConfig``; it applies to pending counts that other processes left."""


class Excerpts:
    """The memories of one file, as they are shown. Threads may share it.

    Each method has the result, and the effect on the file, of the ``Store`` verb of the same name.
    """

    def __init__(
        self, path: Path, agent_id: str, *, clock: Callable[[], datetime], read_only: bool
    ) -> None:
        self._clock = clock
        self._threshold: float | None = None
        self._engine = open_engine(path, create=False, read_only=read_only)
        self._unit_of_work = UnitOfWork(
            self._engine, clock, promotion_threshold=_PROMOTION_THRESHOLD
        )
        try:
            self._engine.prepare(agent_id, clock=clock)
            self.agent_id = self._engine.agent_id
        except BaseException:  # Ctrl-C too
            self._engine.close()
            raise

    def suffice(self, *, by_keyword: bool = False) -> bool:
        """Return whether excerpts suffice to answer, as far as the settings decide it.

        No embedder is used here, and no event is published. With ``by_keyword`` it does not matter
        that searches are by meaning.
        """
        with self._engine.read():
            if not by_keyword and any(
                model.state == "active" for model in self._engine.embeddings.models()
            ):
                return False
            try:
                settings = json.loads(self._engine.agent.settings())
                self._threshold = _threshold_of(settings)
            except (ValueError, TypeError, RecursionError):
                return False  # another program wrote it: the models explain what is wrong
            return bool(settings.get("event_log", "off") == "off")

    def search(
        self,
        query: str,
        limit: int,
        *,
        filters: SearchFilterValues | None = None,
        include_weak: bool = True,
        count_accesses: bool = True,
        whole: bool = False,
    ) -> SearchResultValues:
        """Return the hits of a query, and how it went; with ``whole``, all fields of the memories.

        Hits that pass the gate are counted as accessed, unless ``count_accesses`` is false.
        """
        started = time.perf_counter()
        now = self._clock()
        with self._engine.read():
            request = SearchRequest(
                query,
                filters,
                limit,
                threshold=self._threshold,
                include_weak=include_weak,
                now=now,
            )
            request = completed(self._engine, request, self._unit_of_work.accesses())
            outcome = find(self._engine, request)
            excerpts = self._engine.memories.excerpts(outcome.row_ids())
            finds = results.Finds(
                request,
                outcome,
                dict(zip(excerpts, self._whole(excerpts.values()), strict=True))
                if whole
                else excerpts,
                self._engine.scratchpad.reasons([hit.row_id for hit in outcome.hits]),
            )
        milliseconds = (time.perf_counter() - started) * 1000
        answer: SearchResultValues = results.results_of(
            finds, QueryMeaning(), results.PLAIN, milliseconds=milliseconds
        )
        self._unit_of_work.record_search(
            [hit.memory.id for hit in answer.results if hit.passed_gate] if count_accesses else [],
            [hit.memory.id for hit in answer.results],
            milliseconds=milliseconds,
            now=now,
        )
        return answer

    def get(self, memory_id: str) -> MemoryValues | None:
        """Return all fields of a memory, or ``None``."""
        if not is_memory_id(memory_id):
            return None
        from agent_memory.storage.memory_values import values_of_row  # noqa: PLC0415 - see _whole

        row = self._engine.memory_rows.get(memory_id)
        return None if row is None else values_of_row(row, agent_id=self.agent_id)

    def recent(self, limit: int, filters: SearchFilterValues | None = None) -> list[MemoryExcerpt]:
        """Return the newest memories."""
        passing = filter_of(filters, agent_id=self.agent_id)
        with self._engine.read():
            recent = self._engine.memories.recent_excerpts(passing, limit=limit)
            marked = under_review(self._engine, [memory.id for memory in recent])
        return [memory._replace(under_review=memory.id in marked) for memory in recent]

    def recent_whole(self, limit: int, filters: SearchFilterValues | None) -> list[MemoryValues]:
        """Return all fields of the newest memories."""
        passing = filter_of(filters, agent_id=self.agent_id)
        with self._engine.read():
            return self._whole(self._engine.memories.recent_excerpts(passing, limit=limit))

    def count(self, filters: SearchFilterValues | None) -> int:
        """Count the memories."""
        with self._engine.read():
            return self._engine.memories.count(filter_of(filters, agent_id=self.agent_id))

    def _whole(self, excerpts: Iterable[MemoryExcerpt]) -> list[MemoryValues]:
        """Return all fields of memories, in their order. Must run inside ``engine.read()``."""
        # Imported here: showing a line of each memory does not need it.
        from agent_memory.storage.memory_values import values_of_row  # noqa: PLC0415

        ids = [excerpt.id for excerpt in excerpts]
        rows = self._engine.memory_rows.get_many(ids)
        return [values_of_row(rows[memory_id], agent_id=self.agent_id) for memory_id in ids]

    def context(self, token_budget: int) -> str:
        """Return the scratchpad as Markdown for a model's context."""
        with self._engine.read():
            row_ids = promoted_first(self._engine, self._engine.scratchpad.members())
            excerpts = self._engine.memories.excerpts(row_ids)
            newer_of = self._engine.reviews.newer_of(row_ids)
        text, shown = render_context(
            [excerpts[row_id] for row_id in row_ids],
            PLAIN,
            token_budget,
            agent_id=self.agent_id,
            under_review={excerpts[row_id].id for row_id in newer_of},
        )
        self._unit_of_work.record_recalls([memory.id for memory in shown])
        return text

    def close(self) -> None:
        """Write the counts of the searches, and close the file."""
        self._unit_of_work.close()
        self._engine.close()


def _threshold_of(settings: Mapping[str, Any]) -> float | None:
    """Return the configured minimum similarity. Raises ``TypeError`` for an invalid one."""
    threshold = settings.get("similarity_threshold")
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise TypeError
    return float(threshold)
