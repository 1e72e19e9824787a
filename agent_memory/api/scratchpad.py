"""The verbs of the scratchpad: the few memories that an agent always has at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agent_memory.api.opening import OpenMemory
from agent_memory.api.plain_arguments import check_whole_number
from agent_memory.models.config import MemoryContextConfig
from agent_memory.models.record import validate_model
from agent_memory.models.scratchpad import Promotion, Scratchpad, ScratchpadMemoryEntry
from agent_memory.services.rendering import estimate_tokens, render_context

if TYPE_CHECKING:
    from agent_memory.models.owner import Owner


class ScratchpadVerbs(OpenMemory):
    """The scratchpad and the text made from it. ``AgentMemory`` has these verbs."""

    def promote(self, memory_id: str) -> Promotion:
        """Put a memory into the scratchpad by hand; the least recently used one makes room.

        ``promoted`` is false if it had been promoted by hand before, and for an archived memory,
        which stays out. Raises ``MemoryNotFound``.
        """
        promotion = self._store.promote(memory_id)
        if promotion.promoted:
            self._events.entered_scratchpad(
                memory_id, "manual", promotion.evicted, size=promotion.scratchpad_size
            )
        return promotion

    def demote(self, memory_id: str) -> bool:
        """Take a memory out of the scratchpad, and return whether it was there.

        Raises ``MemoryNotFound``.
        """
        return self._store.demote(memory_id)

    def scratchpad(self) -> Scratchpad:
        """Return the memories in the scratchpad, most recently used first."""
        return self._scratchpad_of(None)

    def _scratchpad_of(self, owner: Owner | None) -> Scratchpad:
        """Return what is in the scratchpad of a session's memories, or of all."""
        listed = self._store.scratchpad(owner)
        entries = [
            ScratchpadMemoryEntry.model_construct(
                **memory.model_dump(include=set(ScratchpadMemoryEntry.model_fields))
            )
            for memory, _ in listed
        ]
        max_size = self._store.readable_config().scratchpad_max_size
        return Scratchpad.model_construct(
            agent_id=self.agent_id,
            last_updated=self._now(),
            max_size=max(max_size, len(entries)),
            memories=entries,
            promoted=[memory.id for memory, reason in listed if reason == "promoted"],
        )

    def context(
        self,
        token_budget: int | None = None,
        *,
        config: MemoryContextConfig | Mapping[str, Any] | None = None,
        count_tokens: Callable[[str], int] | None = None,
    ) -> str:
        """Return the scratchpad as Markdown for a model's context, within ``token_budget`` tokens.

        Memories promoted by hand come first, then by last access and by access count. Each is a
        line with its source, between marks that no memory can contain, and introduced as recalled
        data rather than instructions: see ``render_memories``. One that a newer memory may correct
        is marked as under review, as in a search. ``count_tokens`` counts the tokens of a text;
        without it, they are estimated as a quarter of the UTF-8 bytes. The text is empty if the
        scratchpad is, or if nothing fits. Raises ``ValidationError`` if the budget or a count of
        tokens is no number of at least 0.
        """
        return self._context_of(None, token_budget, config=config, count_tokens=count_tokens)

    def _context_of(
        self,
        owner: Owner | None,
        token_budget: int | None,
        *,
        config: MemoryContextConfig | Mapping[str, Any] | None,
        count_tokens: Callable[[str], int] | None,
    ) -> str:
        chosen = (
            self._context_config if config is None else validate_model(MemoryContextConfig, config)
        )
        budget = chosen.token_budget if token_budget is None else token_budget
        check_whole_number("token_budget", budget, lowest=0)
        memories, under_review = self._store.context_memories(owner)
        text, shown = render_context(
            memories,
            chosen,
            budget,
            agent_id=self.agent_id,
            count_tokens=count_tokens,
            under_review=under_review,
        )
        self._store.searches.record_recalls([memory.id for memory in shown])
        if self._events.has_listeners():
            self._events.rendered(shown, tokens=(count_tokens or estimate_tokens)(text))
        return text
