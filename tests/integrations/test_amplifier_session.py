"""Whole sessions of Amplifier's with our modules: reminded, captured, shared, and never broken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("amplifier_core")

from amplifier_core import AmplifierSession  # type: ignore[import-untyped]
from amplifier_core.module_sources import (  # type: ignore[import-untyped]
    ModuleNotFoundError as SourceNotFoundError,
)
from amplifier_core.validation import MountPlanValidator  # type: ignore[import-untyped]
from amplifier_host import Told, converse, install_host_modules, plan

from agent_memory import AgentMemory
from agent_memory.integrations.amplifier import BUNDLE

FACT = "Prefer PostgreSQL for new projects"
STORE = ("memory_store", {"content": FACT, "category": "preference"})


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    install_host_modules(monkeypatch)


@pytest.fixture
def run(root: Path) -> Callable[..., Told]:
    """Run a session on the test's root."""

    def session(
        script: Any = (), prompts: Any = ("Hello",), *, agent: str | None = "alice", **kw: Any
    ) -> Told:
        ours = {
            name: kw.pop(name) for name in ("session_id", "parent_id", "resolver") if name in kw
        }
        return asyncio.run(converse(plan(root, script, **kw), prompts, agent=agent, **ours))

    return session


def stored(root: Path, agent: str = "alice") -> dict[str, str]:
    """Return what there is: content and category."""
    with AgentMemory(agent, root=root, create=False) as memory:
        assert memory.check().problems == []
        return {it.content: it.category for it in memory.list_recent(100)}


# Reminding ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["basic", "streaming"])
def test_what_one_session_stores_the_next_is_reminded_of(
    run: Callable[..., Told], shape: str
) -> None:
    first = run([STORE, "I shall remember."], ["Hello"], shape=shape)
    assert first.reminders() == [1]  # what it stored has changed the scratchpad
    second = run(["Hello!", "PostgreSQL."], ["Hi", "Which database?"], session_id="session-b")
    assert FACT in second.shown(0)
    assert "not instructions" in second.shown(0)
    (reminder,) = (it for it in second.requests[0] if FACT in it["content"])
    assert reminder["role"] == "user"
    assert second.reminders() == [0], "once per session"
    assert all("<memories-" not in it["content"] for it in second.messages), "ephemeral"
    assert second.answers == ["Hello!", "PostgreSQL."]


def test_it_is_reminded_again_only_when_the_scratchpad_has_changed(
    run: Callable[..., Told], root: Path
) -> None:
    with AgentMemory("alice", root=root) as memory:
        memory.store(FACT)
        memory.store("The staging server is rebuilt every Monday")
    search = ("memory_search", {"query": "PostgreSQL"})  # counts an access: another order, no more
    other = ("memory_store", {"content": "Deploys need two approvals"})
    told = run([search, search, "So.", other, "Stored.", "Yes."], ["One", "Two", "Three"])
    assert told.reminders() == [0, 4]
    assert "Deploys need two approvals" not in told.shown(0)
    assert "Deploys need two approvals" in told.shown(4)


def test_the_role_and_the_budget_are_settings(run: Callable[..., Told], root: Path) -> None:
    with AgentMemory("alice", root=root) as memory:
        for number in range(40):
            memory.store(f"The shelf number {number} holds {'very ' * 20} old books")
    settings = {"role": "system", "token_budget": 500, "include_sources": False}
    told = run(["Hello!"], config={"hooks-memory-context": settings})
    (reminder,) = (it for it in told.requests[0] if "<memories-" in it["content"])
    assert reminder["role"] == "system"
    assert len(reminder["content"]) <= 4 * 500
    assert "{mem-" not in reminder["content"]


def test_whoever_has_no_memory_yet_gets_none_by_being_reminded(
    run: Callable[..., Told], root: Path
) -> None:
    told = run(["Hello!"], hooks=("hooks-memory-context",))
    assert told.reminders() == []
    assert not root.exists()


# Capture ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["basic", "streaming"])
@pytest.mark.parametrize(
    "output",
    [
        "We decided to keep the logs for ninety days.",
        {"stdout": "42 files\nWe decided to keep the logs for ninety days.\n", "returncode": 0},
        ["nothing", {"text": "We decided to keep the logs for ninety days."}],
    ],
)
def test_what_a_tool_returned_is_captured(
    run: Callable[..., Told], root: Path, shape: str, output: object
) -> None:
    run([("says", {"output": output}), "Fine."], ["Look at it"], shape=shape)
    assert stored(root) == {"We decided to keep the logs for ninety days.": "decision"}


@pytest.mark.parametrize("shape", ["basic", "streaming"])
def test_what_a_failed_tool_said_is_not_captured(
    run: Callable[..., Told], root: Path, shape: str
) -> None:
    error = "We decided to keep the logs for ninety days."
    run([("says", {"error": error}), "It failed."], ["Look at it"], shape=shape)
    assert not root.exists()


def test_what_is_said_is_captured_with_who_said_it(run: Callable[..., Told], root: Path) -> None:
    told = run(
        ["Good.", "We decided to deploy on Tuesdays only."],
        ["Remember that the office closes at six.", "And the deploys?"],
        session_id="session-7",
    )
    assert len(told.answers) == 2
    with AgentMemory("alice", root=root) as memory:
        sources = {it.metadata["source"]: it for it in memory.list_recent()}
    assert "office closes at six" in sources["turn:user"].content
    assert "Tuesdays" in sources["turn:assistant"].content
    assert {it.created_by_session for it in sources.values()} == {"session-7"}


def test_results_of_our_own_tools_and_of_the_memory_assistant_are_not_captured(
    run: Callable[..., Told], root: Path
) -> None:
    with AgentMemory("alice", root=root) as memory:
        memory.store("We decided to keep the logs for ninety days.")
    search = ("memory_search", {"query": "logs"})
    summary = "We decided to keep all of the logs for ninety days or so."
    delegated = ("says", {"agent": "agent-memory:memory-assistant", "output": summary})
    run([search, delegated, "Fine."], ["What about the logs?"])
    assert len(stored(root)) == 1


def test_in_the_memory_assistants_own_session_nothing_is_captured(
    run: Callable[..., Told], root: Path
) -> None:
    metadata = {"metadata": {"agent_name": "agent-memory:memory-assistant"}}
    run(["We decided to deploy on Tuesdays only."], session=metadata, agent=None)
    assert not root.exists()


def test_capture_at_once_works_as_in_the_background(run: Callable[..., Told], root: Path) -> None:
    config = {"hooks-memory-capture": {"async_capture": False}}
    run(["Noted."], ["Remember that the office closes at six."], config=config)
    assert len(stored(root)) == 1


def test_the_last_words_are_captured_where_that_is_asked_for(
    run: Callable[..., Told], root: Path
) -> None:
    settings = {"observe_turn_completions": False, "observe_session_end": True}
    script = ["We decided to paint the shelf.", "We decided to deploy on Tuesdays only."]
    run(script, ["One", "Two"], config={"hooks-memory-capture": settings})
    assert list(stored(root)) == ["We decided to deploy on Tuesdays only."]


# Whose memory -------------------------------------------------------------------------------


def test_without_an_identity_there_is_no_memory_and_no_noise(
    run: Callable[..., Told], root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    script = [STORE, ("says", {"output": "We decided to keep the logs."}), "Fine."]
    told = run(script, ["Remember that the office closes at six."], agent=None)
    assert told.answers == ["Fine."]
    assert "no agent is named" in told.results()[0]
    assert not root.exists()
    assert not list(Path.home().glob("**/memories.db"))
    assert [it for it in caplog.records if it.name.startswith("agent_memory")] == []


@pytest.mark.parametrize(
    ("named", "agent"),
    [
        ({"config": {"tool-memory-semantic": {"agent_id": "carol"}}, "agent": "bob"}, "carol"),
        ({"agent": "bob", "session": {"metadata": {"agent_name": "dora"}}}, "bob"),
        ({"agent": None, "session": {"capabilities": {"agent_identity": "sam"}}}, "sam"),
        ({"agent": None, "session": {"metadata": {"agent_name": "kit:dora"}}}, "kit-dora"),
    ],
)
def test_the_first_name_that_is_given_counts(
    run: Callable[..., Told], root: Path, named: dict[str, Any], agent: str
) -> None:
    run([STORE, "Stored."], **named)
    assert [it.name for it in root.iterdir()] == [agent]


def test_memory_can_be_switched_off(run: Callable[..., Told], root: Path) -> None:
    off = {"capabilities": {"agent_identity": "sam", "memory": {"enabled": False}}}
    told = run([STORE, "No."], agent=None, session=off)
    assert "switched off" in told.results()[0]
    assert not root.exists()


def test_what_one_module_is_told_of_the_memory_holds_for_all(root: Path, tmp_path: Path) -> None:
    mount_plan = plan(tmp_path / "unused", [STORE, "Stored."])
    for spec in (*mount_plan["tools"], *mount_plan["hooks"]):
        spec["config"] = {}
    mount_plan["tools"][1]["config"] = {"storage_root": str(root), "agent_id": "carol"}
    prompt = "Remember that the office closes at six."
    told = asyncio.run(converse(mount_plan, [prompt], agent=None))
    assert 1 in told.reminders()  # and before that, where the capture was quick
    assert len(stored(root, "carol")) == 2
    assert not list(Path.home().glob("**/memories.db"))


@pytest.mark.parametrize("parent_id", ["parent", "p" * 201], ids=["short", "long"])
def test_the_memory_assistant_searches_the_memory_of_who_delegated(
    root: Path, run: Callable[..., Told], parent_id: str
) -> None:
    run([STORE, "Stored."])
    search = ("memory_search", {"query": "PostgreSQL"})
    child = plan(
        root,
        [search, "Summary."],
        config={"tool-memory-semantic": {"of_parent": True, "tools": ["memory_search"]}},
        session={"metadata": {"agent_name": "agent-memory:memory-assistant"}},
    )

    async def delegate() -> Told:
        parent = AmplifierSession(plan(root), session_id=parent_id)
        parent.coordinator.register_capability("agent_identity", "alice")
        await parent.initialize()
        try:
            return await converse(
                child, ["Search"], session_id="child", parent_id=parent_id, agent=None
            )
        finally:
            await parent.cleanup()

    told = asyncio.run(delegate())
    assert FACT in told.results()[0]
    assert [it.name for it in root.iterdir()] == ["alice"]


def test_an_identity_may_be_given_while_the_session_runs(root: Path) -> None:
    async def session() -> list[str]:
        running = AmplifierSession(plan(root, [STORE, "None.", STORE, "Stored."]), session_id="s")
        await running.initialize()
        try:
            await running.execute("Hello")
            running.coordinator.register_capability("agent_identity", "sam")
            await running.execute("Start as sam. Remember that the office closes at six.")
            messages = await running.coordinator.get("context").get_messages()
        finally:
            await running.cleanup()
        return [it["content"] for it in messages if it["role"] == "tool"]

    first, second = asyncio.run(session())
    assert "no agent is named" in first
    assert '"memory_id"' in second
    assert len(stored(root, "sam")) == 2


def test_a_user_names_the_agent_and_the_model_is_to_confirm_it(root: Path) -> None:
    script: list[Any] = [STORE, "None.", "Memory enabled. I'm bob.", STORE, "Stored."]
    prompts = [
        "Hello",
        "Start as bob with memory enabled. Remember that the office closes at six.",
        "Note the database",
    ]
    told = asyncio.run(converse(plan(root, script), prompts, agent=None))
    refused, stored_one = told.results()
    assert "no agent is named" in refused
    assert '"memory_id"' in stored_one
    assert "you are bob" not in told.shown(1)
    assert "you are bob" in told.shown(2)
    assert len(stored(root, "bob")) == 2
    assert [path.name for path in root.iterdir()] == ["bob"]


def test_a_user_may_go_on_as_another_agent(root: Path) -> None:
    script: list[Any] = [STORE, "Stored.", STORE, "Stored."]
    asyncio.run(converse(plan(root, script), ["Start as bob", "Start as sam"], agent=None))
    assert list(stored(root, "bob")) == list(stored(root, "sam")) == [FACT]


@pytest.mark.parametrize("case", ["capability", "config", "environment", "metadata"])
def test_a_user_does_not_overrule_the_host(
    root: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    kw: dict[str, Any] = {}
    if case == "config":
        kw["config"] = {"tool-memory-semantic": {"agent_id": "alice"}}
    elif case == "environment":
        monkeypatch.setenv("AGENT_MEMORY_AGENT", "alice")
    elif case == "metadata":
        kw["session"] = {"metadata": {"agent_name": "alice"}}
    agent = "alice" if case == "capability" else None
    mount_plan = plan(root, [STORE, "Stored."], **kw)
    told = asyncio.run(converse(mount_plan, ["Start as bob with memory enabled"], agent=agent))
    assert "you are bob" not in told.shown(0)
    assert [path.name for path in root.iterdir()] == ["alice"]


@pytest.mark.parametrize("case", ["off", "not spoken", "in words", "delegated"])
def test_nobody_is_named_where_that_is_not_wanted(root: Path, case: str) -> None:
    kw: dict[str, Any] = {}
    if case == "off":
        kw["session"] = {"capabilities": {"memory": {"enabled": False}}}
    elif case == "not spoken":
        kw["config"] = {"hooks-memory-capture": {"spoken_activation": False}}
    elif case == "in words":  # YAML 1.2 has no other word for it than "false"
        kw["config"] = {"hooks-memory-capture": {"spoken_activation": "no"}}
    mount_plan = plan(root, [STORE, "None."], **kw)
    parent = "parent" if case == "delegated" else None
    told = asyncio.run(
        converse(mount_plan, ["Start as bob with memory enabled"], agent=None, parent_id=parent)
    )
    assert "you are bob" not in told.shown(0)
    assert '"memory_id"' not in told.results()[0]
    assert not root.exists()


# Together -----------------------------------------------------------------------------------


def test_two_sessions_at_once_keep_their_memories_apart(root: Path) -> None:
    async def both() -> list[Told]:
        return await asyncio.gather(
            *(
                converse(
                    plan(root, [("memory_store", {"content": f"{name} likes tea"}), "Stored."]),
                    [f"Remember that {name} sits by the window."],
                    session_id=f"session-{name}",
                    agent=name,
                )
                for name in ("alice", "bob")
            )
        )

    asyncio.run(both())
    for name in ("alice", "bob"):
        assert all(name in it for it in stored(root, name))
        assert len(stored(root, name)) == 2


def test_two_sessions_at_once_may_share_a_memory(root: Path) -> None:
    async def both() -> list[Told]:
        return await asyncio.gather(
            *(
                converse(
                    plan(root, [("memory_store", {"content": f"The room {n} is blue"}), "Stored."]),
                    ["Hello"],
                    session_id=f"session-{n}",
                )
                for n in range(4)
            )
        )

    asyncio.run(both())
    assert set(stored(root)) == {f"The room {n} is blue" for n in range(4)}


class Resolver:
    """Sends our modules to the bundle's directory, as a bundle does, and no others."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def resolve(self, module_id: str, **_: object) -> Resolver:
        if "memory" not in module_id:
            raise SourceNotFoundError(module_id)
        self.asked.append(module_id)
        return self

    async def async_resolve(self, module_id: str, **_: object) -> Resolver:
        found = self.resolve(module_id)
        return _At(BUNDLE / "modules") if found else self  # type: ignore[return-value]


class _At:
    def __init__(self, path: Path) -> None:
        self._path = path

    def resolve(self) -> Path:
        return self._path


def test_loaded_from_the_bundle_each_module_is_mounted_twice_and_works_once(
    run: Callable[..., Told], root: Path
) -> None:
    resolver = Resolver()
    told = run(
        [STORE, "Stored."],
        ["Remember that the office closes at six."],
        resolver=resolver,
        context="context-memory-scratchpad",
    )
    assert sorted(resolver.asked) == sorted(
        """context-memory-scratchpad tool-memory-semantic hooks-memory-context
        hooks-memory-capture""".split()
    )
    assert '"memory_id"' in told.results()[0]
    assert len(stored(root)) == 2
    assert [name for name, _ in told.events].count("memory:stored") == 2


def test_the_plan_is_one_for_amplifiers_own_validator(root: Path) -> None:
    result = MountPlanValidator().validate(plan(root, context="context-memory-scratchpad"))
    assert result.passed, result.errors
    assert [it for it in result.checks if not it.passed] == []


# Events -------------------------------------------------------------------------------------


def test_what_happens_in_the_memory_is_told_to_the_hooks(run: Callable[..., Told]) -> None:
    search = ("memory_search", {"query": "PostgreSQL"})
    told = run(
        [STORE, search, "Fine."],
        session_id="session-9",
        config={
            "tool-memory-semantic": {"event_text": True},
        },
    )
    events = dict(told.events)
    assert events["memory:stored"]["category"] == "preference"
    assert events["memory:stored"]["agent_id"] == "alice"
    assert events["memory:stored"]["session_id"] == "session-9"
    assert events["memory:searched"]["results_count"] == 1
    assert events["memory:searched"]["query"] == "PostgreSQL"


def test_texts_are_told_only_where_that_is_asked_for(run: Callable[..., Told]) -> None:
    told = run([STORE, ("memory_search", {"query": "PostgreSQL"}), "Fine."])
    assert len(told.events) == 2
    assert FACT not in str(told.events)
    assert "query" not in dict(told.events)["memory:searched"]


# What goes wrong ----------------------------------------------------------------------------


@pytest.fixture
def broken(root: Path) -> Iterator[Path]:
    """A file that is no database any more."""
    with AgentMemory("alice", root=root) as memory:
        memory.store(FACT)
        path = memory.path
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 20_000)
    yield path
    assert path.read_bytes().endswith(b"\xff" * 100), "a damaged file is left as it is"


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("context", ["context-least", "context-memory-scratchpad"])
def test_a_damaged_file_breaks_no_session(
    run: Callable[..., Told], context: str, caplog: pytest.LogCaptureFixture
) -> None:
    script = [STORE, ("says", {"output": "We decided to keep the logs."}), "Fine.", "Again."]
    prompts = ["Remember that the office closes at six.", "Again"]
    told = run(script, prompts, context=context)
    assert told.answers == ["Fine.", "Again."]
    assert "memory_id" not in told.results()[0]
    assert told.reminders() == []
    warned = [it for it in caplog.records if "no memories are recalled" in it.getMessage()]
    assert len(warned) == 1, "once, not at every request"
    assert "alice" in warned[0].getMessage(), "it says which file"
    assert "office" not in caplog.text


@pytest.mark.parametrize(
    "config",
    [
        {"hooks-memory-capture": {"min_confidence": 7}},
        {"hooks-memory-capture": {"no_such_setting": 1}},
        {"hooks-memory-context": {"token_budget": "many"}},
        {"hooks-memory-context": {"no_such_setting": 1, "role": "prophet"}},
        {"tool-memory-semantic": {"max_query_results": "all", "no_such_setting": 1}},
        {"tool-memory-semantic": {"tools": "memory_store"}},
        {"tool-memory-semantic": {"tools": ["memory_store", {"name": "memory_search"}]}},
        {"context-memory-scratchpad": {"max_tokens": None, "role": 3}},
        {"context-memory-scratchpad": {"max_tokens": True}},
    ],
)
def test_a_wrong_setting_is_logged_and_stops_nothing_else(
    run: Callable[..., Told], root: Path, config: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    context = (
        "context-memory-scratchpad" if "context-memory-scratchpad" in config else "context-least"
    )
    told = run([STORE, "Stored."], ["We decided to go."], config=config, context=context)
    assert told.answers == ["Stored."]
    assert FACT in stored(root)
    assert [it for it in caplog.records if it.name.startswith("agent_memory")] != []


@pytest.mark.parametrize("context", ["context-least", "context-memory-scratchpad"])
def test_a_setting_that_there_is_not_keeps_nobody_from_being_reminded(
    run: Callable[..., Told], root: Path, context: str, caplog: pytest.LogCaptureFixture
) -> None:
    with AgentMemory("alice", root=root) as memory:
        memory.store(FACT)
    settings = {"no_such_setting": 1, "role": "prophet"}
    modules = ("hooks-memory-context", "context-memory-scratchpad")
    told = run(["Hello!"], config=dict.fromkeys(modules, settings), context=context)
    assert told.reminders() == [0]
    assert "no_such_setting" in caplog.text
    assert "role must be system or user" in caplog.text


def test_an_agent_id_that_cannot_be_is_said_to_the_model(
    run: Callable[..., Told], root: Path
) -> None:
    told = run([STORE, "No."], agent="../bob")
    assert "not an agent id" in told.results()[0]
    assert not root.exists()
    assert not (root.parent / "bob").exists()


def test_after_its_end_a_session_uses_the_memory_no_more(root: Path) -> None:
    async def session() -> tuple[Any, list[str]]:
        running = AmplifierSession(plan(root, [STORE, "Stored."]), session_id="s")
        running.coordinator.register_capability("agent_identity", "alice")
        await running.initialize()
        tool = running.coordinator.get("tools")["memory_store"]
        await running.execute("Hello")
        await running.cleanup()
        await running.cleanup()
        told: list[str] = []

        async def note(event: str, _: dict[str, Any]) -> None:
            told.append(event)

        running.coordinator.hooks.register("memory:stored", note, name="note")
        result = await tool.execute({"content": "Too late"})
        await running.coordinator.hooks.emit(
            "prompt:submit", {"prompt": "Remember that I am late."}
        )
        await asyncio.sleep(0.05)
        return result, told

    result, told = asyncio.run(session())
    assert not result.success
    assert "closed" in result.error["message"]
    assert told == []
    assert list(stored(root)) == [FACT]
