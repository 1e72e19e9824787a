"""A memory block for LlamaIndex's ``Memory``. It needs the extra ``llama-index``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from agent_memory.integrations.registry import missing_package
from agent_memory.integrations.turns import TurnMemory

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
    ``fields`` are LlamaIndex's: ``name``, ``description``, ``priority``.

    LlamaIndex takes messages for kept whatever happens here, so one that may not be stored is left
    out and logged, and the others kept. A memory that is busy, full or damaged is logged too; wrong
    arguments and a closed memory are raised.
    """

    name: str = "agent_memory"

    _turns: TurnMemory = PrivateAttr()

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
        self._turns = TurnMemory(memory, limit=limit, token_budget=token_budget, add=add)

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        **_: Any,  # noqa: ANN401 - LlamaIndex's
    ) -> str:
        query = next((m.content for m in reversed(messages or []) if m.role.value == "user"), "")
        return await self._turns.recall(query or "")

    async def _aput(self, messages: list[ChatMessage]) -> None:
        turns = [
            {"role": message.role.value, "content": message.content or ""}
            for message in messages
            if message.role.value in ("user", "assistant")
        ]
        await self._turns.keep(turns)
