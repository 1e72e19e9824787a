"""``hooks-memory-capture``: automatically stores what matters in a session."""

from __future__ import annotations

import ast
import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory import AgentMemoryError, MissingAgentIdentity, StorageClosed
from agent_memory.integrations.amplifier.messages import said_since
from agent_memory.integrations.amplifier.protocol import (
    Cleanup,
    Coordinator,
    HookResult,
    in_thread,
)
from agent_memory.integrations.amplifier.shared_memory import (
    Membership,
    Opener,
    agent_name_of,
    join,
    logger,
)
from agent_memory.integrations.capture.capture import MemoryCapture

if TYPE_CHECKING:
    from agent_memory.integrations.identity import Opener as MemoryOpener

__amplifier_module_type__ = "hook"

ASSISTANT: Final = "memory-assistant"
_LONGEST_LITERAL: Final = 50_000
_END_SECONDS: Final = 5.0
_FAILED: Final = "Error: "
"""How an orchestrator that turns a failed result into a text begins it."""

Handler = Callable[[str, Mapping[str, Any] | None], Awaitable[HookResult]]


class CaptureHook:
    """Passes tool outputs and what is said to a ``MemoryCapture``, one for each agent.

    The memory-assistant repeats what is known, so nothing is captured from its own sessions or from
    what it returns.
    """

    def __init__(
        self, coordinator: Coordinator, membership: Membership, config: Mapping[str, Any]
    ) -> None:
        self._coordinator = coordinator
        self._membership = membership
        self._config = dict(config)
        self._captures: dict[str, MemoryCapture] = {}
        self._prompt = ""
        self._last_said = ""
        self._is_closed = agent_name_of(coordinator).endswith(ASSISTANT)

    async def on_tool(self, data: Mapping[str, Any]) -> None:
        """Scan a tool's output, unless the tool failed."""
        asked = data.get("tool_input")
        agent = asked.get("agent") if isinstance(asked, Mapping) else None
        if isinstance(agent, str) and agent.endswith(ASSISTANT):
            return
        output = output_of(data.get("result"))
        capture = self._capture()
        if output is not None and capture is not None:
            await _offered(capture, capture.tool_output, str(data.get("tool_name")), output)

    async def on_prompt(self, data: Mapping[str, Any]) -> None:
        """Scan what the user said."""
        prompt = data.get("prompt")
        capture = self._capture()
        if isinstance(prompt, str):
            self._prompt = prompt
            if capture is not None:
                await _offered(capture, capture.turn, prompt, "user")

    async def on_complete(self, data: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Scan what the assistant said since the user's last words."""
        context = self._coordinator.get("context")
        capture = self._capture()
        if context is None or capture is None:
            return
        for text in said_since(await context.get_messages(), self._prompt):
            self._last_said = text
            await _offered(capture, capture.turn, text, "assistant")

    async def on_end(self, data: Mapping[str, Any]) -> None:  # noqa: ARG002
        """Scan the last words, if so configured, and store everything that waits."""
        capture = self._capture() if self._last_said else None
        if capture is not None and not capture.config.observe_turn_completions:
            await _offered(capture, capture.session_end, self._last_said)
        for opened in list(self._captures.values()):
            await asyncio.to_thread(opened.flush, _END_SECONDS)

    async def close(self) -> None:
        """Store everything that waits, and capture nothing more. May be called again."""
        self._is_closed = True
        captures = list(self._captures.values())
        self._captures.clear()
        for capture in captures:
            await in_thread(capture.close)

    def _capture(self) -> MemoryCapture | None:
        """Return the capture of the session's current agent, or ``None`` if there is none."""
        if self._is_closed:
            return None
        try:
            opener = self._membership.opener()
            if opener.agent_id not in self._captures:
                self._captures[opener.agent_id] = MemoryCapture(
                    cast("MemoryOpener", lambda: _Borrowed(opener)),
                    session_id=self._membership.session_id,
                    config=self._config,
                )
            return self._captures[opener.agent_id]
        except (MissingAgentIdentity, StorageClosed):
            return None
        except AgentMemoryError as error:
            self._membership.warn_once(f"nothing is captured: {error}")
            return None


class _Borrowed:
    """The shared memory as a capture sees it: closing it is left to its owner, as others use it."""

    def __init__(self, opener: Opener) -> None:
        self._memory = opener()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of a memory
        return getattr(self._memory, name)

    def close(self) -> None:
        """Leave it open."""


def output_of(result: object) -> object:
    """Return a tool's output, or ``None`` if the tool failed.

    Orchestrators pass it as an object, as a mapping with ``success`` and ``output``, or as the text
    of one of those.
    """
    if isinstance(result, str):
        return None if result.startswith(_FAILED) else _unwrapped(result)
    if isinstance(result, Mapping):
        if result.get("success") is False:
            return None
        return result.get("output", result)
    if getattr(result, "success", True) is False:
        return None
    return getattr(result, "output", result)


def _unwrapped(text: str) -> object:
    """Parse Python's repr of a mapping or a list, in which line breaks are escaped."""
    if not text.startswith(("{", "[")):
        return text
    if len(text) > _LONGEST_LITERAL:
        return text.replace("\\n", "\n")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


async def _offered(capture: MemoryCapture, offer: Callable[..., int], *arguments: object) -> None:
    if capture.config.async_capture:
        offer(*arguments)  # it only queues
    else:
        await asyncio.to_thread(offer, *arguments)


def quietly(handle: Callable[[Mapping[str, Any]], Awaitable[None]]) -> Handler:
    """Return a handler of hook events that never raises and always lets the host go on."""

    @functools.wraps(handle)
    async def handler(event: str, data: Mapping[str, Any] | None) -> HookResult:
        try:
            await handle(data if isinstance(data, Mapping) else {})
        except Exception as error:  # noqa: BLE001 - nothing may crash the host
            logger.warning("capture failed at %s: %s", event, type(error).__name__)
        return HookResult(action="continue")

    return handler


async def mount(coordinator: Coordinator, config: Mapping[str, Any] | None = None) -> Cleanup:
    """Register the hooks. Nothing is opened before there is something to store.

    ``config`` may have the options of the memory (``shared_memory.OPTIONS``) and the fields of
    ``MemoryCaptureConfig``.
    """
    membership, rest = join(coordinator, config)
    hook = CaptureHook(coordinator, membership, rest)
    handlers = {
        "tool:post": quietly(hook.on_tool),
        "prompt:submit": quietly(hook.on_prompt),
        "orchestrator:complete": quietly(hook.on_complete),
        "session:end": quietly(hook.on_end),
    }
    membership.register(coordinator.hooks, handlers, name="hooks-memory-capture")

    async def cleanup() -> None:
        membership.take_back()  # no event may follow the final flush
        try:
            await hook.close()
        finally:
            await membership.leave()

    return cleanup
