"""A read-only way in for processes that answer one question: a hook, a shell prompt."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from agent_memory.api.plain_arguments import (
    WithCheckedFlags,
    check_flags,
    check_query,
    check_whole_number,
)
from agent_memory.errors import other_agent
from agent_memory.models.columns import MemoryValues
from agent_memory.models.excerpt import MemoryExcerpt, SearchFilterValues, SearchResultValues
from agent_memory.models.limits import MAX_SEARCH_LIMIT
from agent_memory.models.times import now_utc
from agent_memory.runtime import paths
from agent_memory.runtime.files import is_there, tighten_folder
from agent_memory.services.excerpts import Excerpts


class MemoryReader(WithCheckedFlags):
    """Reads the memories of an agent; starts in a third of the time of ``AgentMemory``.

    Its answers are the same, as plain ``MemoryExcerpt`` tuples. ``open`` creates one. Threads may
    share it, and it is a context manager.
    """

    def __init__(self, excerpts: Excerpts) -> None:
        self._excerpts = excerpts
        self.agent_id = excerpts.agent_id

    @classmethod
    def open(
        cls,
        agent_id: str,
        *,
        root: paths.Root | None = None,
        read_only: bool = False,
        by_keyword: bool = False,
    ) -> Self | None:
        """Open the memory of an agent; ``None`` if only ``AgentMemory`` can answer.

        That is the case if there is no file yet, if the memories are in a database or are searched
        by meaning (``by_keyword`` searches those by keyword alone), or if the agent keeps an
        ``event_log``. Searches are counted as usual, unless ``read_only``. Raises what
        ``AgentMemory`` raises.
        """
        check_flags(read_only=read_only, by_keyword=by_keyword)
        address = paths.agent_address(agent_id, root)
        if not isinstance(address, Path) or not is_there(address):
            return None
        excerpts = Excerpts(address, agent_id, clock=now_utc, read_only=read_only)
        with contextlib.ExitStack() as opened:
            opened.callback(excerpts.close)
            if excerpts.agent_id != agent_id:
                raise other_agent(address, excerpts.agent_id, agent_id)
            if not excerpts.suffice(by_keyword=by_keyword):
                return None
            tighten_folder(address.parent)
            opened.pop_all()
        return cls(excerpts)

    def search(
        self, query: str, limit: int = 5, *, filters: Mapping[str, Any] | None = None
    ) -> list[MemoryExcerpt]:
        """Return the memories that answer a question, best first.

        The result is that of ``AgentMemory.search`` with ``include_weak=False`` and
        ``count_accesses=False``. ``filters`` may have these fields of ``SearchFilters``:
        ``user_id``, ``run_id``, ``session_id``, ``category``, ``tags`` and ``tags_match``. Any
        other field, an invalid value, query or limit (1 to 100) raises ``ValidationError``, here
        and in the other methods.
        """
        answer = self.answer(
            query, limit, filters=filters, include_weak=False, count_accesses=False
        )
        return [
            MemoryExcerpt.of(hit.memory)._replace(under_review=hit.under_review)
            for hit in answer.results
        ]

    def answer(
        self,
        query: str,
        limit: int = 5,
        *,
        filters: Mapping[str, Any] | None = None,
        include_weak: bool = True,
        count_accesses: bool = True,
        whole: bool = False,
    ) -> SearchResultValues:
        """Return what ``AgentMemory.search`` finds, weaker hits included, and why there are few.

        Hits that pass the gate are counted as accessed. With ``whole`` the memories have all of
        their fields, as ``MemoryValues``.
        """
        return self._excerpts.search(
            check_query(query),
            check_whole_number("limit", limit, lowest=1, highest=MAX_SEARCH_LIMIT),
            filters=_filters_of(filters),
            include_weak=include_weak,
            count_accesses=count_accesses,
            whole=whole,
        )

    def get(self, memory_id: str) -> MemoryValues | None:
        """Return a memory with all of its fields by its id, or ``None``."""
        return self._excerpts.get(memory_id)

    def list_whole(
        self, limit: int = 10, *, filters: Mapping[str, Any] | None = None
    ) -> list[MemoryValues]:
        """Return the newest memories with all of their fields, newest first."""
        check_whole_number("limit", limit, lowest=1)
        return self._excerpts.recent_whole(limit, _filters_of(filters))

    def list_recent(
        self, limit: int = 10, *, filters: Mapping[str, Any] | None = None
    ) -> list[MemoryExcerpt]:
        """Return the newest memories, newest first."""
        check_whole_number("limit", limit, lowest=1)
        return self._excerpts.recent(limit, _filters_of(filters))

    def count(self, *, filters: Mapping[str, Any] | None = None) -> int:
        """Count the memories that are not archived, or those that match the filters."""
        return self._excerpts.count(_filters_of(filters))

    def context(self, token_budget: int = 2_000) -> str:
        """Return the scratchpad as ``AgentMemory.context`` does, within a token budget."""
        return self._excerpts.context(check_whole_number("token_budget", token_budget, lowest=0))

    def close(self) -> None:
        """Close the file."""
        self._excerpts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _filters_of(filters: Mapping[str, Any] | None) -> SearchFilterValues | None:
    return None if filters is None or filters == {} else SearchFilterValues.of(filters)
