"""`agent-memory guide`: listed, printed, paged; a wrong topic; in a terminal it fits the width."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_memory.cli.guide import GUIDES, TOPICS, guides, terminal_text

PROGRAM = str(Path(sys.executable).with_name("agent-memory"))
Cli = Callable[..., Any]


def in_a_terminal(*words: str, columns: int) -> str:
    """Return what a command shows in a terminal of a width."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "PAGER": "cat", "TERM": "xterm"}
    done = subprocess.Popen([PROGRAM, *words], stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    shown = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(leader)
    assert done.wait(60) == 0
    return shown.decode().replace("\r\n", "\n")


def test_without_a_topic_all_are_listed(cli: Cli) -> None:
    done = cli("guide")
    assert (done.code, done.err) == (0, "")
    rows = [line.split(maxsplit=1) for line in done.out.splitlines() if line][:-1]
    assert rows == [[guide.topic, guide.summary] for guide in guides()]
    assert cli("guide", "--json").data == {
        "topics": [
            {"topic": guide.topic, "title": guide.title, "summary": guide.summary}
            for guide in guides()
        ]
    }


@pytest.mark.parametrize("topic", ["search", "sessions-and-users"])
def test_with_a_topic_its_file_is_printed(cli: Cli, topic: str) -> None:
    text = (GUIDES / f"{topic}.md").read_text("utf-8")
    done = cli("guide", topic)
    assert (done.code, done.out, done.err) == (0, text, "")
    data = cli("guide", topic, "--json").data
    assert (data["topic"], data["text"]) == (topic, text)


@pytest.mark.parametrize(
    ("topic", "near"),
    [("serch", "search"), ("format", "formats"), ("embedders", "meaning"), ("UNDO", "life-cycle")],
)
def test_an_unknown_topic_is_wrong_usage_that_names_the_nearest(
    cli: Cli, topic: str, near: str
) -> None:
    done = cli("guide", topic)
    assert (done.code, done.out) == (2, "")
    assert f"there is no guide {topic!r}" in done.err
    assert near in done.err.partition("Did you mean")[2]
    assert "`agent-memory guide` lists" in done.err


@pytest.mark.parametrize("topic", ["xyzzy", "", "../guides/search", "search.md/"])
def test_what_is_near_nothing_is_told_of_the_list(cli: Cli, topic: str) -> None:
    done = cli("guide", topic)
    assert (done.code, done.out) == (2, "")
    assert "`agent-memory guide` lists" in done.err


def test_topics_are_completed() -> None:
    environment = {
        **os.environ,
        "_AGENT_MEMORY_COMPLETE": "bash_complete",
        "COMP_WORDS": "agent-memory guide m",
        "COMP_CWORD": "2",
    }
    done = subprocess.run([PROGRAM], env=environment, capture_output=True, text=True)
    assert done.stderr == ""
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == {
        topic for topic in TOPICS if topic.startswith("m")
    }


@pytest.mark.parametrize("columns", [60, 80])
def test_in_a_terminal_a_guide_is_paged_and_fits(columns: int) -> None:
    shown = in_a_terminal("guide", "meaning", columns=columns)
    assert shown == terminal_text((GUIDES / "meaning.md").read_text("utf-8"), columns)
    assert shown.startswith("# Search by meaning\n\nEmbedders, vectors,")


def test_in_a_terminal_json_stays_json() -> None:
    shown = in_a_terminal("guide", "search", "--json", columns=40)
    assert json.loads(shown)["data"]["topic"] == "search"


# Layout -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("columns", [60, 80, 100])
def test_every_guide_fits_but_for_its_code_and_loses_no_word(topic: str, columns: int) -> None:
    source = (GUIDES / f"{topic}.md").read_text("utf-8")
    shown = terminal_text(source, columns)
    outside = shown.split("```")[::2]
    for line in "".join(outside).splitlines():
        assert len(line) <= columns or line.startswith(("    ", "#")), line
    if "|---" not in source:
        words = [word for word in source.split() if "](" not in word]
        assert [word for word in words if word not in shown] == []


def test_markdown_is_laid_out() -> None:
    source = """\
# A title that is longer than the width of the terminal

A paragraph that is
filled again, with a [link](other.md) and [another](https://example.org/x).

- An item whose text
  is long enough to hang.
- Short.
  1. Inside it.

    code that is left as it is, however long it is

```python
x = [1,
     2]
```

| a | b |
|---|---|
| one | two words or more of them |
| | `a \\| b` |
"""
    assert (
        terminal_text(source, 30)
        == """\
# A title that is longer than the width of the terminal

A paragraph that is filled
again, with a `link` and
another
(https://example.org/x).

- An item whose text is long
  enough to hang.
- Short.
  1. Inside it.

    code that is left as it is, however long it is

```python
x = [1,
     2]
```

a    b
---  -------------------------
one  two words or more of them
     `a | b`
"""
    )


def test_a_table_that_is_too_wide_is_wrapped_and_words_are_broken_last() -> None:
    source = "| name | what |\n|---|---|\n| abcdefghij | " + "word " * 6 + "|\n"
    assert (
        terminal_text(source, 26)
        == """\
name        what
----------  --------------
abcdefghij  word word word
            word word word
"""
    )
    assert max(map(len, terminal_text(source, 20).splitlines())) <= 20
