"""Anthropic's memory tool over a memory: the tool's contract, and what our file adds to it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic.tools.memory")

from anthropic.lib.tools import ToolError
from interruptions import Interrupted

from agent_memory import AgentMemory
from agent_memory.integrations.anthropic_memory import AgentMemoryTool, AsyncAgentMemoryTool
from agent_memory.integrations.anthropic_memory.files import MAX_FILE_LENGTH, Files
from agent_memory.integrations.tools import MemoryTools

NOTES = "/memories/notes.txt"
Say = Callable[..., str]


@pytest.fixture
def tool(memory: AgentMemory) -> AgentMemoryTool:
    return AgentMemoryTool(memory)


@pytest.fixture
def say(tool: AgentMemoryTool) -> Say:
    """Give the tool a command as the model sends it: a mapping that nobody has looked at."""

    def send(command: str, **fields: Any) -> str:
        return str(tool.call({"command": command, **fields}))

    return send


def text_of(memory: AgentMemory, place: str) -> str | None:
    file = Files(memory).file(place)
    return None if file is None else file.text


# Text ---------------------------------------------------------------------------------------

TEXTS = {
    "plain": "Prefer tea",
    "empty": "",
    "newline": "\n",
    "blank": "  \n\t\n ",
    "invisible": "\u200b",
    "trailing": "a line\n\n\n",
    "leading": "\n\n  a line",
    "crlf": "one\r\ntwo\r\n",
    "unicode": "e\u0301 猫 🐈 \u2028 \x0b\x0c\x85",
    "controls": "\x01\x7f\x1b[0m",
    "full": "x" * 10_000,
    "beyond": "x" * 10_001,
    "long": "word and " * 20_000 + "\n",
}


READER = """
import sys
from agent_memory import AgentMemory
from agent_memory.integrations.anthropic_memory.files import Files
with AgentMemory.open(sys.argv[1]) as memory:
    for file in Files(memory).under("/memories"):
        print(file.place, ascii(file.text))
"""


def test_a_text_comes_back_exactly_also_in_another_process(say: Say, memory: AgentMemory) -> None:
    for name, text in TEXTS.items():
        say("create", path=f"/memories/{name}", file_text=text)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(memory.path)], capture_output=True, text=True, check=True
    )
    told = [f"/memories/{name} {text!a}" for name, text in TEXTS.items()]
    assert sorted(done.stdout.splitlines()) == sorted(told)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_is_shown_line_by_line(say: Say, text: str) -> None:
    say("create", path=NOTES, file_text=text)
    shown = "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(text.split("\n"), 1))
    assert say("view", path=NOTES) == (f"Here's the content of {NOTES} with line numbers:\n{shown}")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_text_that_is_edited_comes_back_exactly(say: Say, memory: AgentMemory, text: str) -> None:
    say("create", path=NOTES, file_text=f"<here>{text}")
    say("str_replace", path=NOTES, old_str="<here>", new_str="")
    assert text_of(memory, NOTES) == text
    say("rename", old_path=NOTES, new_path="/memories/moved/x")
    assert text_of(memory, "/memories/moved/x") == text


def test_a_file_that_is_too_long_or_has_no_text_is_refused_and_the_old_one_stays(
    say: Say, memory: AgentMemory
) -> None:
    for text, said in (("x" * (MAX_FILE_LENGTH + 1), "1,000,001"), ("a\x00", "NUL")):
        with pytest.raises(ToolError, match=said):
            say("create", path=NOTES, file_text=text)
    say("create", path=NOTES, file_text="<here>")
    for text, said in (("x" * (MAX_FILE_LENGTH + 1), "1,000,001"), ("\ud800", "surrogate")):
        with pytest.raises(ToolError, match=said):
            say("str_replace", path=NOTES, old_str="<here>", new_str=text)
    assert text_of(memory, NOTES) == "<here>"


def test_the_longest_file_is_kept_and_one_of_too_many_lines_is_not_shown(say: Say) -> None:
    text = "\n" * MAX_FILE_LENGTH
    say("create", path=NOTES, file_text=text)
    with pytest.raises(ToolError, match="exceeds maximum line limit of 999,999 lines"):
        say("view", path=NOTES)


# Commands -----------------------------------------------------------------------------------


def test_the_commands_say_what_the_contract_says(say: Say, memory: AgentMemory) -> None:
    made = say("create", path=NOTES, file_text="one\ntwo\nthree\nfour\nfive\nsix")
    assert made == f"File created successfully at: {NOTES}"
    with pytest.raises(ToolError, match=f"^File {NOTES} already exists$"):
        say("create", path=NOTES, file_text="other")
    assert say("view", path=NOTES, view_range=[2, 3]) == (
        f"Here's the content of {NOTES} with line numbers:\n     2\ttwo\n     3\tthree"
    )
    assert say("view", path=NOTES, view_range=[5, -1]).endswith(":\n     5\tfive\n     6\tsix")
    assert say("str_replace", path=NOTES, old_str="four\n", new_str="4\nIV\n") == (
        "The memory file has been edited. Here is the snippet showing the change"
        " (with line numbers):\n     2\ttwo\n     3\tthree\n     4\t4\n     5\tIV\n     6\tfive"
    )
    assert say("insert", path=NOTES, insert_line=1, insert_text="1.5\n") == (
        f"The file {NOTES} has been edited."
    )
    assert text_of(memory, NOTES) == "one\n1.5\ntwo\nthree\n4\nIV\nfive\nsix\n"
    assert say("rename", old_path=NOTES, new_path="/memories/b") == (
        f"Successfully renamed {NOTES} to /memories/b"
    )
    assert say("delete", path="/memories/b") == "Successfully deleted /memories/b"
    assert memory.count() == 0


def test_a_replacement_is_made_where_the_text_stands_exactly_once(
    say: Say, memory: AgentMemory
) -> None:
    say("create", path=NOTES, file_text="aXa\naaa\n")
    with pytest.raises(ToolError, match=r"^No replacement was performed, old_str `no` did not"):
        say("str_replace", path=NOTES, old_str="no", new_str="x")
    with pytest.raises(ToolError, match=r"of old_str `a` in lines: 1, 1, 2, 2, 2\. Please"):
        say("str_replace", path=NOTES, old_str="a", new_str="x")
    with pytest.raises(ToolError, match="No replacement"):
        say("str_replace", path=NOTES, old_str="", new_str="x")
    assert text_of(memory, NOTES) == "aXa\naaa\n"


def test_lines_are_inserted_after_a_line_that_there_is(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="")
    with pytest.raises(ToolError, match=r"insert_line` parameter: 1\. .* range \[0, 0\]"):
        say("insert", path=NOTES, insert_line=1, insert_text="x")
    say("insert", path=NOTES, insert_line=0, insert_text="b")
    say("insert", path=NOTES, insert_line=0, insert_text="a\n\n")
    say("insert", path=NOTES, insert_line=2, insert_text="c\r")
    assert text_of(memory, NOTES) == "a\nb\nc\r\n"
    with pytest.raises(ToolError, match=r"parameter: -1\. .* range \[0, 3\]"):
        say("insert", path=NOTES, insert_line=-1, insert_text="x")


def test_blank_lines_at_the_end_of_a_file_are_lines(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="a\n\n\n")
    say("insert", path=NOTES, insert_line=3, insert_text="z")
    assert text_of(memory, NOTES) == "a\n\n\nz\n"


def test_a_directory_shows_two_levels_with_sizes_and_nothing_hidden(say: Say) -> None:
    assert say("view", path="/memories").split("\n") == [
        (
            "Here're the files and directories up to 2 levels deep in /memories,"
            " excluding hidden items:"
        ),
        "0B\t/memories",
    ]
    for path, size in (
        ("b.txt", 5),
        ("a/two.txt", 1024),
        ("a/deep/three.txt", 512),
        ("a/.hidden", 7),
        (".secret/x", 9),
        ("a.txt", 1536),
    ):
        say("create", path=f"/memories/{path}", file_text="x" * size)
    assert say("view", path="/memories").split("\n")[1:] == [
        "3.0K\t/memories",
        "1.5K\t/memories/a/",
        "512B\t/memories/a/deep/",
        "1K\t/memories/a/two.txt",
        "1.5K\t/memories/a.txt",
        "5B\t/memories/b.txt",
    ]
    assert say("view", path="/memories/a").split("\n")[2:] == [
        "512B\t/memories/a/deep/",
        "512B\t/memories/a/deep/three.txt",
        "1K\t/memories/a/two.txt",
    ]
    with pytest.raises(ToolError, match="does not exist"):
        say("view", path="/memories/c")


def test_directories_are_renamed_and_deleted_with_all_that_is_in_them(
    say: Say, memory: AgentMemory
) -> None:
    for path in ("a/one", "a/b/two", "ab/three"):
        say("create", path=f"/memories/{path}", file_text=path)
    with pytest.raises(ToolError, match=r"^Cannot move /memories/a into itself$"):
        say("rename", old_path="/memories/a", new_path="/memories/a/c")
    say("rename", old_path="/memories/a", new_path="/memories/x/y")
    for inside in ("a", "a/c"):
        with pytest.raises(ToolError, match=r"^The path /memories/a does not exist$"):
            say("rename", old_path="/memories/a", new_path=f"/memories/{inside}")
    assert text_of(memory, "/memories/x/y/b/two") == "a/b/two"
    assert text_of(memory, "/memories/ab/three") == "ab/three"
    with pytest.raises(ToolError, match=r"^The path /memories/a does not exist$"):
        say("delete", path="/memories/a")
    say("delete", path="/memories/x")
    assert memory.count() == 1
    memory.undo()
    assert text_of(memory, "/memories/x/y/one") == "a/one"


def test_a_file_is_no_directory_and_a_directory_no_file(say: Say, memory: AgentMemory) -> None:
    say("create", path="/memories/f", file_text="x")
    say("create", path="/memories/d/g", file_text="x")
    for wrong in (
        {"command": "create", "path": "/memories/f/g/h", "file_text": ""},
        {"command": "create", "path": "/memories/d", "file_text": ""},
        {"command": "rename", "old_path": "/memories/d/g", "new_path": "/memories/f/x"},
        {"command": "rename", "old_path": "/memories/f", "new_path": "/memories/d"},
        {"command": "rename", "old_path": "/memories/f", "new_path": "/memories/d/g"},
        {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/e"},
        {"command": "rename", "old_path": "/memories/f", "new_path": "/memories"},
        {"command": "insert", "path": "/memories/d", "insert_line": 0, "insert_text": "x"},
        {"command": "str_replace", "path": "/memories", "old_str": "x", "new_str": "y"},
        {"command": "delete", "path": "/memories"},
    ):
        with pytest.raises(ToolError):
            say(**wrong)
    assert sorted(file.place for file in Files(memory).under("/memories")) == [
        "/memories/d/g",
        "/memories/f",
    ]
    assert {change.event.value for change in memory.history()} == {"ADD"}


def test_a_name_that_a_file_left_can_be_given_to_another(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="first")
    say("rename", old_path=NOTES, new_path="/memories/b")
    say("create", path=NOTES, file_text="second")
    say("rename", old_path=NOTES, new_path="/memories/c")
    say("create", path=NOTES, file_text="second")
    assert [text_of(memory, path) for path in ("/memories/b", "/memories/c", NOTES)] == [
        "first",
        "second",
        "second",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"path": None},
        {"path": 7},
        {"path": NOTES, "view_range": "1"},
        {"path": NOTES, "view_range": ["a", "b"]},
        {"command": "insert", "path": NOTES, "insert_line": "one", "insert_text": "x"},
        {"command": "insert", "path": NOTES, "insert_line": None, "insert_text": "x"},
        {"command": "insert", "path": NOTES, "insert_line": 0},
        {"command": "create", "path": "/memories/new"},
        {"command": "create", "path": "/memories/new", "file_text": 5},
        {"command": "str_replace", "path": NOTES, "old_str": "x"},
        {"command": "rename", "old_path": NOTES},
        {"command": "delete", "path": ["/memories"]},
    ],
    ids=ascii,
)
def test_what_the_model_gets_wrong_is_told_and_changes_nothing(
    say: Say, memory: AgentMemory, fields: dict[str, Any]
) -> None:
    say("create", path=NOTES, file_text="x")
    with pytest.raises(ToolError):
        say(**{"command": "view", **fields})
    assert [it.content for it in memory.list_recent()] == ["x"]


# Paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "memories/x",
        "/memoriesx",
        "/Memories/x",
        "/memories/..",
        "/memories/../etc",
        "/memories/../../memories/x",
        "/memories/a/../../etc",
        "/memories/..\\..\\etc",
        "\\memories\\x",
        "/memories/%2e%2e/etc",
        "/memories/%2E%2e%2Fetc",
        "/memories/%252e%252e/etc",
        "/memories/..%5c..%5cetc",
        "/memories/a%2f..%2f..%2fetc",
        "/memories/a\x00",
        "/memories/a\nb",
        "/memories/\u202e",
        "/memories/" + "x" * 1_000,
        "C:/memories/x",
        "~/memories",
    ],
    ids=ascii,
)
def test_a_path_that_leads_elsewhere_is_refused_by_every_command(
    say: Say, memory: AgentMemory, path: str
) -> None:
    say("create", path=NOTES, file_text="x")
    for command, fields in (
        ("view", {"path": path}),
        ("create", {"path": path, "file_text": "y"}),
        ("str_replace", {"path": path, "old_str": "x", "new_str": "y"}),
        ("insert", {"path": path, "insert_line": 0, "insert_text": "y"}),
        ("delete", {"path": path}),
        ("rename", {"old_path": path, "new_path": "/memories/y"}),
        ("rename", {"old_path": NOTES, "new_path": path}),
    ):
        with pytest.raises(ToolError, match=r"^Path "):
            say(command, **fields)
    assert len(memory.history()) == 1


@pytest.mark.parametrize(
    "path",
    ["/memories//a", "/memories/./a", "/memories/b/../a", "/memories/a/", "/memories/a/."],
)
def test_a_path_that_stays_inside_is_taken_in_its_plain_form(say: Say, path: str) -> None:
    say("create", path="/memories/a", file_text="x")
    assert "\tx" in say("view", path=path)
    with pytest.raises(ToolError, match="already exists"):
        say("create", path=path, file_text="y")


@pytest.mark.parametrize("name", ["a%20b", "100%", "ä ü", "a;b'c", "x_%", "...", "猫.md", "0"])
def test_a_name_is_kept_as_it_is(say: Say, memory: AgentMemory, name: str) -> None:
    say("create", path=f"/memories/{name}", file_text="x")
    assert say("view", path="/memories").endswith(f"\t/memories/{name}") or name[0] == "."
    say("delete", path=f"/memories/{name}")
    assert memory.count() == 0


# Files are memories -------------------------------------------------------------------------


def test_a_file_is_a_memory_that_is_found_and_has_a_history_that_can_be_undone(
    say: Say, memory: AgentMemory
) -> None:
    say("create", path=NOTES, file_text="The user prefers green tea\n")
    say("str_replace", path=NOTES, old_str="green tea", new_str="coffee")
    (hit,) = memory.search("does the user like coffee?")
    assert hit.memory.content == "The user prefers coffee\n"
    memory.undo()
    assert text_of(memory, NOTES) == "The user prefers green tea\n"
    say("rename", old_path=NOTES, new_path="/memories/b")
    memory.undo()
    assert text_of(memory, NOTES) == "The user prefers green tea\n"
    assert {change.memory_id for change in memory.history()} == {hit.memory.id}


def test_a_long_file_is_found_by_a_word_at_its_end(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="many words " * 5_000 + "\nand a xylophone\n")
    (hit,) = memory.search("xylophone")
    assert len(hit.memory.content) <= 10_000


def test_a_file_changes_with_its_memory(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="old")
    (file,) = memory.list_recent()
    memory.update(file.id, content="new", metadata={**file.metadata, "source": "wiki"})
    assert say("view", path=NOTES).endswith("\tnew")
    say("insert", path=NOTES, insert_line=1, insert_text="more")
    assert memory.get(file.id).metadata["source"] == "wiki"  # type: ignore[union-attr]


def test_an_archived_file_is_still_there_for_the_model(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="old tea")
    memory.archive([it.id for it in memory.list_recent()])
    assert NOTES in say("view", path="/memories")
    with pytest.raises(ToolError, match="already exists"):
        say("create", path=NOTES, file_text="new")
    assert len(memory.search("tea")) == 0
    say("insert", path=NOTES, insert_line=0, insert_text="green")
    assert len(memory.search("tea")) == 1


def test_other_memories_are_no_files_and_survive_that_all_is_cleared(
    tool: AgentMemoryTool, say: Say, memory: AgentMemory
) -> None:
    memory.store("no file")
    memory.store("no file either", metadata={"anthropic_path": "/etc/passwd"})
    memory.store("nor this", metadata={"anthropic_path": 7})
    say("create", path=NOTES, file_text="x")
    assert say("view", path="/memories").count("\n") == 2
    assert tool.clear_all_memory() == "All memory cleared"
    assert say("view", path="/memories").count("\n") == 1
    assert memory.count() == 3
    memory.undo()
    assert text_of(memory, NOTES) == "x"
    assert tool.clear_all_memory() == tool.clear_all_memory() == "All memory cleared"


def test_the_files_rules_hold_for_the_model_too(say: Say, memory: AgentMemory) -> None:
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    memory.configure(on_secret="refuse")
    with pytest.raises(ToolError, match="AWS"):
        say("create", path=NOTES, file_text=key)
    memory.configure(on_secret="mask")
    say("create", path=NOTES, file_text=f"the key is {key}")
    assert key not in say("view", path=NOTES)
    memory.reject("4711")
    with pytest.raises(ToolError, match="reject"):
        say("insert", path=NOTES, insert_line=0, insert_text="the code is 4711")
    assert memory.count() == 1


def test_an_error_of_the_file_is_told_as_a_tool_error(root: Path) -> None:
    memory = AgentMemory("gone", root=root)
    tool = AgentMemoryTool(memory)
    memory.close()
    with pytest.raises(ToolError, match="closed"):
        tool.call({"command": "view", "path": "/memories"})


# Others at the same time --------------------------------------------------------------------

EDITOR = """
import sys
from agent_memory import AgentMemory
from agent_memory.integrations.anthropic_memory import AgentMemoryTool
with AgentMemory.open(sys.argv[1]) as memory:
    tool = AgentMemoryTool(memory)
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(int(sys.argv[3])):
        tool.call({"command": "insert", "path": sys.argv[2], "insert_line": 0,
                   "insert_text": f"{sys.argv[4]}-{turn}"})
        print(turn, flush=True)
"""


def editor(memory: AgentMemory, turns: int, name: str) -> subprocess.Popen[str]:
    """Start a process that will add lines to the notes when it is told to, and wait until then."""
    words = [sys.executable, "-c", EDITOR, str(memory.path), NOTES, str(turns), name]
    started = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def test_no_edit_is_lost_when_processes_edit_one_file_at_once(
    say: Say, memory: AgentMemory
) -> None:
    say("create", path=NOTES, file_text="")
    editors = [editor(memory, 12, name) for name in "abc"]
    for one in editors:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in editors:
        one.communicate(timeout=120)
        assert one.returncode == 0
    text = text_of(memory, NOTES) or ""
    assert sorted(text.split()) == sorted(f"{name}-{n}" for name in "abc" for n in range(12))


def test_what_was_answered_survives_a_kill(say: Say, memory: AgentMemory) -> None:
    say("create", path=NOTES, file_text="")
    one = editor(memory, 100_000, "line")
    assert one.stdin is not None
    assert one.stdout is not None
    one.stdin.write("go\n")
    one.stdin.flush()
    for _ in range(20):
        one.stdout.readline()
    one.kill()
    # communicate() would read the pipe, past the lines that readline() took out of it.
    told = 20 + len(one.stdout.read().split())
    one.communicate()
    lines = (text_of(memory, NOTES) or "").split()
    assert lines == [f"line-{n}" for n in reversed(range(len(lines)))]
    assert told <= len(lines) <= told + 1


@pytest.fixture
def interrupted(memory: AgentMemory) -> Iterator[Interrupted]:
    with Interrupted.open(memory.path) as opened:
        yield opened


def test_what_happens_between_reading_and_writing_is_not_overwritten(
    say: Say, memory: AgentMemory, interrupted: Interrupted
) -> None:
    tool = AgentMemoryTool(interrupted)

    def insert(word: str) -> Callable[[], str]:
        return lambda: say("insert", path=NOTES, insert_line=0, insert_text=word)

    say("create", path=NOTES, file_text="old\n")
    interrupted.before(insert("one"))
    tool.call({"command": "str_replace", "path": NOTES, "old_str": "old", "new_str": "new"})
    assert text_of(memory, NOTES) == "one\nnew\n"
    interrupted.before(insert("two"))
    tool.call({"command": "rename", "old_path": NOTES, "new_path": "/memories/b"})
    assert text_of(memory, "/memories/b") == "two\none\nnew\n"
    interrupted.before(lambda: say("delete", path="/memories/b"))
    with pytest.raises(ToolError, match="does not exist"):
        tool.call({"command": "insert", "path": "/memories/b", "insert_line": 0, "insert_text": ""})
    assert memory.count() == 0


def test_a_replacement_that_fits_no_more_is_refused(
    say: Say, memory: AgentMemory, interrupted: Interrupted
) -> None:
    say("create", path=NOTES, file_text="old\n")
    interrupted.before(lambda: say("insert", path=NOTES, insert_line=0, insert_text="old"))
    with pytest.raises(ToolError, match="Multiple occurrences"):
        AgentMemoryTool(interrupted).call(
            {"command": "str_replace", "path": NOTES, "old_str": "old", "new_str": "new"}
        )
    assert text_of(memory, NOTES) == "old\nold\n"


@pytest.mark.parametrize("text", ["the same", "another"])
def test_of_two_that_make_a_file_the_second_is_told(
    say: Say, memory: AgentMemory, interrupted: Interrupted, text: str
) -> None:
    interrupted.before(lambda: say("create", path=NOTES, file_text="the same"))
    with pytest.raises(ToolError, match=f"^File {NOTES} already exists"):
        AgentMemoryTool(interrupted).call({"command": "create", "path": NOTES, "file_text": text})
    assert text_of(memory, NOTES) == "the same"
    assert memory.count() == 1


def test_a_file_that_is_moved_to_where_another_came_goes_back(
    say: Say, memory: AgentMemory, interrupted: Interrupted
) -> None:
    say("create", path=NOTES, file_text="moved")
    interrupted.before(lambda: say("create", path="/memories/b", file_text="made"))
    with pytest.raises(ToolError, match="The destination /memories/b already exists"):
        AgentMemoryTool(interrupted).call(
            {"command": "rename", "old_path": NOTES, "new_path": "/memories/b"}
        )
    assert (text_of(memory, NOTES), text_of(memory, "/memories/b")) == ("moved", "made")


def test_a_directory_is_deleted_though_a_file_of_it_went_first(
    say: Say, memory: AgentMemory, interrupted: Interrupted
) -> None:
    for name in "ab":
        say("create", path=f"/memories/d/{name}", file_text=name)
    interrupted.before(lambda: say("delete", path="/memories/d/a"))
    AgentMemoryTool(interrupted).call({"command": "delete", "path": "/memories/d"})
    assert memory.count() == 0


def test_of_threads_that_make_or_move_a_file_to_one_place_at_most_one_succeeds(
    memory: AgentMemory,
) -> None:
    tool = AgentMemoryTool(memory)
    won: list[str] = []

    def work(number: int, turn: int, gate: threading.Barrier) -> None:
        target = f"/memories/{turn}"
        gate.wait()
        try:
            if number % 2:
                tool.call({"command": "create", "path": target, "file_text": f"made {number}"})
            else:
                origin = f"/memories/origin/{turn}-{number}"
                tool.call({"command": "rename", "old_path": origin, "new_path": target})
            won.append(target)
        except ToolError:
            pass

    for turn in range(6):
        for number in (0, 2):
            origin = f"/memories/origin/{turn}-{number}"
            tool.call({"command": "create", "path": origin, "file_text": f"moved {number}"})
        gate = threading.Barrier(4)
        threads = [threading.Thread(target=work, args=(n, turn, gate)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(won) == len(set(won))
    places = [file.place for file in Files(memory).under("/memories")]
    assert len(places) == len(set(places))
    texts = [file.text for file in Files(memory).under("/memories")]
    assert sum(text.startswith("moved") for text in texts) == 12


# The other class, the missing package -------------------------------------------------------


def test_the_asynchronous_tool_does_the_same_without_holding_up_the_loop(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[int] = set()
    read = Files.file

    def watched(files: Files, place: str) -> object:
        seen.add(threading.get_ident())
        return read(files, place)

    monkeypatch.setattr(Files, "file", watched)

    async def work() -> list[Any]:
        tool = AsyncAgentMemoryTool(memory)
        assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}
        said = [
            await tool.call({"command": command, **fields})
            for command, fields in (
                ("create", {"path": NOTES, "file_text": "one\n"}),
                ("str_replace", {"path": NOTES, "old_str": "one", "new_str": "two"}),
                ("insert", {"path": NOTES, "insert_line": 1, "insert_text": "three"}),
                ("rename", {"old_path": NOTES, "new_path": "/memories/b"}),
                ("view", {"path": "/memories/b"}),
                ("delete", {"path": "/memories/b"}),
            )
        ]
        said.append(await tool.clear_all_memory())
        with pytest.raises(ToolError, match="does not exist"):
            await tool.call({"command": "view", "path": NOTES})
        return said

    said = asyncio.run(work())
    assert "     1\ttwo\n     2\tthree\n" in said[4]
    assert said[5:] == ["Successfully deleted /memories/b", "All memory cleared"]
    assert seen
    assert threading.get_ident() not in seen


def test_a_missing_package_is_answered_with_what_to_install() -> None:
    tool = "agent_memory.integrations.anthropic_memory"
    code = f"import sys; sys.modules['anthropic'] = None; import {tool}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "ConfigurationError" in done.stderr
    assert "pip install 'agent-memory[anthropic]'" in done.stderr


def test_an_erased_file_comes_back_when_it_is_created_anew(
    say: Say, memory: AgentMemory, tmp_path: Path
) -> None:
    say("create", path=NOTES, file_text="the Zanzibarian parrot")
    memory.export(tmp_path / "copy")
    memory.erase([file.memory.id for file in Files(memory).under("/memories")])
    assert memory.import_(tmp_path / "copy").erased == 1
    assert "notes" not in say("view", path="/memories")
    with pytest.raises(ToolError, match="does not exist"):
        say("view", path=NOTES)
    say("create", path=NOTES, file_text="the Zanzibarian parrot")
    assert text_of(memory, NOTES) == "the Zanzibarian parrot"


def test_the_tools_show_a_long_file_in_a_short_answer(
    memory: AgentMemory, tool: AgentMemoryTool
) -> None:
    tool.call({"command": "create", "path": "/memories/a.md", "file_text": "quince " * 100_000})
    (kept,) = memory.list_recent()
    answer = MemoryTools(memory).call("memory_get", {"memory_id": kept.id}).to_dict()
    assert "quince" in answer["data"]["memory"]["content"]
    assert len(str(answer)) < 12_000
