"""Memories shared between agents: who may read or write whose, and one search over all of them.

Each agent's own file says what other agents may do with it (``AgentConfig.sharing``). A file that
may only be read is opened read-only, so nothing here can write to it, not even an access count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Generic, Literal, TypeVar

from agent_memory.api.opening import OpenMemory
from agent_memory.errors import (
    AgentNotFound,
    ConfigurationError,
    PermissionDenied,
    StorageClosed,
    StorageError,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.models.agent import AgentConfig
from agent_memory.models.limits import VECTOR_DB_FILENAME
from agent_memory.models.search import SearchResults
from agent_memory.runtime import fork_safety, paths
from agent_memory.runtime.addresses import Address
from agent_memory.runtime.files import refuse_unfit_file
from agent_memory.services.search.merging import Answer, build_results, given_out, merge
from agent_memory.storage.opening import agents_of

SHARED_AGENT: Final = "shared"
"""The agent whose memories the others may read unless its file says otherwise."""

Policy = Literal["private", "read", "write"]
_TURNS: Final = 10
"""How often a search reopens a memory that others close meanwhile."""
AnyMemory = TypeVar("AnyMemory", bound=OpenMemory)
"""The class of the memory that asks, and so of those that it opens."""


def policy_of(config: AgentConfig, *, agent_id: str) -> Policy:
    """Return what others may do with the memories of an agent with these settings."""
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
            f"the memories of agent {agent_id!r} may no longer be written: open them again,"
            f" to read, with `shared({agent_id!r})`"
        )


def _private(agent_id: str) -> PermissionDenied:
    return PermissionDenied(
        f"the memories of agent {agent_id!r} are private: whoever runs it lets others read"
        f" them with `agent-memory --agent {agent_id} configure sharing read`"
    )


class SharedMemories(Generic[AnyMemory]):
    """The memories of other agents, as one agent may use them. Threads may share it.

    ``address`` and ``agent_id`` belong to the memory that asks; the others lie beside it, under the
    same root. They stay open between uses, and before each use their files are asked what is
    allowed. ``opener`` opens an existing one: ``(agent_id, root=, read_only=)``.
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
        """Return another agent's memory: for reading, or also for writing if its file says so.

        It is closed together with the memory that asks, and reopened when its permissions change.

        Raises ``PermissionDenied`` if it is private, ``ValidationError`` for an invalid agent id or
        the asker's own, ``AgentNotFound`` if there is no such agent, ``StorageUnavailable`` if its
        place is a link, and ``ConfigurationError`` if the asker's own file is not under a root.
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
        """Search a memory together with those of other agents; return the best ``limit`` of all.

        Without ``include_weak`` only hits that pass the gate among all of them are returned.
        ``only`` limits the search to one agent, by id. All hits are in one order, see ``merging``;
        a hit that repeats a better one of another agent is listed in its ``repeats``, as
        ``agent:id``.

        ``ask`` queries one memory; it explains the scores and records nothing. ``note`` records,
        for a memory that may be written, which of its results were returned.

        An agent that does not exist or may not be searched raises what ``open`` raises. A file that
        cannot be read right now (locked, damaged) is left out, and ``degraded`` says so.
        """
        wanted = _names(names)
        picked = [name for name in wanted if only in (None, name)]
        for name in picked:
            self._inode(name)  # an agent that does not exist is not a failure of its file
        asked: list[_Asked[AnyMemory]] = []
        failures: list[str] = []
        if not picked or only is None:
            asked.append(self._ask_own(own, ask))
        for name in picked:
            try:
                asked.append(self._ask(name, ask))
            except StorageError as error:
                failures.append(f"{name}: not searched: {error}")
        if not asked:  # its own, of which the filters leave nothing, can say so at least
            asked.append(self._ask_own(own, ask))
        answers = [each.answer for each in asked]
        page = merge(answers, limit=limit, include_weak=include_weak)
        for each in asked:
            if each.is_written:
                with contextlib.suppress(StorageError):  # it may have been closed meanwhile
                    note(each.memory, given_out(page, each.answer))
        return build_results(page, answers, wanted, failures, limit=limit, explain=explain)

    def close(self) -> None:
        """Close all memories that were opened. Closing twice is harmless."""
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
                f"{self._address} is not under a root directory, so there are no other agents"
                " beside it: memories are shared among files"
                f" ROOT/AGENT/{VECTOR_DB_FILENAME}, where AGENT is the agent's id"
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

    def _no_agent(self, name: str) -> AgentNotFound:
        return AgentNotFound(f"no agent {name!r} in {self._root}: `agent-memory agents` lists them")

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

    def _ask_own(
        self, own: AnyMemory, ask: Callable[[AnyMemory], SearchResults]
    ) -> _Asked[AnyMemory]:
        answer = Answer(self._agent_id, ask(own), is_own=True)
        return _Asked(own, answer, is_written=True)

    def _ask(
        self, name: str, ask: Callable[[AnyMemory], SearchResults], *, turns: int = _TURNS
    ) -> _Asked[AnyMemory]:
        opened = self._open(name)
        try:
            results = ask(opened.memory)
        except StorageClosed:  # by another thread, which saw that its policy changed
            if not turns:
                raise
            return self._ask(name, ask, turns=turns - 1)
        except StorageError:
            with self._lock.bare:
                self._close_other(name)
            raise
        answer = Answer(name, results, is_own=False)
        return _Asked(opened.memory, answer, is_written=not opened.read_only)


def _names(names: str | Sequence[str]) -> list[str]:
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


@dataclass(frozen=True, slots=True)
class _Asked(Generic[AnyMemory]):
    """A memory that was asked, and its answer; ``is_written`` says whether notes may be taken."""

    memory: AnyMemory
    answer: Answer
    is_written: bool
