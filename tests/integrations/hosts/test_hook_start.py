"""How a hook comes to its answer: the quick way says what the whole library says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from host_inputs import wait_until_stored

from agent_memory import AgentMemory, MemoryReader
from agent_memory.integrations.hosts.hook import occasion_of, parse
from agent_memory.integrations.hosts.journal import Journal
from agent_memory.integrations.hosts.occasion import Outcome
from agent_memory.integrations.hosts.session import recall
from bench.workload import NOW, Workload

PROMPTS = 40
SAID = "the gateway listens on 8443 from now on."
HEAVY = {
    *("pydantic", "pydantic_core", "dataclasses", "inspect", "yaml", "click", "numpy", "openai"),
    *("_hashlib", "agent_memory.models.enums"),
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    root = tmp_path_factory.mktemp("filled")
    workload = Workload()
    items = list(workload.memories(300))
    with AgentMemory("bob", root=root, clock=lambda: NOW) as memory:
        memory.store_many(items)
        memory.store("The kettle is blue. " * 60, tags=["kitchen"], session_id="claude-code-own")
    return root, [workload.question(str(item["content"])) for item in items[:: 300 // PROMPTS]]


def given(root: Path, event: str, **fields: str) -> tuple[str, dict[str, int]]:
    """Return what a hook adds to the context, and the counts for its log."""
    call = parse(["claude-code", event, "--agent", "bob", "--root", str(root)])
    assert not isinstance(call, str)
    occasion = occasion_of(call, json.dumps({"cwd": str(root), **fields}).encode())
    recall(occasion, outcome := Outcome())
    return outcome.context, outcome.counts


def test_the_whole_library_gives_the_same(
    filled: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, prompts = filled
    events = [("SessionStart", {"source": "startup"})]
    events += [("UserPromptSubmit", {"prompt": prompt}) for prompt in [*prompts, "kettle", "zebra"]]
    events += [("SessionStart", {"source": "compact"}), events[3]]
    quick = [given(root, event, session_id="own", **fields) for event, fields in events]
    monkeypatch.setattr(MemoryReader, "open", lambda *_, **__: None)
    whole = [given(root, event, session_id="other-own", **fields) for event, fields in events]
    assert quick == whole
    assert sum(bool(context) for context, _ in quick) > PROMPTS // 2
    assert ("", {"recalled": 0, "left_out": 0}) in quick


def test_what_a_newer_memory_may_correct_is_marked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outdated text stood beside the newer one as its equal."""
    with AgentMemory("bob", root=root) as memory:
        for text in ("I live in Oslo.", "I moved to Bergen."):
            memory.add(text, user_id="s")
        for each in memory.list_recent():
            memory.demote(each.id)
        events = [("SessionStart", {}), ("UserPromptSubmit", {"prompt": "Where do I live, Oslo?"})]
        recent, found = (given(root, event, session_id=event, **said) for event, said in events)
        for each in memory.list_recent():
            memory.promote(each.id)
        pad = given(root, "SessionStart", session_id="own")
        monkeypatch.setattr(MemoryReader, "open", lambda *_, **__: None)
        whole = [given(root, event, session_id=f"2 {event}", **said) for event, said in events]
    for context, counts in (recent, found, pad, *whole):
        assert counts["recalled"] == 2
        (marked,) = (line for line in context.splitlines() if "under review" in line)
        assert "Note: I live in Oslo. (under review: it may be out of date) {" in marked


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("SessionStart", {"source": "startup"}),
        ("UserPromptSubmit", {"prompt": "which kettle?"}),
        ("PostToolUse", {"tool_name": "Bash", "tool_response": {"stdout": "12 passed"}}),
        ("PostToolUse", {"tool_name": "Bash", "tool_response": {"stdout": f"NOTE: {SAID}"}}),
        ("Stop", {"last_assistant_message": "Done."}),
        ("Stop", {"last_assistant_message": f"Important: {SAID}"}),
        ("PostCompact", {"compact_summary": f"1. It was decided that {SAID}"}),
    ],
)
def test_its_process_waits_for_no_heavy_import(
    tmp_path: Path, event: str, fields: dict[str, object]
) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("The kettle is blue")
    code = """
import os, sys, typing
def compiled(self, text, **_):  # an annotation that is a text: the first costs a millisecond
    os.write(2, f"{text!r} is compiled ".encode())
typing.ForwardRef.__init__ = compiled
from agent_memory.integrations.hosts import hook
def leave(code):
    os.write(2, " ".join(sorted(HEAVY & sys.modules.keys())).encode())
    leave_now(code)
leave_now, os._exit = os._exit, leave
hook.main(sys.argv[1:])
""".replace("HEAVY", repr(HEAVY))
    words = ["claude-code", event, "--agent", "bob", "--root", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        input=json.dumps({"session_id": "s", "cwd": str(tmp_path), **fields}).encode(),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""
    is_recall = event in ("SessionStart", "UserPromptSubmit")
    assert (b"The kettle is blue" in done.stdout) == is_recall
    entry, *_ = Journal(str(tmp_path / "bob")).entries()
    is_noted = SAID in json.dumps(fields)
    assert entry["outcome"] == ("answered" if is_recall else "noted" if is_noted else "nothing")
    wait_until_stored(tmp_path)
    with AgentMemory("bob", root=tmp_path) as memory:
        assert is_noted == any(SAID in kept.content for kept in memory.list_recent(5))


def test_where_no_home_is_known_nothing_is_written(tmp_path: Path) -> None:
    """In a container a user may have none: ``~`` would be a folder of that name in the project."""
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    words = ["hook", "claude-code", "UserPromptSubmit", "--agent", "a", "--root", "~nobody-ever/x"]
    done = subprocess.run(
        [sys.executable, "-m", "agent_memory", *words],
        input=json.dumps({"session_id": "s", "cwd": ".", "prompt": f"Remember that {SAID}"}),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0
    assert "set HOME" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_no_thread_can_be_begun_it_does_its_work_all_the_same(tmp_path: Path) -> None:
    """A container may have as many as it is allowed."""
    code = """
import sys, threading
threading.stack_size(2**46)  # more than there is
from agent_memory.integrations.hosts import hook
hook.main(sys.argv[1:])
"""
    words = ["claude-code", "UserPromptSubmit", "--agent", "bob", "--root", str(tmp_path)]
    given = {"session_id": "s", "cwd": str(tmp_path), "prompt": f"Remember that {SAID}"}
    subprocess.run(
        [sys.executable, "-c", code, *words], input=json.dumps(given).encode(), check=True
    )
    wait_until_stored(tmp_path)
    with AgentMemory("bob", root=tmp_path) as memory:
        assert [SAID in kept.content for kept in memory.list_recent(5)] == [True]
