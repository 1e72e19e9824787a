"""Hooks of a host that ask the MCP server which runs already, in the place of a process each."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from mcp_programs import RawServer

from agent_memory import AgentMemory
from agent_memory.integrations.hosts.journal import Journal, ShownMemories
from agent_memory.integrations.hosts.table import HOOK_TOOL

FACT = "The billing service is deployed with Nomad"
WITHIN_SECONDS = 15.0
"""It is two on an idle machine, and for ever where what hangs is waited for."""


def asked(server: RawServer, name: str, **fields: str) -> str:
    """Return what Claude Code takes for the output of a hook that calls the server."""
    arguments = {"host": "claude-code", "event": name, "session_id": "s-1", "cwd": "/", **fields}
    result = server.ask("tools/call", name=HOOK_TOOL, arguments=arguments)["result"]
    assert not result["isError"], result
    (content,) = result["content"]
    return str(content["text"])


def test_the_server_answers_what_a_process_would(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store(FACT)
    with RawServer(root) as server:
        assert HOOK_TOOL not in str(server.ask("tools/list"))
        answered = json.loads(asked(server, "UserPromptSubmit", prompt="how is billing deployed?"))
        specific = answered["hookSpecificOutput"]
        assert specific["hookEventName"] == "UserPromptSubmit"
        assert FACT in specific["additionalContext"]
        assert asked(server, "UserPromptSubmit", prompt="how is billing deployed?") == ""
        assert asked(server, "Stop", last_assistant_message="We decided to use port 8443.") == ""
        assert asked(server, "PostCompact", compact_summary="They moved to Nomad.") == ""
        assert asked(server, "UserPromptSubmit", prompt="", source="") == ""
        wrong = {"host": "nobody", "event": "Stop"}
        result = server.ask("tools/call", name=HOOK_TOOL, arguments=wrong)["result"]
        assert result["isError"]
        assert "hosts with hooks" in result["content"][0]["text"]
    with AgentMemory("bob", root=root, create=False) as memory:
        texts = {entry.content for entry in memory.list_recent()}
    assert texts == {FACT, "We decided to use port 8443.", "They moved to Nomad."}
    log = list(Journal(str(root / "bob")).entries())
    assert [entry["event"] for entry in log].count("UserPromptSubmit") == 3
    assert all(entry["session"] == "claude-code-s1" for entry in log)


@pytest.mark.parametrize("options", [["--read-only"], ["--user", "ann"]])
def test_a_server_of_a_part_of_a_memory_answers_no_hook(root: Path, options: list[str]) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store(FACT)
    with RawServer(root, *options) as server:
        arguments = {"host": "claude-code", "event": "UserPromptSubmit", "prompt": FACT}
        result = server.ask("tools/call", name=HOOK_TOOL, arguments=arguments)["result"]
    assert result["isError"]
    assert FACT not in str(result)


def test_a_hook_that_the_server_answers_ends_in_time_whatever_the_disk_does(root: Path) -> None:
    """The file of what a session was given is locked by another process, which hangs."""
    with AgentMemory("bob", root=root) as memory:
        memory.store(FACT)
    with ShownMemories(str(root / "bob"), "claude-code", "s-1"), RawServer(root) as server:
        started = time.monotonic()
        assert asked(server, "UserPromptSubmit", prompt="how is billing deployed?") == ""
        assert time.monotonic() - started < WITHIN_SECONDS
    (entry,) = Journal(str(root / "bob")).entries()
    assert entry["outcome"] == "late"
