"""Standard streams that a shell closed, or that take nothing: no fault of ours, and said so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_memory import AgentMemory

PROGRAM = Path(sys.executable).with_name("agent-memory")
CLOSED = "note: stdout is closed: nothing was printed"
FULL = "Error: stdout cannot be written: No space left on device (changes made before that are"
NEEDED = "Error: {} is closed, and this command needs it"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="redirections of a shell")
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has /dev/full")


def run(root: Path, words: str) -> tuple[int, str, str]:
    """Run the words after the program's name in a shell."""
    script = f'"{PROGRAM}" --root "{root}" --agent bob {words}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def stored(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the lighthouse is red")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ('store "a harbour" >&-', 0, CLOSED),
        ("search lighthouse >&-", 0, CLOSED),
        ("--json search lighthouse >&-", 0, CLOSED),
        ("--help >&-", 0, CLOSED),
        ("search lighthouse >&- 2>&- <&-", 0, ""),
        ("show nope >&-", 3, "There is no memory"),
        ("show nope 2>&-", 3, ""),
        ("export --output - >&-", 2, NEEDED.format("stdout")),
        ("mcp >&-", 2, NEEDED.format("stdout")),
        ("mcp <&-", 2, NEEDED.format("stdin")),
        ("store - <&-", 2, NEEDED.format("stdin")),
        ("add - <&-", 2, NEEDED.format("stdin")),
        ("import - <&-", 2, NEEDED.format("stdin")),
        ("reject - <&-", 2, NEEDED.format("stdin")),
        ("reset <&-", 2, "give --yes: stdin is not a terminal, so the question cannot be asked"),
        ("store - 0>/dev/null", 2, "stdin cannot be read"),
        (r"reject - <<E\n$(printf '\377')\nE".replace(r"\n", "\n"), 4, "stdin is not UTF-8"),
    ],
)
def test_a_closed_stream_is_the_callers(root: Path, words: str, code: int, message: str) -> None:
    ended, _, err = run(root, words)
    assert message in err
    assert "a bug in agent-memory" not in err
    assert "Traceback" not in err
    assert ended == code, err


@pytest.mark.parametrize("words", [["--version"], ["recent"]])
def test_the_end_of_the_interpreter_says_nothing(root: Path, words: list[str]) -> None:
    """Python 3.14 tells of every stream that fails as it is closed, others with ``-X dev``."""
    command = [sys.executable, "-X", "dev", "-m", "agent_memory", "--root", str(root)]
    done = subprocess.run(
        [*command, "--agent", "bob", *words], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        'store "a harbour"',
        "search lighthouse",
        "--json search lighthouse",
        "--envelope search lighthouse",
        "export",
        "--help",
        "guide",
    ],
)
def test_a_full_stdout_is_said_so(root: Path, words: str) -> None:
    ended, _, err = run(root, f"{words} >/dev/full")
    assert (ended, FULL in err) == (1, True), err
    assert "Traceback" not in err
    assert "Exception ignored" not in err


@needs_full
def test_a_full_stderr_changes_no_exit_code(root: Path) -> None:
    assert run(root, "show nope 2>/dev/full")[0] == 3
    assert run(root, "frobnicate 2>/dev/full")[0] == 2
    code, out, _ = run(root, 'store "password=hunter2horse" 2>/dev/full')  # which is warned of
    assert (code, out.startswith("mem-")) == (0, True)


def test_what_was_stored_stays_and_no_file_gets_a_streams_place(root: Path) -> None:
    run(root, 'store "a harbour" <&- >&- 2>&-')
    run(root, f'export --output "{root}/all.yaml" <&- >&- 2>&-')
    with AgentMemory("bob", root=root) as memory:
        assert {each.content for each in memory.list_recent()} >= {"a harbour"}
        assert memory.check().problems == []
    text = (root / "all.yaml").read_text(encoding="utf-8")
    assert "a harbour" in text
    assert "wrote" not in text
