"""``agent-memory stats``: figures in a terminal, for programs, and as a plot."""

from __future__ import annotations

import os
import pty
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from conftest import Cli

from agent_memory import AgentMemory
from agent_memory.cli.plot import plot_of
from agent_memory.cli.tables import display_width

_HOSTILE = "\x1b[31m\u202e<script>&\"'1'</script>"
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def bob(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a memory with a duplicate, a gap and sources that nobody would think of."""
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")
    start = datetime.now(UTC) - timedelta(days=3)
    with AgentMemory("bob", root=root, clock=lambda: start, embedder=None) as memory:
        memory.configure(event_log="full", categories=["<b>&", "日本語" * 10])
        memory.store("Prefer tea", category="<b>&", metadata={"source": _HOSTILE})
        memory.store("The office is in Berlin", category="日本語" * 10)
        copy = memory.store("prefer tea.", on_duplicate="keep")
        memory.search("where is the zebra?")
        memory.context()
    return copy


def test_the_view_names_each_figure_and_a_command_that_works(cli: Cli, bob: str) -> None:
    done = cli("stats")
    assert (done.code, done.err) == (0, "")
    assert "bob: 3 memories and 0 archived" in done.out
    assert "where is the zebra?" in done.out
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert "\\u001b[31m" in done.out
    (command,) = [line.split() for line in done.out.split("\n") if line.endswith(f"archive {bob}")]
    assert cli(*command[1:]).code == 0
    after = cli("stats", "--json").data
    assert (after["archived_count"], after["duplicate_count"]) == (1, 0)
    assert after["recommendations"] == []
    assert after["gaps"][0]["question"] == "where is the zebra?"
    assert cli("stats", "--since", "1d", "--json").data["categories"]["value_count"] == 0


def test_it_says_how_to_count_searches(cli: Cli, root: Path) -> None:
    AgentMemory("ann", root=root).close()
    done = cli("--agent", "ann", "stats")
    assert done.code == 0
    assert "configure event_log brief" in done.out


@pytest.mark.usefixtures("bob")
@pytest.mark.parametrize(("width", "encoding", "block"), [(40, "utf-8", "█"), (100, "ascii", "#")])
def test_lines_fit_the_terminal(root: Path, width: int, encoding: str, block: str) -> None:
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - it becomes another program
        program = str(Path(sys.executable).with_name("agent-memory"))
        os.environ.update(COLUMNS=str(width), PYTHONIOENCODING=encoding)
        os.execv(program, [program, "--root", str(root), "--agent", "bob", "stats"])
    printed = b""
    try:
        while part := os.read(terminal, 65536):
            printed += part
    except OSError:
        pass  # the end of a terminal
    assert os.waitpid(child, 0)[1] == 0
    lines = printed.decode().replace("\r\n", "\n").split("\n")
    bars = [line for line in lines if block in line]
    assert len(bars) >= 5
    assert max(map(display_width, bars)) <= width
    assert "\x1b" not in printed.decode()
    assert "#" in block or "#" not in printed.decode()


@pytest.mark.usefixtures("bob")
def test_a_plot_is_xml_that_names_what_it_shows(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "bob.svg"
    done = cli("stats", "--plot", str(place))
    assert done.code == 0
    assert done.out.endswith(f"plot: {place}\n")
    image = ET.fromstring(place.read_text(encoding="utf-8"))
    assert image.tag == f"{_SVG}svg"
    names = {image.find(f"{_SVG}{tag}").get("id") for tag in ("title", "desc")}  # type: ignore[union-attr]
    assert names == set(str(image.get("aria-labelledby")).split())
    titles = [title.text or "" for title in image.iter(f"{_SVG}title")]
    assert any("<b>&: 1" in title for title in titles)
    assert {each.tag.removeprefix(_SVG) for each in image.iter()} == {
        "svg", "title", "desc", "defs", "pattern", "rect", "path", "text", "g", "polyline", "circle"
    }  # fmt: skip
    fills = {each.get("fill") for each in image.iter(f"{_SVG}rect")}
    assert {"url(#fill-0)", "url(#fill-1)", "url(#fill-2)"} <= fills
    before = place.read_bytes()
    refused = cli("stats", "--plot", str(place))
    assert (refused.code, refused.out) == (4, "")
    assert "--force" in refused.err
    assert cli("stats", "--plot", str(place), "--force").code == 0
    assert place.read_bytes() == before
    nowhere = cli("stats", "--plot", str(tmp_path / "no" / "bob.svg"))
    assert nowhere.code == 5
    assert f"there is no folder {tmp_path / 'no'}. Create it first" in nowhere.err


@pytest.mark.parametrize(("agent", "told"), [("bob", "the memory itself"), ("ann", "agent 'ann'")])
def test_a_plot_is_drawn_over_no_memory(cli: Cli, tmp_path: Path, agent: str, told: str) -> None:
    for name in ("bob", "ann"):
        with AgentMemory.open(tmp_path / f"{name}.svg", agent_id=name) as memory:
            memory.store("kept")
    place = str(tmp_path / f"{agent}.svg")
    done = cli("stats", "--db", str(tmp_path / "bob.svg"), "--plot", place, "--force")
    assert (done.code, told in done.err) == (4, True)
    assert "kept" in cli("recent", "--db", place).out


@pytest.mark.usefixtures("bob")
@pytest.mark.parametrize("name", ["bob.png", "bob", "-", "svg"])
def test_a_plot_has_the_ending_of_what_it_is(cli: Cli, tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    done = cli("stats", "--plot", str(place), "--force")
    assert (done.code, ".svg" in done.err, place.exists()) == (2, True, False)


def test_bars_are_as_high_as_the_numbers_and_each_series_looks_its_own(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.configure(categories=[f"own-{number}" for number in range(9)])
        memory.store_many(
            [
                {"content": f"{number} of {each}", "category": f"own-{number}"}
                for number in range(9)
                for each in range(number + 1)
            ]
        )
        image = ET.fromstring(plot_of(memory.statistics()))
    bars = {
        str(rect[0].text).split(", ")[1]: (float(rect.get("height", 0)), rect.get("fill"))
        for rect in image.iter(f"{_SVG}rect")
        if len(rect)
    }
    heights = {name.split(": ")[0]: height for name, (height, _) in bars.items()}
    assert len(bars) == len({fill for _, fill in bars.values()}) == 8
    assert heights["own-8"] == pytest.approx(heights["own-2"] * 3, abs=0.02)
    assert heights["others"] == pytest.approx(heights["own-2"], abs=0.02)  # 1 + 2 of 45
    patterns = [ET.tostring(each) for each in image.iter(f"{_SVG}pattern")]
    lines = [each.find(f"{_SVG}path") for each in image.iter(f"{_SVG}pattern")]
    assert len(set(patterns)) == 8
    assert len({"" if line is None else line.get("d") for line in lines}) == 8


@pytest.mark.usefixtures("bob")
def test_a_memory_dated_in_the_future_is_counted(cli: Cli) -> None:
    cli("store", "walnut", "--timestamp", "2999-01-01")
    cli("archive", cli("store", "hazelnut").out.strip())  # it is in the bars, and not in the count
    shown = cli("stats").out
    (row,) = [line for line in shown.splitlines() if "other dates" in line]
    assert row.split()[-1] == "1"
