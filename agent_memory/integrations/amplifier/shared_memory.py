"""One open memory for all modules of a session, opened on first use.

The modules of a session find each other by the capability ``memory.store``. Options of the memory
that the mount plan gives to one of them (``agent_id``, ``storage_root``, …) apply to the others
too, unless they have their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from agent_memory import (
    AgentMemory,
    EventName,
    MemoryEvent,
    MemoryToolConfig,
    MissingAgentIdentity,
    StorageClosed,
    sanitize_agent_id,
)
from agent_memory.integrations.amplifier.protocol import Coordinator, HookResult, Hooks, in_thread
from agent_memory.integrations.identity import (
    CAPABILITY,
    resolve_agent_id,
    session_label,
    spoken_agent_id,
)

if TYPE_CHECKING:
    from agent_memory.integrations.identity import MemoryOrSession

_LAST_WORDS_SECONDS: Final = 2.0
_FIRST: Final = -100
"""The priority among the hooks of one event: before capture, which asks whose memory it is."""
_ACTIVATED: Final = (
    "Memory is enabled for this session, as the user asked: you are {name}. Confirm that in a"
    ' sentence: "Memory enabled. I\'m {name}."'
)


class EventBridge:
    """Emits a memory's events as hook events of the same name, in the session's loop.

    It is called in whichever thread uses the memory, and never makes it wait. After ``close``, and
    once the loop has ended, nothing is emitted.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def attach(self) -> None:
        """Emit in the running loop: a host may use a session in one loop after another."""
        self._loop = asyncio.get_running_loop()

    def __call__(self, event: MemoryEvent) -> None:
        """Schedule the emission of an event."""
        if self._loop is None or self._is_closed:
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._begin, event.name, event.payload())

    async def close(self) -> None:
        """Wait for what is being emitted, at most two seconds, and emit nothing more."""
        await asyncio.sleep(0)  # lets events that were just scheduled begin
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


logger: Final = logging.getLogger("agent_memory.amplifier")

STORE_CAPABILITIES: Final = ("memory.store", "agent_memory.store")
"""Where a session's memories are registered; the second is used if the first is taken."""
OPTIONS: Final = frozenset(
    {
        "agent_id",
        "of_parent",
        "spoken_activation",
        "user_id",
        "run_id",
        "embedder",
        "event_text",
        *MemoryToolConfig.model_fields,
    }
)
"""The options of the memory in a module's configuration, most of them from ``MemoryToolConfig``.

``of_parent`` selects the memory of the session that delegated to this one. ``spoken_activation``
says whether a user may name the agent if nobody else does (``True``). ``user_id`` and ``run_id``
limit it to what is about this user, and of this run. ``embedder`` is a name; ``event_text`` puts
the text of queries and memories into events.
"""
_SCOPE: Final = ("user_id", "run_id")
_NO_SETTINGS: Final = frozenset({"agent_id", "of_parent", "spoken_activation", *_SCOPE})
_sessions: Final[weakref.WeakValueDictionary[str, SessionMemories]] = weakref.WeakValueDictionary()


class SessionMemories:
    """The memories that the modules of one session use, usually one. Threads may share it."""

    def __init__(self, coordinator: Coordinator) -> None:
        self.events = EventBridge(coordinator.hooks)
        self.session_id: Final = session_label(str(coordinator.session_id))
        self._coordinator: Coordinator | None = coordinator
        self._options: dict[str, Any] = {}
        self._open: dict[str, AgentMemory] = {}
        self._opening = threading.Lock()
        self._members: set[Membership] = set()
        self._is_closed = False
        self._spoken: str | None = None
        self._stop_listening = coordinator.hooks.register(
            "prompt:submit", self._listen, priority=_FIRST, name="agent-memory-activation"
        )

    def join(self, options: Mapping[str, Any]) -> Membership:
        """Add a module, with the options of the memory in its configuration."""
        for name, value in options.items():
            self._options.setdefault(name, value)
        membership = Membership(self, options)
        self._members.add(membership)
        return membership

    async def leave(self, membership: Membership) -> None:
        """Remove a module. The last one closes what was opened."""
        self._members.discard(membership)
        if self._members or self._is_closed:
            return
        coordinator, self._coordinator = self._coordinator, None
        self._stop_listening()
        if coordinator is not None:
            for name in STORE_CAPABILITIES:
                if coordinator.get_capability(name) is self:
                    coordinator.register_capability(name, None)
        await in_thread(self._close)
        await self.events.close()

    def options(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options for a module: the others' options, overridden by its own."""
        return {**self._options, **own}

    def agent_id(self, options: Mapping[str, Any]) -> str:
        """Return the agent whose memory is meant. Raises ``MissingAgentIdentity``."""
        coordinator = self._coordinator
        if coordinator is None:
            raise StorageClosed("the session has ended, and its memory is closed")
        session = _session_of(coordinator)
        capabilities = session.get("capabilities")
        capabilities = capabilities if isinstance(capabilities, Mapping) else {}
        switch = capabilities.get("memory", coordinator.get_capability("memory"))
        if isinstance(switch, Mapping) and switch.get("enabled") is False:
            raise MissingAgentIdentity("memory is switched off for this session")
        capability = coordinator.get_capability(CAPABILITY) or capabilities.get(CAPABILITY)
        if not options.get("of_parent"):
            return resolve_agent_id(options.get("agent_id"), capability, agent_name_of(coordinator))
        parent = _sessions.get(session_label(coordinator.parent_id or ""))
        if parent is None or options.get("agent_id") or capability:
            return resolve_agent_id(options.get("agent_id"), capability)
        return parent.agent_id(parent.options({}))

    async def _listen(self, event: str, data: Mapping[str, Any] | None) -> HookResult:  # noqa: ARG002
        """Give the session the identity that its user states, and have the model confirm it."""
        prompt = data.get("prompt") if isinstance(data, Mapping) else None
        name = spoken_agent_id(prompt) if isinstance(prompt, str) else None
        if name is None or not self._activate(name):
            return HookResult(action="continue")
        return HookResult(
            action="inject_context",
            context_injection=_ACTIVATED.format(name=name),
            context_injection_role="system",
        )

    def _activate(self, name: str) -> bool:
        """Return whether the session's memory is now that of the agent whom its user named.

        An identity from the host is not overridden. In a delegated session the prompt comes from a
        model, and names nobody.
        """
        coordinator, options = self._coordinator, self.options({})
        if (
            coordinator is None
            or coordinator.parent_id
            or options.get("spoken_activation", True) is not True
        ):
            return False
        before = coordinator.get_capability(CAPABILITY)
        if (before is None or before != self._spoken) and self._is_identified(options):
            return False
        coordinator.register_capability(CAPABILITY, name)
        if not self._is_identified(options):  # memory is switched off
            coordinator.register_capability(CAPABILITY, before)
            return False
        self._spoken = name
        return True

    def _is_identified(self, options: Mapping[str, Any]) -> bool:
        try:
            return bool(self.agent_id(options))
        except MissingAgentIdentity:
            return False

    def opened(self, agent_id: str, options: Mapping[str, Any]) -> AgentMemory:
        """Return the open memory of an agent. Raises what ``AgentMemory`` raises."""
        key = json.dumps([agent_id, options], sort_keys=True, default=str)
        with self._opening:
            if self._is_closed:
                raise StorageClosed("the session has ended, and its memory is closed")
            if key not in self._open:
                self._open[key] = AgentMemory(
                    agent_id,
                    session_id=self.session_id,
                    on_event=self.events,
                    **_arguments(options),
                )
            return self._open[key]

    def _close(self) -> None:
        with self._opening:
            self._is_closed = True
            memories = list(self._open.values())
            self._open.clear()
        for memory in memories:
            try:
                memory.close()
            except Exception as error:  # noqa: BLE001 - the session ends, whatever happens
                logger.warning("a memory could not be closed: %s", type(error).__name__)


class Membership:
    """A module's share in the memories of its session."""

    def __init__(self, memories: SessionMemories, options: Mapping[str, Any]) -> None:
        self._memories = memories
        self._own = dict(options)
        self._taken_back: list[Callable[[], object]] = []
        self._warnings: set[str] = set()

    @property
    def session_id(self) -> str:
        """The name of the session."""
        return self._memories.session_id

    def opener(self) -> Opener:
        """Return what opens the session's current memory. Call it in the session's loop.

        Raises ``MissingAgentIdentity`` if no agent is named.
        """
        self._memories.events.attach()
        options = self._memories.options(self._own)
        agent_id = self._memories.agent_id(options)
        scope = {name: options[name] for name in _SCOPE if options.get(name) is not None}
        settings = {name: value for name, value in options.items() if name not in _NO_SETTINGS}
        return Opener(self._memories, agent_id, settings, scope)

    def register(self, hooks: Hooks, handlers: Mapping[str, object], *, name: str) -> None:
        """Register the module's handlers of events, until it leaves."""
        self._taken_back += [
            hooks.register(event, handler, name=name) for event, handler in handlers.items()
        ]

    def warn_once(self, message: str) -> None:
        """Log what the module cannot do, the first time only."""
        if message not in self._warnings:
            logger.warning("%s", message)
        self._warnings.add(message)

    def take_back(self) -> None:
        """Unregister the handlers. May be called again."""
        while self._taken_back:
            self._taken_back.pop()()

    async def leave(self) -> None:
        """Unregister the handlers, and release the memory. May be called again."""
        self.take_back()
        await self._memories.leave(self)


class Opener:
    """Opens an agent's memory, or returns the open one. May be called in any thread."""

    def __init__(
        self,
        memories: SessionMemories,
        agent_id: str,
        options: Mapping[str, Any],
        scope: Mapping[str, Any],
    ) -> None:
        self.agent_id: Final = agent_id
        self._memories = memories
        self._settings = dict(options)
        self._scope = dict(scope)

    def __call__(self) -> MemoryOrSession:
        """Return the open memory, or the session of one user or run.

        Do not close it: others use it too. Raises ``InvalidSession`` for invalid ids.
        """
        memory = self._memories.opened(self.agent_id, self._settings)
        return memory.session(self._scope) if self._scope else memory

    def exists(self) -> bool:
        """Return whether the agent has a memory at all."""
        return AgentMemory.exists(self.agent_id, self._settings.get("storage_root"))


def join(coordinator: Coordinator, config: object) -> tuple[Membership, dict[str, Any]]:
    """Join a module to its session's memories; return that and the rest of its configuration."""
    settings = dict(config) if isinstance(config, Mapping) else {}
    options = {str(name): settings.pop(name) for name in list(settings) if name in OPTIONS}
    if not isinstance(options.get("spoken_activation", True), bool):
        logger.warning("spoken_activation must be true or false: no user names an agent")
    return _memories_of(coordinator).join(options), settings


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a setting is an integer; ``true`` is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def agent_name_of(coordinator: Coordinator) -> str:
    """Return the agent's name in the session's metadata as an agent id, or an empty string.

    Agents of bundles are named ``bundle:agent``, which is not a valid agent id.
    """
    metadata = _session_of(coordinator).get("metadata")
    name = metadata.get("agent_name") if isinstance(metadata, Mapping) else None
    return sanitize_agent_id(name.replace(":", "-")) if isinstance(name, str) else ""


def _session_of(coordinator: Coordinator) -> Mapping[str, Any]:
    session = (coordinator.config or {}).get("session")
    return session if isinstance(session, Mapping) else {}


def _memories_of(coordinator: Coordinator) -> SessionMemories:
    for name in STORE_CAPABILITIES:
        capability = coordinator.get_capability(name)
        if isinstance(capability, SessionMemories):
            return capability
        if capability is None:
            memories = SessionMemories(coordinator)
            coordinator.register_capability(name, memories)
            coordinator.register_contributor(
                "observability.events", "agent-memory", lambda: [event.value for event in EventName]
            )
            _sessions[memories.session_id] = memories
            return memories
    return SessionMemories(coordinator)


def _arguments(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as arguments of ``AgentMemory``."""
    config = {name: options[name] for name in options if name in MemoryToolConfig.model_fields}
    arguments: dict[str, Any] = {"config": config}
    for name in ("embedder", "event_text"):
        if name in options:
            arguments[name] = options[name]
    return arguments
