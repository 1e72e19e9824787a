"""MCP's server-memory: observations become memories, entities and relations the graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from peer_files import SAMPLES, everything, lines, taken_in

from agent_memory import AgentMemory, ValidationError
from agent_memory.formats.registry import recognise

SAMPLE = SAMPLES / "mcp-memory.jsonl"
"""Written by @modelcontextprotocol/server-memory 2026.8.31, asked by its own tools."""
ENTITY = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea"]}


def test_a_file_of_the_server_comes_in_with_its_graph(tmp_path: Path) -> None:
    report, memories = taken_in(SAMPLE, tmp_path)
    assert (report.format, report.new, report.refused) == ("mcp-memory", 6, 0)
    assert [memory.content for memory in memories] == [
        "Mara_Novak: Leads the billing team",
        "Mara_Novak: Speaks Slovene, English and 日本語",
        "Ledger: Written in Rust",
        "Ledger: Releases on the first Tuesday of a month",
        "Ledger: Line one\nline two",
        "Ledger: Moved to PostgreSQL 17",
    ]
    assert memories[0].metadata == {
        "source": "mcp-memory",
        "entity": "Mara_Novak",
        "entity_type": "person",
        "observation": "Leads the billing team",
    }
    with AgentMemory.open(tmp_path / "in.db") as memory:
        assert {entity.name: entity.type for entity in memory.graph.entities()} == {
            "Mara_Novak": "person",
            "Ledger": "project",
            "Old Town Office": "place",
            "PostgreSQL": None,
        }
        edges = {
            (edge.source, edge.relationship, edge.target) for edge in memory.graph.relationships()
        }
        assert edges == {
            ("Mara_Novak", "maintains", "Ledger"),
            ("Mara_Novak", "works in", "Old Town Office"),
            ("Ledger", "depends on", "PostgreSQL"),
        }
        ledger = memory.graph.entity("Ledger")
        assert ledger is not None
        assert ledger.source_memory_ids == [
            each.id for each in memories if each.content.startswith("Ledger")
        ]


def test_a_file_that_grew_brings_what_is_new(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    path.write_text(lines(ENTITY))
    with AgentMemory.open(tmp_path / "in.db", agent_id="bob") as memory:
        memory.import_(path)
        path.write_text(
            lines(
                {**ENTITY, "observations": ["likes tea", "has a dog"]},
                {"type": "relation", "from": "Ann", "to": "Rex", "relationType": "owns"},
            )
        )
        for _ in range(2):
            report = memory.import_(path)
        assert (report.new, report.same) == (0, 2)
        assert [each.content for each in everything(memory)] == ["Ann: likes tea", "Ann: has a dog"]
        assert len(memory.graph.relationships()) == 1
        assert len(memory.graph.entities()) == 2


def test_a_line_of_another_version_is_passed_over_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text(lines(ENTITY, {"type": "event", "name": "x"}, {"type": "event", "name": "y"}))
    report, memories = taken_in(path, tmp_path)
    assert len(memories) == 1
    assert report.notes[0] == "skipped: lines of the type 'event': 2"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: is not JSON"),
        ("[]", "line 2: is a JSON list"),
        ('{"name": "x"}', "line 2: type: is missing"),
        ('{"type": 7}', "line 2: type: is missing"),
        ('{"type": "entity", "name": "x", "observations": "y"}', "observations: is not a list"),
        ('{"type": "entity", "name": "x", "observations": [7]}', "is a JSON int, not a string"),
        ('{"type": "entity", "name": 7, "observations": []}', "name: a name must have 1 to 200"),
        ('{"type": "entity", "name": "a\\u0000", "observations": []}', "name: the text has a NUL"),
        ('{"type": "relation", "from": "x", "to": "y"}', "relationType: a name must have 1 to 200"),
        ('{"type": "relation", "from": "x", "to": "' + "y" * 201 + '"}', "to: a name must have 1"),
        ('{"type": "entity", "name": "' + "y" * 10**7, "line 2: is longer than 1,000,000 bytes"),
    ],
    ids=range(11),
)
def test_a_broken_line_is_named_and_nothing_is_taken_in(
    memory: AgentMemory, tmp_path: Path, line: str, message: str
) -> None:
    path = tmp_path / "memory.jsonl"
    path.write_text(lines(ENTITY, line))
    with pytest.raises(ValidationError, match="Nothing was imported") as caught:
        memory.import_(path)
    assert message in str(caught.value)
    assert everything(memory) == []
    assert memory.import_(path, skip_bad=True).new == 1


def test_other_lines_of_json_are_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text(lines({"type": "fact", "content": "x"}))
    assert recognise(path).name == "jsonl"
    path.write_text('{"type":"entity","name":"x","observations":["' + "y" * 10**5 + '"]}')
    assert recognise(path).name == "mcp-memory"
