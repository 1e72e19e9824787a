"""Rows that no import would take: `check` names them, and mends them without loss.

`tests/property/test_odd_rows.py` has the rule for rows of any kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock

from agent_memory import AgentMemory, ValidationError
from agent_memory.integrations.tools import MemoryTools

TAGS = [f"tag{n}" for n in range(21)]
BIG = "123456789012345678901234567890"
KINDS: dict[str, tuple[str, str, str, Any]] = {
    # what another program writes: column, value in SQL; what it becomes, and what is kept
    "a line break": ("content", "char(10)", "(no text)", None),
    "21 tags": ("tags", f"'{json.dumps(TAGS)}'", json.dumps(TAGS[:20]), TAGS),
    "a long tag": ("tags", f"'{json.dumps(['0' * 60])}'", json.dumps(["0" * 50]), ["0" * 60]),
    "a blank user": ("user_id", "' '", "None", None),
    "a blank session": ("created_by_session", "''", "sqlite3", None),
    "a big integer": ("metadata", f"'{{\"n\": {BIG}}}'", json.dumps({"n": BIG}), None),
    "an infinite number": ("metadata", "'{\"n\": 9e999}'", json.dumps({"n": "9e999"}), None),
    "half a character": ("metadata", "'{\"n\": \"\\ud800\"}'", json.dumps({"n": "<D800>"}), None),
    "a NUL": ("run_id", "'a' || char(0)", "a<00>", "a<00>"),
    "a year 0": ("timestamp", "'0000-05-01T00:00:00.000000Z'", "", "0000-05-01T00:00:00.000000Z"),
    "a huge count": ("access_count", "9223372036854775807", str(2**53 - 1), 2**63 - 1),
    "a huge version": ("version", "9223372036854775807", "", None),
    "a category of nobody": ("category", "'recipe'", "note", None),
    "a long category": ("category", f"'{'c' * 201}'", "note", "c" * 201),
    "a task of no status": ("task_metadata", "'{\"status\": \"so\"}'", "None", {"status": "so"}),
    "a task with more": (
        "task_metadata", "'{\"status\": \"blocked\", \"x\": 1}'", '{"status": "blocked"}',
        {"status": "blocked", "x": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_row_is_named_and_mended_without_loss(
    root: Path, tmp_path: Path, visitor: Callable[[Path, str], str], name: str
) -> None:
    column, sql, becomes, kept = KINDS[name]
    with AgentMemory("bob", root=root, clock=Clock()) as memory:
        memory.store("plain tea", id="plain")
        values = {"id": "'odd'", "content": "'odd tea'", column: sql}
        visitor(
            memory.path,
            f"INSERT INTO memories ({', '.join(values)}) VALUES ({', '.join(values.values())})",
        )
        problems = memory.check().problems
        assert {problem.kind for problem in problems} == {"wrong_row"}
        assert any("memory odd" in p.detail and column in p.detail for p in problems)
        assert all("check --repair" in problem.detail for problem in problems)
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        odd = memory.get("odd")
        assert odd is not None
        data = odd.model_dump(mode="json", exclude_none=True)
        value = data.get(column)
        written = json.dumps(value) if isinstance(value, list | dict) else str(value)
        if column == "task_metadata" and value is not None:
            written = json.dumps({"status": value["status"]})
        assert written == becomes or not becomes
        assert odd.metadata.get(f"unreadable_{column}") == kept
        assert memory.backups()[0].reason == "repair"
        memory.export(tmp_path / "all.yaml")
        with AgentMemory("bob", root=tmp_path / "other", clock=Clock()) as other:
            other.import_(tmp_path / "all.yaml")
            assert other.get("odd") == odd


@pytest.mark.parametrize("levels", [300, 600])
def test_what_is_nested_without_end_is_mended_in_the_history_too(
    root: Path, tmp_path: Path, visitor: Callable[[Path, str], str], levels: int
) -> None:
    with AgentMemory("bob", root=root, clock=Clock()) as memory:
        nested = f'{{"a": {"[" * levels}"deep tea"{"]" * levels}}}'
        visitor(
            memory.path,
            f"INSERT INTO memories (id, content, metadata) VALUES ('odd', 'odd tea', '{nested}')",
        )
        assert memory.secrets() == []
        for name in ("markdown", "json", "record-json"):
            with pytest.raises(ValidationError, match="memory odd cannot be written"):
                memory.export(tmp_path / name, format=name)
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        assert "deep tea" in str(memory.get("odd"))
        assert memory.secrets() == []
        memory.export(tmp_path / "all.yaml")
        with AgentMemory("bob", root=tmp_path / "other", clock=Clock()) as other:
            other.import_(tmp_path / "all.yaml")
            assert other.get("odd") == memory.get("odd")
            assert len(other.history("odd")) == len(memory.history("odd"))


def test_users_of_long_names_stay_apart(root: Path, visitor: Callable[[Path, str], str]) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain")
        for letter in "ab":
            visitor(
                memory.path,
                f"INSERT INTO memories (content, user_id)"
                f" VALUES ('of {letter}', printf('%0300d', 0) || '{letter}')",
            )
        assert memory.check(repair=True).ok
        users = {found.content: found.user_id for found in memory.list_recent()}
        assert len({users["of a"], users["of b"], users["plain"]}) == 3


def test_the_other_tables_are_looked_at_too(
    root: Path, tmp_path: Path, visitor: Callable[[Path, str], str]
) -> None:
    with AgentMemory("bob", root=root, clock=Clock()) as memory:
        memory.store("tea", id="tea")
        memory.reject("never")
        memory.erase(memory.store("gone", id="gone"))
        visitor(
            memory.path,
            "UPDATE tombstones SET erased_at = 'once';;"
            "UPDATE rejections SET word_count = 9223372036854775807;;"
            "INSERT INTO entities (id, name, user_id) VALUES ('e1', 'A' || char(7) || 'b', '  ');;"
            "INSERT INTO reviews (seq, version, proposed_at) VALUES (1, 1, 'soon');;"
            "UPDATE rejections SET rejected_at = 'then', reason = printf('%0600d', 0);;"
            "UPDATE scratchpad SET entered_at = 'early';;"
            "UPDATE agent SET total_queries = -5, created_at = 'once';;"
            "UPDATE history SET changed_at = 'late'",
        )
        named = " ".join(problem.detail for problem in memory.check().problems)
        for place in (
            "name of row 1 of entities", "user_id of row 1 of entities", "proposed_at of row 1",
            "rejected_at of row 1", "reason of row 1 of rejections", "entered_at of row 1",
            "total_queries of row 1 of agent", "created_at of row 1 of agent", "change 1 of memory",
            "word_count of row 1 of rejections", "erased_at of tombstone",
        ):  # fmt: skip
            assert place in named
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        memory.export(tmp_path / "all.yaml")
        with AgentMemory("bob", root=tmp_path / "other", clock=Clock()) as other:
            other.import_(tmp_path / "all.yaml")
            assert [entity.name for entity in other.graph.entities()] == ["Ab"]
            assert len(other.reviews()) == len(other.rejections()) == 1
            with pytest.raises(ValidationError, match="erased"):
                other.store("gone", id="gone")


def test_rows_below_the_first_are_exported(
    root: Path, tmp_path: Path, visitor: Callable[[Path, str], str]
) -> None:
    """Exports began at row 1, and left out without a word what another program numbered below."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("tea")
        visitor(memory.path, "INSERT INTO memories (seq, content) VALUES (-5, 'low'), (0, 'none')")
        memory.export(tmp_path / "all.jsonl", format="jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["content"] for line in lines) == ["low", "none", "tea"]


def test_a_category_that_nobody_made_is_kept_and_given_back(
    root: Path, tmp_path: Path, visitor: Callable[[Path, str], str]
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(categories=["incident"])
        memory.store("known", category="incident")
        sql = "INSERT INTO memories (id, content, category) VALUES ('odd', 'tea', 'recipe')"
        visitor(memory.path, sql)
        (problem,) = memory.check().problems
        assert "'recipe' is no category: `configure categories` adds one" in problem.detail
        assert memory.check(repair=True).ok
        odd = memory.get("odd")
        assert odd is not None
        assert (odd.category, odd.metadata) == ("note", {"original_category": "recipe"})
        memory.export(tmp_path / "all.jsonl", format="jsonl")
        assert '"category":"recipe"' in (tmp_path / "all.jsonl").read_text()
        memory.configure(categories=["incident", "recipe"])
        visitor(memory.path, sql.replace("odd", "odd-2"))
        assert memory.check().problems == []


def test_no_undo_brings_back_what_a_repair_mended(
    root: Path, visitor: Callable[[Path, str], str]
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain")
        visitor(memory.path, "INSERT INTO memories (content, user_id) VALUES ('tea', ' ')")
        assert memory.check(repair=True).ok
        with pytest.raises(ValidationError, match="the last operation, `check --repair`,"):
            memory.undo()
        assert memory.check().problems == []


@pytest.mark.parametrize("number", ["9e999", "-9e999", BIG, "9" * 5000])
def test_a_number_that_json_cannot_hold_blocks_no_merge(
    root: Path, visitor: Callable[[Path, str], str], number: str
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("plain")
        visitor(
            memory.path,
            "INSERT INTO memories (id, content, metadata)"
            f" VALUES ('odd', 'green tea', '{{\"n\": {number}}}')",
        )
        assert memory.store("Green tea", tags=["drinks"], on_duplicate="merge") == "odd"
        odd = memory.get("odd")
        assert odd is not None
        assert (odd.tags, odd.metadata) == (["drinks"], {"n": number})
        assert MemoryTools(memory).call("memory_get", {"memory_id": "odd"}).success
