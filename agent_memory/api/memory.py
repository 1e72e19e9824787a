"""``AgentMemory``: the library's front. It validates what comes in and gives models out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.api import arguments as inputs
from agent_memory.api.agents import list_agents
from agent_memory.api.arguments import Time, joined_filters, validated
from agent_memory.api.conversations import Conversing
from agent_memory.api.lifecycle import Life
from agent_memory.api.maintenance import Upkeep
from agent_memory.api.transfer import Portability
from agent_memory.errors import ValidationError
from agent_memory.models.config import MemoryContextConfig
from agent_memory.models.enums import MAX_SEARCH_LIMIT, MatchType
from agent_memory.models.memory import (
    HistoryEntry,
    Memory,
)
from agent_memory.models.scratchpad import Promotion, Scratchpad, ScratchpadMemoryEntry
from agent_memory.models.search import MemorySearchResult, SearchFilters, SearchResults
from agent_memory.services.rendering import render_context
from agent_memory.services.search.ranking import Rates
from agent_memory.services.store import Question

if TYPE_CHECKING:
    from agent_memory.api.session import SessionMemory
    from agent_memory.api.sharing import Shared
    from agent_memory.models.agent import RebuildReport
    from agent_memory.models.backup import RestoreReport
    from agent_memory.models.session import SessionContext


def _rebuild(
    path: str | os.PathLike[str], backup: str | os.PathLike[str], *, agent_id: str | None = None
) -> RebuildReport:
    """Make a damaged or missing file anew from a ``scratchpad.yaml.backup``: see ``rebuild``."""
    from agent_memory.services.recovery.rebuild import rebuild  # noqa: PLC0415 - seldom used

    return rebuild(path, backup, agent_id=agent_id)


def _restore(
    path: str | os.PathLike[str],
    backup: str | os.PathLike[str],
    *,
    agent_id: str | None = None,
    keep_replaced: bool = True,
) -> RestoreReport:
    """Bring a memory back to the state of a backup: see ``restoring.restore``."""
    from agent_memory.services.recovery.restore import restore  # noqa: PLC0415 - seldom used

    return restore(path, backup, agent_id=agent_id, keep_replaced=keep_replaced)


class AgentMemory(Conversing, Upkeep, Life, Portability):
    """The memory of one agent: one SQLite file, ``{root}/{agent_id}/memories.db``.

    ``root`` is the directory of all agents: the argument, else ``AGENT_MEMORY_ROOT``, else
    ``~/.amplifier/memory``. ``session_id`` names the conversation or run that stores (else
    ``AGENT_MEMORY_SESSION``, else a new name); memories of one session support each other in
    searches. ``config`` and ``context_config`` are document A's; ``clock`` returns the time,
    aware, in UTC. ``create=False`` refuses an agent that has no file yet, ``read_only`` writes
    nothing at all. ``synchronous="NORMAL"`` stores faster and may lose the last memories in a
    power cut.

    ``secret_scanner`` looks for secrets in what is stored instead of the library's own (the
    protocol ``SecretScanner``).

    ``on_event`` is called with what happens (``MemoryEvent``), in the thread in which it does, once
    it is done; ``event_text`` puts the text of queries and memories into it. The same is logged by
    ``agent_memory.events`` at the level INFO, and written into ``events.jsonl`` beside the file
    where the setting ``event_log`` says so.

    ``embedder`` makes the vectors for search by meaning, once ``migrate`` was run: a name
    (``"openai"``, ``"wordllama"``, ``"openai:text-embedding-3-large"``), an object of the protocol
    ``Embedder``, a list of those to try in turn, or ``None`` for keyword search alone. Unless it is
    given, ``AGENT_MEMORY_EMBEDDER`` names it, else it is the one that made the file's vectors.

    It may be shared by threads, and used again after ``fork``. Use it as a context manager, or
    call ``close``.

    >>> with AgentMemory("bob", root=tmp) as memory:
    ...     _ = memory.store("Prefer PostgreSQL for new projects", category="preference")
    ...     memory.search("which database? PostgreSQL?")[0].memory.content
    'Prefer PostgreSQL for new projects'
    """

    agents = staticmethod(list_agents)
    rebuild = staticmethod(_rebuild)
    restore = staticmethod(_restore)

    # Finding ----------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int | None = None,
        *,
        since: Time | None = None,
        until: Time | None = None,
        category: str | Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        tags_match: str | None = None,
        kind: str | None = None,
        importance: str | None = None,
        session_id: str | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        similarity_threshold: float | None = None,
        count_accesses: bool = True,
        now: Time | None = None,
        explain: bool = False,
        as_of: Time | None = None,
        shared: Sequence[str] = (),
        graph: bool = False,
    ) -> SearchResults:
        """Find the memories that answer a question in plain words, best first.

        They are found by their words and, once ``migrate`` was run, by their meaning.
        ``limit`` is 1 to 100 (5). ``since`` and ``until`` include their moment. The other
        arguments and ``filters`` (C's, see ``SearchFilters``) say what a memory must be like; all
        must hold. ``similarity_threshold`` (0 to 1) drops weaker hits outright; without it they
        come last, with ``passed_gate`` false. ``now`` is the moment that ages are counted from.
        ``explain`` adds to each hit the parts of its score.

        ``as_of`` searches the memories as they were at a time. ``shared`` names other agents whose
        memories are searched too, as their own files allow (the setting ``sharing``): each hit's
        ``memory.agent_id`` says whose it is. Nothing is written where that may only be read.

        With ``graph`` the memories follow that say what holds, in the graph, at whom or what the
        query names, and beside that; they take the places of hits below the gate.

        No text is an error: a search for nothing finds nothing, and ``search_metadata`` says why.
        Hits that pass the gate are counted as accessed, unless ``count_accesses`` is false or
        ``as_of`` is given.
        """
        asked = joined_filters(
            filters,
            date_range=inputs.date_range(since, until),
            category=category,
            tags=tags,
            tags_match=tags_match,
            kind=kind,
            importance=importance,
            session_id=session_id,
            user_id=user_id,
            run_id=run_id,
        )
        question = Question(
            query=inputs.query_text(query),
            filters=asked,
            limit=self._config.default_search_limit
            if limit is None
            else inputs.whole_number("limit", limit, lowest=1, highest=MAX_SEARCH_LIMIT),
            threshold=self._threshold(similarity_threshold),
            rates=Rates(self._config.freshness_decay_rate, self._config.access_boost_rate),
            now=None if now is None else inputs.moment("now", now),
            explain=explain,
        )
        if graph and (as_of is not None or shared):
            message = (
                "the graph is searched as it is now, of this agent: leave as_of and shared out"
            )
            raise ValidationError.of("graph", message, graph)
        results = self._found(question, as_of, shared, graph=graph, count_accesses=count_accesses)
        if self._events.are_heard():
            self._events.searched(query, results, backend=self._store.backend())
        return results

    def _found(
        self,
        question: Question,
        as_of: Time | None,
        shared: Sequence[str],
        *,
        graph: bool,
        count_accesses: bool,
    ) -> SearchResults:
        if as_of is not None:
            return self._found_as_of(question, as_of, shared)
        if shared:
            return self._found_with(question, shared, count_accesses=count_accesses)
        results = self._answer(question)
        if graph:
            results = self._with_graph(results, question)
        self._store.finder.note_search(results, count_accesses=count_accesses)
        return results

    def _with_graph(self, results: SearchResults, question: Question) -> SearchResults:
        """Add the memories that the graph has near the query, in place of hits below the gate."""
        good = [hit for hit in results if hit.passed_gate]
        found = {hit.memory.id for hit in good}
        near = self.graph.related_memory_ids(
            question.query, user_id=question.filters.user_id, limit=question.limit
        )
        wanted = [memory_id for memory_id in near if memory_id not in found]
        more = [
            MemorySearchResult(
                memory=memory, relevance_score=0.0, match_type=MatchType.GRAPH, passed_gate=False
            )
            for memory in self._store.finder.those(wanted, question.filters)
        ]
        shown = {hit.memory.id for hit in more}
        rest = [it for it in results if not it.passed_gate and it.memory.id not in shown]
        hits = [*good, *more, *rest][: question.limit]
        new = {hit.memory.id for hit in hits} - {hit.memory.id for hit in results}
        total = results.total_count + len(new)
        return results.model_copy(update={"results": hits, "total_count": total})

    def _answer(self, question: Question) -> SearchResults:
        """Search this memory, and take no notes of it."""
        meaning = self._meaning.of_query(question.query)
        return self._store.finder.search(question, meaning, now=question.now or self._now())

    def _found_as_of(self, question: Question, as_of: Time, shared: Sequence[str]) -> SearchResults:
        """Search this memory as it stood at a time."""
        if shared:
            message = "other agents' memories are searched as they are now: leave as_of out"
            raise ValidationError.of("shared", message, shared)
        moment = inputs.moment("as_of", as_of)
        with self._as_of(moment) as past:
            return past._answer(replace(question, now=question.now or moment))

    def _found_with(
        self, question: Question, shared: Sequence[str], *, count_accesses: bool
    ) -> SearchResults:
        """Search this memory together with those of other agents."""
        told = replace(question, explain=True, now=question.now or self._now())
        return self._others.search(
            shared,
            self,
            filters=question.filters,
            limit=question.limit,
            explain=question.explain,
            ask=lambda memory: memory._answer(told),
            note=lambda memory, results: memory._store.finder.note_search(
                results, count_accesses=count_accesses
            ),
        )

    @cached_property
    def _others(self) -> Shared:
        """The memories of other agents, opened when they are first asked for."""
        from agent_memory.api.sharing import Shared  # noqa: PLC0415 - seldom used

        def opened(agent_id: str, *, root: Path, create: bool, read_only: bool) -> AgentMemory:
            return AgentMemory(
                agent_id, root=root, create=create, read_only=read_only, **self._settings
            )

        return Shared(self.path, self.agent_id, opened)

    def shared(self, agent_id: str) -> AgentMemory:
        """Return the memory of another agent, to read, or to write too if its file allows that.

        What others may do is the setting ``sharing`` of that agent. It is closed with this one.
        Raises ``PermissionDenied`` for a private one, ``StorageUnavailable`` where there is none.
        """
        self._store.config()  # raises StorageClosed for a memory that is closed
        return self._others.open(agent_id)

    def session(self, context: SessionContext | Mapping[str, Any]) -> SessionMemory:
        """Return the verbs within one session: what it may do, with what is its own.

        Raises ``InvalidSession`` for what is no session, or one with another agent.
        """
        from agent_memory.api.session import SessionMemory  # noqa: PLC0415
        from agent_memory.models.session import SessionContext  # noqa: PLC0415 - seldom used

        return SessionMemory(self, SessionContext.of(context))

    def close(self) -> None:
        """Close the file. What ``store`` returned from is safe without it."""
        try:
            if "_others" in self.__dict__:
                self._others.close()
        finally:
            super().close()

    def get(self, memory_id: str, *, as_of: Time | None = None) -> Memory | None:
        """Return a memory by its id, or ``None``. This does not count as an access.

        ``as_of`` returns it as it was at a time, ``None`` if it was not there then.
        """
        if as_of is not None:
            return self._store.life.get_as_of(memory_id, inputs.moment("as_of", as_of))
        return self._store.get(memory_id)

    def list_recent(
        self,
        limit: int = 10,
        *,
        offset: int = 0,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        as_of: Time | None = None,
    ) -> list[Memory]:
        """Return the newest memories by timestamp, newest first. ``limit`` is at least 1.

        ``as_of`` returns those that there were at a time, as they were.
        """
        asked = joined_filters(filters)
        limit = inputs.whole_number("limit", limit, lowest=1)
        offset = inputs.whole_number("offset", offset, lowest=0)
        if as_of is None:
            return self._store.recent(asked, limit=limit, offset=offset)
        with self._as_of(as_of) as past:
            return past.list_recent(limit, offset=offset, filters=asked)

    def count(self, *, filters: SearchFilters | Mapping[str, Any] | None = None) -> int:
        """Count the memories that are not archived, or those that the filters describe."""
        return self._store.count(joined_filters(filters))

    def history(self, memory_id: str | None = None, *, limit: int = 100) -> list[HistoryEntry]:
        """Return the changes of a memory, or of all, newest first.

        Raises ``MemoryNotFound`` for an id that never was.
        """
        return self._store.history(memory_id, limit=inputs.whole_number("limit", limit, lowest=1))

    # The scratchpad ---------------------------------------------------------------------------

    def promote(self, memory_id: str) -> Promotion:
        """Put a memory into the scratchpad by hand. The least recently used one makes room.

        Raises ``MemoryNotFound``.
        """
        promotion = self._store.promote(memory_id)
        if promotion.promoted:
            self._events.promoted_by_hand(promotion)
        return promotion

    def demote(self, memory_id: str) -> bool:
        """Take a memory out of the scratchpad, and return whether it was in.

        Raises ``MemoryNotFound``.
        """
        return self._store.demote(memory_id)

    def scratchpad(self) -> Scratchpad:
        """Return the hot set (A), most recently used first."""
        entries = [
            ScratchpadMemoryEntry.model_construct(
                **memory.model_dump(include=set(ScratchpadMemoryEntry.model_fields))
            )
            for memory in self._store.scratchpad()
        ]
        max_size = self._store.config().scratchpad_max_size
        return Scratchpad.model_construct(
            agent_id=self.agent_id,
            last_updated=self._now(),
            max_size=max(max_size, len(entries)),
            memories=entries,
        )

    def context(
        self,
        token_budget: int | None = None,
        *,
        config: MemoryContextConfig | Mapping[str, Any] | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> str:
        """Return the scratchpad as Markdown for a model's context, at most ``token_budget`` tokens.

        The memories are ranked as B says, by last access and then by access count. They stand
        between marks that no memory can have in it, each on a line of its own with its source, and
        are called recalled data, not instructions: see ``render_memories``. ``count_tokens`` counts
        the tokens of a text; without it they are estimated as a quarter of the UTF-8 bytes. The
        text is empty when the scratchpad is, or nothing fits.
        """
        chosen = self._context_config if config is None else validated(MemoryContextConfig, config)
        budget = chosen.token_budget if token_budget is None else token_budget
        inputs.whole_number("token_budget", budget, lowest=0)
        memories = self._store.scratchpad()
        text, shown = render_context(
            memories, chosen, budget, agent_id=self.agent_id, count_tokens=count_tokens
        )
        self._store.finder.note_recalls([memory.id for memory in shown])
        return text

    # Inside -----------------------------------------------------------------------------------

    def _threshold(self, threshold: float | None) -> float | None:
        """Return the least similarity that the user set, if any: in the call, here, in the file."""
        if threshold is not None:
            return inputs.similarity(threshold)
        for settings in (self._config, self._store.config()):
            if "similarity_threshold" in settings.model_fields_set:
                return settings.similarity_threshold
        return None
