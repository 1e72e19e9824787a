"""`agent-memory graph`: what each command prints, as text and as JSON, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from conftest import Ran, database_of

from agent_memory import AgentMemory
from agent_memory.cli import run
from agent_memory.cli.graph import graph as group
from agent_memory.cli.options import ExitCode


class Program:
    """The command line, run in this process on the test's root."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._root = root
        self._capsys = capsys

    def __call__(self, *words: str) -> Ran:
        code = run(["--root", str(self._root), "--agent", "bob", "graph", *words])
        out, err = self._capsys.readouterr()
        return Ran(code, out, err)

    def data(self, *words: str) -> Any:
        return self(*words, "--json").data

    def printed(self) -> str:
        """Return what was printed since the last command."""
        return self._capsys.readouterr().out


@pytest.fixture
def program(root: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(root, capsys)


@pytest.fixture
def filled(program: Program) -> Program:
    """Return the program on a small graph."""
    program("add", "Alice", "works at", "Acme", "--from", "2025-03-01")
    program("add", "Acme", "is_in", "Berlin", "--confidence", "0.5", "--context", "current")
    program("add", "I", "likes", "tea", "--user", "u1")
    return program


@pytest.mark.parametrize("name", sorted(group.commands))
def test_every_command_explains_itself_with_an_example(program: Program, name: str) -> None:
    done = program(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"agent-memory --agent bob graph {name}" in done.out.partition("Example")[2]
    assert "--json" in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_what_is_added_is_shown_with_its_time(filled: Program) -> None:
    shown = filled("show")
    assert shown.code == 0
    assert [line.split() for line in shown.out.splitlines()][1][:5] == [
        "2025-03-01", "-", "Alice", "works_at", "Acme",
    ]  # fmt: skip
    edges = filled.data("show", "acme")["relationships"]
    assert [(it["source"], it["confidence"]) for it in edges] == [("Alice", 1.0), ("Acme", 0.5)]
    assert filled.data("show", "acme")["entity"]["name"] == "Acme"
    assert [it["target"] for it in filled.data("show", "--user", "u1")["relationships"]] == ["tea"]
    assert "no relationships" in filled("show", "--as-of", "2024-01-01").out


def test_a_year_has_four_digits(program: Program, root: Path) -> None:
    program("add", "Rus", "besiege", "the city", "--from", "0860-06-18")
    assert "0860-06-18" in program("show").out
    day = "0860-06-18"
    for words in (
        ["store", "the Rus reach the city", "--timestamp", day],
        *(["recent"], ["search", "Rus"], ["scratchpad"], ["stats", "--since", day]),
    ):
        assert run(["--root", str(root), "--agent", "bob", *words]) == 0
    assert program.printed().count(day) >= 4


def test_what_is_removed_is_shown_only_when_asked_for(filled: Program) -> None:
    assert filled("remove", "alice", "works_at", "acme", "--to", "2025-06-01").out.startswith(
        "closed rel-"
    )
    assert "works_at" not in filled("show").out
    assert "2025-06-01" in filled("show", "--all").out
    assert "works_at" in filled("show", "Alice", "--as-of", "2025-04-01").out
    again = filled("remove", "alice", "works_at", "acme")
    assert again.code == ExitCode.INVALID
    assert "no such relationship" in again.err


def test_neighbours_and_paths(filled: Program) -> None:
    near = filled.data("neighbours", "Alice", "--depth", "2")
    assert [(it["name"], it["distance"]) for it in near["neighbours"]] == [
        ("Acme", 1), ("Berlin", 2),
    ]  # fmt: skip
    assert "Berlin" in filled("neighbours", "Alice", "--depth", "2").out
    assert (
        "Alice -[works_at]-> Acme\nAcme -[is_in]-> Berlin" in filled("path", "Alice", "Berlin").out
    )
    assert "Berlin <-[is_in]- Acme" in filled("path", "Berlin", "Alice").out
    assert filled.data("path", "Alice", "Berlin")["names"] == ["Alice", "Acme", "Berlin"]
    assert "no path of up to 4 steps" in filled("path", "Alice", "tea").out
    unknown = filled("neighbours", "Nobody")
    assert unknown.code == ExitCode.INVALID
    assert "'Nobody'" in unknown.err


def test_merging(filled: Program) -> None:
    filled("add", "Alicia", "likes", "tea")
    assert filled("merge", "Alice", "Alicia").out == "Alice, also Alicia\n"
    assert "Alice, also Alicia\n" in filled("show", "ALICIA").out


def test_the_graph_is_exported_for_other_programs(filled: Program, tmp_path: Path) -> None:
    place = tmp_path / "graph.graphml"
    filled("add", 'Söhne & "Co" <KG>', "is_in", "Berlin")
    assert filled("export", "--output", str(place)).out == f"{place}\n"
    space = "{http://graphml.graphdrawing.org/xmlns}"
    tree = ET.parse(place)
    keys = {key.get("id"): key.get("attr.name") for key in tree.iter(f"{space}key")}
    nodes = {
        node.get("id"): {keys[it.get("key")]: it.text for it in node.iter(f"{space}data")}
        for node in tree.iter(f"{space}node")
    }
    assert {it["name"] for it in nodes.values()} == {
        "Alice", "Acme", "Berlin", "USER_ID", "tea", 'Söhne & "Co" <KG>',
    }  # fmt: skip
    for edge in tree.iter(f"{space}edge"):
        assert {edge.get("source"), edge.get("target")} <= nodes.keys()
    assert place.stat().st_mode & 0o077 == 0
    refused = filled("export", "--output", str(place))
    assert (refused.code, "exists" in refused.err) == (ExitCode.INVALID, True)
    other = tmp_path / "graph.json"
    filled("export", "--format", "json", "--user", "u1", "-o", str(other))
    told = json.loads(other.read_text())
    assert [it["name"] for it in told["entities"]] == ["USER_ID", "tea"]
    assert told["relationships"][0]["metadata"]["user_id"] == "u1"
    assert filled("export", "--output", "-").out == place.read_text(encoding="utf-8")
    both = filled("export", "--output", "-", "--json")
    assert both.code == ExitCode.USAGE
    assert "--json and an export to stdout exclude each other: give --output PATH" in both.err
    assert not Path("-").exists()
    for name in ("--force", "--overwrite"):
        assert filled("export", "--output", str(place), name).code == ExitCode.OK
    own = filled("export", "--overwrite", "-o", str(tmp_path / "root" / "bob" / "memories.db"))
    assert "is the memory itself" in own.err


def test_each_user_is_shown_by_their_id(program: Program) -> None:
    """Both were called USER_ID, and by their names nobody was found."""
    for user, place in (("alice", "Oslo"), ("ben", "Berlin")):
        program("add", "I", "lives_in", place, "--user", user)
    for words in (["show"], ["show", "me"]):
        rows = [line.split() for line in program(*words).out.splitlines()]
        assert [(row[-1], row[2], row[4]) for row in rows] == [
            ("user", "source", "target"), ("alice", "alice", "Oslo"), ("ben", "ben", "Berlin"),
        ]  # fmt: skip
    heading, names, row = program("show", "Alice").out.splitlines()
    assert heading == "alice (person), also user, I, me"
    assert names.split()[0] == "from"
    assert row.split()[2:5] == ["alice", "lives_in", "Oslo"]
    assert program("show", "Alice", "--user", "ben").code == ExitCode.INVALID
    assert program("path", "Ben", "Berlin").out == "ben -[lives_in]-> Berlin\n"
    assert program("neighbours", "Berlin").out.splitlines()[1].split() == ["1", "person", "ben"]
    assert program.data("show", "Alice")["entity"]["name"] == "USER_ID"  # as stored
    program("add", "I", "likes", "tea")
    assert program("show", "tea").out.splitlines()[-1].split()[2:5] == ["user", "likes", "tea"]


def test_a_memory_that_says_so_is_shown(program: Program, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store("Alice likes tea")
    program("add", "Alice", "likes", "tea", "--memory", memory_id)
    assert memory_id in program("show").out
    assert (
        program("add", "Alice", "likes", "tea", "--memory", "mem-none").code == ExitCode.NOT_FOUND
    )


def test_a_name_steers_no_terminal(program: Program, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        database_of(memory).run("INSERT INTO entities (name) VALUES ('a' || char(27) || '[2J')")
        memory.graph.add("b", "knows", "c")
    assert "\x1b" not in program("show").out
    place = root / "g.graphml"
    program("export", "--output", str(place))
    ET.parse(place)
