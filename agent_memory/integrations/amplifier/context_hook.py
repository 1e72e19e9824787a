"""``hooks-memory-context``: puts the scratchpad before the model, once and after each change."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agent_memory import AgentMemoryError, MemoryContextConfig, MissingAgentIdentity
from agent_memory.integrations.amplifier.protocol import Cleanup, Coordinator, HookResult
from agent_memory.integrations.amplifier.shared_memory import Membership, Opener, join, logger

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession

__amplifier_module_type__ = "hook"

Role = Literal["system", "user"]

ROLE: Final[Role] = "user"
"""The default role of the text: recalled data must not have the weight of a system prompt."""


class Reminder:
    """The scratchpad as text, and whether it has changed since it was last given.

    It has changed if its entries have; the order in which they were used does not matter.
    ``config`` has the fields of ``MemoryContextConfig``.
    """

    def __init__(self, membership: Membership, config: Mapping[str, Any]) -> None:
        self._membership = membership
        self._config = dict(config)
        self._last_seen: object = None

    async def changed(self) -> str | None:
        """Return the text if it has changed or was never given, else ``None``.

        The text is empty if the scratchpad is. A memory that cannot be read counts as unchanged,
        and is logged once. No file is created for an agent that has none.
        """
        try:
            opener = self._membership.opener()
            return await asyncio.to_thread(self._read, opener)
        except MissingAgentIdentity:
            return None
        except AgentMemoryError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - nothing may crash the host
            why = type(error).__name__
        self._membership.warn_once(f"no memories are recalled: {why}")
        return None

    def _read(self, opener: Opener) -> str | None:
        memory = opener() if opener.exists() else None
        seen = (opener.agent_id, _entries(memory))
        if seen == self._last_seen:
            return None
        text = "" if memory is None else memory.context(config=self._config)
        self._last_seen = seen
        return text


def _entries(memory: MemoryOrSession | None) -> frozenset[tuple[object, ...]]:
    pad = [] if memory is None else memory.scratchpad().memories
    return frozenset((entry.id, entry.content, entry.category, tuple(entry.tags)) for entry in pad)


def split_config(config: Mapping[str, Any], module: str) -> tuple[dict[str, Any], Role]:
    """Return the settings of the text, and the role in which it is given.

    Unknown settings are ignored and logged.
    """
    settings = dict(config)
    role = settings.pop("role", ROLE)
    if role not in ("system", "user"):
        logger.warning("%s: role must be system or user: ignored", module)
        role = ROLE
    for name in settings.keys() - MemoryContextConfig.model_fields.keys():
        logger.warning("%s: unknown setting %.80r", module, name)
        del settings[name]
    return settings, cast("Role", role)


def _injected(text: str, role: Role) -> HookResult:
    return HookResult(
        action="inject_context",
        context_injection=text,
        context_injection_role=role,
        ephemeral=True,
        suppress_output=True,
    )


async def mount(coordinator: Coordinator, config: Mapping[str, Any] | None = None) -> Cleanup:
    """Register the hook: the text is injected before a request to the model, and not kept.

    The next request does not contain it, unless the scratchpad has changed by then. If the
    session's context is ``context-memory-scratchpad``, which always shows the scratchpad, nothing
    is injected. ``config`` may have the options of the memory (``shared_memory.OPTIONS``), the
    fields of ``MemoryContextConfig``, and ``role``: ``user`` or ``system``.
    """
    membership, rest = join(coordinator, config)
    settings, role = split_config(rest, "hooks-memory-context")
    reminder = Reminder(membership, settings)

    async def remind(event: str, data: Mapping[str, Any] | None) -> HookResult:  # noqa: ARG001
        context = coordinator.get("context")
        text = None if getattr(context, "shows_scratchpad", False) else await reminder.changed()
        return _injected(text, role) if text else HookResult(action="continue")

    handlers = {"provider:request": remind}
    membership.register(coordinator.hooks, handlers, name="hooks-memory-context")
    return membership.leave
