"""What happens in a memory, told to the hooks of a session."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final

from agent_memory import MemoryEvent
from agent_memory.integrations.amplifier.protocol import Hooks

_LAST_WORDS_SECONDS: Final = 2.0


class EventBridge:
    """Emits a memory's events as hook events of the same name, in the session's loop.

    It is called in whatever thread the memory is used, and never makes it wait. After ``close``,
    and where the loop has ended, nothing is emitted.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def attach(self) -> None:
        """Emit in the loop that runs now: a host may use a session in one after another."""
        self._loop = asyncio.get_running_loop()

    def __call__(self, event: MemoryEvent) -> None:
        """Emit an event, soon."""
        if self._loop is None or self._is_closed:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._begin, event.name, event.payload())

    async def close(self) -> None:
        """Wait for what is being emitted, two seconds at most, and emit nothing more."""
        await asyncio.sleep(0)  # what was told just now begins
        self._is_closed = True
        here = {task for task in self._tasks if task.get_loop() is asyncio.get_running_loop()}
        if here:
            _, late = await asyncio.wait(here, timeout=_LAST_WORDS_SECONDS)
            for task in late:
                task.cancel()

    def _begin(self, name: str, payload: dict[str, Any]) -> None:
        if self._is_closed or self._loop is None:
            return
        task = self._loop.create_task(self._emit(name, payload))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _emit(self, name: str, payload: dict[str, Any]) -> None:
        with contextlib.suppress(Exception):  # a handler's failure is the host's to log
            await self._hooks.emit(name, payload)
