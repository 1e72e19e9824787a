"""The context manager that shows the scratchpad: what it keeps, what it shows, how it shortens."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("amplifier_core")

from amplifier_core.testing import MockCoordinator  # type: ignore[import-untyped]
from amplifier_host import converse, install_host_modules, plan

from agent_memory import AgentMemory
from agent_memory.integrations.amplifier import messages as parts
from agent_memory.integrations.amplifier.context_manager import ScratchpadContext, mount

FACT = "Prefer PostgreSQL for new projects"
Message = dict[str, Any]


def mounted(root: Path, **config: Any) -> tuple[ScratchpadContext, MockCoordinator]:
    """Mount the context in a coordinator of Amplifier's, for agent alice."""
    coordinator = MockCoordinator()

    async def do() -> None:
        await mount(coordinator, {"storage_root": str(root), "agent_id": "alice", **config})

    asyncio.run(do())
    context = coordinator.get("context")
    assert isinstance(context, ScratchpadContext)
    return context, coordinator


def conversation(turns: int, *, seed: int = 1, long: int = 2_000) -> list[Message]:
    """Return a conversation in which some answers call tools, one or several."""
    chance = random.Random(seed)
    said: list[Message] = [{"role": "system", "content": "You are helpful."}]
    for turn in range(turns):
        said.append({"role": "user", "content": f"question {turn} " + "x" * chance.randrange(200)})
        for step in range(chance.randrange(3)):
            calls = [f"call-{turn}-{step}-{n}" for n in range(chance.randrange(1, 4))]
            asked = [{"id": it, "tool": "bash", "arguments": {"command": "ls"}} for it in calls]
            said.append({"role": "assistant", "content": "", "tool_calls": asked})
            said += [
                {"role": "tool", "tool_call_id": it, "content": "y" * chance.randrange(long)}
                for it in calls
            ]
        said.append({"role": "assistant", "content": f"answer {turn} " + "z" * 100})
    return said


def check_pairs(shown: list[Message]) -> None:
    """Fail unless each call of a tool is followed by its results, and each result has its call."""
    open_calls: list[str] = []
    for message in shown:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_calls.pop(0)
            continue
        assert open_calls == []
        open_calls = [it["id"] for it in message.get("tool_calls", [])]
    assert open_calls == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("budget", [200, 1_000, 3_000, 8_000])
def test_a_shortened_conversation_keeps_calls_and_results_together(seed: int, budget: int) -> None:
    said = conversation(12, seed=seed)
    shown = [dict(it) for it in parts.compacted(said, budget)]
    check_pairs(shown)
    assert shown[0] == said[0], "system messages stay"
    users = [it["content"] for it in said if it["role"] == "user"]
    texts = [it["content"] for it in shown]
    assert users[0] in texts
    assert users[-1] in texts
    assert shown[-1] == said[-1]
    if budget >= 1_000:
        assert parts.tokens_of(shown) <= budget
    order = [said.index(it) for it in shown if it in said]
    assert order == sorted(order)


def test_results_are_shortened_before_anything_is_left_out() -> None:
    said = conversation(8, long=4_000)
    tokens = parts.tokens_of(said)
    shown = parts.compacted(said, tokens * 3 // 4)
    assert len(shown) == len(said)
    assert "were left out to save room" in str(shown)
    assert [it for it in shown if it["role"] != "tool"] == [
        it for it in said if it["role"] != "tool"
    ]


def test_what_fits_is_not_touched() -> None:
    said = conversation(5)
    assert parts.compacted(said, parts.tokens_of(said)) == said


def test_calls_and_results_in_blocks_stay_together_too() -> None:
    call = {"type": "tool_use", "id": "1", "name": "bash", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "42"}
    said: list[Message] = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 42."}]},
    ]
    assert [len(it) for it in parts.grouped(said)] == [1, 2, 1]
    assert parts.said_since(said, "first") == ["It is 42."]


def test_what_was_said_since_the_users_words_is_found() -> None:
    said: list[Message] = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "old"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
        {"role": "user", "content": "a reminder of the host"},
        {"role": "assistant", "content": [{"type": "text", "text": "new"}]},
    ]
    assert parts.said_since(said, "second ") == ["new"]
    assert parts.said_since(said, "") == ["new"]
    assert parts.said_since(said, "first") == ["old", "new"]
    assert parts.said_since(said[1:2], "first") == ["old"]


def test_it_shows_a_short_conversation_and_keeps_the_long_one(tmp_path: Path) -> None:
    context, coordinator = mounted(tmp_path / "root", max_tokens=3_000)
    told: list[dict[str, Any]] = []
    said = conversation(20)

    async def use() -> tuple[list[Message], list[Message]]:
        async def note(_: str, data: dict[str, Any]) -> None:
            told.append(data)

        coordinator.hooks.register("context:compaction", note, name="note")
        for message in said:
            await context.add_message(message)
        return await context.get_messages_for_request(), await context.get_messages()

    shown, kept = asyncio.run(use())
    assert kept == said
    check_pairs(shown)
    assert parts.tokens_of(shown) <= 0.6 * 3_000
    assert told[0]["before_messages"] == len(said)
    assert told[0]["after_messages"] == len(shown)
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize(
    ("provider", "budget"),
    [
        (SimpleNamespace(get_model_info=lambda: SimpleNamespace(context_window=4_000)), 3_600),
        (
            SimpleNamespace(
                get_info=lambda: SimpleNamespace(
                    defaults={"context_window": 5_000, "max_output_tokens": 1_000}
                )
            ),
            3_600,
        ),
        (SimpleNamespace(get_info=lambda: SimpleNamespace(defaults={})), None),
        (None, None),
    ],
)
def test_the_provider_says_how_much_fits(
    tmp_path: Path, provider: object, budget: int | None
) -> None:
    context, coordinator = mounted(tmp_path / "root")
    said = conversation(40, long=4_000)
    told: list[int] = []

    async def use() -> list[Message]:
        async def note(_: str, data: dict[str, Any]) -> None:
            told.append(data["budget"])

        coordinator.hooks.register("context:compaction", note, name="note")
        await context.set_messages(said)
        return await context.get_messages_for_request(provider=provider)

    shown = asyncio.run(use())
    assert told == ([] if budget is None else [budget])
    assert parts.tokens_of(shown) <= (budget or 200_000)
    assert (shown == said) == (budget is None)


def test_the_scratchpad_counts_as_what_is_shown(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with AgentMemory("alice", root=root) as memory:
        for number in range(40):
            memory.store(f"The shelf number {number} holds {'very ' * 20} old books")
    context, _ = mounted(root)
    said = conversation(20)

    async def use() -> list[Message]:
        await context.set_messages(said)
        return await context.get_messages_for_request(token_budget=3_000)

    shown = asyncio.run(use())
    assert parts.tokens_of(shown[1:2]) > 1_500
    assert parts.tokens_of(shown) <= 3_000 - 0.4 * (3_000 - parts.tokens_of(shown[1:2]))


def test_what_is_given_out_is_a_copy(tmp_path: Path) -> None:
    context, _ = mounted(tmp_path / "root")

    async def use() -> list[Message]:
        await context.add_message({"role": "user", "content": [{"type": "text", "text": "Hi"}]})
        for given in (await context.get_messages(), await context.get_messages_for_request()):
            given[0]["content"][0]["text"] = "changed"
            given.clear()
        return await context.get_messages()

    assert asyncio.run(use())[0]["content"][0]["text"] == "Hi"


def test_the_scratchpad_stands_after_the_system_messages_in_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_host_modules(monkeypatch)
    root = tmp_path / "root"
    with AgentMemory("alice", root=root) as memory:
        memory.store(FACT)
    store = ("memory_store", {"content": "Deploys need two approvals"})
    mount_plan = plan(root, [store, "Stored.", "Yes.", "Bye."], context="context-memory-scratchpad")
    told = asyncio.run(converse(mount_plan, ["One", "Two", "Three"]))
    assert told.reminders() == [0, 1, 2, 3]
    assert all(it[0]["content"].count("<memories-") == 1 for it in told.requests)
    assert all("<memories-" not in str(it[1:]) for it in told.requests), "the hook is silent"
    heads = [it[0]["content"] for it in told.requests]
    assert heads[0] == heads[1], "within a turn it stays, for the sake of the prompt's cache"
    assert "two approvals" not in heads[1]
    assert "two approvals" in heads[2]
    assert "<memories-" not in str(told.messages)


def test_a_session_that_goes_on_is_reminded(tmp_path: Path) -> None:
    root = tmp_path / "root"
    with AgentMemory("alice", root=root) as memory:
        memory.store(FACT)
    context, _ = mounted(root)
    said = conversation(2)

    async def use() -> tuple[list[Message], list[Message]]:
        await context.set_messages(said)
        shown = await context.get_messages_for_request()
        await context.clear()
        return shown, await context.get_messages_for_request()

    shown, cleared = asyncio.run(use())
    assert shown[0] == said[0]
    assert FACT in shown[1]["content"]
    assert shown[2:] == said[1:]
    assert [FACT in it["content"] for it in cleared] == [True]
