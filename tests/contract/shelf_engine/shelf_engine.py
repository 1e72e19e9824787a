"""An engine of another package: ``shelf:///folder`` holds a file for each agent, ``bob.shelf``.

It stands for one that keeps no files of ours: what only files can do, it says that it has not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_memory import AgentNotFound, ConfigurationError
from agent_memory.runtime.addresses import AgentAddress, ServerAddress
from agent_memory.storage.engine import Capability, Engine
from agent_memory.storage.opening import open_engine


class ShelfEngine:
    """One agent's memories on a shelf; its tables and indexes are those of the engine inside."""

    capabilities = frozenset({Capability.REPAIR})
    server = None

    def __init__(self, inner: Engine, location: str) -> None:
        self.inner = inner
        self.location = location

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def files(self) -> Any:
        raise ConfigurationError(f"{self.location} keeps no file of its own")

    @contextlib.contextmanager
    def reader(self) -> Iterator[ShelfEngine]:
        with self.inner.reader() as reader:
            yield ShelfEngine(reader, self.location)


class ShelfOpener:
    """What the entry point names."""

    @staticmethod
    def open_engine(
        address: AgentAddress, *, create: bool, read_only: bool, synchronous: str
    ) -> ShelfEngine:
        place = _folder(address.server) / f"{address.agent_id}.shelf"
        if not place.exists() and (read_only or not create):
            raise AgentNotFound(f"{address} does not exist")
        place.parent.mkdir(mode=0o700, exist_ok=True)
        inner = open_engine(place, create=create, read_only=read_only, synchronous=synchronous)
        return ShelfEngine(inner, str(address))

    @staticmethod
    def agents_of(server: ServerAddress) -> list[str]:
        return sorted(place.stem for place in _folder(server).glob("*.shelf"))


def _folder(server: ServerAddress) -> Path:
    return Path(server.conninfo.removeprefix("shelf://"))
