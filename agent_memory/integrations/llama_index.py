"""A memory block for LlamaIndex's ``Memory``. It needs the extra ``llama-index``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from agent_memory.integrations.context import MemoryContext
from agent_memory.integrations.identity import opener_of
from agent_memory.integrations.registry import missing_package

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
except ModuleNotFoundError as error:
    raise missing_package("llama_index", error) from error

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

__all__ = ["AgentMemoryBlock"]


class AgentMemoryBlock(BaseMemoryBlock[str]):
    """A block for ``Memory.from_defaults(memory_blocks=[AgentMemoryBlock(memory)])``.

    It gives the model what answers the user's last message, and keeps the messages that leave the
    short-term memory, by ``AgentMemory.add``: facts, or with ``add={"infer": False}`` each message
    as it is. System and tool messages are not kept.

    ``memory`` is an open memory, a session of it, or a function that opens it, such as a
    ``LazyMemory``. At most ``limit`` memories (1 to 100) are given, within ``token_budget`` tokens
    (default: that of ``MemoryContextConfig``). ``add`` has arguments of ``AgentMemory.add``;
    ``fields`` are LlamaIndex's: ``name``, ``description``, ``priority``. Both methods run in a
    thread and raise what the verbs raise.
    """

    name: str = "agent_memory"

    _memory: Opener = PrivateAttr()
    _context: MemoryContext = PrivateAttr()
    _limit: int = PrivateAttr()
    _token_budget: int | None = PrivateAttr()
    _add: dict[str, Any] = PrivateAttr()

    def __init__(
        self,
        memory: MemoryOrSession | Opener,
        *,
        limit: int = 10,
        token_budget: int | None = None,
        add: Mapping[str, Any] | None = None,
        **fields: Any,  # noqa: ANN401 - LlamaIndex's
    ) -> None:
        super().__init__(**fields)
        self._memory = opener_of(memory)
        self._context = MemoryContext(self._memory)
        self._limit = limit
        self._token_budget = token_budget
        self._add = dict(add or {})

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        **_: Any,  # noqa: ANN401 - LlamaIndex's
    ) -> str:
        query = next((m.content for m in reversed(messages or []) if m.role.value == "user"), "")
        return await asyncio.to_thread(
            self._context.recall, query or "", limit=self._limit, token_budget=self._token_budget
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        turns = [
            {"role": message.role.value, "content": message.content}
            for message in messages
            if message.role.value in ("user", "assistant") and (message.content or "").strip()
        ]
        if turns:
            await asyncio.to_thread(lambda: self._memory().add(turns, **self._add))
