"""A memory that is not what its history says: found, told, and both values are kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Visitor, database_of

from agent_memory import AgentMemory

NAMES = ("first", "second", "third")


def flip(path: Path, text: str, *, which: int = 0, bit: int = 1) -> None:
    """Change one bit of the first letter of a text in a closed file, where it stands so often."""
    data = path.read_bytes()
    places = [at for at in range(len(data)) if data.startswith(text.encode(), at)]
    assert len(places) > which, f"{text!r} stands {len(places)} times in the file"
    with path.open("r+b") as file:
        file.seek(places[which])
        file.write(bytes([data[places[which]] ^ bit]))
        os.fsync(file.fileno())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed file of three memories, of which one was changed twice."""
    place = tmp_path / "memories.db"
    with AgentMemory.open(place, agent_id="bob", embedder=None) as memory:
        memory.store("Prefer walnut wood", id="first", metadata={"shelf": "attic"}, session_id="a")
        memory.store("Elephants remember", id="second", user_id="quentin", session_id="b")
        memory.store("Thunder at night", id="third", session_id="c")
        memory.update("third", content="Thunder at noon", metadata={"loud": True})
        memory.update("third", tags=["zebra"])
    return place


@pytest.mark.parametrize(
    ("text", "columns", "name"),
    [
        ("Prefer walnut", "content", "first"),
        ("attic", "metadata", "first"),
        ("quentin", "user_id", "second"),
        ("Thunder at noon", "content", "third"),
        ("zebra", "tags", "third"),
        ("loud", "metadata", "third"),
    ],
)
@pytest.mark.parametrize("bit", [1, 0x80])
def test_a_bit_in_a_value_is_seen_wherever_it_is(
    path: Path, text: str, columns: str, name: str, bit: int
) -> None:
    whole = path.read_bytes()
    told = set()
    for which in range(whole.count(text.encode())):
        path.write_bytes(whole)
        flip(path, text, which=which, bit=bit)
        with AgentMemory.open(path, embedder=None) as memory:
            report = memory.check()
        kinds = {it.kind for it in report.problems}
        told |= {it.detail for it in report.problems if it.kind == "differs_from_history"}
        if which < 2 and not kinds:  # older values in the history are there once
            with AgentMemory.open(path, embedder=None) as memory:
                now = memory.get(name)
                assert now is not None
                assert text in str(now), "a change that nobody sees"
    assert any(columns in detail and name in detail for detail in told)


def test_mending_keeps_both_values(path: Path) -> None:
    flip(path, "attic")
    with AgentMemory.open(path, embedder=None) as memory:
        (problem,) = memory.check().problems
        assert problem.kind == "differs_from_history"
        held = memory.get("first")
        assert held is not None
        mended = memory.check(repair=True)
        assert mended.ok
        assert memory.check().problems == []
        assert memory.get("first") == held
        newest = memory.history("first")[0]
        both = str(newest.old_values), str(newest.new_values)
        assert any("attic" in values for values in both)
        assert any("`ttic" in values for values in both)
        memory.undo(newest.change_id)
        now = memory.get("first")
        assert now is not None
        assert now.metadata != held.metadata
        assert memory.check().problems == []


ODD = """
INSERT INTO memories (id, content, category) VALUES
  ('a', CAST(x'6d656dff79' AS TEXT), CAST(x'ff' AS TEXT)),
  ('b', 'fine / é 😀 "q" \\ tab	' || char(0x2028, 0x7f, 1), 'x'),
  ('c', 'x', 'note'), ('d', CAST(x'eda080' AS TEXT), 'y'), ('e', 'e', CAST(x'610062' AS TEXT));;
UPDATE memories SET content = CAST(x'6dff' AS TEXT), user_id = 'u' WHERE id = 'c';;
UPDATE memories SET user_id = NULL, metadata = '{"a":null,"b":"\\ud800"}' WHERE id = 'c';;
UPDATE memories SET archived = 1, category = char(65, 0, 66) WHERE id = 'b';;
INSERT OR REPLACE INTO memories (id, content) VALUES ('e', 'another');;
DELETE FROM memories WHERE id = 'd';;
INSERT INTO memories (id, content) VALUES ('d', 'there again');;
UPDATE history SET new_values = '[1]' WHERE memory_id = 'second';;
DELETE FROM history WHERE memory_id = 'first'"""


def test_whatever_other_programs_write_is_no_false_alarm(path: Path, visitor: Visitor) -> None:
    visitor(path, ODD)
    with AgentMemory.open(path, embedder=None) as memory:
        kinds = {it.kind for it in memory.check().problems}
        assert "differs_from_history" not in kinds


def test_what_was_imported_with_its_history_is_no_false_alarm(path: Path, tmp_path: Path) -> None:
    with AgentMemory.open(path, embedder=None) as memory:
        memory.export(tmp_path / "all.yaml")
    text = (tmp_path / "all.yaml").read_text()
    (tmp_path / "all.yaml").write_text(text.replace("Thunder at noon", "Thunder at dusk", 1))
    with AgentMemory.open(tmp_path / "own.db", agent_id="bob", embedder=None) as own:
        own.import_(tmp_path / "all.yaml")
        there = own.get("third")
        assert there is not None
        assert there.content == "Thunder at dusk", "does not match its history"
        assert own.check().problems == []
        own.import_(path, on_conflict="replace")
        own.update("second", content="Elephants forget")
        assert own.check().problems == []
        own.erase(["first"])
        own.undo(own.history("second")[0].change_id)
        assert own.check().problems == []


def test_a_history_without_its_beginning_is_named_and_given_one(
    path: Path, visitor: Visitor
) -> None:
    """An import makes such a beginning: exports before and after it were not the same."""
    visitor(path, "DELETE FROM history WHERE event = 'ADD' OR memory_id = 'first'")
    with AgentMemory.open(path, embedder=None) as memory:
        problems = memory.check().problems
        assert {problem.kind for problem in problems} == {"history_without_beginning"}
        assert [name in each.detail for name, each in zip(NAMES, problems, strict=True)]
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        first, second, third = (memory.history(name)[-1].new_values for name in NAMES)
        assert first is not None
        assert second is not None
        assert third is not None
        assert (first["content"], first["metadata"]) == ("Prefer walnut wood", {"shelf": "attic"})
        assert second["user_id"] == "quentin"
        # what it was before what the history tells
        assert (third["content"], third["tags"], third["metadata"]) == ("Thunder at night", [], {})


def test_bytes_that_are_no_text_in_the_history_of_what_was_deleted_are_told_and_mended(
    memory: AgentMemory,
) -> None:
    """``check`` looked at the history of the memories that are there alone."""
    memory_id = memory.store("a plain text")
    memory.delete(memory_id)
    memory.store("été, 数据")
    database = database_of(memory)
    with database.write():
        database.run(
            "UPDATE history SET new_values = CAST(replace(CAST(new_values AS BLOB),"
            " x'74657874', x'ff657874') AS TEXT) WHERE memory_id = ?",
            (memory_id,),
        )
    (problem,) = memory.check().problems
    assert memory_id in problem.detail
    assert memory.check(repair=True).problems[0].repaired
    assert memory.check().problems == []
    told = memory.history(memory_id)[1].new_values
    assert told is not None
    assert told["content"] == "a plain ÿext"
