"""The agents that live under a root."""

from __future__ import annotations

import os
from pathlib import Path

from agent_memory.errors import AgentMemoryError
from agent_memory.models.agent import AgentInfo, AgentSummary
from agent_memory.models.times import now_utc
from agent_memory.runtime.paths import agent_files
from agent_memory.services.store import Store


def list_agents(root: str | os.PathLike[str] | None = None) -> list[AgentSummary]:
    """List the agents under a root, by name, with what can be said of each.

    A file that cannot be read is listed with its ``problem``. Nothing is written.
    """
    return [_summary(name, path) for name, path in agent_files(root)]


def _summary(name: str, path: Path) -> AgentSummary:
    try:
        info = _info(path)
    except AgentMemoryError as error:
        size = round(path.stat().st_size / 1e6, 3)
        return AgentSummary(agent_id=name, path=str(path), storage_size_mb=size, problem=str(error))
    return AgentSummary(
        agent_id=name,
        path=str(path),
        memory_count=info.memory_count,
        storage_size_mb=info.stats.storage_size_mb,
        last_accessed=info.last_accessed,
    )


def _info(path: Path) -> AgentInfo:
    store = Store(path, agent_id=None, clock=now_utc, create=False, read_only=True)
    try:
        return store.info()
    finally:
        store.close()
