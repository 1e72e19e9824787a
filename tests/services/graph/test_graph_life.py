"""The graph through a file's life: with its memories it goes and comes, and with the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Clock, Visitor, database_of

from agent_memory import AgentMemory, MemoryNotFound, ValidationError
from agent_memory.api.graph import MemoryGraph
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database


@pytest.fixture
def graph(memory: AgentMemory) -> MemoryGraph:
    return memory.graph


def told(graph: MemoryGraph, **options: object) -> list[str]:
    edges = graph.relationships(**options)  # type: ignore[arg-type]
    return [f"{it.source} {it.relationship} {it.target}" for it in edges]


def names(graph: MemoryGraph) -> list[str]:
    return [it.name for it in graph.entities()]


def grep(text: str, folder: Path) -> bool:
    """Return whether a text is in any file below a folder, by the real grep."""
    done = subprocess.run(
        ["grep", "-r", "-a", "-i", "-q", "-F", "-e", text, str(folder)],
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.returncode == 0


# Memories that go and come ------------------------------------------------------------------------


def test_what_a_deleted_memory_said_is_out_of_sight_until_it_is_back(
    graph: MemoryGraph, memory: AgentMemory, clock: Clock
) -> None:
    memory_id = memory.store("Alice plays chess")
    graph.add("Alice", "plays", "chess", memory_id=memory_id)
    graph.add("Alice", "likes", "tea")
    before = clock.now
    clock.forward(days=1)
    memory.delete(memory_id)
    assert told(graph) == ["Alice likes tea"]
    assert names(graph) == ["Alice", "tea"]
    with pytest.raises(ValidationError, match="no entity has the name 'chess'"):
        graph.neighbours("chess")
    # What was known then is answered as then.
    assert told(graph, as_of=before) == ["Alice plays chess", "Alice likes tea"]
    memory.undo()
    assert told(graph) == ["Alice plays chess", "Alice likes tea"]
    assert graph.relationships("chess")[0].source_memory_ids == [memory_id]


def test_what_two_memories_say_stays_when_one_goes(graph: MemoryGraph, memory: AgentMemory) -> None:
    ids = memory.store_many([{"content": "Alice plays chess"}, {"content": "chess: Alice"}])
    for memory_id in ids:
        edge = graph.add("Alice", "plays", "chess", memory_id=memory_id)
    memory.delete(ids[0])
    assert told(graph) == ["Alice plays chess"]
    assert graph.relationships()[0].source_memory_ids == ids[1:]
    memory.erase(ids[1])
    assert told(graph) == []
    memory.undo(memory.history(ids[0])[0].change_id)
    assert [it.id for it in graph.relationships()] == [edge.id]


def test_what_was_closed_by_a_memory_is_open_again_without_it(
    graph: MemoryGraph, memory: AgentMemory, clock: Clock
) -> None:
    graph.add("I", "lives_in", "Paris", memory_id=memory.store("I live in Paris"))
    clock.forward(days=1)
    graph.add("I", "lives_in", "Berlin", memory_id=memory.store("I moved to Berlin"))
    assert told(graph) == ["USER_ID lives_in Berlin"]
    memory.undo()
    assert told(graph) == ["USER_ID lives_in Paris"]
    memory.undo()
    assert told(graph) == ["USER_ID lives_in Berlin"]


def test_undoing_a_changed_memory_undoes_what_was_read_from_the_change(
    graph: MemoryGraph, memory: AgentMemory, clock: Clock
) -> None:
    memory_id = memory.store("likes pasta", user_id="u1")
    graph.add("I", "likes", "pasta", memory_id=memory_id)
    last_week = clock.now
    clock.forward(days=7)
    memory.update(memory_id, content="loves pasta and pizza")
    update = {"action": "UPDATE", "source": "I", "target": "pasta", "relationship": "loves",
              "old_relationship": "likes"}  # fmt: skip
    add = {"action": "ADD", "source": "I", "target": "pizza", "relationship": "loves"}
    graph.apply({"updates": [update, add]}, source_memory_ids=[memory_id])
    after = ["USER_ID loves pasta", "USER_ID loves pizza"]
    assert told(graph) == after
    for _ in range(2):
        memory.undo()
        assert told(graph) == ["USER_ID likes pasta"]
        assert names(graph) == ["USER_ID", "pasta"]
        memory.undo()
        assert told(graph) == after
    assert told(graph, as_of=last_week) == ["USER_ID likes pasta"]
    # Another memory's undo leaves it alone.
    memory.store("something else")
    memory.undo()
    assert told(graph) == after


def test_what_is_said_again_after_it_was_undone_is_in_sight(
    graph: MemoryGraph, memory: AgentMemory
) -> None:
    memory_id = memory.store("likes pasta")
    memory.update(memory_id, content="likes pasta and pizza")
    graph.add_entity("pizza", memory_id=memory_id)
    memory.undo()
    assert names(graph) == []
    graph.add_entity("pizza", memory_id=memory_id)
    assert names(graph) == ["pizza"]


def test_what_holds_by_two_rows_is_told_once(graph: MemoryGraph, memory: AgentMemory) -> None:
    ids = memory.store_many([{"content": "Alice plays chess"}, {"content": "chess: Alice"}])
    graph.add("Alice", "plays", "chess", memory_id=ids[0])
    memory.delete(ids[0])
    graph.add("Alice", "plays", "chess", memory_id=ids[1])
    memory.undo()
    (edge,) = graph.relationships()
    assert edge.source_memory_ids == ids
    assert graph.path("Alice", "chess").names == ["Alice", "chess"]


# Erasing ------------------------------------------------------------------------------------------


def test_erasing_a_memory_leaves_nothing_of_what_only_it_said(
    graph: MemoryGraph, memory: AgentMemory
) -> None:
    kept = memory.store("Alice works at the harbour")
    secret = memory.store("the zeppelinist Alice hides gyroscopes in the harbour")
    graph.add("Alice", "works_at", "harbour", memory_id=kept)
    graph.add_entity("Alice", aliases=["Zeppelinist"], memory_id=secret)
    graph.add("Alice", "smuggles_quietly", "Kreiselkompass", memory_id=secret,
              temporal_context="since midsummernight")  # fmt: skip
    graph.add("Alice", "works_at", "harbour", memory_id=secret,
              temporal_context="on foggy mornings")  # fmt: skip
    graph.add("harbour", "is_in", "Hamburg")
    gone = ["zeppelinist", "smuggles_quietly", "kreiselkompass", "midsummernight", "foggy morn"]
    memory.info()
    assert all(grep(text, memory.path.parent) for text in gone)
    receipt = memory.erase(secret, backups=True)
    assert (receipt.clean, receipt.found) == (True, [])
    assert [text for text in gone if grep(text, memory.path.parent)] == []
    assert told(graph) == ["Alice works_at harbour", "harbour is_in Hamburg"]
    assert names(graph) == ["Alice", "harbour", "Hamburg"]
    assert graph.relationships("Alice")[0].source_memory_ids == [kept]


def test_the_receipt_tells_of_what_was_written_into_the_graph_by_hand(
    graph: MemoryGraph, memory: AgentMemory
) -> None:
    secret = memory.store("gyroscopes in the harbour")
    entity = graph.add_entity("gyroscopes in the harbour")
    receipt = memory.erase(secret)
    assert not receipt.clean
    assert f"the entity {entity.id} of the graph contains part" in receipt.found[0]


def test_the_reason_of_a_closing_is_erased_with_its_memory(
    graph: MemoryGraph, memory: AgentMemory, clock: Clock
) -> None:
    graph.add("Alice", "likes", "tea")
    clock.forward(days=1)
    why = memory.store("Alice hates tea")
    graph.remove("Alice", "likes", "tea", memory_id=why)
    assert told(graph) == []
    memory.erase(why, backups=True)
    assert told(graph) == ["Alice likes tea"]
    assert not grep(why, memory.path)


# Files --------------------------------------------------------------------------------------------


def a_whole_graph(memory: AgentMemory, clock: Clock) -> None:
    """Make a graph that has one of everything."""
    graph = memory.graph
    ids = memory.store_many(
        {"content": text, "user_id": "u1"} for text in ("in Paris", "in Berlin", "gone", "likes")
    )
    graph.add("I", "lives_in", "Paris", memory_id=ids[0], confidence=0.7, run_id="run-1")
    clock.forward(days=1)
    graph.add("I", "lives_in", "Berlin", memory_id=ids[1], temporal_context='"now"\n: [x]')
    graph.add("I", "had", "a dog: 'Rex'", memory_id=ids[2])
    memory.delete(ids[2])
    graph.add_entity("Straße der Nation", type="street", aliases=["Str. d. N."], user_id="u2")
    graph.add_entity("me", aliases=["Al"], memory_id=ids[3], confidence=0.5)
    graph.add("Alice", "knows", "Bob", valid_from="2020-01-01T00:00:00.000001Z")
    memory.update(ids[3], content="loves")
    graph.add("I", "loves", "tea", memory_id=ids[3])
    memory.undo()


def test_a_store_that_was_taken_in_is_written_out_to_the_same_bytes(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    a_whole_graph(memory, clock)
    first, second, third = (tmp_path / f"{n}.yaml" for n in (1, 2, 3))
    memory.export(first)
    with AgentMemory("bob", root=tmp_path / "two", clock=clock) as other:
        assert any("9 entities" in n or "entities" in n for n in other.import_(first).notes)
        other.import_(first)  # again: nothing is doubled
        assert other.graph.relationships() == memory.graph.relationships()
        assert other.graph.entities() == memory.graph.entities()
        other.export(second)
        assert other.check().problems == []
    assert second.read_bytes() == first.read_bytes()
    memory.export(tmp_path / "copy.db", format="sqlite")
    with AgentMemory("bob", root=tmp_path / "three", clock=clock) as another:
        another.import_(tmp_path / "copy.db")
        another.export(third)
    assert third.read_bytes() == first.read_bytes()


def test_an_import_joins_entities_of_one_name_and_drops_what_has_no_memory(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    a_whole_graph(memory, clock)
    memory.export(tmp_path / "all.yaml")
    with AgentMemory("bob", root=tmp_path / "two", clock=clock) as other:
        other.reject("in Berlin")
        alice = other.graph.add("ALICE", "likes", "tea")
        report = other.import_(tmp_path / "all.yaml", skip_bad=True)
        assert report.refused > 0
        assert "Berlin" not in [it.name for it in other.graph.entities()]
        assert other.graph.entity("Alice").id == alice.source_id  # type: ignore[union-attr]
        assert told(other.graph, entity="alice") == ["ALICE likes tea", "ALICE knows Bob"]
        assert other.check().problems == []


def test_what_is_of_memories_that_a_file_does_not_have_is_not_taken_in(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(
        "format: agent-memory store\nversion: 1\nentities:\n"
        "  - {id: ent-1, name: Secretariat, by_hand: false, sources: [mem-gone]}\n"
        "  - {id: ent-2, name: Alice, aliases: [Al], alias_sources: {Al: mem-gone}}\n"
    )
    memory.import_(path)
    assert [(it.name, it.aliases) for it in memory.graph.entities()] == [("Alice", [])]
    assert database_of(memory).value("SELECT count(*) FROM entities") == 1


def test_a_file_that_tells_of_wrong_edges_is_refused_or_told(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.yaml"
    head = "format: agent-memory store\nversion: 1\nentities:\n  - {id: ent-1, name: Alice}\n"
    edge = (
        "relationships:\n  - {id: rel-1, source_id: ent-1, relationship: knows, target_id: {t},"
        " valid_from: 2026-01-02{more}}\n"
    )
    path.write_text(head + edge.replace("{t}", "ent-9").replace("{more}", ""))
    report = memory.import_(path)
    assert any("rel-1 names an entity that does not exist" in note for note in report.notes)
    path.write_text(head + edge.replace("{t}", "ent-1").replace("{more}", ", valid_to: 2026-01-01"))
    with pytest.raises(ValidationError, match="valid_to is before valid_from"):
        memory.import_(path)


def test_the_graph_goes_with_backups_and_with_looks_at_the_past(
    memory: AgentMemory, clock: Clock, tmp_path: Path
) -> None:
    memory.graph.add("Alice", "likes", "tea")
    before = clock.now
    backup = memory.backup()
    clock.forward(days=1)
    memory.graph.remove("Alice", "likes", "tea")
    memory.graph.add("Alice", "likes", "coffee")
    memory.export(tmp_path / "then.yaml", as_of=before)
    text = (tmp_path / "then.yaml").read_text()
    assert "tea" in text
    assert "coffee" not in text
    assert "valid_to" not in text
    AgentMemory.restore(memory.path, backup)
    assert told(memory.graph) == ["Alice likes tea"]


def test_an_older_file_gets_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, shipped = tmp_path / "old.db", schema.migrations()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: shipped[:10])
        database = Database(path)
        schema.upgrade(database, now="2026-01-28T12:00:00.000000Z", before_upgrade=pytest.fail)
        database.run("INSERT INTO memories (id, content) VALUES ('mem-1', 'Alice likes tea')")
        database.close()
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.graph.add("Alice", "likes", "tea", memory_id="mem-1")
        assert told(memory.graph) == ["Alice likes tea"]
        assert memory.check().problems == []


# Other programs -----------------------------------------------------------------------------------

INSERT = """
INSERT INTO entities (name) VALUES ('Alice'), ('Ärzte  ohne Grenzen'), ('ALICE ');;
INSERT INTO relationships (source_id, relationship, target_id, valid_from)
SELECT a.id, 'works_at', b.id, '2026-01-01T00:00:00.000000Z' FROM entities AS a, entities AS b
WHERE a.name IN ('Alice', 'ALICE ') AND b.name LIKE '%Grenzen'"""


def test_another_program_reads_the_graph_and_adds_to_it(
    memory: AgentMemory, visitor: Visitor
) -> None:
    visitor(memory.path, INSERT)
    assert names(memory.graph) == ["Alice", "Ärzte  ohne Grenzen"]
    assert told(memory.graph, entity="ärzte ohne grenzen") == ["Alice works_at Ärzte  ohne Grenzen"]
    memory.graph.add("alice", "likes", "tea", memory_id=memory.store("Alice likes tea"))
    select = "SELECT source, relationship, target FROM graph_edges WHERE valid_to IS NULL"
    seen = visitor(memory.path, select).splitlines()
    assert seen == ["Alice|works_at|Ärzte  ohne Grenzen", "Alice|likes|tea"]
    assert visitor(memory.path, f"DELETE FROM memories;;{select}").splitlines() == seen[:1]
    visitor(memory.path, "DELETE FROM entities WHERE name = 'Alice'")
    assert told(memory.graph) == []
    assert visitor(memory.path, "SELECT count(*) FROM relationships") == "0"


@pytest.mark.file_only("the file is looked into")
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO entities (name) VALUES ('  ')",
        "INSERT INTO entities (name, confidence) VALUES ('a', 2)",
        "INSERT INTO entities (name, created_at) VALUES ('a', 'soon')",
        "UPDATE relationships SET valid_to = '2020-01-01T00:00:00.000000Z'",
        "UPDATE relationships SET valid_from = '2026-01-01'",
        "UPDATE relationships SET user_id = 'u9'",
        "UPDATE entities SET user_id = 'u9'",
        "INSERT INTO relationships (source_id, relationship, target_id) VALUES ('x', 'y', 'z')",
    ],
)
def test_the_file_itself_refuses_what_cannot_be(memory: AgentMemory, sql: str) -> None:
    memory.graph.add("Alice", "likes", "tea")
    with pytest.raises(ValidationError):
        database_of(memory).run(sql)
    assert told(memory.graph) == ["Alice likes tea"]


def test_check_finds_and_mends_what_went_past_the_triggers(memory: AgentMemory) -> None:
    memory.graph.add("Alice", "likes", "tea")
    memory.graph.add("Bob", "likes", "tea")
    memory.graph.add("Carol", "likes", "milk", memory_id=memory.store("Carol likes milk"))
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.isolation_level = None\n"
        "select = \"SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'\"\n"
        "triggers = c.execute(select).fetchall()\n"
        "for name, _ in triggers: c.execute(f'DROP TRIGGER {name}')\n"
        "c.execute('PRAGMA ignore_check_constraints = ON')\n"
        "c.execute(\"DELETE FROM entities WHERE name = 'Alice'\")\n"
        "c.execute(\"UPDATE relationships SET valid_to = '2001' WHERE seq = 2\")\n"
        "c.execute(\"UPDATE relationship_sources SET memory_id = 'mem-lost'\")\n"
        "for _, sql in triggers: c.execute(sql)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(memory.path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    kinds = {problem.kind for problem in memory.check().problems}
    assert kinds >= {"orphan", "wrong_time"}
    report = memory.check(repair=True)
    assert all(problem.repaired for problem in report.problems)
    assert memory.check().problems == []
    assert told(memory.graph, include_closed=True) == ["Bob likes tea"]


def test_a_format_without_room_for_the_graph_says_so(
    graph: MemoryGraph, memory: AgentMemory, tmp_path: Path
) -> None:
    memory.store("Alice plays chess")
    before = memory.export(tmp_path / "before.jsonl", format="jsonl").notes
    assert not any("graph" in note for note in before)
    graph.add("Alice", "plays", "chess")
    for form in ("jsonl", "json", "scratchpad", "directory"):
        notes = memory.export(tmp_path / form, format=form).notes
        assert any("graph export" in note for note in notes)
    for form in ("store", "sqlite", "settings"):
        notes = memory.export(tmp_path / form, format=form).notes
        assert not any("graph" in note for note in notes)


def test_what_one_memory_says_is_told_at_whatever_time(memory: AgentMemory, clock: Clock) -> None:
    first, second = memory.store("Ann lives in Oslo"), memory.store("Ann knows Ben")
    memory.graph.add("Ann", "lives in", "Oslo", memory_id=first)
    memory.graph.add("Ann", "knows", "Ben", memory_id=second)
    clock.forward(days=1)
    memory.graph.remove("Ann", "lives in", "Oslo")
    said = memory.graph.of_memory(first)
    assert [entity.name for entity in said.entities] == ["Ann", "Oslo"]
    (edge,) = said.relationships
    assert (edge.source, edge.relationship, edge.target) == ("Ann", "lives_in", "Oslo")
    assert edge.valid_to is not None
    memory.delete(first)
    with pytest.raises(MemoryNotFound):
        memory.graph.of_memory(first)
    assert [each.target for each in memory.graph.of_memory(second).relationships] == ["Ben"]


def test_a_list_of_entities_goes_on_behind_one_of_them(memory: AgentMemory) -> None:
    for name in ("Ann", "Ben", "Cleo", "Dan", "Eve"):
        memory.graph.add_entity(name)
    first = memory.graph.entities(limit=2)
    memory.graph.add_entity("Fay")
    rest = memory.graph.entities(after=first[-1].id, limit=3)
    assert [entity.name for entity in (*first, *rest)] == ["Ann", "Ben", "Cleo", "Dan", "Eve"]
    with pytest.raises(ValidationError, match="after"):
        memory.graph.entities(after="ent-none")
