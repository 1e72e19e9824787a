"""What each memory says of the graph, through a file's life: exports, undo, erasing, visitors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import Clock, Visitor

from agent_memory import AgentMemory
from agent_memory.api.session import SessionMemory
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database

RUNS = ("first", "second")


def sessions(memory: AgentMemory) -> list[SessionMemory]:
    return [memory.session({"user_id": "alice", "run_id": run_id}) for run_id in RUNS]


def told(session: SessionMemory) -> object:
    return session.graph.relationships(include_closed=True), session.graph.entities()


@pytest.fixture
def said(memory: AgentMemory, clock: Clock) -> list[str]:
    """Have two runs say the same of Ann in their own ways; return the memories."""
    first, second = sessions(memory)
    ids = [first.store("Ann lives in Oslo"), second.store("ANN lives in OSLO, secretly")]
    first.graph.add("Ann", "lives_in", "Oslo", memory_id=ids[0], confidence=0.4)
    clock.forward(days=1)
    second.graph.add("ANN", "lives_in", "OSLO", memory_id=ids[1], confidence=0.9,
                     valid_from="2019-05-01", temporal_context="on foggy mornings")  # fmt: skip
    second.graph.add_entity("ann", type="zeppelinist", memory_id=ids[1])
    clock.forward(days=1)
    ids.append(second.store("Ann moved to Rome"))
    second.graph.add("Ann", "lives_in", "Rome", memory_id=ids[2])
    return ids


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("format", ["store", "sqlite"])
def test_each_runs_graph_goes_with_an_export(
    memory: AgentMemory, clock: Clock, tmp_path: Path, format: str
) -> None:
    memory.export(tmp_path / "first", format=format)
    with AgentMemory("bob", root=tmp_path / "two", clock=clock) as other:
        for _ in range(2):  # again: nothing is doubled
            other.import_(tmp_path / "first", format=format)
            assert [told(one) for one in sessions(other)] == [told(x) for x in sessions(memory)]
        assert other.check().problems == []
        memory.export(tmp_path / "a.yaml", format="store")
        other.export(tmp_path / "b.yaml", format="store")
    assert (tmp_path / "a.yaml").read_bytes() == (tmp_path / "b.yaml").read_bytes()


def test_a_file_that_does_not_tell_who_said_what_is_taken_in(
    memory: AgentMemory, said: list[str], clock: Clock, tmp_path: Path
) -> None:
    memory.export(tmp_path / "new.yaml")
    lines = (tmp_path / "new.yaml").read_text().splitlines(keepends=True)
    old = tmp_path / "old.yaml"
    old.write_text("".join(line.partition(", statements: ")[0].rstrip("}\n") + "}\n"
                           if ", statements: " in line else line for line in lines))  # fmt: skip
    assert "statements" not in old.read_text()
    with AgentMemory("bob", root=tmp_path / "two", clock=clock) as other:
        other.import_(old)
        first, second = sessions(other)
        assert other.graph.relationships() == memory.graph.relationships()
        (edge,) = first.graph.relationships()  # each says what all said: who did is not known
        assert (edge.confidence, edge.temporal_context, edge.valid_to) == (0.9, None, None)
        assert [it.target for it in second.graph.relationships()] == ["Rome"]
        other.export(tmp_path / "again.yaml")
        other.erase(said[0])
    with AgentMemory("bob", root=tmp_path / "three", clock=clock) as another:
        another.import_(tmp_path / "again.yaml")
        another.export(tmp_path / "thrice.yaml")
    assert (tmp_path / "again.yaml").read_bytes() == (tmp_path / "thrice.yaml").read_bytes()


def test_undo_takes_back_what_a_memory_said_in_its_run(
    memory: AgentMemory, said: list[str]
) -> None:
    first, second = sessions(memory)
    before = [(it.target, it.valid_to) for it in first.graph.relationships()]
    closed = told(second)
    second.delete(said[2])
    assert [edge.valid_to for edge in second.graph.relationships(include_closed=True)] == [None]
    second.undo()
    assert told(second) == closed
    memory.update(said[0], content="Ann lives in Bergen")
    first.graph.update("Ann", "lives_in", "Bergen", memory_id=said[0])
    assert [edge.target for edge in first.graph.relationships()] == ["Bergen"]
    memory.undo()
    assert [(it.target, it.valid_to) for it in first.graph.relationships()] == before


def test_what_only_an_erased_memory_said_is_nowhere(memory: AgentMemory, said: list[str]) -> None:
    first, second = sessions(memory)
    before = told(first)
    receipt = memory.erase(said[1:], backups=True)
    assert (receipt.clean, receipt.found) == (True, [])
    for text in ("foggy", "zeppelinist", "secretly"):
        command = ["grep", "-r", "-a", "-l", text, str(memory.path.parent)]
        assert subprocess.run(command, capture_output=True).stdout == b""
    assert told(first) == before
    assert told(second) == ([], [])
    assert memory.check().problems == []


@pytest.mark.usefixtures("said")
def test_the_past_of_a_run_is_its_own(memory: AgentMemory, clock: Clock, tmp_path: Path) -> None:
    then = clock.now
    clock.forward(days=1)
    first, _ = sessions(memory)
    before = told(first)
    first.graph.update("Ann", "lives_in", "Bonn", memory_id=first.store("Ann is in Bonn now"))
    memory.export(tmp_path / "then.yaml", as_of=then)
    with AgentMemory("bob", root=tmp_path / "two", clock=clock) as other:
        other.import_(tmp_path / "then.yaml")
        assert told(sessions(other)[0])[0][0].valid_to is None  # type: ignore[index]
        assert [edge.target for edge in sessions(other)[0].graph.relationships()] == ["Oslo"]
    (edge,) = first.graph.relationships(as_of=then)
    assert edge.target == before[0][0].target  # type: ignore[index]


def test_two_entities_that_become_one_keep_what_each_memory_says(
    memory: AgentMemory, said: list[str]
) -> None:
    first, second = sessions(memory)
    second.graph.add("Annie", "lives_in", "Rome", memory_id=said[2], confidence=0.3)
    before = first.graph.relationships()
    memory.session({"user_id": "alice"}).graph.merge("Ann", "Annie")
    assert first.graph.relationships() == before
    (edge,) = second.graph.relationships()
    assert (edge.target, edge.confidence) == ("Rome", 1.0)


# Other programs -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("said")
def test_a_source_that_another_program_names_says_what_the_row_says(
    memory: AgentMemory, visitor: Visitor
) -> None:
    own = memory.store("Ann, again", user_id="alice", run_id="third")
    for kind, table in (("relationship", "relationships"), ("entity", "entities")):
        columns = f"{kind}_id, memory_id"
        visitor(
            memory.path, f"INSERT INTO {kind}_sources ({columns}) SELECT id, '{own}' FROM {table}"
        )
    third = memory.session({"user_id": "alice", "run_id": "third"})
    assert [(it.source, it.target, it.confidence) for it in third.graph.relationships()] == [
        ("Ann", "Oslo", 0.9),
        ("Ann", "Rome", 1.0),
    ]  # the run does not say that Oslo is over
    assert {it.name: it.type for it in third.graph.entities()}["Ann"] == "zeppelinist"
    assert memory.check().problems == []


def test_what_another_program_closes_is_closed_for_each_run(
    memory: AgentMemory, clock: Clock, visitor: Visitor
) -> None:
    first, second = sessions(memory)
    for session in (first, second):
        session.graph.add("Ann", "likes", "tea", memory_id=session.store("Ann likes tea"))
    clock.forward(days=1)
    visitor(memory.path, "UPDATE relationships SET valid_to = '2026-01-30T17:00:00.000000Z'")
    assert first.graph.relationships() == second.graph.relationships() == []
    visitor(memory.path, "UPDATE relationships SET valid_to = NULL")
    assert len(first.graph.relationships()) == len(second.graph.relationships()) == 1


def test_a_file_of_before_says_what_its_rows_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, shipped = tmp_path / "old.db", schema.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: shipped[:14])
        database = Database(path)
        schema.upgrade(database, now="2026-01-28T12:00:00.000000Z", before_upgrade=pytest.fail)
        for sql in OLD_ROWS:
            database.run(sql)
        database.close()
    with AgentMemory.open(path, agent_id="bob") as memory:
        first, second = sessions(memory)
        assert [it.target for it in first.graph.relationships()] == ["Oslo"]
        edges = second.graph.relationships(include_closed=True)
        assert [(it.target, it.valid_to is None) for it in edges] == [
            ("Oslo", False),
            ("Rome", True),
        ]
        assert [it.confidence for it in edges] == [0.9, 0.8]
        assert [it.temporal_context for it in edges] == [None, "now"]
        assert [it.target for it in memory.graph.relationships()] == ["Rome"]
        assert memory.check().problems == []
        memory.export(tmp_path / "first.yaml")
    with AgentMemory.open(tmp_path / "new.db", agent_id="bob") as other:
        other.import_(tmp_path / "first.yaml")
        other.export(tmp_path / "second.yaml")
    assert (tmp_path / "first.yaml").read_bytes() == (tmp_path / "second.yaml").read_bytes()


OLD_ROWS = (
    """INSERT INTO memories (id, content, user_id, run_id) VALUES
('mem-1', 'Oslo', 'alice', 'first'), ('mem-2', 'Oslo!', 'alice', 'second'),
('mem-3', 'Rome', 'alice', 'second')""",
    """INSERT INTO entities (id, name, name_key, user_id, by_hand) VALUES
('ent-1', 'Ann', 'ann', 'alice', 0), ('ent-2', 'Oslo', 'oslo', 'alice', 0),
('ent-3', 'Rome', 'rome', 'alice', 0)""",
    """INSERT INTO relationships (id, source_id, relationship, target_id, confidence,
temporal_context, valid_from, valid_to, closed_by, user_id, by_hand) VALUES
('rel-1', 'ent-1', 'lives_in', 'ent-2', 0.9, 'always', '2026-01-01T00:00:00.000000Z',
  '2026-01-09T00:00:00.000000Z', 'mem-3', 'alice', 0),
('rel-2', 'ent-1', 'lives_in', 'ent-3', 0.8, 'now', '2026-01-09T00:00:00.000000Z', NULL, NULL,
  'alice', 0)""",
    """INSERT INTO relationship_sources (relationship_id, memory_id) VALUES
('rel-1', 'mem-1'), ('rel-1', 'mem-2'), ('rel-2', 'mem-3')""",
    """INSERT INTO entity_sources (entity_id, memory_id) VALUES
('ent-1', 'mem-1'), ('ent-1', 'mem-2'), ('ent-1', 'mem-3'), ('ent-2', 'mem-1'), ('ent-2', 'mem-2'),
('ent-3', 'mem-3')""",
)
