"""Everyday commands do without the models where they can: they print and leave the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from reads import unmarked

from agent_memory import AgentMemory
from agent_memory.cli import run
from agent_memory.cli.options import Session
from bench.workload import NOW, Workload

MOMENT = re.compile(
    r'("(?:timestamp|query_time|last_accessed|\w+_time_ms|processing_time_ms)": )[^,\n]+'
)


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path))
    with AgentMemory("bob", root=tmp_path, clock=lambda: NOW, session_id="s") as memory:
        memory.store_many(list(Workload().memories(150)))
        memory.store("the lighthouse is red", id="mem-1", metadata={"height": 40, "deep": [{}]})
        task = {"status": "blocked", "blockers": ["rain"]}
        memory.store("paint it", id="mem-2", timestamp="2020-01-01", task_metadata=task)
    return tmp_path


def both(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[tuple[int, str, str]]:
    """Run a command without the models, then with them, and return what each run came to."""
    ends = []
    for is_plain in (True, False):
        with monkeypatch.context() as patch:
            if not is_plain:
                patch.setattr(Session, "ask", lambda *_, **__: None)
            code = run(words)
        printed = capsys.readouterr()
        ends.append((code, MOMENT.sub(r"\1…", printed.out), MOMENT.sub(r"\1…", printed.err)))
    return ends


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "words",
    [
        ["search", "kafka", "--json", "--no-count"],
        ["search", "kafka", "--json", "--no-count", "--no-weak", "-n", "2"],
        ["search", "lighthouse", "--nl", "--no-count"],
        ["search", "kafka", "--csv", "--no-count"],
        ["search", "zebra", "--json"],
        ["search", "", "--json"],
        ["recent", "--json", "-n", "5"],
        ["recent", "--csv"],
        ["recent", "--table", "--fmt", "grid"],
        ["recent", "-n", "99999999999999999999"],
        ["show", "mem-1"],
        ["show", "mem-2", "--json"],
        ["show", "mem-3"],
        ["show", "no id"],
        ["context", "--json", "--budget", "300"],
        ["context", "--budget", "0"],
    ],
    ids=" ".join,
)
def test_what_is_read_is_the_same(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, usual = both(words, monkeypatch, capsys)
    assert [unmarked(text) for text in map(str, plain)] == [
        unmarked(text) for text in map(str, usual)
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["search", "kafka", "--json"],
        ["recent", "--json"],
        ["show", "mem-1"],
        ["context", "--json"],
        ["store", "--help"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("filled")
def test_no_model_is_imported_for_it(words: list[str]) -> None:
    program = (
        f"import sys; sys.argv[1:] = {words}\n"
        "import atexit\n"
        "atexit.register(lambda: print(*{'pydantic', 'yaml'} & sys.modules.keys()))\n"
        "from agent_memory.__main__ import main; main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.endswith("\n\n")
    if "--json" in words:
        assert json.loads(ran.stdout)["success"]
