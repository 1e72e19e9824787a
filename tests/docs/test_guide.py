"""`agent-memory guide`: listed, printed, paged; a wrong topic; in a terminal it fits the width.

What is made when it is asked for, the reference and the commands' pages, and the guides as a site.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

import pytest
from conftest import PROGRAM, Cli

import agent_memory
from agent_memory import AgentMemory
from agent_memory.cli.guide import GUIDES, MADE, TOPICS, guides, terminal_text


def in_a_terminal(*words: str, columns: int, lines: int = 24, pager: str = "cat") -> str:
    """Return what a command shows in a terminal of a size."""
    leader, follower = pty.openpty()
    size = {"COLUMNS": str(columns), "LINES": str(lines)}
    environment = {**os.environ, **size, "PAGER": pager, "TERM": "xterm"}
    ends = dict.fromkeys(("stdin", "stdout", "stderr"), follower)
    done = subprocess.Popen([PROGRAM, *words], env=environment, **ends)  # type: ignore[call-overload]
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
    listed = [(guide.topic, guide.title, guide.summary) for guide in guides()]
    listed += [(topic, *about) for topic, about in MADE.items()]
    assert rows == [[topic, summary] for topic, _, summary in listed]
    assert cli("guide", "--json").data == {
        "topics": [dict(zip(("topic", "title", "summary"), row, strict=True)) for row in listed]
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
        topic for topic in (*TOPICS, *MADE) if topic.startswith("m")
    }


@pytest.mark.parametrize("columns", [60, 80])
def test_in_a_terminal_a_guide_is_paged_and_fits(columns: int) -> None:
    shown = in_a_terminal("guide", "meaning", columns=columns)
    assert shown == terminal_text((GUIDES / "meaning.md").read_text("utf-8"), columns)
    assert shown.startswith("# Search by meaning\n\nEmbedders, vectors,")


@pytest.mark.parametrize(
    ("options", "lines", "is_paged"),
    [([], 24, True), ([], 500, False), (["--no-pager"], 24, False)],
)
def test_what_is_longer_than_the_screen_goes_through_the_pager(
    options: list[str], lines: int, is_paged: bool, tmp_path: Path
) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged\nexec cat\n")
    pager.chmod(0o755)
    shown = in_a_terminal("guide", "events", *options, columns=80, lines=lines, pager=str(pager))
    guide = terminal_text((GUIDES / "events.md").read_text("utf-8"), 80)
    assert shown == f"paged\n{guide}" if is_paged else guide


def test_in_a_terminal_json_stays_json() -> None:
    shown = in_a_terminal("guide", "search", "--json", columns=40)
    assert json.loads(shown)["data"]["topic"] == "search"


# What is made when it is asked for ----------------------------------------------------------------


def test_the_reference_has_every_public_name_and_every_verb(cli: Cli) -> None:
    lines = cli("guide", "reference").out.splitlines()
    names = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert sorted(names) == sorted(agent_memory.__all__)
    assert names[0] == "AgentMemory"
    verbs = {f"#### AgentMemory.{verb}" for verb in dir(AgentMemory) if not verb.startswith("_")}
    assert verbs <= set(lines)
    text = "\n".join(lines)
    assert "undo(change_id: int | None = None" in text
    assert "Find the memories that answer a question in plain words, best first." in text
    assert "- `tags_match: Literal['all', 'any'] = 'all'`" in text
    assert "- `MemoryKind.CORE`: `core`" in text
    assert "MAX_TAG_LENGTH = 50\n```\n\nCharacters." in text
    assert [line for line in lines if " at 0x" in line or "Annotated[" in line] == []
    # The letters of the documents that the design came from mean nothing to those who read this.
    letter = re.compile(r"\b[A-H]'s\b|\([A-H](, [A-H\d]+)*\)|ocument [A-H]\b|\b(as|and|in) [A-H]\b")
    assert [line for line in lines if letter.search(line)] == []


def test_the_commands_pages_are_their_help(cli: Cli) -> None:
    text = cli("guide", "commands").out
    for words in ([], ["search"], ["graph", "show"]):
        page = cli(*words, "--help", env={"COLUMNS": "80"}).out
        assert f" {' '.join(['agent-memory', *words])}\n\n```text\n{page}```\n" in text
    pages = [line for line in text.splitlines() if line.startswith("### agent-memory ")]
    assert len(pages) > 40
    assert [line for line in text.splitlines() if len(line) > 80] == []  # a terminal has no more


# As a site ----------------------------------------------------------------------------------------


class Checked(HTMLParser):
    """A page's links and anchors; an element that is not closed where it must be is an error."""

    VOID: Final = {"meta", "link", "br", "hr"}

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self._open: list[str] = []
        self.feed(page.read_text("utf-8"))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        assert tag not in {"script", "img", "iframe"}
        assert len(values) == len(attributes)
        self.links += filter(None, [values.get("href")])
        self.anchors += filter(None, [values.get("id")])
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guides") / "site"
    done = subprocess.run([PROGRAM, "guide", "--html", str(folder), "--json"], capture_output=True)
    files = json.loads(done.stdout)["data"]["files"]
    assert sorted(files) == sorted(path.name for path in folder.iterdir())
    return folder


def test_every_guide_is_a_page_whose_links_lead_somewhere(site: Path) -> None:
    pages = {path.name: Checked(path) for path in site.glob("*.html")}
    assert set(pages) == {f"{topic}.html" for topic in ("index", *TOPICS, *MADE)}
    for name, page in pages.items():
        assert len(set(page.anchors)) == len(page.anchors) > 0
        assert {f"{topic}.html" for topic in ("index", *TOPICS, *MADE)} <= set(page.links)
        for link in page.links:
            target, _, anchor = link.partition("#")
            if "://" in link:
                continue
            assert target in {"", "style.css"} or target in pages, link
            assert not anchor or anchor in pages[target or name].anchors, link
    assert "measurements.html#recall" in pages["meaning.html"].links
    assert "@import" not in (site / "style.css").read_text()
    assert "url(" not in (site / "style.css").read_text()


def test_a_site_is_written_again_and_loses_pages_that_are_no_guides_now(
    site: Path, cli: Cli
) -> None:
    before = {path.name: path.read_bytes() for path in site.iterdir()}
    (site / "old.html").write_bytes(before["search.html"])
    (site / "mine.html").write_text("<p>mine</p>")
    done = cli("guide", "--html", str(site))
    assert (done.code, done.err) == (0, "")
    (site / "mine.html").unlink()
    assert {path.name: path.read_bytes() for path in site.iterdir()} == before


def test_a_folder_of_other_files_is_left_alone(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "index.html").write_text("<p>mine</p>")
    done = cli("guide", "--html", str(tmp_path))
    assert (done.code, done.out) == (4, "")
    assert f"{tmp_path} has other files: give an empty" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert cli("guide", "--html", str(tmp_path / "index.html")).code == 5
    assert cli("guide", "search", "--html", str(tmp_path / "new")).code == 2
    assert not (tmp_path / "new").exists()


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
