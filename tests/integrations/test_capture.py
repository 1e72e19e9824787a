"""The capture: what it takes, what it refuses, and that it never blocks, loses or raises."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Clock
from labelled_secrets import tokens
from pydantic import BaseModel

from agent_memory import AgentMemory, MemoryCaptureConfig, ValidationError
from agent_memory.integrations.capture import capture as capture_module
from agent_memory.integrations.capture.capture import CaptureReport, MemoryCapture
from agent_memory.integrations.result_texts import MOST_PARTS, texts_of

FACT = "We decided to keep the job queue in SQLite."
KEY = tokens("capture")["github classic"]


@pytest.fixture
def capture(memory: AgentMemory) -> Iterator[MemoryCapture]:
    with MemoryCapture(memory) as opened:
        yield opened


def report_of(capture: MemoryCapture) -> dict[str, int]:
    """Return the counts that are not 0, when all is done."""
    assert capture.flush(60)
    return {
        name: count
        for name in CaptureReport.__dataclass_fields__
        if (count := getattr(capture.report, name)) and name != "offered"
    }


def contents(memory: AgentMemory) -> list[str]:
    return sorted(it.content for it in memory.list_recent(1_000))


# What is stored ---------------------------------------------------------------------------------


def test_a_tool_output_becomes_a_memory_that_says_where_it_comes_from(
    memory: AgentMemory, capture: MemoryCapture
) -> None:
    assert capture.tool_output("bash", f"ok\n{FACT}\nbye") == 1
    assert report_of(capture) == {"observed": 1, "stored": 1}
    (it,) = memory.list_recent()
    assert it.content == FACT
    assert it.category == "decision"
    assert "sqlite" in it.tags
    assert it.created_by_session == "session-1" == capture.session_id
    assert it.metadata == {"source": "tool:bash", "confidence": 0.85, "auto_captured": True}
    assert [hit.memory.id for hit in memory.search("where is the job queue?")] == [it.id]


@pytest.mark.parametrize("is_async", [True, False])
def test_each_switch_switches_one_source(memory: AgentMemory, is_async: bool) -> None:
    def stored(**switches: bool) -> set[str]:
        config = {"async_capture": is_async, **switches}
        with MemoryCapture(memory, config=config) as one:
            one.tool_output("bash", "TODO: rotate the keys of staging")
            one.turn("NOTE: the demo was moved to Friday", role="assistant")
            one.turn("Remember that I like green tea", role="user")
            one.session_end("Important: the audit begins in May")
        found = {str(it.metadata["source"]) for it in memory.list_recent(100)}
        for it in memory.list_recent(100):
            memory.delete(it.id)
        return found

    off = {"observe_tool_outputs": False, "observe_turn_completions": False}
    assert stored() == {"tool:bash", "turn:assistant", "turn:user"}
    assert stored(**off, observe_session_end=True) == {"session_end"}
    assert stored(**{**off, "observe_tool_outputs": True}) == {"tool:bash"}
    assert stored(**{**off, "observe_turn_completions": True}) == {"turn:assistant", "turn:user"}


@dataclass
class Result:
    output: str
    exit_code: int = 0


class Answer(BaseModel):
    success: bool = True
    output: Any = None
    error: Any = None


@pytest.mark.parametrize(
    "result",
    [
        FACT,
        FACT.encode(),
        {"stdout": FACT, "exit_code": 0},
        {"success": False, "output": None, "error": {"message": FACT}},
        {"content": [{"type": "text", "text": FACT}]},
        [{"a": {"b": ["x", FACT]}}],
        Result(FACT),
        Answer(output={"stdout": FACT}),
        SimpleNamespace(content=[SimpleNamespace(type="text", text=FACT)]),
        RuntimeError(FACT),
        f"{{'success': True, 'output': 'a\\n{FACT}\\nb'}}",
        f'{{"output": "a\\n{FACT}\\nb"}}',
    ],
    ids=range(12),
)
def test_texts_are_found_in_whatever_a_tool_returns(capture: MemoryCapture, result: object) -> None:
    assert capture.tool_output("bash", result) == 1
    assert report_of(capture) == {"observed": 1, "stored": 1}


def test_what_was_asked_is_not_what_was_answered(capture: MemoryCapture) -> None:
    asked = {"command": f"echo '{FACT}'", "path": FACT, "query": FACT, "stdout": ""}
    assert capture.tool_output("bash", asked) == 0
    assert report_of(capture) == {}


def test_results_that_cannot_be_read_are_counted_and_harm_nobody(
    capture: MemoryCapture, caplog: pytest.LogCaptureFixture
) -> None:
    class Hostile:
        @property
        def output(self) -> str:
            raise RuntimeError(FACT)

        text = FACT

    class Broken(dict[str, str]):
        def items(self) -> Any:
            raise RuntimeError(FACT)

    loop: list[object] = [FACT]
    loop.append(loop)
    deep: object = FACT
    for _ in range(100_000):
        deep = [deep]
    assert capture.tool_output("x", Hostile()) == 1
    assert capture.tool_output("x", Broken(a="b")) == 0
    assert capture.tool_output("x", loop) == 1
    for result in (deep, None, 7, object(), {1: None}, "", b"\xff\xfe"):
        assert capture.tool_output("x", result) == 0
    assert capture.turn(None) == 0  # type: ignore[arg-type]
    assert capture.tool_output(deep, "") == 0  # type: ignore[arg-type]
    assert capture.turn("", deep) == 0  # type: ignore[arg-type]
    assert report_of(capture)["unreadable"] == 1
    assert FACT not in caplog.text


def test_of_a_huge_result_only_so_many_parts_are_looked_at() -> None:
    assert len(list(texts_of([str(n) for n in range(5_000)]))) == MOST_PARTS - 1
    assert len(list(texts_of({n: str(n) for n in range(5_000)}))) == MOST_PARTS - 1


def test_a_long_text_is_looked_through_in_the_background(
    memory: AgentMemory, capture: MemoryCapture
) -> None:
    assert capture.tool_output("bash", "The sky is blue. " * 50_000 + f"\n{FACT}\n") == 0
    assert report_of(capture) == {"observed": 1, "stored": 1}
    assert contents(memory) == [FACT]


# What is refused --------------------------------------------------------------------------------


def test_the_same_observation_is_stored_once(memory: AgentMemory, capture: MemoryCapture) -> None:
    for text in (FACT, FACT.lower(), f"  {FACT} \n\n", f"- {FACT}"):
        capture.tool_output("bash", text)
    assert report_of(capture) == {"observed": 4, "stored": 1, "duplicates": 3}
    with MemoryCapture(memory) as later:
        later.tool_output("bash", FACT)
        assert report_of(later) == {"observed": 1, "duplicates": 1}
    assert memory.count() == 1


def test_what_was_deleted_is_not_brought_back_by_a_tool_that_prints_it_again(
    memory: AgentMemory, capture: MemoryCapture
) -> None:
    capture.tool_output("bash", FACT)
    capture.flush()
    memory.delete(memory.list_recent()[0].id)
    capture.tool_output("bash", FACT)
    assert report_of(capture) == {"observed": 2, "stored": 1, "duplicates": 1}
    capture.turn(FACT, role="user")  # who says it again means it
    assert report_of(capture)["stored"] == 2


def test_a_memory_that_was_recalled_and_printed_is_an_echo(
    memory: AgentMemory, capture: MemoryCapture
) -> None:
    memory.store(FACT, category="decision")
    assert memory.search("job queue SQLite")
    capture.tool_output("bash", f"notes:\n- {FACT}")
    assert report_of(capture) == {"observed": 1, "echoes": 1}
    assert memory.count() == 1


@pytest.mark.parametrize(
    "tool",
    ["memory_search", "memory_list_recent", "mcp__agent-memory__memory_search", "m.memory_x"],
)
def test_our_own_tools_are_never_captured(capture: MemoryCapture, tool: str) -> None:
    assert capture.tool_output(tool, {"results": [{"content": FACT}]}) == 0
    assert capture.report == CaptureReport()


def test_a_rendered_context_in_an_output_is_skipped(
    memory: AgentMemory, capture: MemoryCapture
) -> None:
    memory.promote(memory.store("Remember: the printer is on floor 3"))
    capture.tool_output("bash", f"{memory.context()}\nTODO: buy paper for the printer")
    assert report_of(capture) == {"observed": 1, "stored": 1}


def test_the_user_who_goes_back_to_what_was_is_believed_and_a_tool_is_not(
    memory: AgentMemory, clock: Clock, capture: MemoryCapture
) -> None:
    tabs, spaces = (
        f"Remember that I prefer {it} in the source code of the project"
        for it in ("tabs", "spaces")
    )
    for said in (tabs, spaces, tabs, tabs):
        clock.forward(minutes=5)
        capture.turn(said, role="user")
        capture.flush()
    newest = memory.list_recent(10)
    assert ["tabs" in it.content for it in newest] == [True, False, True]
    for said in (spaces, tabs, spaces):
        clock.forward(minutes=5)
        with MemoryCapture(memory) as other:
            other.tool_output("bash", said)
    assert memory.count() == 3


def test_a_session_stores_so_many_and_says_once_that_it_stops(
    memory: AgentMemory, caplog: pytest.LogCaptureFixture
) -> None:
    with MemoryCapture(memory, config={"max_captures_per_session": 3}) as capture:
        for n in range(6):
            capture.tool_output("bash", f"TODO: paint the door number {n} of the house")
        capture.tool_output("bash", "TODO: paint the door number 0 of the house")
        assert report_of(capture) == {
            "observed": 7, "stored": 3, "over_limit": 3, "duplicates": 1,
        }  # fmt: skip
    assert memory.count() == 3
    warned = [it for it in caplog.records if it.levelno == logging.WARNING]
    assert len(warned) == 1
    assert "limit" in warned[0].getMessage()


def test_sentences_below_the_confidence_are_counted(memory: AgentMemory) -> None:
    with MemoryCapture(memory, config={"min_confidence": 0.9}) as capture:
        capture.tool_output("bash", FACT)
        assert report_of(capture) == {"below_confidence": 1}


# Secrets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["warn", "mask", "keep", None])
def test_a_secret_is_masked_whatever_the_setting(
    memory: AgentMemory,
    capture: MemoryCapture,
    setting: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if setting:
        memory.configure(on_secret=setting)
    capture.tool_output("bash", f"Remember: the deploy token is {KEY} until May")
    assert report_of(capture) == {"observed": 1, "stored": 1}
    (it,) = memory.list_recent()
    assert it.content == "the deploy token is [masked: GitHub token] until May"
    assert it.tags == []
    memory.info()
    raw = b"".join(path.read_bytes() for path in memory.path.parent.iterdir())
    assert KEY.encode() not in raw
    assert KEY.lower().encode() not in raw
    assert KEY not in caplog.text


def test_where_the_file_refuses_secrets_none_is_stored(
    memory: AgentMemory, capture: MemoryCapture, caplog: pytest.LogCaptureFixture
) -> None:
    memory.configure(on_secret="refuse")
    for month in ("May", "June"):
        capture.tool_output("bash", f"Remember: the deploy token is {KEY} until {month}")
    assert report_of(capture) == {"observed": 2, "refused": 2}
    assert memory.count() == 0
    (line,) = caplog.messages
    assert line.startswith("an observation was refused: ")
    assert KEY not in line


def test_a_value_that_was_rejected_stays_out(memory: AgentMemory, capture: MemoryCapture) -> None:
    memory.reject("job queue")
    capture.tool_output("bash", FACT)
    assert report_of(capture) == {"observed": 1, "refused": 1}


# The queue --------------------------------------------------------------------------------------


class Gate:
    """Opens a memory only when it is told to."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.is_open = threading.Event()
        self.calls = 0
        self.thread = ""
        self._make: Callable[[], AgentMemory] = lambda: AgentMemory("bob", root=root, **settings)

    def __call__(self) -> AgentMemory:
        self.calls += 1
        self.thread = threading.current_thread().name
        assert self.is_open.wait(60)
        return self._make()


def test_a_memory_is_opened_in_the_background_for_the_first_thing_to_store(root: Path) -> None:
    gate = Gate(root)
    capture = MemoryCapture(gate, session_id="s-9")
    capture.tool_output("bash", "nothing to see here")
    assert capture.flush(60)
    assert gate.calls == 0
    assert capture.tool_output("bash", FACT) == 1  # though nobody opens it yet
    assert not capture.flush(0.05)
    assert capture.report.waiting == 1
    gate.is_open.set()
    assert capture.flush(60)
    assert (gate.calls, gate.thread) == (1, "agent-memory-capture")
    capture.close()
    with AgentMemory("bob", root=root) as memory:
        assert [it.created_by_session for it in memory.list_recent()] == ["s-9"]


def test_what_does_not_fit_into_the_queue_is_counted_and_told_once(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(root)
    capture = MemoryCapture(gate, config={"queue_size": 5, "max_captures_per_session": 1_000})
    queued = sum(capture.tool_output("b", f"TODO: sort the shelf number {n}") for n in range(50))
    long_text = f"{FACT}\n" + "x" * 10_000
    assert capture.tool_output("b", long_text) == 0
    gate.is_open.set()
    report = report_of(capture)
    capture.close()
    assert 5 <= queued <= 6
    assert report == {"observed": 50, "stored": queued, "dropped": 50 - queued, "unread": 1}
    told = [it.getMessage() for it in caplog.records if "dropped" in it.getMessage()]
    assert len(told) == 1
    assert "shelf" not in caplog.text


def test_close_flushes_and_can_be_called_again(root: Path) -> None:
    capture = MemoryCapture(lambda: AgentMemory("bob", root=root))
    for n in range(40):
        capture.tool_output("bash", f"NOTE: shelf {n} holds the {n} oldest books")
    capture.close()
    capture.close()
    assert capture.report.stored == 40
    assert capture.tool_output("bash", FACT) == 0
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 40


def test_close_does_not_wait_longer_than_it_may(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate(root)
    capture = MemoryCapture(gate)
    for n in range(5):
        capture.tool_output("bash", f"NOTE: shelf {n} holds the {n} oldest books")
    threading.Timer(0.5, gate.is_open.set).start()
    capture.close(timeout=0.05)
    report = capture.report
    assert report.dropped >= 4
    assert report.stored + report.dropped == 5
    assert "dropped" in caplog.text


def test_a_locked_file_is_tried_again_and_the_caller_does_not_wait(
    memory: AgentMemory,
) -> None:
    with MemoryCapture(lambda: AgentMemory("bob", root=memory.path.parent.parent)) as capture:
        with holding(memory.path):
            assert capture.tool_output("bash", FACT) == 1
            assert not capture.flush(6.5)  # longer than the library itself waits
        assert report_of(capture) == {"observed": 1, "stored": 1}


def holding(path: Path) -> Any:
    """Hold the write lock of a file from another process, for as long as the body runs."""
    code = """
        import apsw, sys
        connection = apsw.Connection(sys.argv[1])
        connection.execute("BEGIN IMMEDIATE")
        print("held", flush=True)
        sys.stdin.read()
    """
    return _Held(
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
    )


class _Held:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "held\n"

    def __exit__(self, *_: object) -> None:
        self._process.communicate("", timeout=60)


@pytest.mark.parametrize("is_async", [True, False])
def test_whatever_goes_wrong_with_the_memory_is_counted_and_never_raised(
    root: Path, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> AgentMemory:
        raise RuntimeError(f"secret words: {FACT}")

    closed = AgentMemory("bob", root=root)
    closed.close()
    (root / "foreign").mkdir()
    (root / "foreign" / "memories.db").write_bytes(b"not a database at all " * 100)
    for memory in (broken, closed, lambda: AgentMemory("foreign", root=root)):
        with MemoryCapture(memory, config={"async_capture": is_async}) as capture:
            capture.tool_output("bash", FACT)
            assert report_of(capture) == {"observed": 1, "failed": 1}
    assert FACT not in caplog.text
    assert "RuntimeError" in caplog.text


def test_without_the_background_it_is_stored_before_the_call_returns(
    memory: AgentMemory,
) -> None:
    before = threading.active_count()
    with MemoryCapture(memory, config={"async_capture": False}) as capture:
        assert capture.tool_output("bash", f"{FACT}\n" + "The sky is blue. " * 1_000) == 1
        assert contents(memory) == [FACT]
        assert threading.active_count() == before


def test_many_threads_may_share_one(memory: AgentMemory) -> None:
    config = {"max_captures_per_session": 1_000}
    with MemoryCapture(memory, config=config) as capture:

        def work(name: int) -> None:
            for n in range(20):
                capture.tool_output(
                    "bash", f"NOTE: thread {name} has read the page {n} of the book"
                )

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert report_of(capture) == {"observed": 160, "stored": 160}


# The end ----------------------------------------------------------------------------------------

SCRIPT = """
    import os, sys
    from agent_memory import AgentMemory
    from agent_memory.integrations.capture.capture import MemoryCapture

    root, how = sys.argv[1:]
    capture = MemoryCapture(lambda: AgentMemory("bob", root=root), session_id="s")
    capture.tool_output("bash", "NOTE: the parent wrote the first line")
    if how == "dropped":
        del capture
    elif how == "fork":
        child = os.fork()
        if child == 0:
            assert capture.report.observed == 0
            capture.tool_output("bash", "NOTE: the child wrote the other line")
            capture.close()
            assert capture.report.stored == 1, capture.report
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    elif how == "raise":
        raise SystemExit(3)
"""


@pytest.mark.parametrize("how", ["end", "dropped", "raise", "fork"])
def test_at_the_end_of_the_interpreter_all_is_stored(root: Path, how: str) -> None:
    if how == "fork" and not hasattr(os, "fork"):
        pytest.skip("no fork here")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(root), how],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (3 if how == "raise" else 0, "")
    expected = ["the child wrote the other line"] if how == "fork" else []
    with AgentMemory("bob", root=root) as memory:
        assert contents(memory) == [*expected, "the parent wrote the first line"]


def test_a_capture_that_is_let_go_leaves_no_thread(root: Path) -> None:
    capture = MemoryCapture(lambda: AgentMemory("bob", root=root))
    capture.tool_output("bash", FACT)
    del capture
    deadline = time.monotonic() + 60
    names = ["agent-memory-capture"]
    while names and time.monotonic() < deadline:
        time.sleep(0.01)
        names = [it.name for it in threading.enumerate() if it.name == "agent-memory-capture"]
    assert names == []


# Its settings -----------------------------------------------------------------------------------


def test_the_session_is_the_one_given_else_the_memorys_else_that_of_the_environment(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opener() -> AgentMemory:
        raise AssertionError

    assert MemoryCapture(memory).session_id == "session-1"
    assert MemoryCapture(memory, session_id="mine").session_id == "mine"
    assert MemoryCapture(opener).session_id.startswith("session-")
    monkeypatch.setenv("AGENT_MEMORY_SESSION", "outer")
    assert MemoryCapture(opener).session_id == "outer"


@pytest.mark.parametrize(
    "settings",
    [{"session_id": " "}, {"session_id": "x" * 201}, {"config": {"min_confidence": 2}},
     {"config": {"capture_patterns": ["("]}}, {"config": {"queue": 1}}, {"config": 3}],
    ids=range(6),
)  # fmt: skip
def test_settings_that_cannot_be_are_refused_at_once(
    memory: AgentMemory, settings: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        MemoryCapture(memory, **settings)


def test_a_config_may_be_a_model(memory: AgentMemory) -> None:
    config = MemoryCaptureConfig(queue_size=7)
    assert MemoryCapture(memory, config=config).config is config


def test_names_of_tools_and_roles_are_made_fit_for_metadata(
    memory: AgentMemory, capture: MemoryCapture
) -> None:
    capture.tool_output("a b\n\x00" + "x" * 500, "TODO: rotate the keys of staging")
    capture.turn("NOTE: the demo was moved to Friday", role="")
    assert report_of(capture)["stored"] == 2
    sources = sorted(it.metadata["source"] for it in memory.list_recent())
    assert [len(it) for it in sources] == [len("tool:") + 100, len("turn:unknown")]
    assert capture_module.CaptureReport is CaptureReport
