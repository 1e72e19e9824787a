"""The scratchpad as something to put before an agent, in the shape that its API wants (B).

What it holds is recalled data, and says so: see ``AgentMemory.context``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory import MemoryContextConfig, render_memories
from agent_memory.integrations.identity import opener_of
from agent_memory.models.record import validate_model

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession, Opener

Role = Literal["system", "developer", "user"]

_LONGEST_QUERY: Final = 2_000
"""Characters of a message that are searched for: what was pasted comes after what is asked."""


class MemoryContext:
    """What an agent is reminded of, once, and again when it changed. Threads may share it.

    ``memory`` is an open memory or a session of it, or a function that opens it, such as a
    ``LazyMemory``.
    ``count_tokens`` counts the tokens of a text as the model does (else they are estimated: a
    quarter of its bytes). Every method raises what ``AgentMemory.context`` raises.
    """

    def __init__(
        self,
        memory: MemoryOrSession | Opener,
        *,
        config: MemoryContextConfig | Mapping[str, Any] | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> None:
        self._open = opener_of(memory)
        self._config = config
        self._count_tokens = count_tokens
        self._last: str | None = None

    def text(self, token_budget: int | None = None) -> str:
        """Return the scratchpad as Markdown within the budget; empty when there is nothing."""
        return self._open().context(
            token_budget, config=self._config, count_tokens=self._count_tokens
        )

    def recall(self, query: str, *, limit: int = 10, token_budget: int | None = None) -> str:
        """Return the memories that answer a query as Markdown within the budget.

        It is empty when none does. ``limit`` is the most of them, 1 to 100. Of a query of over
        2,000 characters the first are searched for.
        """
        memory = self._open()
        hits = memory.search(query[:_LONGEST_QUERY], limit, include_weak=False)
        return render_memories(
            hits,
            token_budget,
            config=validate_model(MemoryContextConfig, self._config),
            agent_id=memory.agent_id,
            count_tokens=self._count_tokens,
        )

    def news(self, token_budget: int | None = None) -> str | None:
        """Return the text if it is not the one that was returned last, else ``None``.

        The first time it is ``None`` only if there is nothing to say.
        """
        text = self.text(token_budget)
        if text == (self._last or ""):
            return None
        self._last = text
        return text or None

    def openai_messages(
        self,
        messages: list[dict[str, Any]],
        *,
        role: Role = "system",
        token_budget: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return a conversation of OpenAI's chat completions with the memories before it.

        They stand after the messages of the system that come first. The list is a new one.
        """
        text = self.text(token_budget)
        if not text:
            return list(messages)
        place = 0
        while place < len(messages) and messages[place].get("role") in ("system", "developer"):
            place += 1
        return [*messages[:place], {"role": role, "content": text}, *messages[place:]]

    def anthropic_system(
        self, system: str | list[dict[str, Any]] | None = None, *, token_budget: int | None = None
    ) -> list[dict[str, Any]]:
        """Return the blocks of Anthropic's ``system`` with the memories as the last of them.

        The blocks before it stay as they are, so that what was cached of them can be used again.
        """
        blocks = (
            [{"type": "text", "text": system}] if isinstance(system, str) else list(system or ())
        )
        text = self.text(token_budget)
        return [*blocks, {"type": "text", "text": text}] if text else blocks
