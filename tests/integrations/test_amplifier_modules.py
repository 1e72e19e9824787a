"""The parts of our Amplifier modules, one by one: mounts, tools, what is looked through."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("amplifier_core")

from amplifier_core import ToolResult  # type: ignore[import-untyped]
from amplifier_core.testing import MockCoordinator  # type: ignore[import-untyped]

from agent_memory import AgentMemory, EventName, MemoryEvent, StorageClosed
from agent_memory.integrations.amplifier import capture_hook as capturing
from agent_memory.integrations.amplifier import context_hook as reminding
from agent_memory.integrations.amplifier import context_manager as scratchpad
from agent_memory.integrations.amplifier import tools
from agent_memory.integrations.amplifier.capture_hook import output_of
from agent_memory.integrations.amplifier.shared_memory import EventBridge
from agent_memory.integrations.tools import TOOLS
from agent_memory.models.times import now_utc

MOUNTS = [tools.mount, capturing.mount, reminding.mount, scratchpad.mount]


def with_tools(
    config: dict[str, Any], use: Callable[[dict[str, Any], MockCoordinator], Awaitable[Any]]
) -> Any:
    """Mount the tools, use them, and clean up."""

    async def do() -> Any:
        coordinator = MockCoordinator()
        cleanup = await tools.mount(coordinator, config)
        try:
            return await use(coordinator.mount_points["tools"], coordinator)
        finally:
            await cleanup()

    return asyncio.run(do())


@pytest.mark.parametrize("config", [None, {}, {"agent_id": "alice"}, "nonsense", {1: 2}])
@pytest.mark.parametrize("mount", MOUNTS, ids=lambda it: it.__module__.rpartition(".")[2])
def test_mounts_open_nothing_and_their_cleanup_may_be_called_again(
    mount: Any, config: Any, tmp_path: Path
) -> None:
    async def do() -> None:
        for _ in range(2):
            coordinator = MockCoordinator()
            before = coordinator.hooks.list_handlers()
            cleanup = await mount(coordinator, config)
            await cleanup()
            await cleanup()
            assert [it for it in coordinator.hooks.list_handlers().values() if it] == [
                it for it in before.values() if it
            ]
            assert coordinator.get_capability("memory.store") is None

    asyncio.run(do())
    assert not list(tmp_path.rglob("memories.db"))


def test_the_modules_of_a_session_share_one_memory_and_the_last_closes_it(root: Path) -> None:
    async def do() -> None:
        coordinator = MockCoordinator()
        coordinator.register_capability("agent_identity", "alice")
        config = {"storage_root": str(root)}
        first, second = [await mount(coordinator, config) for mount in MOUNTS[:2]]
        memories = coordinator.get_capability("memory.store")
        store = coordinator.mount_points["tools"]["memory_store"]
        assert (await store.execute({"content": "one"})).success
        prompt = {"prompt": "Remember that the office closes at six."}
        await coordinator.hooks.emit("prompt:submit", prompt)
        await coordinator.hooks.emit("session:end", {})
        assert len(memories._open) == 1
        await second()
        assert (await store.execute({"content": "two"})).success
        (memory,) = memories._open.values()
        assert memory.count() == 3
        (membership,) = memories._members
        late = membership.opener()
        await first()
        for use in (memory.count, late):  # closed, and not opened again by a thread that is late
            with pytest.raises(StorageClosed):
                use()
        assert (await store.execute({"content": "three"})).error["message"].count("closed")

    asyncio.run(do())


def test_what_waits_is_stored_where_a_host_only_cleans_up(root: Path) -> None:
    async def do() -> None:
        coordinator = MockCoordinator()
        config = {"storage_root": str(root), "agent_id": "alice"}
        cleanup = await capturing.mount(coordinator, config)
        for number in range(90):
            prompt = {"prompt": f"Remember that shelf {number} is full of books."}
            await coordinator.hooks.emit("prompt:submit", prompt)
        await cleanup()
        with AgentMemory("alice", root=root) as memory:
            assert memory.count() == 90

    asyncio.run(do())


def test_a_capability_of_somebody_else_is_left_alone(root: Path) -> None:
    async def do() -> None:
        coordinator = MockCoordinator()
        coordinator.register_capability("memory.store", "theirs")
        config = {"storage_root": str(root), "agent_id": "alice"}
        cleanups = [await mount(coordinator, config) for mount in MOUNTS]
        assert coordinator.get_capability("memory.store") == "theirs"
        shared = coordinator.get_capability("agent_memory.store")
        assert len(shared._members) == len(MOUNTS)
        for cleanup in cleanups:
            await cleanup()
        assert coordinator.get_capability("memory.store") == "theirs"

    asyncio.run(do())


def test_our_events_are_announced() -> None:
    async def do() -> list[list[str]]:
        coordinator = MockCoordinator()
        for mount in MOUNTS:
            await mount(coordinator, {})
        found: list[list[str]] = await coordinator.collect_contributions("observability.events")
        return found

    assert asyncio.run(do()) == [[it.value for it in EventName]]


# Tools --------------------------------------------------------------------------------------


def test_all_tools_are_mounted_as_they_are(root: Path) -> None:
    async def use(mounted: dict[str, Any], _: object) -> None:
        assert list(mounted) == [it.name for it in TOOLS]
        for tool in TOOLS:
            assert mounted[tool.name].description == tool.description
            assert mounted[tool.name].input_schema == tool.input_schema

    with_tools({"storage_root": str(root)}, use)


def test_only_the_tools_that_are_asked_for_are_mounted(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(mounted: dict[str, Any], _: object) -> list[str]:
        return list(mounted)

    config = {"storage_root": str(root), "tools": ["memory_search", "memory_dream"]}
    assert with_tools(config, use) == ["memory_search"]
    assert "memory_dream" in caplog.text


def test_max_query_results_bounds_searches_and_lists(root: Path) -> None:
    with AgentMemory("alice", root=root) as memory:
        memory.store_many([{"content": f"The shelf {n} is blue"} for n in range(9)])

    async def use(mounted: dict[str, Any], _: object) -> list[int]:
        for name in ("memory_search", "memory_list_recent"):
            limit = mounted[name].input_schema["properties"]["limit"]
            assert limit["maximum"] == 3
            assert limit["default"] == 3
        shelf = {"query": "shelf"}
        found = [
            await mounted["memory_search"].execute(shelf),
            await mounted["memory_search"].execute({**shelf, "limit": 50, "_tool_call_id": "x"}),
            await mounted["memory_search"].execute({**shelf, "limit": 2}),
        ]
        listed = await mounted["memory_list_recent"].execute({})
        assert len(listed.output["memories"]) == 3
        return [len(it.output["memories"]) for it in found]

    config = {"storage_root": str(root), "agent_id": "alice", "max_query_results": 3}
    assert with_tools(config, use) == [3, 3, 2]
    search = next(it for it in TOOLS if it.name == "memory_search")
    assert search.input_schema["properties"]["limit"]["maximum"] == 20, "the others' is as it was"


def test_true_is_no_number_of_results(root: Path) -> None:
    async def use(mounted: dict[str, Any], _: object) -> bool:
        return bool((await mounted["memory_list_recent"].execute({})).success)

    assert with_tools({"storage_root": str(root), "agent_id": "a", "max_query_results": True}, use)


def test_what_a_model_sends_wrong_comes_back_as_a_result(root: Path) -> None:
    async def use(mounted: dict[str, Any], _: object) -> None:
        for arguments in ({}, None, "x", {"memory_id": 7}, {"memory_id": "mem-gone"}):
            result = await mounted["memory_get"].execute(arguments)
            assert isinstance(result, ToolResult)
            assert not result.success
            assert result.error["code"] in ("VALIDATION_ERROR", "MEMORY_NOT_FOUND")
            assert result.output == result.error["message"], "that is what the model reads"
        limit = await mounted["memory_search"].execute({"query": "x", "limit": "many"})
        assert limit.error["code"] == "VALIDATION_ERROR"

    with_tools({"storage_root": str(root), "agent_id": "alice"}, use)


def test_a_tool_lets_the_loop_go_on(root: Path) -> None:
    waiting, goes_on = threading.Event(), threading.Event()

    async def use(mounted: dict[str, Any], coordinator: MockCoordinator) -> bool:
        tell = coordinator.get_capability("memory.store").events

        def slow(event: MemoryEvent) -> None:
            waiting.set()
            assert goes_on.wait(20), "the loop stood still while the tool worked"
            tell(event)

        coordinator.get_capability("memory.store").events = _Slow(tell, slow)
        storing = asyncio.create_task(mounted["memory_store"].execute({"content": "one"}))
        while not waiting.is_set():
            await asyncio.sleep(0.001)
        goes_on.set()
        result = await storing
        return bool(result.success)

    assert with_tools({"storage_root": str(root), "agent_id": "alice"}, use)


class _Slow:
    def __init__(self, bridge: EventBridge, listen: Callable[[MemoryEvent], None]) -> None:
        self.attach, self.close = bridge.attach, bridge.close
        self._listen = listen

    def __call__(self, event: MemoryEvent) -> None:
        self._listen(event)


# Events -------------------------------------------------------------------------------------


class _Hooks:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.waits = 0.0

    def register(self, *_: object, **__: object) -> Any:
        raise NotImplementedError

    async def emit(self, event: str, data: dict[str, Any]) -> None:
        await asyncio.sleep(self.waits)
        self.told.append(f"{event} {data['agent_id']}")


def event(name: str = "memory:stored") -> MemoryEvent:
    return MemoryEvent(name=name, agent_id="alice", timestamp=now_utc(), data={})


def test_events_of_other_threads_reach_the_loop_and_the_last_are_waited_for() -> None:
    hooks = _Hooks()

    async def do() -> None:
        bridge = EventBridge(hooks)
        bridge(event())  # nobody runs yet
        bridge.attach()
        await asyncio.to_thread(bridge, event())
        hooks.waits = 0.05
        await asyncio.to_thread(bridge, event("memory:promoted"))
        bridge(event("memory:searched"))
        await bridge.close()
        assert len(hooks.told) == 3, "close waits for them"
        await asyncio.to_thread(bridge, event())
        await asyncio.sleep(0.1)

    asyncio.run(do())
    assert hooks.told == [f"memory:{it} alice" for it in ("stored", "promoted", "searched")]


def test_events_after_the_end_of_the_loop_are_nobodys() -> None:
    hooks = _Hooks()
    bridge = EventBridge(hooks)

    async def do() -> None:
        bridge.attach()

    asyncio.run(do())
    bridge(event())
    assert hooks.told == []


def test_a_session_may_be_used_in_one_loop_after_another(root: Path) -> None:
    async def begin() -> MockCoordinator:
        coordinator = MockCoordinator()
        await tools.mount(coordinator, {"storage_root": str(root), "agent_id": "alice"})
        await coordinator.mount_points["tools"]["memory_store"].execute({"content": "one"})
        return coordinator

    told: list[str] = []

    async def go_on(coordinator: MockCoordinator) -> None:
        async def note(name: str, _: dict[str, Any]) -> None:
            told.append(name)

        coordinator.hooks.register("memory:stored", note, name="note")
        memories = coordinator.get_capability("memory.store")
        await coordinator.mount_points["tools"]["memory_store"].execute({"content": "two"})
        for membership in list(memories._members):
            await membership.leave()

    asyncio.run(go_on(asyncio.run(begin())))
    assert told == ["memory:stored"]


# What is looked through ---------------------------------------------------------------------

LONG = "x" * 60_000


@pytest.mark.parametrize(
    ("result", "output"),
    [
        ("plain", "plain"),
        ("Error: it broke", None),
        ("{'stdout': 'a\\nb'}", {"stdout": "a\nb"}),
        ("['a', 'b']", ["a", "b"]),
        ("{not python", "{not python"),
        ("[" * 3_000, "[" * 3_000),
        (f"{{'stdout': 'a\\nb{LONG}'}}", f"{{'stdout': 'a\nb{LONG}'}}"),
        ({"success": True, "output": "a", "error": None}, "a"),
        ({"success": False, "output": "a", "error": {"message": "b"}}, None),
        ({"stdout": "a"}, {"stdout": "a"}),
        (ToolResult(success=True, output={"stdout": "a"}), {"stdout": "a"}),
        (ToolResult(success=False, error={"message": "a"}), None),
        (None, None),
    ],
    ids=range(13),
)
def test_a_result_is_read_in_the_shape_of_every_orchestrator(
    result: object, output: object
) -> None:
    assert output_of(result) == output


def test_hooks_take_whatever_they_are_told(root: Path) -> None:
    async def do() -> list[str]:
        coordinator = MockCoordinator()
        coordinator.register_capability("agent_identity", "alice")
        cleanups = [await mount(coordinator, {"storage_root": str(root)}) for mount in MOUNTS[1:3]]
        actions = []
        names = "tool:post prompt:submit orchestrator:complete provider:request".split()
        wrong: list[Any] = [
            None,
            {},
            {"prompt": 7, "result": 7, "tool_name": None},
            {"result": [{}]},
        ]
        for name, data in itertools.product(names, wrong):
            told = await coordinator.hooks.emit(name, data)
            actions += [told.action]
        await coordinator.mount("context", SimpleNamespace(get_messages=None))
        actions.append((await coordinator.hooks.emit("orchestrator:complete", {})).action)
        for cleanup in cleanups:
            await cleanup()
        return actions

    assert set(asyncio.run(do())) == {"continue"}
    assert not root.exists()


def test_the_modules_of_one_users_session_see_that_users_memories(root: Path) -> None:
    with AgentMemory("alice", root=root, embedder=None) as memory:
        memory.promote(memory.store("Ben keeps the walnut", user_id="ben@example.org"))
    config = {"agent_id": "alice", "storage_root": str(root), "user_id": "ann@example.org"}

    async def do() -> Any:
        coordinator = MockCoordinator()
        cleanups = [await mount(coordinator, config) for mount in MOUNTS[:3]]
        offered = coordinator.mount_points["tools"]
        await offered["memory_store"].execute({"content": "Ann likes tea"})
        prompt = {"prompt": "Remember that the office closes at six."}
        await coordinator.hooks.emit("prompt:submit", prompt)
        listed = await offered["memory_list_recent"].execute({})
        reminded = await coordinator.hooks.emit("provider:request", {})
        for cleanup in cleanups:
            await cleanup()
        return listed.output, reminded.context_injection

    output, reminder = asyncio.run(do())
    assert "tea" in str(output)
    assert "tea" in reminder
    assert "walnut" not in f"{output}{reminder}"
    with AgentMemory("alice", root=root, embedder=None) as memory:
        ann = memory.session({"user_id": "ann@example.org"})
        assert any("office" in found.content for found in ann.get_all())
        assert (ann.count(), memory.count()) == (2, 3)
