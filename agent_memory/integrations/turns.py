"""What an agent's run recalls and keeps, for adapters that a framework calls within the run.

A run must not end because its memory is busy, full or damaged, least of all after the model has
answered: that is logged. What a change of the program mends is raised: a wrong setting, a closed
memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory import (
    AgentMemoryError,
    AgentNotFound,
    LimitReached,
    NewerSchema,
    NotAMemoryFile,
    ProviderError,
    RejectedContent,
    SecretFound,
    StorageClosed,
    StorageError,
    StorageReadOnly,
    ValidationError,
)
from agent_memory.integrations.context import MemoryContext
from agent_memory.integrations.identity import opener_of
from agent_memory.runtime.logs import logger

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

Result = TypeVar("Result")

_OF_THE_PROGRAM: Final = (AgentNotFound, NewerSchema, NotAMemoryFile, StorageClosed)
_OF_A_TEXT: Final = (LimitReached, RejectedContent, SecretFound)


class TurnMemory:
    """A memory for the runs of an agent. Both methods run in a thread.

    ``memory`` is an open memory, a session of it, or a function that opens it. At most ``limit``
    memories (1 to 100) are recalled, within ``token_budget`` tokens; ``add`` has arguments of
    ``AgentMemory.add``. Failures of the file are logged; other errors of the verbs are raised.
    """

    def __init__(
        self,
        memory: MemoryOrSession | Opener,
        *,
        limit: int,
        token_budget: int | None,
        add: Mapping[str, Any] | None,
    ) -> None:
        self._open = opener_of(memory)
        self._context = MemoryContext(self._open)
        self._limit = limit
        self._token_budget = token_budget
        self._add = dict(add or {})

    async def recall(self, query: str) -> str:
        """Return what answers a message; nothing, if the memory cannot be read."""

        def read() -> str:
            return self._context.recall(query, limit=self._limit, token_budget=self._token_budget)

        return await asyncio.to_thread(recalled, read, "")

    async def keep(self, messages: Sequence[Mapping[str, str]]) -> None:
        """Keep what the messages with a text say, each with ``role`` and ``content``.

        One that may not be stored does not keep out the others. What is not stored is logged,
        without its text.
        """
        spoken = [message for message in messages if message["content"].strip()]
        if spoken:
            await asyncio.to_thread(self._keep, spoken)

    def _keep(self, messages: Sequence[Mapping[str, str]]) -> None:
        batches = [messages]
        while batches:
            batch = batches.pop(0)
            try:
                answer = self._open().add(batch, **self._add)
            except ValidationError as error:
                if not _is_of_a_text(error):
                    raise
                if len(batch) > 1:
                    batches = [[message] for message in batch]
                else:
                    _log_loss(batch, error)
            except AgentMemoryError as error:
                if not _is_of_the_file(error):
                    raise
                _log_loss([message for each in (batch, *batches) for message in each], error)
                return
            else:
                for problem in answer.metadata.problems or ():
                    logger().warning("storing messages: %s", problem)


def recalled(read: Callable[[], Result], nothing: Result) -> Result:
    """Return what ``read`` returns; ``nothing`` if the memory cannot be read, which is logged."""
    try:
        return read()
    except AgentMemoryError as error:
        if not _is_of_the_file(error):
            raise
        logger().warning("no memories are recalled: %s", error)
        return nothing


def _is_of_the_file(error: AgentMemoryError) -> bool:
    """Return whether a file or a provider failed, and no change of the program would help."""
    if isinstance(error, StorageReadOnly):
        return not error.is_asked_for
    is_failure = isinstance(error, StorageError | ProviderError)
    return is_failure and not isinstance(error, _OF_THE_PROGRAM)


def _is_of_a_text(error: ValidationError) -> bool:
    """Return whether a message may not be stored, rather than an argument be wrong."""
    return isinstance(error, _OF_A_TEXT) or any(
        fault["loc"][:1] == ("messages",) for fault in error.errors()
    )


def _log_loss(messages: Sequence[Mapping[str, str]], error: AgentMemoryError) -> None:
    lengths = (f"{each['role']}: {len(each['content']):,} characters" for each in messages)
    logger().warning("messages were not stored (%s): %s", "; ".join(lengths), error)
