"""Memories of several agents together: who lets whom read or write, and one search over them all.

An agent's own file says what other agents may do with it (``AgentConfig.sharing``). One that may
be read is opened read-only, so that nothing here can write to it, not even a count.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Literal, TypeVar

from agent_memory.api.opening import OpenMemory
from agent_memory.errors import (
    ConfigurationError,
    PermissionDenied,
    StorageClosed,
    StorageError,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.models.agent import AgentConfig
from agent_memory.models.limits import VECTOR_DB_FILENAME
from agent_memory.models.search import (
    MemorySearchResult,
    NearMiss,
    SearchMetadata,
    SearchResults,
)
from agent_memory.runtime import fork_safety, paths
from agent_memory.runtime.addresses import Address
from agent_memory.runtime.files import refuse_unfit_file
from agent_memory.services.search.pipeline import NEAR_MISSES
from agent_memory.services.search.ranking import MEANING_PLACE_STEP
from agent_memory.storage.opening import agents_of
from agent_memory.text.normalize import exact_form, near_form

SHARED_AGENT: Final = "shared"
"""The agent whose memories the others may read unless its file says otherwise."""

Policy = Literal["private", "read", "write"]
_TURNS: Final = 10
"""So often a search opens a memory anew that others close meanwhile."""
AnyMemory = TypeVar("AnyMemory", bound=OpenMemory)
"""The class of the memory that asks, and so of those that it opens."""


def policy_of(config: AgentConfig, *, agent_id: str) -> Policy:
    """Return what others may do with the memories of an agent that has these settings."""
    if config.sharing is None:
        return "read" if agent_id == SHARED_AGENT else "private"
    return config.sharing


def _refuse_unshared(config: AgentConfig, *, agent_id: str, read_only: bool) -> None:
    """Refuse a memory that is shared no more, or of which more was allowed when it was opened."""
    policy = policy_of(config, agent_id=agent_id)
    if policy == "private":
        raise _private(agent_id)
    if policy == "read" and not read_only:
        raise PermissionDenied(
            f"the memories of agent {agent_id!r} may be written no more: open them anew, to read,"
            f" with `shared({agent_id!r})`"
        )


def _private(agent_id: str) -> PermissionDenied:
    return PermissionDenied(
        f"the memories of agent {agent_id!r} are private: whoever runs it lets others read"
        f" them with `agent-memory --agent {agent_id} configure sharing read`"
    )


class SharedMemories(Generic[AnyMemory]):
    """The memories of other agents, as one agent may use them. Threads may share it.

    ``address`` and ``agent_id`` are those of the memory that asks; the others lie beside it, under
    the same root. They stay open between uses; before each, their files are asked what is allowed.
    ``opener`` opens one that there is: ``(agent_id, root=, read_only=)``.
    """

    def __init__(self, address: Address, agent_id: str, opener: Callable[..., AnyMemory]) -> None:
        self._address = address
        self._root = address.parent.parent if isinstance(address, Path) else address.server
        self._agent_id = agent_id
        self._opener = opener
        self._lock = fork_safety.Lock()
        self._opened: dict[str, _Opened[AnyMemory]] = {}
        self._is_closed = False

    def open(self, name: str) -> AnyMemory:
        """Return the memory of another agent: for reading, or for writing too where it says so.

        It is closed with the memory that asks, and opened anew when what it allows has changed.

        Raises ``PermissionDenied`` when it is private, ``ValidationError`` for what is no agent id
        or the asker's own, ``StorageUnavailable`` when there is no such agent or its place is a
        link, ``ConfigurationError`` when the asker's file does not lie under a root.
        """
        return self._open(name).memory

    def search(
        self,
        names: str | Sequence[str],
        own: AnyMemory,
        *,
        only: str | None,
        limit: int,
        include_weak: bool,
        explain: bool,
        ask: Callable[[AnyMemory], SearchResults],
        note: Callable[[AnyMemory, SearchResults], None],
    ) -> SearchResults:
        """Search a memory and those of other agents, and return the best ``limit`` of all.

        Without ``include_weak`` only what passes the gate among all is returned.

        ``only`` is the id of the one agent that is searched, if not all are. The results are in one
        order, see ``_compare_to_best``; one that repeats a better one of another agent is among
        its ``repeats``, as ``agent:id``.

        ``ask`` puts the question to one memory; it explains the scores, and takes no notes.
        ``note`` notes, for a memory that may be written, which of its results were given out.

        A name that may not be searched, or that there is not, raises what ``open`` does. A file
        that cannot be read now (locked, damaged) is left out, and ``degraded`` says so.
        """
        wanted = _names(names)
        picked = [name for name in wanted if only in (None, name)]
        for name in picked:
            self._inode(name)  # one that there is not is no failure of its file
        answers: list[_Answer[AnyMemory]] = []
        failures: list[str] = []
        if not picked or only is None:
            answers.append(_Answer(own, ask(own), is_own=True, is_written=True))
        for name in picked:
            try:
                answers.append(self._answer(name, ask))
            except StorageError as error:
                failures.append(f"{name}: was not searched: {error}")
        if not answers:  # its own, of which the filters leave nothing, can say so at least
            answers.append(_Answer(own, ask(own), is_own=True, is_written=True))
        merged = _merge(answers)
        page = [hit for hit in merged if include_weak or hit.result.passed_gate][:limit]
        shown = [same for hit in page for same in (hit, *hit.copies)]
        for answer in answers:
            if answer.is_written:
                hits = [same.result for same in shown if same.answer is answer]
                with contextlib.suppress(StorageError):  # it may have been closed meanwhile
                    note(answer.memory, answer.results.model_copy(update={"results": hits}))
        return _build_results(page, answers, wanted, failures, limit=limit, explain=explain)

    def close(self) -> None:
        """Close all that were opened. Closing twice is fine."""
        with self._lock.bare, contextlib.ExitStack() as closing:
            self._is_closed = True
            for opened in self._opened.values():
                closing.callback(opened.memory.close)
            self._opened = {}

    # Inside -----------------------------------------------------------------------------------

    def _inode(self, name: str) -> int:
        """Find the file of another agent, without opening it; 0 where it is in a database."""
        if isinstance(self._root, Path) and (
            self._address != self._root / self._agent_id / VECTOR_DB_FILENAME
        ):
            raise ConfigurationError(
                f"{self._address} lies under no root, so no other agents are beside it: memories"
                f" are shared among files ROOT/AGENT/{VECTOR_DB_FILENAME}, each named for its agent"
            )
        path = paths.agent_address(name, self._root)
        if name == self._agent_id:
            message = f"{name!r} is the agent that asks: its own memories are searched anyway"
            raise ValidationError.of("shared", message, name)
        if not isinstance(path, Path):
            if name not in agents_of(path.server):
                raise self._no_agent(name)
            return 0
        try:
            inode = path.lstat().st_ino
        except (FileNotFoundError, NotADirectoryError):
            raise self._no_agent(name) from None
        except OSError as error:
            raise StorageUnavailable(f"{path} may not be accessed: {error}") from error
        refuse_unfit_file(path)
        return inode

    def _no_agent(self, name: str) -> StorageUnavailable:
        return StorageUnavailable(
            f"there is no agent {name!r} in {self._root}: `agent-memory agents` lists them"
        )

    def _open(self, name: str) -> _Opened[AnyMemory]:
        """Return the memory of another agent, opened as its own file allows now."""
        inode = self._inode(name)
        with self._lock.bare:
            if self._is_closed:
                raise StorageClosed(f"{self._address} is closed: open the memory again")
            try:
                return self._opened_as_allowed(name, inode)
            except (StorageError, PermissionDenied):
                self._close_other(name)  # it may be repaired, or shared, before the next use
                raise

    def _opened_as_allowed(self, name: str, inode: int) -> _Opened[AnyMemory]:
        opened = self._opened.get(name)
        if opened is not None and opened.inode != inode:
            self._close_other(name)  # another file was put in its place
        read_only = opened is None or opened.read_only
        while True:
            policy = self._policy(name, inode, read_only=read_only)
            if policy == "private":
                raise _private(name)
            if (policy == "read") == read_only:
                return self._opened[name]
            self._close_other(name)
            read_only = policy == "read"

    def _policy(self, name: str, inode: int, *, read_only: bool) -> Policy:
        """Return what a file allows now. It is opened for that, unless it is open."""
        try:
            config = self._kept_open(name, inode, read_only=read_only)._opened_store.config()
        except StorageClosed:  # by its user
            self._close_other(name)
            config = self._kept_open(name, inode, read_only=read_only)._opened_store.config()
        return policy_of(config, agent_id=name)

    def _kept_open(self, name: str, inode: int, *, read_only: bool) -> AnyMemory:
        if name not in self._opened:
            memory = self._opener(name, root=self._root, read_only=read_only)
            memory._check_sharing = partial(_refuse_unshared, agent_id=name, read_only=read_only)
            self._opened[name] = _Opened(memory, inode, read_only)
        return self._opened[name].memory

    def _close_other(self, name: str) -> None:
        """Close a memory, which may be damaged, or whose file may be gone."""
        opened = self._opened.pop(name, None)
        if opened is not None:
            with contextlib.suppress(StorageError):
                opened.memory.close()

    def _answer(
        self, name: str, ask: Callable[[AnyMemory], SearchResults], *, turns: int = _TURNS
    ) -> _Answer[AnyMemory]:
        opened = self._open(name)
        try:
            results = ask(opened.memory)
        except StorageClosed:  # by another thread, which saw that its policy changed
            if not turns:
                raise
            return self._answer(name, ask, turns=turns - 1)
        except StorageError:
            with self._lock.bare:
                self._close_other(name)
            raise
        return _Answer(opened.memory, results, is_own=False, is_written=not opened.read_only)


def _names(names: str | Sequence[str]) -> list[str]:
    """Return the names that were given, each once."""
    agent_ids = [names] if isinstance(names, str) else names
    if not isinstance(agent_ids, Sequence) or not all(isinstance(name, str) for name in agent_ids):
        raise ValidationError.of("shared", "must be a list of agent ids", names)
    return list(dict.fromkeys(agent_ids))


@dataclass(frozen=True, slots=True)
class _Opened(Generic[AnyMemory]):
    """An open memory of another agent, and the file that it was opened from."""

    memory: AnyMemory
    inode: int
    read_only: bool


# Merging ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Answer(Generic[AnyMemory]):
    """What one memory answered; ``is_written`` says whether notes may be taken of it."""

    memory: AnyMemory
    results: SearchResults
    is_own: bool
    is_written: bool

    def labelled(self, text: str) -> str:
        """Return a text about this memory; about another agent's, with its name."""
        return text if self.is_own else f"{self.memory.agent_id}: {text}"


@dataclass(slots=True)
class _Hit:
    """A hit, seen among those of all; ``copies`` are those of others that say the same."""

    result: MemorySearchResult
    answer: _Answer[Any]
    copies: list[_Hit] = field(default_factory=list)


def _merge(answers: Sequence[_Answer[Any]]) -> list[_Hit]:
    """Return the hits of all memories that say different things, best first."""
    scores = [hit.score for answer in answers for hit in answer.results]
    strongest = max((score.strength for score in scores if score is not None), default=0.0)
    hits = [
        [_Hit(_compare_to_best(hit, strongest), answer) for hit in answer.results]
        for answer in answers
    ]
    return _drop_repeats(_order(hits))


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
    seen = score.model_copy(update={"relative": relative, "strength": strongest})
    return result.model_copy(update={"score": seen, "passed_gate": relative >= score.gate})


_Key = tuple[bool, float, float]


def _order(hits_by_memory: Sequence[Sequence[_Hit]]) -> list[_Hit]:
    """Put the hits of all memories in order; the first memory's come first among equals.

    A memory whose words say little keeps every fourth place for the nearest by meaning. That holds
    among all where something of it passes the gate: else the others say more.
    """
    kept: list[tuple[float, _Hit]] = []
    others: list[tuple[_Key, _Hit]] = []
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
    order: list[_Hit] = []
    while near or rest:
        is_kept_place = len(order) % MEANING_PLACE_STEP == MEANING_PLACE_STEP - 1
        order.append((near if near and (is_kept_place or not rest) else rest).popleft())
    return order


def _order_key(hit: _Hit) -> _Key:
    """Return what hits are ordered by, as ``ranking`` does."""
    result = hit.result
    score = result.relevance_score if result.passed_gate else result.similarity
    return not result.passed_gate, -score, -result.similarity


def _drop_repeats(hits: Iterable[_Hit]) -> list[_Hit]:
    """Keep the first of the hits of different memories that say the same about the same user.

    What a memory itself has twice, it has told apart by more than its words.
    """
    first: dict[tuple[str, str | None], _Hit] = {}
    kept: list[_Hit] = []
    for hit in hits:
        memory = hit.result.memory
        earlier = first.setdefault((near_form(exact_form(memory.content)), memory.user_id), hit)
        if earlier.answer is hit.answer:
            kept.append(hit)
        else:
            earlier.copies.append(hit)
    return kept


def _build_results(
    page: Sequence[_Hit],
    answers: Sequence[_Answer[Any]],
    wanted: Sequence[str],
    failures: Sequence[str],
    *,
    limit: int,
    explain: bool,
) -> SearchResults:
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


def _build_result(hit: _Hit, *, explain: bool) -> MemorySearchResult:
    """Return a hit as it is given out, with the ids of other agents' copies as ``agent:id``."""
    copies = [
        f"{copy.answer.memory.agent_id}:{memory_id}"
        for copy in hit.copies
        for memory_id in (copy.result.memory.id, *copy.result.repeats)
    ]
    changes: dict[str, object] = {"repeats": [*hit.result.repeats, *copies]} if copies else {}
    if not explain:
        changes["score"] = None
    return hit.result.model_copy(update=changes)


def _near_misses(answers: Sequence[_Answer[Any]], *, explain: bool) -> list[NearMiss]:
    """Return the best of what no memory returned, that of other agents as ``agent:id``."""
    near = []
    for answer in answers:
        for miss in answer.results.search_metadata.near_misses:
            changes: dict[str, object] = {} if explain else {"score": None}
            if not answer.is_own:
                changes["memory_id"] = f"{answer.memory.agent_id}:{miss.memory_id}"
            near.append(miss.model_copy(update=changes))
    return sorted(near, key=lambda miss: -miss.similarity)[:NEAR_MISSES]
