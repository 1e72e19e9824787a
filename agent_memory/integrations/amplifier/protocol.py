"""The part of ``amplifier-core`` used here: the only module here that imports it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from agent_memory.integrations.registry import missing_package

try:
    from amplifier_core import HookResult, ToolResult  # type: ignore[import-untyped]
except ModuleNotFoundError as error:
    raise missing_package("amplifier", error) from error

__all__ = ["Cleanup", "Coordinator", "HookResult", "Hooks", "ToolResult", "in_thread"]

Cleanup = Callable[[], Awaitable[None]]
"""The return value of ``mount``: awaited when the session ends, and may be called again."""


class Hooks(Protocol):
    """A session's registry of hooks."""

    def register(
        self, event: str, handler: object, priority: int = 0, name: str | None = None
    ) -> Callable[[], object]:
        """Register a handler, and return a function that unregisters it."""
        ...

    async def emit(self, event: str, data: dict[str, Any]) -> object:
        """Send an event to all handlers."""
        ...


class Coordinator(Protocol):
    """What a module sees of its session."""

    @property
    def session_id(self) -> str:
        """The session's name."""
        ...

    @property
    def parent_id(self) -> str | None:
        """The name of the session that delegated to this one, if any."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """The mount plan."""
        ...

    @property
    def hooks(self) -> Hooks:
        """The session's hooks."""
        ...

    async def mount(self, mount_point: str, module: object, name: str | None = None) -> None:
        """Mount a module at a mount point."""
        ...

    def get(self, mount_point: str, name: str | None = None) -> Any:  # noqa: ANN401
        """Return what is mounted at a mount point."""
        ...

    def get_capability(self, name: str) -> object:
        """Return a capability, or ``None``."""
        ...

    def register_capability(self, name: str, value: object) -> None:
        """Offer a capability to all modules."""
        ...

    def register_contributor(self, channel: str, name: str, callback: Callable[[], object]) -> None:
        """Contribute to a channel."""
        ...


async def in_thread(work: Callable[[], None]) -> None:
    """Run a function in another thread to its end, even if the awaiting task is cancelled."""
    await asyncio.shield(asyncio.to_thread(work))
