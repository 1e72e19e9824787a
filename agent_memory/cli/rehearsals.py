"""A write that would create an agent is tried in an empty memory: what is refused leaves none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from agent_memory import AgentMemory
from agent_memory.cli.options import Session
from agent_memory.runtime.private_folders import private_folder


def rehearse(session: Session, write: Callable[[AgentMemory], object]) -> None:
    """Try an agent's first write, and raise the error with which it is refused."""
    if not session.exists():
        with empty_memory(session) as memory:
            write(memory)


@contextlib.contextmanager
def empty_memory(session: Session) -> Iterator[AgentMemory]:
    """Open an empty memory of the chosen agent, which goes with the body."""
    with (
        private_folder() as folder,
        replace(session, root=str(folder), db=None, agent=session.agent or "agent").open(
            create=True
        ) as memory,
    ):
        yield memory
