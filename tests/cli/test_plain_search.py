"""A search without options is answered without the command line's imports, and alike."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.cli import plain_search, run
from bench.workload import NOW, Workload

QUERIES = (
    ["what did we say about the deployment?"],
    ["kafka", "-n", "12"],
    ["nosuchword"],
    ["?!"],
    ["the", "of"],
    ["Ärger", "東京"],
)


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path))
    items = list(Workload().memories(150))
    with AgentMemory("bob", root=tmp_path, clock=lambda: NOW) as memory:
        memory.store_many([*items, {**items[0], "content": items[0]["content"] + "!"}])
        memory.store("東京で寿司を食べた", tags=["Ärger"])
    return tmp_path


def accesses(root: Path) -> dict[str, int]:
    with AgentMemory("bob", root=root) as memory:
        return {entry.id: entry.access_count for entry in memory.list_recent(200)}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("words", QUERIES, ids=" ".join)
def test_it_prints_what_the_command_line_prints(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(["search", "--no-count", *words]) == 0
    expected = capsys.readouterr()
    assert plain_search.answer(["search", *words])
    assert capsys.readouterr() == expected


def test_hits_that_pass_the_gate_are_counted(filled: Path) -> None:
    before = accesses(filled)
    assert plain_search.answer(["search", "kafka"])
    with AgentMemory("bob", root=filled) as memory:
        hits = memory.search("kafka", count_accesses=False)
    passed = {hit.memory.id for hit in hits if hit.passed_gate}
    after = accesses(filled)
    counted = {memory_id for memory_id, count in after.items() if count > before[memory_id]}
    assert counted
    assert counted <= passed | {hit.memory.id for hit in hits}


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "words",
    [
        ["search", "kafka", "--json"],
        ["search", "kafka", "--no-weak"],
        ["search", "kafka", "-n", "0"],
        ["search", "kafka", "-n", "101"],
        ["search", "kafka", "-n"],
        ["search", "kafka", "--root="],
        ["search", "--", "kafka"],
        ["search"],
        ["search", ""],
        ["search", "a\nb"],
        ["--limit", "3", "search", "kafka"],
        ["store", "search"],
        ["--agent", "nobody", "search", "kafka"],
        ["--agent", "not an id", "search", "kafka"],
    ],
    ids=" ".join,
)
def test_everything_else_is_left_to_the_command_line(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert not plain_search.answer(words)
    assert capsys.readouterr().out == ""


def test_settings_of_an_agent_are_left_to_the_command_line(filled: Path) -> None:
    with AgentMemory("bob", root=filled) as memory:
        memory.configure(event_log="brief")
    assert not plain_search.answer(["search", "kafka"])


@pytest.mark.usefixtures("filled")
def test_nothing_heavy_is_imported_for_it() -> None:
    program = (
        "import sys; sys.argv[1:] = ['search', 'kafka']\n"
        "from agent_memory.__main__ import main; main()\n"
        "heavy = {'pydantic', 'click', 'dataclasses', 'yaml'} & sys.modules.keys()\n"
        "sys.exit(', '.join(heavy) or None)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "kafka" in ran.stdout
