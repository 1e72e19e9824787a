"""Letta's agent files: blocks are memories, messages what was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from peer_files import everything, taken_in

from agent_memory import AgentMemory, ValidationError
from agent_memory.formats.registry import recognise


def message(role: str, text: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "role": role,
        "content": [{"type": "text", "text": text}],
        "id": f"message-{number}",
        "created_at": f"2026-01-22T02:06:{number:02d}.046456+00:00",
        **more,
    }


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": json.dumps(arguments)}}


def agent_file() -> dict[str, Any]:
    """Return a file as Letta writes it: the keys are those of its own samples."""
    messages = [
        message("system", "You are a memory-augmented agent", 0),
        message("user", json.dumps({"type": "user_message", "message": "My dog is Rex."}), 1),
        message("assistant", "A thought", 2, tool_calls=[call("send_message", message="Noted.")]),
        message("tool", '{"status": "OK"}', 3),
        message("user", json.dumps({"type": "heartbeat", "reason": "x"}), 4),
        message("user", "<system-reminder>x</system-reminder>", 5),
        message("user", "In plain words", 6),
    ]
    return {
        "agents": [{"name": "loop", "block_ids": ["block-0"], "messages": messages}],
        "groups": [],
        "blocks": [
            {"id": "block-0", "label": "human", "value": "Ann\nTeaches chemistry", "limit": 5000,
             "description": "About the user"},
            {"id": "block-1", "label": "persona", "value": "  ", "limit": 5000},
        ],
        "tools": [{"name": "x"}],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["plain", "json in json"])
def test_blocks_and_messages_come_in(tmp_path: Path, form: str) -> None:
    path = tmp_path / "loop.af"
    text = json.dumps(agent_file(), indent=2)
    path.write_text(text if form == "plain" else json.dumps(text))
    report, (block, *said) = taken_in(path, tmp_path, raw=True)
    assert (report.format, report.refused) == ("letta", 0)
    assert block.content == "Ann\nTeaches chemistry"
    assert block.metadata == {
        "label": "human", "description": "About the user", "source": "letta",
    }  # fmt: skip
    assert [(each.content, each.metadata["role"]) for each in said] == [
        ("My dog is Rex.", "user"),
        ("Noted.", "assistant"),
        ("In plain words", "user"),
    ]
    assert said[0].timestamp.isoformat() == "2026-01-22T02:06:01.046456+00:00"
    assert said[0].created_by_session == "loop"
    assert "empty texts: 1; non-dialogue messages (system, tools, thoughts): 4;" in report.notes[0]
    assert "tools of agents: 1" in report.notes[0]
    (tmp_path / "facts").mkdir()
    _, facts = taken_in(path, tmp_path / "facts")
    assert "My dog is Rex." in [each.content for each in facts]


def test_the_file_of_an_earlier_version_is_read_as_far_as_it_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "old.af"
    old = {
        "agent_type": "memgpt_agent",
        "core_memory": [{"label": "human", "value": "Likes tea", "limit": 2000}],
        "messages": [message("user", "Hello there, agent", 1)],
        "name": "old",
    }
    path.write_text(json.dumps(old))
    _, memories = taken_in(path, tmp_path, raw=True)
    assert [each.content for each in memories] == ["Likes tea", "Hello there, agent"]


@pytest.mark.parametrize("value", [7, "x", None, {}, [7], [[]], [{"value": 7}], [{"content": 7}]])
@pytest.mark.parametrize("key", ["agents", "blocks", "tools", "messages", "content", "tool_calls"])
def test_wrong_types_are_named_or_passed_over(tmp_path: Path, key: str, value: Any) -> None:
    data = agent_file()
    agent = data["agents"][0]
    homes = {"messages": agent, "content": agent["messages"][2], "tool_calls": agent["messages"][2]}
    homes.get(key, data)[key] = value
    path = tmp_path / "x.af"
    path.write_text(json.dumps(data))
    _, memories = taken_in(path, tmp_path, raw=True, format="letta")
    assert len(memories) >= (0 if key in ("blocks", "agents") else 1)
    assert all(each.metadata["source"] == "letta" for each in memories)


@pytest.mark.parametrize("text", ['"x"', "[]", "7", '{"agents": [', '"{\\"agents\\": ["'])
def test_what_is_no_agent_file_is_a_typed_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.af"
    path.write_text(text)
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        with pytest.raises(ValidationError, match=r"is no|is not JSON"):
            memory.import_(path, format="letta")
        assert everything(memory) == []


def test_an_empty_file_and_other_json_are_not_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"agent_id": "bob", "content": "x"}\n')
    assert recognise(path).name == "jsonl"
