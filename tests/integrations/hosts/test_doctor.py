"""The doctor: what is installed, whether it answers, when it last did, and what is wrong."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from embedding_server import EmbeddingServer
from host_inputs import EVENTS, PROGRAM, answer, event, locked, wait_until_stored
from places import read_only_drive

from agent_memory import AgentMemory
from agent_memory.cli import run
from agent_memory.integrations.hosts import doctor as doctor_module
from agent_memory.integrations.hosts.journal import Journal, agent_folder
from agent_memory.integrations.hosts.project import project_of
from agent_memory.integrations.hosts.table import HOSTS
from agent_memory.storage.sqlite.connection import opening

Doctor = Callable[..., dict[str, Any]]


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (home := tmp_path / "home").mkdir()
    (shop := tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_MEMORY_HOOK_SECONDS", "60")  # other tests run beside this one
    monkeypatch.chdir(shop.parent)
    return shop.parent


@pytest.fixture
def doctor(root: Path, capsys: pytest.CaptureFixture[str]) -> Doctor:
    def examine(*, code: int, named: bool = True) -> dict[str, Any]:
        capsys.readouterr()
        options = ["--root", str(root)] if named else []
        assert run([*options, "doctor", "--json"]) == code
        data: dict[str, Any] = json.loads(capsys.readouterr().out)["data"]
        assert all(each["problem"] and each["advice"] for each in data["problems"])
        return data

    return examine


def install(root: Path, *words: str) -> None:
    assert run(["--root", str(root), "install", *words]) == 0


def problems(report: dict[str, Any]) -> str:
    return "\n".join(each["problem"] for each in report["problems"])


@pytest.mark.usefixtures("shop")
def test_where_nothing_is_installed_it_says_so(doctor: Doctor) -> None:
    report = doctor(code=6)
    assert report["hosts"] == []
    assert problems(report) == "agent-memory is not installed in any host"


@pytest.mark.parametrize("host", [host for host in EVENTS if host != "codex"])
def test_what_works_is_all_well_and_nothing_is_stored_by_looking(
    root: Path, shop: Path, doctor: Doctor, host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install(root, host)
    answer(root, host, event(host, "prompt", shop, "Remember that staging lives in Oslo."))
    answer(root, host, event(host, "start", shop, session_id="b", conversation_id="b"))
    files = {path: path.read_bytes() for path in root.rglob("hooks/*")}
    report = doctor(code=0)
    (seen,) = report["hosts"]
    assert (seen["host"], seen["scope"], seen["server"]) == (host, "user", True)
    assert {hook["event"]: hook["ok"] for hook in seen["hooks"]} == {
        name.name: True for name in HOSTS[host].events
    }
    assert report["last"]["captured"] is not None
    assert report["last"]["recalled"] is not None
    assert report["last"]["failed"] is None
    assert report["memory"]["memory_count"] == 1
    assert report["memory"]["sound"] is True
    assert {path: path.read_bytes() for path in root.rglob("hooks/*")} == files
    with AgentMemory(project_of(str(shop)).agent_id, root=root) as memory:
        assert memory.count() == 1
    assert run(["--root", str(root), "doctor"]) == 0
    assert capsys.readouterr().out.endswith("all is well\n")


def test_hooks_that_codex_does_not_run_are_told(root: Path, shop: Path, doctor: Doctor) -> None:
    install(root, "codex")
    answer(root, "codex", event("codex", "start", shop))
    assert "they are not trusted" in problems(doctor(code=6))
    home = shop.parent / "home" / ".codex"
    with (home / "config.toml").open("a") as config:
        for name in ("session_start", "user_prompt_submit", "post_tool_use", "stop"):
            key = f"{home / 'hooks.json'}:{name}:0:0"
            config.write(f'[hooks.state."{key}"]\ntrusted_hash = "sha256:1"\n')
    assert doctor(code=0)["problems"] == []


def test_what_never_ran_is_told(
    root: Path, shop: Path, doctor: Doctor, capsys: pytest.CaptureFixture[str]
) -> None:
    install(root, "gemini")
    assert "no hook has ever run in this project" in problems(doctor(code=6))
    run(["--root", str(root), "doctor"])
    text = capsys.readouterr().out
    assert "\nno hook has run yet\n" in text
    assert "last ran" not in text
    answer(root, "gemini", event("gemini", "start", shop))
    assert doctor(code=0)["last"]["ran"] is not None
    run(["--root", str(root), "doctor"])
    text = capsys.readouterr().out
    assert "\nlast recalled: never\n" in text or "\nlast captured: never\n" in text
    assert "no hook has run yet" not in text
    answer(root, "gemini", b"garbage", name="BeforeAgent", cwd=shop)
    report = doctor(code=6)
    assert "failed: UnreadableInput" in problems(report)
    assert report["last"]["failed"]["event"] == "BeforeAgent"


def test_a_failure_counts_until_the_next_hook_even_within_a_second(
    root: Path, shop: Path, doctor: Doctor
) -> None:
    install(root, "gemini")
    journal = Journal(agent_folder(project_of(str(shop)).agent_id, str(root)))
    second = {"at": "2026-01-02T03:04:05Z", "host": "gemini", "event": "BeforeAgent"}
    journal.append({**second, "outcome": "answered"})
    journal.append({**second, "outcome": "failed", "why": "the disk is full"})
    assert "failed: the disk is full" in problems(doctor(code=6))
    journal.append({**second, "outcome": "answered"})
    report = doctor(code=0)
    assert report["last"]["failed"]["why"] == "the disk is full"


def test_what_is_missing_or_gone_is_told(root: Path, shop: Path, doctor: Doctor) -> None:
    install(root, "cursor")
    answer(root, "cursor", event("cursor", "start", shop))
    hooks = shop.parent / "home" / ".cursor" / "hooks.json"
    data = json.loads(hooks.read_text())
    del data["hooks"]["afterAgentResponse"]
    data["hooks"]["sessionStart"][0]["command"] = "/gone/agent-memory hook cursor sessionStart"
    hooks.write_text(json.dumps(data))
    (shop.parent / "home" / ".cursor" / "mcp.json").unlink()
    report = doctor(code=6)
    assert "Cursor lacks the MCP server, afterAgentResponse" in problems(report)
    assert "Cursor, sessionStart: it ended with 127" in problems(report)
    assert [hook["ok"] for hook in report["hosts"][0]["hooks"]] == [False, True, True]
    install(root, "cursor")
    assert doctor(code=0)["problems"] == []


def test_a_hook_of_another_program_in_our_place_is_told(
    root: Path, shop: Path, doctor: Doctor
) -> None:
    install(root, "gemini")
    answer(root, "gemini", event("gemini", "start", shop))
    path = shop.parent / "home" / ".gemini" / "settings.json"
    command = f"{PROGRAM} hook gemini AfterAgent"
    assert command in path.read_text()
    path.write_text(path.read_text().replace(command, f"echo hello; {command}"))
    assert "its output is not JSON" in problems(doctor(code=6))


def test_settings_that_cannot_be_read_and_two_installations_are_told(
    root: Path, shop: Path, doctor: Doctor
) -> None:
    install(root, "claude-code")
    install(root, "claude-code", "--project")
    answer(root, "claude-code", event("claude-code", "start", shop))
    assert "Claude Code runs agent-memory more than once: user and project" in problems(
        doctor(code=6)
    )
    (shop.parent / "home" / ".claude" / "settings.json").write_text("{")
    assert "settings.json: is not JSON" in problems(doctor(code=6))


def test_the_agent_that_the_hooks_name_is_looked_at(root: Path, shop: Path, doctor: Doctor) -> None:
    install(root, "gemini", "--agent", "bob")
    done = answer(root, "gemini", event("gemini", "start", shop), "--agent", "bob")
    assert done.code == 0
    report = doctor(code=0, named=False)
    assert report["agent_id"] == "bob"
    assert report["path"] == str(root / "bob" / "memories.db")


def test_an_embedder_that_does_not_answer_and_what_waits_for_it_are_told(
    root: Path,
    shop: Path,
    doctor: Doctor,
    server: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.behaviour.dimensions = 1_536
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    install(root, "gemini")
    with AgentMemory(project_of(str(shop)).agent_id, root=root, embedder="openai") as memory:
        memory.store("Staging lives in Oslo")
        memory.migrate()
    answer(root, "gemini", event("gemini", "start", shop))
    report = doctor(code=0)
    assert report["memory"]["embedder"] == "text-embedding-3-small"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with AgentMemory(project_of(str(shop)).agent_id, root=root) as memory:
        memory.store("Production lives in Bergen")
    report = doctor(code=6)
    assert "searches are degraded: " in problems(report)
    assert "1 memory is waiting to be embedded" in problems(report)
    assert report["memory"]["pending_embeddings"] == 1


def test_a_damaged_memory_is_told(root: Path, shop: Path, doctor: Doctor) -> None:
    install(root, "gemini")
    answer(root, "gemini", event("gemini", "prompt", shop, "Remember that staging is in Oslo."))
    (path,) = root.rglob("memories.db")
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 20_000)
    report = doctor(code=6)
    assert report["memory"]["sound"] is False
    assert "the memory cannot be opened" in problems(report)


def test_a_hook_that_hangs_is_ended_with_all_that_it_started(
    root: Path, shop: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_module, "_PATIENCE_SECONDS", 1.0)
    install(root, "cursor")
    answer(root, "cursor", event("cursor", "start", shop))
    path = shop.parent / "home" / ".cursor" / "hooks.json"
    data = json.loads(path.read_text())
    mark = shop.parent / "not_ended"
    command = f"(sleep 3; touch {mark}); {PROGRAM} hook cursor sessionStart"
    data["hooks"] = {"sessionStart": [{"command": command}]}
    path.write_text(json.dumps(data))
    started = time.monotonic()
    report = doctor(code=6)
    assert "Cursor, sessionStart: it did not end within 1 seconds" in problems(report)
    time.sleep(max(0.0, started + 4 - time.monotonic()))
    assert not mark.exists()


def test_that_a_server_has_to_start_is_not_counted(root: Path, shop: Path, doctor: Doctor) -> None:
    """It runs already when a host asks it."""
    install(root, "claude-code")
    path = shop.parent / "home" / ".claude.json"
    data = json.loads(path.read_text())
    entry = data["mcpServers"]["agent-memory"]
    slow = shop.parent / "agent-memory"
    slow.write_text(f'#!/bin/sh\nsleep 2\nexec {entry["command"]} "$@"\n')
    slow.chmod(0o755)
    entry["command"] = str(slow)
    path.write_text(json.dumps(data))
    (seen,) = doctor(code=6)["hosts"]
    served = [hook for hook in seen["hooks"] if hook["command"].startswith(str(slow))]
    assert [hook["ok"] for hook in served] == [True] * 3
    assert all(hook["milliseconds"] < 2_000 for hook in served)


def test_a_memory_that_is_held_is_not_called_damaged_nor_its_hooks_wrong(
    root: Path, shop: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setenv("AGENT_MEMORY_HOOK_SECONDS", "2")
    install(root, "gemini")
    answer(root, "gemini", event("gemini", "prompt", shop, "Remember that staging is in Oslo."))
    wait_until_stored(root)
    (path,) = root.rglob("memories.db")
    with locked(path):
        report = doctor(code=6)
    assert report["memory"]["sound"] is None
    found = {problem["problem"]: problem["advice"] for problem in report["problems"]}
    assert any("is held by another process" in problem for problem in found)
    assert "install" not in " ".join(found.values())


def what_waits(root: Path, shop: Path, lines: str) -> Path:
    """Write down what hooks heard, as they do, for a process to store."""
    heard = Path(agent_folder(project_of(str(shop)).agent_id, str(root))) / "hooks" / "heard.jsonl"
    heard.parent.mkdir(parents=True)
    heard.write_text(lines)
    return heard


def test_what_is_no_line_of_ours_among_what_waits_is_passed_over(
    root: Path, shop: Path, doctor: Doctor
) -> None:
    what_waits(root, shop, '{"texts": 3}\nno JSON\n{"texts": ["NOTE: a", "NOTE: b"], "at": 5}\n')
    report = doctor(code=6)
    assert report["waiting"] == 2
    assert any("are waiting to be stored" in it["problem"] for it in report["problems"])


def test_a_memory_on_a_read_only_drive_is_looked_through(
    root: Path, shop: Path, doctor: Doctor
) -> None:
    with AgentMemory(project_of(str(shop)).agent_id, root=root) as memory:
        memory.store("Deploys need two approvals")
    with read_only_drive(root):
        report = doctor(code=6)
    found = report["memory"]
    assert (found["memory_count"], found["sound"]) == (1, True)
    assert "the memory can be read but not written" in problems(report)


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may read everything")
def test_what_waits_and_may_not_be_read_is_not_to_be_moved_away(
    root: Path, shop: Path, doctor: Doctor
) -> None:
    heard = what_waits(root, shop, '{"texts": ["NOTE: a"], "at": 5}\n')
    heard.chmod(0)
    found = {problem["problem"]: problem["advice"] for problem in doctor(code=6)["problems"]}
    (advice,) = (advice for told, advice in found.items() if "nothing can be captured" in told)
    assert "chmod 600" in advice
    assert "away" not in advice


@pytest.mark.usefixtures("shop")
def test_where_no_folder_can_be_made_hooks_can_keep_nothing(root: Path, doctor: Doctor) -> None:
    root.touch()
    told = problems(doctor(code=6))
    assert f"hooks cannot store anything: {root} cannot be written" in told
    assert "nothing can be captured" not in told
