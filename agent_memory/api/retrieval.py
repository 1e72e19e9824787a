"""The verbs that find and read memories: by question, by id, by time, across agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from agent_memory.api.arguments import (
    Time,
    check_fraction,
    check_id,
    check_is_id,
    check_order,
    join_filters,
    parse_as_of,
    parse_date_range,
    parse_moment,
)
from agent_memory.api.opening import OpenMemory
from agent_memory.api.plain_arguments import check_query, check_whole_number
from agent_memory.errors import ValidationError
from agent_memory.models.agent import AgentConfig
from agent_memory.models.enums import MatchType
from agent_memory.models.limits import MAX_SEARCH_LIMIT
from agent_memory.models.memory import HistoryEntry, Memory
from agent_memory.models.search import MemorySearchResult, SearchFilters, SearchResults
from agent_memory.models.times import format_time
from agent_memory.services.search.corrections import corrected
from agent_memory.services.search.ranking import RankingRates
from agent_memory.services.search.request import SearchRequest

if TYPE_CHECKING:
    from agent_memory.api.sharing import SharedMemories
    from agent_memory.extraction.llm.registry import ModelSpec
    from agent_memory.models.protocols import LanguageModel, Reranker


class RetrievalVerbs(OpenMemory):
    """Searching and reading. ``AgentMemory`` has these verbs."""

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
        min_confidence: float | None = None,
        include_weak: bool = True,
        count_accesses: bool = True,
        now: Time | None = None,
        explain: bool = False,
        as_of: Time | None = None,
        shared: Sequence[str] = (),
        graph: bool = False,
        hops: int = 1,
        expand: ModelSpec = None,
        reranker: Reranker | None = None,
    ) -> SearchResults:
        """Find the memories that answer a question in plain words, best first.

        Memories are found by their words and, once ``migrate`` was run, by their meaning. Any text
        is a valid query, an empty one too; a search that finds nothing says why in
        ``search_metadata``. Weaker hits come last, with ``passed_gate`` false. Hits that pass the
        gate are counted as accessed, unless ``count_accesses`` is false or ``as_of`` is given.

        What a memory must be like (all conditions must hold):

        - ``since`` and ``until``: its time, both ends included: a datetime, ISO 8601, how long
          ago (``12h``, ``7d``, ``2w``), ``today`` or ``yesterday``.
        - ``category``, ``tags``, ``kind``, ``importance``, ``session_id``, ``user_id``, ``run_id``:
          its fields. ``filters`` has these and more, see ``SearchFilters``.
        - ``as_of``: searches the memories as they were at that time.
        - ``shared``: also searches the memories of these other agents, as far as their own files
          allow (the setting ``sharing``). Each hit's ``memory.agent_id`` says whose it is. Files
          that may only be read are not written to.

        How many hits, and how good:

        - ``limit``: 1 to 100, by default 5.
        - ``include_weak=False`` leaves weaker hits out.
        - ``min_confidence``, 0 to 1: drops hits that are less likely to be relevant.
        - ``similarity_threshold``, 0 to 1: drops hits that are less similar, and takes the place of
          the floor below which nothing is an answer. With 0 the nearest memories are returned,
          however far, with ``passed_gate`` false.
        - ``now``: the moment from which ages are counted. ``explain`` adds the parts of each score.

        How to look further:

        - ``graph``: adds the memories behind the graph's relationships of the entities in the
          query, in place of hits below the gate.
        - ``hops=2``: adds, in the same places, what the first hits lead to, such as the home town
          of a sister whose name is in another memory.
        - ``expand``: a language model, as in ``add``, that is asked to reword the query.
        - ``reranker``: a function of the query and the texts of the first hits (25, or ``limit`` if
          that is more) that returns a score for each and so decides their order.
        """
        joined = join_filters(
            filters,
            date_range=parse_date_range(since, until, self._now()),
            category=category,
            tags=tags,
            tags_match=tags_match,
            kind=kind,
            importance=importance,
            session_id=session_id,
            user_id=user_id,
            run_id=run_id,
        )
        store = self._store
        settings = store.readable_config() if similarity_threshold is None else None
        request = SearchRequest(
            query=check_query(query),
            filters=joined,
            limit=self._config.default_search_limit
            if limit is None
            else check_whole_number("limit", limit, lowest=1, highest=MAX_SEARCH_LIMIT),
            threshold=self._similarity_threshold(similarity_threshold, settings),
            has_no_floor=similarity_threshold is not None,
            min_confidence=None
            if min_confidence is None
            else check_fraction(min_confidence, name="min_confidence"),
            include_weak=include_weak,
            rates=RankingRates(self._config.freshness_decay_rate, self._config.access_boost_rate),
            now=None if now is None else parse_moment("now", now),
            explain=explain,
            hops=check_whole_number("hops", hops, lowest=1, highest=2),
            language_model=_language_model(expand),
            reranker=_checked_reranker(reranker),
        )
        if graph and (as_of is not None or shared):
            message = (
                "with the graph, only this agent's current memories can be searched: leave"
                " as_of and shared out"
            )
            raise ValidationError.of("graph", message, graph)
        results = self._search(request, as_of, shared, graph=graph, count_accesses=count_accesses)
        if self._events.has_listeners(None if settings is None else settings.event_log):
            self._events.searched(query, results, backend=store.backend())
        return results

    def shared(self, agent_id: str) -> Self:
        """Return another agent's memory, to read, or also to write if its file allows that.

        Each use checks that agent's setting ``sharing`` anew. The memory is closed together with
        this one. Raises ``PermissionDenied`` if it is private, and ``AgentNotFound`` if there is
        none.
        """
        self._store.readable_config()  # raises StorageClosed for a memory that is closed
        return self._shared_memories.open(agent_id)

    def close(self) -> None:
        """Close the file. Everything that ``store`` returned from is safe even without this."""
        try:
            super().close()
        finally:
            if "_shared_memories" in self.__dict__:
                self._shared_memories.close()

    def get(self, memory_id: str, *, as_of: Time | None = None) -> Memory | None:
        """Return a memory by its id, or ``None``. This does not count as an access.

        ``as_of`` returns it as it was at a time, or ``None`` if it did not exist then.
        """
        check_is_id(memory_id)
        if as_of is not None:
            return self._store.lifecycle.get_as_of(memory_id, parse_as_of(as_of))
        return self._store.get(memory_id)

    def list_recent(
        self,
        limit: int = 10,
        *,
        offset: int = 0,
        after: str | None = None,
        filters: SearchFilters | Mapping[str, Any] | None = None,
        as_of: Time | None = None,
        order: str = "newest",
    ) -> list[Memory]:
        """Return the newest memories by timestamp, newest first. ``limit`` is at least 1.

        ``after`` is the id of the last memory of the previous page. Unlike ``offset`` it is as fast
        at the end of a long list as at its beginning, and is not confused by memories stored
        meanwhile. Raises ``MemoryNotFound`` if that memory is gone.

        ``order`` is a ``MemoryOrder``: ``newest`` or ``oldest`` first, by ``importance``, by how
        often (``recalled``) or how recently (``last_recalled``) they were recalled, or by
        ``category``; ties come newest first. All but the first two have to look at every memory.

        ``as_of`` returns the memories that existed at a time, as they were then.
        """
        joined = join_filters(filters)
        limit = check_whole_number("limit", limit, lowest=1)
        offset = check_whole_number("offset", offset, lowest=0)
        if after is not None:
            check_id("after", after)
        sorting = check_order(order)
        if as_of is None:
            return self._store.recent(
                joined, limit=limit, offset=offset, after=after, order=sorting
            )
        with self._as_of(as_of) as past:
            return past.list_recent(limit, offset=offset, after=after, filters=joined, order=order)

    def count(self, *, filters: SearchFilters | Mapping[str, Any] | None = None) -> int:
        """Count the memories that are not archived, or those that match the filters."""
        return self._store.count(join_filters(filters))

    def history(
        self, memory_id: str | None = None, *, limit: int = 100, before: int | None = None
    ) -> list[HistoryEntry]:
        """Return the changes of one memory, or of all, newest first.

        ``before`` is the number of the last change of the previous page. Raises ``MemoryNotFound``
        for an id that never existed.
        """
        limit = check_whole_number("limit", limit, lowest=1)
        if before is not None:
            check_whole_number("before", before, lowest=1)
        return self._store.history(memory_id, limit=limit, before=before)

    # Inside -----------------------------------------------------------------------------------

    def _search(
        self,
        request: SearchRequest,
        as_of: Time | None,
        shared: Sequence[str],
        *,
        graph: bool,
        count_accesses: bool,
    ) -> SearchResults:
        if as_of is not None:
            return self._search_as_of(request, as_of, shared)
        if shared:
            return self._search_shared(request, shared, count_accesses=count_accesses)
        results = self._search_own(request)
        if graph:
            results = self._with_graph(results, request)
        self._opened_store.searches.record_search(results, count_accesses=count_accesses)
        return results

    def _with_graph(self, results: SearchResults, request: SearchRequest) -> SearchResults:
        """Add the memories that the graph has near the query, in place of hits below the gate."""
        good = [hit for hit in results if hit.passed_gate]
        good_ids = {hit.memory.id for hit in good}
        near = self.graph.related_memory_ids(
            request.query,
            user_id=request.user_id,
            run_id=request.run_id,
            limit=request.limit,
        )
        wanted = [memory_id for memory_id in near if memory_id not in good_ids]
        added = [
            MemorySearchResult(
                memory=memory,
                relevance_score=0.0,
                match_type=MatchType.GRAPH,
                passed_gate=False,
                under_review=under_review,
            )
            for memory, under_review in self._store.searches.by_ids(wanted, request.filters)
        ]
        added_ids = {hit.memory.id for hit in added}
        rest = [hit for hit in results if not hit.passed_gate and hit.memory.id not in added_ids]
        hits = [*good, *added, *rest][: request.limit]
        new = {hit.memory.id for hit in hits} - {hit.memory.id for hit in results}
        total = results.total_count + len(new)
        return results.model_copy(update={"results": hits, "total_count": total})

    def _search_own(self, request: SearchRequest) -> SearchResults:
        """Search this memory, and take no notes of it."""
        if request.is_plain:
            return self._look(request)
        from agent_memory.services.search.refinement import refined  # noqa: PLC0415 - seldom used

        return refined(request, self._look, self._store.searches.follow_up)

    def _look(self, request: SearchRequest) -> SearchResults:
        store, now = self._opened_store, request.now or self._now()
        state = store.vectors.state()
        if state.active is not None:
            request = store.searches.with_terms(request, now=now)
        meaning = self._embedding.of_query(corrected(request.query, request.terms), state)
        return store.searches.search(request, meaning, now=now)

    def _search_as_of(
        self, request: SearchRequest, as_of: Time, shared: Sequence[str]
    ) -> SearchResults:
        if shared:
            message = "other agents' memories are searched as they are now: leave as_of out"
            raise ValidationError.of("shared", message, shared)
        moment = parse_as_of(as_of)
        with self._as_of(moment) as past:
            results = past._search_own(request._replace(now=request.now or moment))
        metadata = results.search_metadata
        if metadata.reason != "nothing_stored":
            return results
        then = {"explanation": f"this agent had no memories at {format_time(moment)}"}
        return results.model_copy(update={"search_metadata": metadata.model_copy(update=then)})

    def _search_shared(
        self, request: SearchRequest, shared: Sequence[str], *, count_accesses: bool
    ) -> SearchResults:
        explained = request._replace(explain=True, now=request.now or self._now())
        return self._shared_memories.search(
            shared,
            self,
            only=None if request.filters is None else request.filters.agent_id,
            limit=request.limit,
            include_weak=request.include_weak,
            explain=request.explain,
            ask=lambda memory: memory._search_own(explained),
            note=lambda memory, results: memory._opened_store.searches.record_search(
                results, count_accesses=count_accesses
            ),
        )

    @property
    def _shared_memories(self) -> SharedMemories[Self]:
        """The memories of other agents, opened when they are first asked for."""
        from agent_memory.api.sharing import SharedMemories  # noqa: PLC0415 - seldom used

        # No cached property: of two threads that ask first, each had its own, and one stayed open.
        made = SharedMemories(self._address, self.agent_id, self._open_beside)
        kept: SharedMemories[Self] = self.__dict__.setdefault("_shared_memories", made)
        if self._is_closed:  # meanwhile, by a thread that saw none to close
            kept.close()
        return kept

    def _similarity_threshold(
        self, threshold: float | None, stored: AgentConfig | None
    ) -> float | None:
        """Return the least similarity that the user set, if any: in the call, here, in the file."""
        if threshold is not None:
            return check_fraction(threshold)
        for settings in (self._config, stored):
            if settings and "similarity_threshold" in settings.model_fields_set:
                return settings.similarity_threshold
        return None


def _language_model(spec: ModelSpec) -> LanguageModel | None:
    if spec is None:
        return None
    from agent_memory.extraction.llm.registry import as_language_model  # noqa: PLC0415 - 20 ms

    return as_language_model(spec)


def _checked_reranker(reranker: Reranker | None) -> Reranker | None:
    if reranker is None or callable(reranker):
        return reranker
    message = "must be a function of a query and a list of texts that returns a score for each"
    raise ValidationError.of("reranker", message, reranker)
