"""Everyday commands do without the models where they can: they print and leave the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
                patch.setattr(Session, "_is_plain", lambda _: False)
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


def unmarked(text: str) -> str:
    """Return a text without the marks between which memories stand: each has its own."""
    return re.sub(r"(memories)-[0-9a-f]{8}", r"\1", text)


STORED = [
    [],
    ["--tag", "Red", "--tag", "red", "--category", "decision", "--importance", "high"],
    ["--user", "ann", "--run", "run-1", "--session", "evening", "--kind", "core"],
    ["--timestamp", "2026-01-02T03:04:05+02:00", "--metadata", '{"a": [1, null]}', "--json"],
    ["--metadata", "{}"],
]


@pytest.mark.parametrize("options", STORED, ids=" ".join)
def test_what_is_stored_is_the_same(
    filled: Path,
    options: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept: list[Any] = []
    monkeypatch.setenv("AGENT_MEMORY_SESSION", "morning")
    for is_plain in (True, False):
        root = filled / str(is_plain)
        shutil.copytree(filled / "bob", root / "bob")
        monkeypatch.setenv("AGENT_MEMORY_ROOT", str(root))
        if not is_plain:
            monkeypatch.setattr(Session, "_is_plain", lambda _: False)
        assert run(["store", "  umbrellas dry slowly ", "--id", "mem-3", *options]) == 0
        kept.append([MOMENT.sub(r"\1…", text) for text in capsys.readouterr()])
        with AgentMemory("bob", root=root) as memory:
            stored = memory.get("mem-3")
            assert stored is not None
            (change,) = memory.history("mem-3")
            found = memory.search("umbrellas", count_accesses=False)
            told = {**stored.model_dump(), **(change.new_values or {})}
        new = {"updated_at"} if "--timestamp" in options else {"updated_at", "timestamp"}
        kept[-1] += [{name: told[name] for name in told.keys() - new}]
        kept[-1] += [change.session_id, [hit.memory.id for hit in found], found[0].match_type]
    assert kept[0] == kept[1]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "words",
    [
        [" "],
        ["x" * 10_001],
        ["half \ud800"],
        ["new", "--category", "nosuch"],
        ["new", "--user", "a\nb"],
        ["new", "--id", "no id"],
        ["another text", "--id", "mem-1"],
        ["the lighthouse is red", "--on-duplicate", "refuse"],
        ["the lighthouse is red", "--on-duplicate", "refuse", "--json"],
        ["new", "--tag", "t" * 51],
    ],
    ids=lambda words: ascii(" ".join(words))[:40],
)
def test_what_cannot_be_stored_is_refused_alike(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, usual = both(["store", *words], monkeypatch, capsys)
    assert plain[0] != 0
    assert plain == usual


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("options", [[], ["--json"], ["--on-duplicate", "merge"]], ids=" ".join)
def test_duplicates_are_told_alike(
    options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["store", "The lighthouse is red", "--tag", "paint", *options]
    (code, out, err), usual = both(words, monkeypatch, capsys)
    assert code == 0
    assert "mem-1" in out + err
    if "merge" in options:  # else each has an id of its own, and the second repeats the first
        assert (code, out, err) == usual


def test_what_a_context_showed_is_an_echo(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with AgentMemory("bob", root=filled) as memory:
        shown = memory.scratchpad().memories[0]
    assert run(["context"]) == 0
    capsys.readouterr()
    assert run(["store", shown.content]) == 0
    assert capsys.readouterr().out == f"{shown.id}\n"


def test_secrets_and_settings_are_left_to_the_models(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["store", "password: hunter2hunter2"]) == 0
    assert "secret" in capsys.readouterr().err
    with AgentMemory("bob", root=filled) as memory:
        memory.configure(on_duplicate="refuse")
    assert run(["store", "the lighthouse is red"]) == 7


@pytest.mark.parametrize(
    "words",
    [
        ["search", "kafka", "--json"],
        ["recent", "--json"],
        ["show", "mem-1"],
        ["context", "--json"],
        ["store", "umbrellas dry slowly in this hall", "--tag", "hall"],
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
