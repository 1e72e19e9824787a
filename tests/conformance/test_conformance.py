"""The kit that tries the promises: green on this machine, red where a promise is not kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent_memory import conformance
from agent_memory.conformance import PROMISES, PromiseBroken, attempt, main, share_a_file
from agent_memory.conformance import survive_kills as survive

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
