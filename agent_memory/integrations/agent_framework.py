"""A context provider for Microsoft's Agent Framework. It needs the extra ``agent-framework``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agent_memory.integrations.registry import missing_package
from agent_memory.integrations.turns import TurnMemory

try:
    from agent_framework import (
        AgentSession,
        ContextProvider,
        Message,
        SessionContext,
        SupportsAgentRun,
    )
except ModuleNotFoundError as error:
    raise missing_package("agent_framework", error) from error

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

__all__ = ["AgentMemoryProvider"]


class AgentMemoryProvider(ContextProvider):
    """A provider for ``Agent(context_providers=[AgentMemoryProvider(memory)])``.

    Before a run it inserts, as a message before the conversation, what answers the user's message.
    After the run it keeps what the user and the agent said, by ``AgentMemory.add``: facts, or with
    ``add={"infer": False}`` each message as it is. What other providers added is not kept.

    ``memory`` is an open memory, a session of it, or a function that opens it, such as a
    ``LazyMemory``. At most ``limit`` memories (1 to 100) are given, within ``token_budget`` tokens
    (default: that of ``MemoryContextConfig``). ``add`` has arguments of ``AgentMemory.add``.

    Both methods run in a thread. A memory that is busy, full or damaged does not end the run:
    nothing is recalled, or what was said is not kept, and that is logged. Wrong arguments and a
    closed memory are raised.
    """

    def __init__(
        self,
        memory: MemoryOrSession | Opener,
        *,
        source_id: str = "agent_memory",
        limit: int = 10,
        token_budget: int | None = None,
        add: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(source_id)
        self._turns = TurnMemory(memory, limit=limit, token_budget=token_budget, add=add)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002
        session: AgentSession,  # noqa: ARG002
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Add what answers the user's last message."""
        query = next((m.text for m in reversed(context.input_messages) if m.role == "user"), "")
        if text := await self._turns.recall(query):
            context.extend_messages(self, [Message(role="user", contents=[text])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002
        session: AgentSession,  # noqa: ARG002
        context: SessionContext,
        state: dict[str, Any],  # noqa: ARG002
    ) -> None:
        """Keep what was said in the run."""
        answers = [] if context.response is None else context.response.messages
        turns = [
            {"role": str(message.role), "content": message.text}
            for message in (*context.input_messages, *answers)
            if message.role in ("user", "assistant")
        ]
        await self._turns.keep(turns)
