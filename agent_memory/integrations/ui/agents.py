"""The memories that the page can show: those of its own agent, and of the agents beside it.

A request names an agent by its id; the library locates its memories, under the same root. No path
comes from a browser.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from agent_memory import (
    VECTOR_DB_FILENAME,
    AgentMemory,
    AgentNotFound,
    AgentSummary,
    StorageReadOnly,
)

MOST_OPEN: Final = 8
"""Agents whose files are kept open: a user looks at the page of one for more than a moment."""


class AgentPlace(NamedTuple):
    """An agent's memories under a root: a folder of agents, or the address of a database."""

    agent_id: str
    root: str | Path


def _opened(place: Path | AgentPlace, *, read_only: bool) -> AgentMemory:
    if isinstance(place, Path):
        return AgentMemory.open(place, create=False, read_only=read_only)
    return AgentMemory(place.agent_id, root=place.root, create=False, read_only=read_only)


@dataclass(eq=False)
class OpenAgent:
    """The memory of one agent: opened for reading, and for writing on the first write.

    ``users`` counts the requests that are using it.
    """

    place: Path | AgentPlace
    reading: AgentMemory
    writing: AgentMemory | None = None
    users: int = 0
    opening: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        """Close the memory."""
        for memory in (self.reading, self.writing):
            if memory is not None:
                memory.close()


class PageAgents:
    """The agents of a page; threads share it.

    ``place`` is what it was started with: a file, or an agent in a database.
    """

    def __init__(self, place: Path | AgentPlace, *, is_read_only: bool) -> None:
        self.is_read_only = is_read_only
        self._root: str | Path | None = None
        if isinstance(place, AgentPlace):
            self._root = place.root
        elif place.name == VECTOR_DB_FILENAME:
            self._root = place.parent.parent
        self._lock = threading.Lock()
        # Open for writing first: this upgrades an older file.
        writing = None if is_read_only else _opened(place, read_only=False)
        with contextlib.ExitStack() as undoing:
            if writing is not None:
                undoing.callback(writing.close)
            reading = _opened(place, read_only=True)
            undoing.pop_all()
        self._first = OpenAgent(place, reading, writing)
        self._others: dict[str, OpenAgent] = {}
        """By agent id, the one that was asked for last at the end."""

    @contextlib.contextmanager
    def reading(self, agent_id: str | None) -> Iterator[AgentMemory]:
        """Give the body an agent's memory for reading; ``None`` is the page's own agent."""
        with self._use(agent_id) as agent:
            yield agent.reading

    @contextlib.contextmanager
    def writing(self, agent_id: str | None) -> Iterator[AgentMemory]:
        """Give the body an agent's memory for writing. Raises ``StorageReadOnly``."""
        if self.is_read_only:
            raise StorageReadOnly("the page was started with --read-only: nothing can be changed")
        with self._use(agent_id) as agent:
            with agent.opening:
                if agent.writing is None:
                    agent.writing = _opened(agent.place, read_only=False)
            yield agent.writing

    def can_write(self, memory: AgentMemory) -> bool:
        """Return whether the page may change a memory, as far as can be told without trying."""
        if self.is_read_only or isinstance(self._first.place, AgentPlace):
            return not self.is_read_only
        return all(os.access(place, os.W_OK) for place in (memory.path, memory.path.parent))

    def listed(self) -> list[AgentSummary]:
        """Return all agents under the root, the page's own included; none for a lone file."""
        return [] if self._root is None else AgentMemory.agents(self._root)

    def close(self) -> None:
        """Close all memories."""
        for agent in (self._first, *self._others.values()):
            agent.close()

    @contextlib.contextmanager
    def _use(self, agent_id: str | None) -> Iterator[OpenAgent]:
        agent = self._first
        if agent_id is not None and agent_id != self._first.reading.agent_id:
            agent = self._other(agent_id)
        try:
            yield agent
        finally:
            with self._lock:
                agent.users -= agent is not self._first

    def _other(self, agent_id: str) -> OpenAgent:
        """Return another agent's memory, and count one more request that uses it."""
        with self._lock:
            agent = self._others.pop(agent_id, None) or self._open(agent_id)
            agent.users += 1
            self._others[agent_id] = agent
            idle = [name for name, other in self._others.items() if not other.users]
            for name in idle[: max(0, len(self._others) - MOST_OPEN)]:
                self._others.pop(name).close()
            return agent

    def _open(self, agent_id: str) -> OpenAgent:
        if self._root is None:
            raise AgentNotFound("this page shows a single file: there are no other agents")
        # By its id, never a path: the library refuses an invalid id, and a link.
        place = AgentPlace(agent_id, self._root)
        return OpenAgent(place, _opened(place, read_only=True))
