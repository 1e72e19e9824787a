"""``context-memory-scratchpad``: a session's context manager that shows the scratchpad first.

It replaces ``context-simple``: it keeps the whole conversation, and shows the model a shortened one
when it grows too long. ``hooks-memory-context`` adds the scratchpad to any other context manager.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from agent_memory.integrations.amplifier.context_hook import Reminder, Role, split_config
from agent_memory.integrations.amplifier.messages import compacted, is_result, tokens_of
from agent_memory.integrations.amplifier.protocol import Cleanup, Coordinator, Hooks
from agent_memory.integrations.amplifier.shared_memory import is_whole, join, logger

__amplifier_module_type__ = "context"

_WINDOW: Final = 200_000
"""Tokens of a model's context, if neither the model nor the configuration says."""
_FULL: Final = 0.9
_COMPACTED: Final = 0.6
_MARGIN: Final = 1_000


class ScratchpadContext:
    """The conversation of a session, with the scratchpad after its system messages.

    The scratchpad is read before the first request, and checked again with each new message of the
    user. It is part of what the model is shown, never of the messages that are kept. ``window`` is
    the number of tokens to assume for a model that does not report its own.
    """

    shows_scratchpad: Final = True

    def __init__(self, reminder: Reminder, hooks: Hooks, *, role: Role, window: int) -> None:
        self._reminder = reminder
        self._hooks = hooks
        self._role = role
        self._window = window
        self._messages: list[dict[str, Any]] = []
        self._text = ""
        self._is_new_turn = True

    async def add_message(self, message: Mapping[str, Any]) -> None:
        """Add a message at the end."""
        self._messages.append(dict(message))
        if message.get("role") == "user" and not is_result(message):
            self._is_new_turn = True

    async def get_messages_for_request(
        self,
        token_budget: int | None = None,
        provider: object = None,
    ) -> list[dict[str, Any]]:
        """Return the messages for the model, with the scratchpad, shortened if necessary.

        They are shortened when they exceed nine tenths of ``token_budget`` (default: the context of
        the provider's model), to six tenths of it: rarely, and then by enough.
        """
        if self._is_new_turn:
            self._is_new_turn = False
            text = await self._reminder.changed()
            self._text = self._text if text is None else text
        shown = [{"role": self._role, "content": self._text}] if self._text else []
        budget = (token_budget or self._budget(provider)) - tokens_of(shown)
        messages = await self._fitting(max(1, budget))
        place = next(
            (
                n
                for n, message in enumerate(messages)
                if message.get("role") not in ("system", "developer")
            ),
            len(messages),
        )
        return copy.deepcopy([*messages[:place], *shown, *messages[place:]])

    async def get_messages(self) -> list[dict[str, Any]]:
        """Return all messages as they were added."""
        return copy.deepcopy(self._messages)

    async def set_messages(self, messages: list[dict[str, Any]]) -> None:
        """Replace all messages: a session is resumed."""
        self._messages = [dict(message) for message in messages]
        self._is_new_turn = True

    async def clear(self) -> None:
        """Start over; the next request shows the scratchpad again."""
        self._messages.clear()
        self._is_new_turn = True

    async def _fitting(self, budget: int) -> list[dict[str, Any]]:
        before = tokens_of(self._messages)
        if before <= _FULL * budget:
            return self._messages
        messages = [
            dict(message) for message in compacted(self._messages, int(_COMPACTED * budget))
        ]
        payload = {
            "before_tokens": before,
            "after_tokens": tokens_of(messages),
            "before_messages": len(self._messages),
            "after_messages": len(messages),
            "budget": budget,
        }
        try:
            await self._hooks.emit("context:compaction", payload)
        except Exception as error:  # noqa: BLE001 - a listener must not stop the turn
            logger.warning(
                "the event context:compaction could not be sent: %s", type(error).__name__
            )
        return messages

    def _budget(self, provider: object) -> int:
        """Return the tokens that a request may have, according to the provider."""
        for name in ("get_model_info", "get_info"):
            try:
                info = getattr(provider, name)()
            except Exception:  # noqa: BLE001, S112 - it does not report its window
                continue
            limits = getattr(info, "defaults", None)
            limits = limits if isinstance(limits, Mapping) else vars(info) if info else {}
            window, answer = limits.get("context_window"), limits.get("max_output_tokens") or 0
            if isinstance(window, int) and isinstance(answer, int) and window > answer >= 0:
                return max(1, window - answer - min(_MARGIN, (window - answer) // 10))
        return self._window


async def mount(coordinator: Coordinator, config: Mapping[str, Any] | None = None) -> Cleanup:
    """Mount the context manager. Nothing is opened before the first request.

    ``config`` may have the options of the memory (``shared_memory.OPTIONS``), the fields of
    ``MemoryContextConfig``, ``role`` (``user`` or ``system``), and ``max_tokens``: the tokens to
    assume for a model that does not report its own (200,000).
    """
    membership, rest = join(coordinator, config)
    window = rest.pop("max_tokens", _WINDOW)
    if not is_whole(window) or window < 1:
        logger.warning("context-memory-scratchpad: max_tokens must be a number over 0")
        window = _WINDOW
    settings, role = split_config(rest, "context-memory-scratchpad")
    reminder = Reminder(membership, settings)
    context = ScratchpadContext(reminder, coordinator.hooks, role=role, window=window)
    await coordinator.mount("context", context)
    return membership.leave
