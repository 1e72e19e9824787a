"""``MemoryStorage``: the asynchronous interface to the same memory, as document D defines it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar, Unpack

from agent_memory.api.memory import AgentMemory
from agent_memory.api.opening import MemoryOptions, with_options_in_signature
from agent_memory.models.memory import Memory, ScoredMemory

if TYPE_CHECKING:
    from agent_memory.models.statistics import MemoryStatistics

P = ParamSpec("P")
Result = TypeVar("Result")


class MemoryStorage:
    """The asynchronous interface: ``await storage.store(…)``, ``search(…)``, ``get(…)``.

    It takes the arguments of ``AgentMemory``. Each verb runs in a thread, so the event loop never
    waits for the disk. Use it as an asynchronous context manager, or ``await close()``.

    The constructor opens the memory, and raises if that fails. Opening takes about a millisecond,
    but an older file is upgraded first, and a server that does not answer is waited for up to ten
    seconds. To keep the event loop free meanwhile, construct it in a thread: ``await
    asyncio.to_thread(MemoryStorage, "bob")``.
    """

    @with_options_in_signature
    def __init__(
        self,
        agent_id: str,
        *,
        root: str | os.PathLike[str] | None = None,
        **options: Unpack[MemoryOptions],
    ) -> None:
        self._memory = AgentMemory(agent_id, root=root, **options)

    async def store(
        self,
        content: str,
        tags: Sequence[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the name of the field
    ) -> str:
        """Store a memory and return its id.

        If the call is cancelled, for example by a timeout, the memory may have been stored all the
        same. Pass an ``id`` to retry safely: the same content under the same id is stored once.
        """
        return await _in_thread(self._memory.store, content, tags=tags, id=id)

    async def search(
        self, query: str, limit: int = 5, since: datetime | None = None
    ) -> list[ScoredMemory]:
        """Return the memories that answer a question, best first, each with its score.

        Each is a ``ScoredMemory``: a ``Memory`` with a ``relevance_score``.
        """
        hits = await _in_thread(self._memory.search, query, limit, since=since)
        return [
            ScoredMemory.model_construct(**dict(hit.memory), relevance_score=hit.relevance_score)
            for hit in hits
        ]

    async def get(self, memory_id: str) -> Memory | None:
        """Return a memory by its id, or ``None``."""
        return await _in_thread(self._memory.get, memory_id)

    async def statistics(self, since: datetime | None = None, limit: int = 10) -> MemoryStatistics:
        """Return figures about the memory over time, as ``AgentMemory.statistics`` does."""
        return await _in_thread(self._memory.statistics, since=since, limit=limit)

    async def close(self) -> None:
        """Close the file."""
        await _in_thread(self._memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _in_thread(call: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    import asyncio  # noqa: PLC0415 - 15 ms, which nobody without an event loop should pay

    return await asyncio.to_thread(call, *args, **kwargs)
