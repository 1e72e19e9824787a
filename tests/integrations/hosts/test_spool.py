"""What hooks heard, until it is stored: nothing is lost, nothing comes twice, nothing is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from host_inputs import answer, event, locked, wait_until_stored

from agent_memory import AgentMemory
from agent_memory.cli import run
from agent_memory.integrations.hosts import hook, host_memory, intake, spool
from agent_memory.integrations.hosts.hook import occasion_of, parse
from agent_memory.integrations.hosts.intake import take_in
from agent_memory.integrations.hosts.journal import Journal
from agent_memory.integrations.hosts.spool import Spool, note
from agent_memory.models.times import format_time, now_utc
from agent_memory.storage.sqlite.connection import opening

TOKEN = "ghp_" + "a1B2" * 9
FACT = "Remember that staging lives in Oslo."


@pytest.fixture
def folder(root: Path) -> str:
    return str(root / "bob")


def heard(root: Path, text: str, kind: str = "prompt") -> None:
    """Write down what an event says, as its hook does, and let nobody store it."""
    data = event("codex", kind, root, text)
    call = parse(["codex", data["hook_event_name"], "--agent", "bob", "--root", str(root)])
    assert not isinstance(call, str)
    note(occasion_of(call, json.dumps(data).encode()))


def ask(root: Path, text: str, kind: str = "prompt") -> None:
    answer(root, "codex", event("codex", kind, root.parent, text), "--agent", "bob")


def contents(root: Path) -> list[str]:
    with AgentMemory("bob", root=root) as memory:
        return sorted(entry.content for entry in memory.list_recent(500))


def test_what_is_said_while_the_file_is_locked_is_stored_later_and_once(
    root: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("The kettle is blue")
    for number in range(2):
        heard(root, f"IMPORTANT: port {number} is closed from now on.", "tool")
    monkeypatch.setattr(opening, "BUSY_TIMEOUT_SECONDS", 0.1)
    with locked(root / "bob" / "memories.db"):
        assert not take_in(folder, "bob", str(root))
    assert len(Spool(folder).entries()) == 2
    (entry,) = Journal(folder).entries()
    assert entry["outcome"] == "failed"
    assert "is held by another process" in entry["why"]
    ask(root, "12 passed", "tool")
    assert len(Spool(folder).entries()) == 2
    ask(root, "which kettle?")
    assert contents(root) == [
        "The kettle is blue",
        "port 0 is closed from now on.",
        "port 1 is closed from now on.",
    ]
    assert Path(Spool(folder).path).read_bytes() == b""


@pytest.mark.parametrize("kind", ["prompt", "summary"])
def test_what_waited_has_the_time_at_which_it_was_said(
    root: Path, folder: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was stored meanwhile is newer."""
    then = "2026-03-05T06:07:08.123456Z"
    monkeypatch.setattr(spool, "moment", lambda: then)
    said = event("claude-code", kind, root, FACT)
    call = parse(["claude-code", said["hook_event_name"], "--agent", "bob", "--root", str(root)])
    assert not isinstance(call, str)
    note(occasion_of(call, json.dumps(said).encode()))
    with AgentMemory("bob", root=root) as memory:
        memory.store("The kettle is blue")
        assert take_in(folder, "bob", str(root))
        newest, waited = memory.list_recent(5)
        assert newest.content == "The kettle is blue"
        assert format_time(waited.timestamp) == then
        assert memory.check().problems == []


@pytest.mark.parametrize("at", [None, "soon", "9999-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_costs_no_sentence(root: Path, folder: str, at: str | None) -> None:
    heard(root, FACT)
    (entry,) = Spool(folder).entries()
    Path(Spool(folder).path).write_text(json.dumps({**entry, "at": at}) + "\n")
    assert take_in(folder, "bob", str(root))
    with AgentMemory("bob", root=root) as memory:
        (kept,) = memory.list_recent(5)
        assert abs(kept.timestamp - now_utc()) < timedelta(minutes=5)


def test_hooks_at_once_store_each_sentence_once(root: Path, folder: str) -> None:
    said = [f"IMPORTANT: server {number} is in hall {number}." for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda text: ask(root, text, "tool"), said * 2))
    wait_until_stored(root)
    assert len(contents(root)) == 6
    entries = list(Journal(folder).entries())
    assert sum(entry.get("captured", 0) for entry in entries) == 6
    assert sum(entry.get("known", 0) for entry in entries) == 6


def test_killed_while_it_stores_nothing_is_lost_and_nothing_comes_twice(
    root: Path, folder: str
) -> None:
    for number in range(9):
        heard(root, f"IMPORTANT: server {number} is in hall {number}.", "tool")
    code = f"""
import os, signal, sys
from {intake.__name__} import take_in
from {host_memory.__name__} import Keeper
def kept(keeper, entry, keep=Keeper.keep, left=[3]):
    done = keep(keeper, entry)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)  # it is stored, and not marked as taken
    return done
Keeper.keep = kept
take_in(*sys.argv[1:])
"""
    words = [sys.executable, "-c", code, folder, "bob", str(root)]
    for left in (7, 5):
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
        assert len(Spool(folder).entries()) == left
    assert take_in(folder, "bob", str(root))
    assert contents(root) == [f"server {number} is in hall {number}." for number in range(9)]


def test_half_a_character_costs_no_sentence(root: Path, folder: str) -> None:
    heard(root, "Remember that staging \ud83d is red.")
    assert take_in(folder, "bob", str(root))
    assert contents(root) == ["staging \ufffd is red."]


def test_nor_where_the_server_answers(root: Path) -> None:
    call = parse(["codex", "UserPromptSubmit", "--agent", "bob", "--root", str(root)])
    assert not isinstance(call, str)
    hook.answer(call, event("codex", "prompt", root, "Remember that staging \ud83d is red."))
    wait_until_stored(root)
    assert contents(root) == ["staging \ufffd is red."]


def test_no_secret_waits_on_the_disk(root: Path, folder: str) -> None:
    text = f"NOTE: the deployment key of the shop is {TOKEN} from now on."
    heard(root, text, "tool")
    waiting = Path(Spool(folder).path)
    assert TOKEN not in waiting.read_text()
    assert waiting.stat().st_mode & 0o777 == 0o600
    assert take_in(folder, "bob", str(root))
    with AgentMemory("bob", root=root) as memory:
        (entry,) = memory.list_recent(5)
        assert "[masked: GitHub token]" in entry.content
        assert not {"masked", "github", "token"}.intersection(entry.tags)
        memory.delete(entry.id)
        memory.configure(on_secret="refuse")
    heard(root, text.replace("shop", "store"), "tool")
    heard(root, FACT)
    assert take_in(folder, "bob", str(root))
    assert contents(root) == ["staging lives in Oslo."]
    assert [entry["refused"] for entry in Journal(folder).entries() if "refused" in entry] == [1]


def test_a_line_that_a_power_cut_tore_costs_no_other(root: Path, folder: str) -> None:
    heard(root, FACT)
    path = Path(Spool(folder).path)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:40])
    heard(root, "Remember that production lives in Bergen.")
    path.write_bytes(path.read_bytes() + b"\x00" * 30)
    assert take_in(folder, "bob", str(root))
    assert contents(root) == ["production lives in Bergen.", "staging lives in Oslo."]
    assert sum(entry.get("dropped", 0) for entry in Journal(folder).entries()) == 2
    assert path.read_bytes() == b""


def test_where_the_disk_ends_no_half_line_is_left(root: Path, folder: str) -> None:
    heard(root, FACT)
    before = Path(Spool(folder).path).read_bytes()
    data = event("codex", "tool", root, "IMPORTANT: the port is 8443. " + "More of it. " * 100)
    limit = len(before) + 500
    code = (
        "import resource, os, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'agent_memory', *sys.argv[1:]])"
    )
    words = [sys.executable, "-c", code, "hook", "codex", "PostToolUse"]
    words += ["--agent", "bob", "--root", str(root)]
    done = subprocess.run(words, input=json.dumps(data).encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"agent-memory: OSError: " in done.stderr
    assert Path(Spool(folder).path).read_bytes() == before


@pytest.mark.parametrize("name", ["heard.jsonl", "heard.jsonl.taking"])
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(
    root: Path, folder: str, name: str
) -> None:
    (root / "bob" / "hooks").mkdir(parents=True)
    os.mkfifo(root / "bob" / "hooks" / name)
    data = event("codex", "prompt", root.parent, FACT)
    words = [sys.executable, "-m", "agent_memory", "hook", "codex", "UserPromptSubmit"]
    words += ["--agent", "bob", "--root", str(root)]
    done = subprocess.run(words, input=json.dumps(data).encode(), capture_output=True, timeout=20)
    assert (done.returncode, done.stdout) == (0, b"")
    (entry,) = Journal(folder).entries()
    assert entry["outcome"] in ("failed", "noted")


def test_no_module_of_the_project_is_run(root: Path, tmp_path: Path) -> None:
    (shop := tmp_path / "shop").mkdir()
    for name in ("agent_memory", "json"):
        (shop / f"{name}.py").write_text("open('ran', 'w').close()")
    data = event("codex", "prompt", shop, FACT)
    answer(root, "codex", data, "--agent", "bob", cwd=shop)
    assert contents(root) == ["staging lives in Oslo."]
    assert not (shop / "ran").exists()


def test_the_command_line_stores_what_waits(
    root: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("The kettle is blue")
    heard(root, FACT)
    assert run(["--root", str(root), "--agent", "bob", "recent"]) == 0
    assert "staging lives in Oslo." in capsys.readouterr().out
    assert Spool(folder).entries() == []


def test_doctor_tells_what_waits(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard(root, FACT)
    monkeypatch.setenv("HOME", str(root.parent))
    assert run(["--root", str(root), "--agent", "bob", "doctor", "--json"]) == 6
    report: dict[str, Any] = json.loads(capsys.readouterr().out)["data"]
    assert report["waiting"] == 1
    (problem,) = [each for each in report["problems"] if "waiting to be stored" in each["problem"]]
    assert problem["problem"].startswith(
        "1 text captured by hooks is waiting to be stored, since 20"
    )
    assert "agent-memory --agent bob recent stores them" in problem["advice"]
    claim = Spool(str(root / "bob")).claim()  # somebody is storing them
    run(["--root", str(root), "--agent", "bob", "doctor", "--json"])
    assert "waiting to be stored" not in capsys.readouterr().out
    assert claim is not None
    os.close(claim)


def test_erasing_tells_that_it_waits_to_be_stored_again(root: Path, folder: str) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store("staging lives in Oslo, behind „the gate“.")
        heard(root, "Remember that staging lives in Oslo, behind „the gate“.")
        receipt = memory.erase(memory_id)
    (copy,) = [each for each in receipt.backups if each.path == Spool(folder).path]
    assert copy.found
    assert not copy.erased


def test_what_another_version_wrote_is_told_as_dropped(root: Path, folder: str) -> None:
    Spool(folder).append({"kind": "thought", "at": "2030-01-01T00:00:00Z"})
    heard(root, FACT)
    assert take_in(folder, "bob", str(root))
    assert contents(root) == ["staging lives in Oslo."]
    assert sum(entry.get("dropped", 0) for entry in Journal(folder).entries()) == 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (FACT, {"outcome": "kept", "captured": 1}),
        (f"Remember that {'long words here ' * 300}", {"outcome": "kept", "captured": 1}),
        (f"Remember that {'long words here ' * 900}", {"outcome": "failed", "dropped": 1}),
        ("Should we remember this?", {"outcome": "nothing"}),
    ],
    ids=["short", "long", "too long", "nothing"],
)
def test_what_became_of_each_text_is_in_the_log(
    root: Path, folder: str, text: str, outcome: dict[str, Any]
) -> None:
    ask(root, text)
    (entry,) = [each for each in Journal(folder).entries() if "noted" not in each]
    assert outcome.items() <= entry.items()
    assert ("10,000 characters" in entry.get("why", "")) == ("dropped" in outcome)
    assert ("no sentence" in entry.get("why", "")) == (outcome["outcome"] == "nothing")
    kept = contents(root)
    assert kept == [text.removeprefix("Remember that ").strip()] * outcome.get("captured", 0)


def test_only_one_process_is_at_it(
    root: Path, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard(root, FACT)
    claim = Spool(folder).claim()
    assert claim is not None
    assert not take_in(folder, "bob", str(root))
    monkeypatch.setattr(os, "posix_spawn", None)  # it would fail
    intake.start(folder, "bob", str(root))
    os.close(claim)
    assert take_in(folder, "bob", str(root))
    assert contents(root) == ["staging lives in Oslo."]
