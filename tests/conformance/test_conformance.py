"""The kit that tries the promises: green on this machine, red where a promise is not kept."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_memory import conformance
from agent_memory.conformance import (
    PROMISES,
    PromiseBroken,
    attempt,
    main,
    share_a_file,
    survive_power_cuts,
)
from agent_memory.conformance import survive_kills as survive
from agent_memory.conformance.power_cut import Disk

PROMISES_BY_NAME = {promise.name: promise for promise in PROMISES}
EAGER = """
import sys, threading, time
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory:
    texts = [f"{sys.argv[2]}: note {number}" for number in range(int(sys.argv[3]))]
    for start in range(0, len(texts), 50):
        print("\\n".join(texts[start : start + 50]), flush=True)  # before they are stored
        for text in texts[start : start + 50]:
            memory.store(text)
"""
FORGETFUL = EAGER.replace("memory.store(text)", "'note 7' in text or memory.store(text)")
FORGETS_TO_SYNC = """
from agent_memory.storage.sqlite.connection.journal_mode import Journal
Journal.synchronous = lambda journal, *, durable: "OFF"
from agent_memory.conformance.power_cut import main
main()
"""


def test_all_promises_are_held_here_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path / "root"))
    run = CliRunner().invoke(main, ["--quick", "--json", "--dir", str(tmp_path)])
    assert run.exit_code == 0, run.output
    report = json.loads(run.stdout)
    assert {each["name"]: each["state"] for each in report["promises"]} == dict.fromkeys(
        PROMISES_BY_NAME, "held"
    )
    assert report["machine"].keys() >= {"agent-memory", "SQLite", "file system"}
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_acknowledges_before_it_stores_is_caught(tmp_path: Path) -> None:
    with pytest.raises(PromiseBroken, match=r"[1-9]\d* of [\d,]+ are lost, round 0: note"):
        survive(tmp_path, 0.1, writer=EAGER)


def test_a_writer_that_loses_one_memory_is_caught(tmp_path: Path) -> None:
    with pytest.raises(PromiseBroken, match="4 of 80 are lost, writer 0: note 7 first"):
        share_a_file(tmp_path, 0.1, writer=FORGETFUL)


def test_a_power_cut_is_seen_where_a_store_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    """The library's own switch: what it acknowledges so may be lost, and the kit turns red."""
    words = ["--quick", "--only", "power-cut", "--dir", str(tmp_path)]
    green = CliRunner().invoke(main, words)
    assert green.exit_code == 0, green.output
    red = CliRunner().invoke(main, [*words, "--synchronous", "NORMAL"])
    assert red.exit_code == 1
    assert "synchronous: NORMAL" in red.stdout
    assert "broken     a power cut loses nothing that was acknowledged" in red.stdout
    assert "are lost, power cut: note 0" in red.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_forgets_to_sync_is_caught(tmp_path: Path) -> None:
    with pytest.raises(PromiseBroken, match=r"after cut \d+: "):
        survive_power_cuts(tmp_path, 0.1, writer=FORGETS_TO_SYNC)


def test_a_cut_keeps_what_was_synced_and_any_part_of_the_rest(tmp_path: Path) -> None:
    (folder := tmp_path / "disk").mkdir()
    (folder / "old").write_bytes(b"from before")
    disk, dice = Disk(folder), random.Random(5)
    assert disk.place(str(folder / "memories.db-shm")) is None
    assert disk.place(str(tmp_path / "elsewhere")) is None
    disk.change("log", 0, b"a" * 1_024)
    disk.sync("log")
    disk.change("log", 1_024, b"b" * 1_024)
    disk.change("old", -1)
    seen = set()
    for number in range(200):
        disk.cut(target := tmp_path / str(number), dice)
        log, old = target / "log", target / "old"
        assert log.read_bytes()[:1_024] == b"a" * 1_024
        assert set(log.read_bytes()[1_024:]) <= {ord("b")}
        assert not old.exists() or old.read_bytes() == b"from before"
        seen.add((log.stat().st_size, old.exists()))
    assert seen == {(size, there) for size in (1_024, 1_536, 2_048) for there in (True, False)}


def test_what_breaks_is_in_the_report_and_in_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance, "_LEAST_RECALL", 1.1)
    run = CliRunner().invoke(main, ["--only", "recall", "--dir", str(tmp_path)])
    assert run.exit_code == 1
    assert "broken     questions find their answers by keyword" in run.stdout
    assert "20 of 20 questions were answered" in run.stdout


def test_a_promise_that_fails_otherwise_is_broken_too(tmp_path: Path) -> None:
    def fail(folder: Path, share: float) -> str:
        raise OSError(f"{folder.name} went away after {share}")

    outcome = attempt(conformance.Promise("odd", "nothing goes wrong", fail), tmp_path, 1.0)
    assert (outcome.state, outcome.detail) == ("broken", "OSError: odd went away after 1.0")
