"""What is read without options is answered without the command line's imports, and alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from reads import unmarked

from agent_memory import AgentMemory
from agent_memory.cli import plain_reads, run
from agent_memory.cli.options import Session
from bench.workload import NOW, Workload

QUERIES = (
    ["what did we say about the deployment?"],
    ["kafka", "-n", "12"],
    ["nosuchword"],
    ["?!"],
    ["the", "of"],
    ["Ärger", "東京"],
    ["kafka", "--tag", "ops"],
    ["the", "deployment", "-t", "Ärger", "--tag=ärger", "-n", "3"],
    ["kafka", "-c", "decision", "--category=note"],
    ["kafka", "-c", "DECISION"],
    ["kafka", "--user", "ann"],
    ["kafka", "--user", "nobody", "--run", "r", "--session", "s"],
)


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path))
    items = list(Workload().memories(150))
    for item in items[30:90:2]:
        item |= {"user_id": "ann", "tags": ["ops"]}
    with AgentMemory("bob", root=tmp_path, clock=lambda: NOW) as memory:
        memory.store_many([*items, {**items[0], "content": items[0]["content"] + "!"}])
        memory.store("東京で寿司を食べた", tags=["Ärger"])
    return tmp_path


def accesses(root: Path) -> dict[str, int]:
    with AgentMemory("bob", root=root) as memory:
        return {entry.id: entry.access_count for entry in memory.list_recent(200)}


def test_each_option_is_its_filter_and_repeated_ones_are_together() -> None:
    words = ["-t", "a", "--tag=b", "-c", "x", "--category", "y", "--user", "u", "--user", "v"]
    question = plain_reads.parse(
        ["--agent", "bob", "search", "kafka", *words, "--run", "r", "--session", "s"]
    )
    assert question is not None
    assert question.filters == {
        "tags": ["a", "b"], "category": ["x", "y"], "user_id": "v", "run_id": "r",
        "session_id": "s",
    }  # fmt: skip


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("words", QUERIES, ids=" ".join)
def test_it_prints_what_the_command_line_prints(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(["search", "--no-count", *words]) == 0
    expected = capsys.readouterr()
    assert plain_reads.answer(["search", *words])
    assert capsys.readouterr() == expected


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "words",
    [["recent"], ["recent", "-n", "3"], ["recent", "--limit=200"], ["context"],
     ["recent", "-t", "ops"], ["recent", "--user", "ann", "--category", "note"],
     ["context", "--budget", "300"], ["context", "-b", "1"]],
    ids=" ".join,
)  # fmt: skip
def test_lists_are_what_the_command_line_prints(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(words) == 0
    expected = capsys.readouterr()
    assert plain_reads.answer(words)
    assert [unmarked(text) for text in capsys.readouterr()] == [unmarked(text) for text in expected]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "words",
    [
        ["search", "the session", "--no-count", "--tag", "ops"],
        ["search", "kafka", "--no-count", "-t", "ops", "-t", "Ärger", "--any-tag"],
        ["search", "kafka", "--no-count", "--user", "ann", "-c", "note", "-c", "decision"],
        ["search", "kafka", "--no-count", "--session", "nobody"],
        ["recent", "-t", "ops"],
        ["recent", "--user", "ann", "--category", "note"],
    ],
    ids=" ".join,
)
def test_json_is_what_the_models_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    answers, models_were_asked = [], []
    opened = Session.open

    def seen(session: Session, **options: Any) -> Any:
        models_were_asked.append(session)
        return opened(session, **options)

    monkeypatch.setattr(Session, "open", seen)
    for is_plain in (True, False):
        if not is_plain:
            monkeypatch.setattr(Session, "ask", lambda *_, **__: None)
        assert run([*words, "--json"]) == 0
        answer = json.loads(capsys.readouterr().out)
        answer.get("metadata", {}).pop("timestamp", None)
        answers.append(untimed(answer))
        assert bool(models_were_asked) is not is_plain
    assert answers[0] == answers[1]


def untimed(answer: Any) -> Any:
    """Return an answer without what differs each time: when it was given, and how long it took."""
    if isinstance(answer, list):
        return [untimed(part) for part in answer]
    if not isinstance(answer, dict):
        return answer
    return {
        name: untimed(part)
        for name, part in answer.items()
        if name != "query_time" and not name.endswith("_ms")
    }


def test_what_a_context_showed_is_an_echo_when_it_comes_back(filled: Path) -> None:
    with AgentMemory("bob", root=filled) as memory:
        shown = memory.scratchpad().memories[0]
    assert plain_reads.answer(["context"])
    with AgentMemory("bob", root=filled) as memory:
        assert memory.store(shown.content) == shown.id


def test_an_empty_memory_has_nothing_recent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    monkeypatch.setenv("AGENT_MEMORY_ROOT", str(tmp_path))
    AgentMemory("bob", root=tmp_path).close()
    for words in (["recent"], ["context"], ["recent", "-c", "note"]):
        assert run(words) == 0
        expected = capsys.readouterr()
        assert plain_reads.answer(words)
        assert capsys.readouterr() == expected


def test_hits_that_pass_the_gate_are_counted(filled: Path) -> None:
    before = accesses(filled)
    assert plain_reads.answer(["search", "kafka"])
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
        ["recent", "kafka"],
        ["recent", "--json"],
        ["recent", "-n", "0"],
        ["recent", "--kind", "core"],
        ["recent", "--tag", "x" * 51],
        ["--tag", "ops", "recent"],
        ["context", "--tag", "ops"],
        ["search", "kafka", "--tag", ""],
        ["search", "kafka", "--tag"],
        ["search", "kafka", "--any-tag", "-t", "ops"],
        ["search", "kafka", "-tops"],
        ["context", "--budget", "0"],
        ["context", "--limit", "3"],
        ["--agent", "recent", "context", "--json"],
        ["--agent", "nobody", "recent"],
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
    assert not plain_reads.answer(words)
    assert capsys.readouterr().out == ""


def test_settings_of_an_agent_are_left_to_the_command_line(filled: Path) -> None:
    with AgentMemory("bob", root=filled) as memory:
        memory.configure(event_log="brief")
    assert not plain_reads.answer(["search", "kafka"])


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["search", "kafka"], "kafka"),
        (["search", "kafka", "--tag", "ops", "-c", "note", "-c", "decision"], "ops"),
        (["search", "the session", "--user", "ann"], "ops"),
        (["recent", "-n", "200"], "kafka"),
        (["recent", "-n", "200", "--user", "ann"], "ops"),
        (["context"], "kafka"),
    ],
)
def test_nothing_heavy_is_imported_for_it(words: list[str], shown: str) -> None:
    assert shown in answered(words).lower()


def test_nor_where_a_search_promotes_what_it_finds(filled: Path) -> None:
    with AgentMemory("bob", root=filled) as memory:
        memory.configure(scratchpad_max_size=10)
    for _ in range(4):
        answered(["search", "kafka"])
    with AgentMemory("bob", root=filled) as memory:
        assert memory.info().stats.scratchpad_promotions > 0
        assert len(memory.scratchpad().memories) == 2 * 10  # of ann's, and of nobody's


def answered(words: list[str]) -> str:
    """Return what a process prints that imports nothing heavy."""
    program = (
        f"import sys; sys.argv[1:] = {words}\n"
        "from agent_memory.__main__ import main; main()\n"
        "heavy = {'pydantic', 'click', 'dataclasses', 'yaml'} & sys.modules.keys()\n"
        "sys.exit(', '.join(heavy) or None)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout
