"""A host for tests: Amplifier's real session, with a small orchestrator and a scripted model.

The orchestrator does what Amplifier's own do, in the shapes of both: `basic` tells hooks of a
tool's result as text, `streaming` as a mapping.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amplifier_core import (  # type: ignore[import-untyped]
    AmplifierSession,
    ChatRequest,
    ChatResponse,
    Message,
    ProviderInfo,
    TextBlock,
    ToolCall,
    ToolResult,
)

MODULES = ("tool-memory-semantic",), ("hooks-memory-context", "hooks-memory-capture")
EVENTS = "memory:stored", "memory:searched", "memory:promoted", "context:compaction"

Call = tuple[str, dict[str, Any]]


class SimpleContext:
    """The least context manager there is."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def add_message(self, message: dict[str, Any]) -> None:
        self.messages.append(message)

    async def get_messages_for_request(self, **_: Any) -> list[dict[str, Any]]:
        return list(self.messages)

    async def get_messages(self) -> list[dict[str, Any]]:
        return list(self.messages)

    async def set_messages(self, messages: list[dict[str, Any]]) -> None:
        self.messages = list(messages)

    async def clear(self) -> None:
        self.messages = []


class Loop:
    """An orchestrator: asks the model, runs the tools that it calls, until it says something."""

    def __init__(self, shape: str) -> None:
        self.shape = shape

    async def execute(
        self,
        prompt: str,
        context: Any,
        providers: Any,
        tools: Any,
        hooks: Any,
        coordinator: Any = None,
        **_: Any,
    ) -> str:
        await coordinator.process_hook_result(
            await hooks.emit("prompt:submit", {"prompt": prompt}), "prompt:submit", "loop"
        )
        await context.add_message({"role": "user", "content": prompt})
        (provider,) = providers.values()
        while True:
            response = await self._ask(provider, context, hooks, coordinator)
            calls = response.tool_calls or []
            said = "".join(block.text for block in response.content)
            message = {"role": "assistant", "content": said}
            if not calls:
                await context.add_message(message)
                await hooks.emit("orchestrator:complete", {"turn_count": 1, "status": "success"})
                return said
            told = [{"id": it.id, "tool": it.name, "arguments": it.arguments} for it in calls]
            await context.add_message({**message, "tool_calls": told})
            for call in calls:
                result = await tools[call.name].execute(call.arguments)
                told_of = {
                    "tool_name": call.name,
                    "tool_input": call.arguments,
                    "result": result if self.shape == "basic" else result.model_dump(),
                }
                await hooks.emit("tool:post", told_of)
                answer = result.get_serialized_output()
                await context.add_message(
                    {"role": "tool", "tool_call_id": call.id, "content": answer}
                )

    async def _ask(self, provider: Any, context: Any, hooks: Any, coordinator: Any) -> ChatResponse:
        result = await coordinator.process_hook_result(
            await hooks.emit("provider:request", {"provider": "scripted"}),
            "provider:request",
            "loop",
        )
        messages = await context.get_messages_for_request(provider=provider)
        if result.action == "inject_context" and result.ephemeral and result.context_injection:
            role = result.context_injection_role
            messages = [*messages, {"role": role, "content": result.context_injection}]
        return await provider.complete(ChatRequest(messages=[Message(**it) for it in messages]))


class ScriptedProvider:
    """A model that says and calls what it is told to, and keeps what it was shown."""

    name = "scripted"

    def __init__(self, script: list[str | Call]) -> None:
        self.script = script
        self.requests: list[list[dict[str, Any]]] = []

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="scripted", display_name="Scripted")

    async def list_models(self) -> list[Any]:
        return []

    async def complete(self, request: ChatRequest, **_: Any) -> ChatResponse:
        self.requests.append([{"role": it.role, "content": it.content} for it in request.messages])
        step = self.script.pop(0) if self.script else "Done."
        if isinstance(step, str):
            return ChatResponse(content=[TextBlock(text=step)])
        call = ToolCall(id=f"call-{len(self.requests)}", name=step[0], arguments=step[1])
        return ChatResponse(content=[], tool_calls=[call])

    def parse_tool_calls(self, response: ChatResponse) -> list[ToolCall]:
        return response.tool_calls or []


class SaysTool:
    """A tool that returns what it is called with."""

    name = "says"
    description = "Returns its output."

    def __init__(self) -> None:
        self.input_schema = {"type": "object"}

    async def execute(self, input: dict[str, Any]) -> ToolResult:
        if "error" in input:
            return ToolResult(success=False, error={"message": input["error"]})
        return ToolResult(success=True, output=input["output"])


def install_host_modules(monkeypatch: Any) -> None:
    """Let the loader find the orchestrator, the provider, a context and a tool by their names."""

    async def mount_loop(coordinator: Any, config: Any = None) -> None:
        await coordinator.mount("orchestrator", Loop((config or {}).get("shape", "basic")))

    async def mount_provider(coordinator: Any, config: Any = None) -> None:
        provider = ScriptedProvider(list((config or {}).get("script", [])))
        await coordinator.mount("providers", provider, name="scripted")

    async def mount_context(coordinator: Any, _config: Any = None) -> None:
        await coordinator.mount("context", SimpleContext())

    async def mount_says(coordinator: Any, _config: Any = None) -> None:
        await coordinator.mount("tools", SaysTool(), name="says")

    for name, mount in {
        "loop_scripted": mount_loop,
        "provider_scripted": mount_provider,
        "context_least": mount_context,
        "tool_says": mount_says,
    }.items():
        module = types.ModuleType(f"amplifier_module_{name}")
        module.mount = mount  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)


@dataclass
class Told:
    """What became of a session."""

    answers: list[str] = field(default_factory=list)
    requests: list[list[dict[str, Any]]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def shown(self, request: int) -> str:
        """Return all text of a request."""
        return "\n".join(str(it["content"]) for it in self.requests[request])

    def reminders(self) -> list[int]:
        """Return which requests had the scratchpad in them."""
        return [n for n in range(len(self.requests)) if "<memories-" in self.shown(n)]

    def results(self) -> list[str]:
        return [it["content"] for it in self.messages if it["role"] == "tool"]


def plan(
    root: Path,
    script: Sequence[str | Call] = (),
    *,
    shape: str = "basic",
    context: str = "context-least",
    tools: Sequence[str] = MODULES[0],
    hooks: Sequence[str] = MODULES[1],
    config: dict[str, dict[str, Any]] | None = None,
    session: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a mount plan, in which each module of ours is told where memories are."""
    given = config or {}

    def spec(name: str) -> dict[str, Any]:
        return {"module": name, "config": {"storage_root": str(root), **given.get(name, {})}}

    return {
        "session": {
            "orchestrator": {"module": "loop-scripted", "config": {"shape": shape}},
            "context": spec(context),
            **(session or {}),
        },
        "providers": [{"module": "provider-scripted", "config": {"script": list(script)}}],
        "tools": [{"module": "tool-says", "config": {}}, *map(spec, tools)],
        "hooks": [spec(name) for name in hooks],
    }


async def converse(
    mount_plan: dict[str, Any],
    prompts: Sequence[str],
    *,
    session_id: str = "session-a",
    agent: str | None = "alice",
    parent_id: str | None = None,
    resolver: object = None,
) -> Told:
    """Run a whole session of Amplifier's, to its end."""
    session = AmplifierSession(mount_plan, session_id=session_id, parent_id=parent_id)
    told = Told()
    if agent is not None:
        session.coordinator.register_capability("agent_identity", agent)
    if resolver is not None:
        await session.coordinator.mount("module-source-resolver", resolver)

    async def note(event: str, data: dict[str, Any]) -> None:
        told.events.append((event, data))

    for event in EVENTS:
        session.coordinator.hooks.register(event, note, name="note")
    await session.initialize()
    try:
        for prompt in prompts:
            told.answers.append(await session.execute(prompt))
        told.messages = await session.coordinator.get("context").get_messages()
        told.requests = session.coordinator.get("providers")["scripted"].requests
    finally:
        await session.cleanup()
    return told
