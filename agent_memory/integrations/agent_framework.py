"""A context provider for Microsoft's Agent Framework. It needs the extra ``agent-framework``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agent_memory.integrations.context import MemoryContext
from agent_memory.integrations.identity import opener_of
from agent_memory.integrations.registry import missing_package

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
    (default: that of ``MemoryContextConfig``). ``add`` has arguments of ``AgentMemory.add``. Both
    methods run in a thread and raise what the verbs raise.
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
        self._memory = opener_of(memory)
        self._context = MemoryContext(self._memory)
        self._limit = limit
        self._token_budget = token_budget
        self._add = dict(add or {})

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
        text = await asyncio.to_thread(
            self._context.recall, query, limit=self._limit, token_budget=self._token_budget
        )
        if text:
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
        turns = _turns([*context.input_messages, *answers])
        if turns:
            await asyncio.to_thread(lambda: self._memory().add(turns, **self._add))


def _turns(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [
        {"role": str(message.role), "content": message.text}
        for message in messages
        if message.role in ("user", "assistant") and message.text.strip()
    ]
