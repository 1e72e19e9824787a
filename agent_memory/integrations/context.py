"""The scratchpad as context for an agent, in the form that its API expects (B).

It is recalled data, and says so: see ``AgentMemory.context``.
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
"""Characters of a message that are searched for: pasted text follows the question."""


class MemoryContext:
    """The scratchpad as context, and whether it has changed. Threads may share it.

    ``memory`` is an open memory or a session of it, or a function that opens it, such as a
    ``LazyMemory``. ``count_tokens`` counts the tokens of a text as the model does; without it they
    are estimated as a quarter of its bytes. Every method raises what ``AgentMemory.context``
    raises.
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
        """Return the scratchpad as Markdown within the budget; empty if there is nothing."""
        return self._open().context(
            token_budget, config=self._config, count_tokens=self._count_tokens
        )

    def recall(self, query: str, *, limit: int = 10, token_budget: int | None = None) -> str:
        """Return the memories that answer a query as Markdown within the budget.

        It is empty if none does. ``limit`` is the most memories, 1 to 100. Only the first 2,000
        characters of a longer query are searched for.
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
        """Return the text if it differs from the one returned last, else ``None``.

        The first call returns ``None`` only if the text is empty.
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
        """Return a conversation for OpenAI's chat completions with the memories before it.

        They follow any leading system messages. The list is a new one.
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
        """Return the blocks of Anthropic's ``system`` with the memories as the last one.

        The blocks before it are unchanged, so that prompt caching still applies to them.
        """
        blocks = (
            [{"type": "text", "text": system}] if isinstance(system, str) else list(system or ())
        )
        text = self.text(token_budget)
        return [*blocks, {"type": "text", "text": text}] if text else blocks
