"""Every integration on the sessions of two users: neither sees, changes or hints at the other's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from anthropic.lib.tools import ToolError

from agent_memory import AgentMemory, InvalidSession, SessionMemory
from agent_memory.integrations.anthropic_memory.commands import Commands
from agent_memory.integrations.capture import MemoryCapture
from agent_memory.integrations.context import MemoryContext
from agent_memory.integrations.identity import LazyMemory
from agent_memory.integrations.langgraph import AgentMemoryStore
from agent_memory.integrations.mcp.memory_handle import ServedMemory
from agent_memory.integrations.mcp.server import MemoryServer
from agent_memory.integrations.tools import TOOLS, MemoryTools

ANN, BEN = "ann@example.org", "auth0|ben-7"
SECRET = "walnut"


@pytest.fixture
def memory(root: Path) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        yield memory


@pytest.fixture
def ann(memory: AgentMemory) -> SessionMemory:
    return memory.session({"user_id": ANN})


@pytest.fixture
def ben(memory: AgentMemory) -> SessionMemory:
    return memory.session({"user_id": BEN})


def of(tools: MemoryTools, name: str, **arguments: Any) -> dict[str, Any]:
    return tools.call(name, arguments).to_dict()


def arguments_of(name: str, memory_id: str) -> Mapping[str, Any]:
    by_name: dict[str, dict[str, Any]] = {
        "memory_store": {"content": f"The {SECRET} plan is in the drawer"},
        "memory_search": {"query": f"{SECRET} plan"},
        "memory_list_recent": {},
        "memory_add": {"messages": [{"role": "user", "content": f"The {SECRET} is found"}]},
        "memory_reviews": {},
        "memory_resolve": {"review_id": 1, "still_true": False},
        "memory_graph": {},
        "memory_update": {"memory_id": memory_id, "content": "taken over"},
    }
    return by_name.get(name, {"memory_id": memory_id})


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS])
def test_each_tool_treats_anothers_memory_as_none(
    memory: AgentMemory, ann: SessionMemory, ben: SessionMemory, tool: str
) -> None:
    bens = ben.store(f"The {SECRET} plan is in the drawer", tags=["bens-tag"])
    ben.promote(bens)
    ben.graph.add("Ben", "keeps", "bens-tag", memory_id=bens)
    before = memory.get(bens)
    result = of(MemoryTools(ann), tool, **arguments_of(tool, bens))
    shown = json.dumps(result)
    assert "bens-tag" not in shown
    if "memory_id" in arguments_of(tool, bens):
        unknown = of(MemoryTools(ann), tool, **arguments_of(tool, "mem-000000000000"))
        assert result["error"]["code"] == unknown["error"]["code"] == "MEMORY_NOT_FOUND"
    else:
        assert bens not in shown
    assert memory.get(bens) == before


def test_the_tools_do_for_a_session_what_they_do_for_a_memory(ann: SessionMemory) -> None:
    tools = MemoryTools(ann)
    stored = of(tools, "memory_store", content="Ann likes green tea")["data"]
    memory_id = stored["memory_id"]
    again = of(tools, "memory_store", content="Ann likes green tea")["data"]
    assert (again["memory_id"], stored["in_scratchpad"]) == (memory_id, True)
    assert "known already" in again["note"]
    (hit,) = of(tools, "memory_search", query="tea")["data"]["memories"]
    assert hit["id"] == memory_id
    assert of(tools, "memory_list_recent")["data"]["scratchpad_size"] == 1
    changed = of(tools, "memory_update", memory_id=memory_id, content="Ann likes black tea")
    assert changed["data"]["changed"] is True
    assert of(tools, "memory_promote", memory_id=memory_id)["data"]["scratchpad_size"] == 1
    assert of(tools, "memory_forget", memory_id=memory_id)["success"]
    assert ann.count() == 0


def test_an_agent_is_reminded_of_one_users_memories(ann: SessionMemory, ben: SessionMemory) -> None:
    ben.promote(ben.store(f"Ben keeps the {SECRET}"))
    context = MemoryContext(ann)
    assert context.text() == ""
    ann.promote(ann.store("Ann likes tea"))
    assert "tea" in context.text()
    assert SECRET not in context.text()


def test_a_memory_that_is_opened_later_is_the_sessions(root: Path) -> None:
    lazy = LazyMemory("bob", root=root, embedder=None, session={"user_id": ANN})
    of(MemoryTools(lazy), "memory_store", content="Ann likes tea")
    lazy.close()
    with AgentMemory("bob", root=root, embedder=None) as memory:
        assert [found.user_id for found in memory.list_recent()] == [ANN]


def test_langgraph_items_of_two_users_have_the_same_names(
    memory: AgentMemory, ann: SessionMemory, ben: SessionMemory
) -> None:
    stores = AgentMemoryStore(ann), AgentMemoryStore(ben)
    for store, value in zip(stores, ("tea", SECRET), strict=True):
        store.put(("prefs",), "drink", {"text": f"likes {value}"})
        store.put(("prefs",), "drink", {"text": f"likes {value} best"})
    anns, bens = stores
    item = anns.get(("prefs",), "drink")
    assert item is not None
    assert item.value == {"text": "likes tea best"}
    assert [found.value["text"] for found in anns.search((), query="likes")] == ["likes tea best"]
    assert anns.list_namespaces() == [("prefs",)]
    bens.delete(("prefs",), "drink")
    assert anns.get(("prefs",), "drink") is not None
    assert AgentMemoryStore(memory).search(()) == []


def test_anthropics_files_of_two_users_have_the_same_paths(
    memory: AgentMemory, ann: SessionMemory, ben: SessionMemory
) -> None:
    def run(session: SessionMemory, command: str, **arguments: Any) -> str:
        return Commands(session).run(command, SimpleNamespace(**arguments))

    path = "/memories/notes.txt"
    run(ann, "create", path=path, file_text="green tea")
    run(ben, "create", path=path, file_text=SECRET)
    run(ann, "str_replace", path=path, old_str="green", new_str="black")
    assert "black tea" in run(ann, "view", path=path, view_range=None)
    assert SECRET in run(ben, "view", path=path, view_range=None)
    whole = Commands(memory)
    assert path not in whole.run("view", SimpleNamespace(path="/memories", view_range=None))
    whole.run("create", SimpleNamespace(path=path, file_text="of nobody"))
    whole.run("delete", SimpleNamespace(path=path))
    with pytest.raises(ToolError, match="does not exist"):
        whole.run("delete", SimpleNamespace(path=path))
    whole.run("clear_all_memory", SimpleNamespace())
    run(ben, "clear_all_memory")
    assert "black tea" in run(ann, "view", path=path, view_range=None)
    assert {found.user_id for found in memory.list_recent()} == {ANN}


def test_a_capture_keeps_what_is_said_in_one_users_session(
    memory: AgentMemory, ann: SessionMemory, ben: SessionMemory
) -> None:
    ben.store("I decided to use PostgreSQL for all new projects.")
    with MemoryCapture(ann, config={"async_capture": False}) as capture:
        capture.turn("I decided to use PostgreSQL for all new projects.", "user")
        assert capture.report.stored == 1
    (own,) = ann.get_all()
    assert (own.user_id, own.metadata["auto_captured"]) == (ANN, True)
    assert memory.count() == 2


def served(root: Path, user_id: str | None, run_id: str | None = None) -> MemoryServer:
    return MemoryServer(ServedMemory("bob", root=root, user_id=user_id, run_id=run_id))


def test_an_mcp_server_serves_one_user(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        bens = memory.session({"user_id": BEN}).store(f"Ben keeps the {SECRET}")
        memory.promote(bens)
    server = served(root, ANN)
    call = {"name": "memory_store", "arguments": {"content": "Ann likes tea"}}
    server.answer("tools/call", call)
    seen = [
        server.answer("resources/list", {}),
        server.answer("prompts/get", {"name": "scratchpad"}),
        server.answer("resources/read", {"uri": "memory://bob/scratchpad"}),
        server.answer("tools/call", {"name": "memory_list_recent", "arguments": {}}),
        server.answer("tools/call", {"name": "memory_search", "arguments": {"query": "who keeps"}}),
    ]
    assert "tea" in json.dumps(seen)
    assert SECRET not in json.dumps(seen)
    assert bens not in json.dumps(seen)
    with pytest.raises(Exception, match="memory_search") as refusal:
        server.answer("resources/read", {"uri": f"memory://bob/{bens}"})
    assert SECRET not in str(refusal.value)
    server.close()


def test_an_mcp_server_of_a_run_serves_that_run(root: Path) -> None:
    for run in ("one", "two"):
        server = served(root, ANN, run)
        call = {"name": "memory_store", "arguments": {"content": f"the kettle of run {run}"}}
        server.answer("tools/call", call)
        listed = server.answer("tools/call", {"name": "memory_list_recent", "arguments": {}})
        assert len(listed["structuredContent"]["memories"]) == 1
        server.close()


@pytest.mark.parametrize(("user_id", "run_id"), [("", None), (None, "run"), ("a\nb", None)])
def test_whom_nobody_can_be_is_not_served(root: Path, user_id: str, run_id: str) -> None:
    with pytest.raises(InvalidSession):
        served(root, user_id, run_id)


def test_the_command_serves_a_user_over_stdio(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.session({"user_id": BEN}).store(f"Ben keeps the {SECRET}")
    requests = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}},
        {"id": 2, "method": "tools/call", "params": {
            "name": "memory_list_recent", "arguments": {}}},
    ]  # fmt: skip
    lines = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    command = [sys.executable, "-m", "agent_memory", "--root", str(root), "mcp"]
    done = subprocess.run(
        [*command, "--agent", "bob", "--user", ANN], input=lines, capture_output=True, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == 2
    assert SECRET not in done.stdout
