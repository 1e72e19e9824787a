"""Damage that other programs can do to the file: it is found, told, and mended without loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock, Visitor
from reads import stored

from agent_memory import AgentMemory, StorageError, StorageReadOnly

WORDS = ("walnut", "oak", "elephant", "数据", "thunder", "carpentry", "zoo")
TRIGGERS = "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = '{}'"
UNCHECKED = "PRAGMA ignore_check_constraints = 1;;"
EVERYTHING = (
    "SELECT * FROM memories ORDER BY seq;;"
    "SELECT * FROM memory_tags ORDER BY seq, tag;;"
    "SELECT * FROM scratchpad ORDER BY seq;;"
    "SELECT * FROM history ORDER BY change_id;;"
    "SELECT id, hex(block) FROM memory_index_data ORDER BY id;;"
    "SELECT id, hex(sz) FROM memory_index_docsize ORDER BY id;;"
    "SELECT name, sql FROM sqlite_schema ORDER BY name"
)


@pytest.fixture
def damaged(root: Path) -> Iterator[AgentMemory]:
    """An open store of three memories, for a visitor to spoil."""
    with AgentMemory("bob", root=root, clock=Clock(), session_id="session-1") as memory:
        memory.store("Prefer walnut wood", id="first", tags=["carpentry"], session_id="a")
        memory.store("An elephant 数据库", id="second", tags=["zoo"], session_id="b")
        memory.store("Thunder at night", id="third", metadata={"a": 1}, session_id="c")
        yield memory


def without(visitor: Visitor, path: Path, triggers: str, sql: str) -> None:
    """Run SQL as if the triggers were not there: how an index comes to lag behind its table."""
    names = triggers.split()
    definitions = [visitor(path, TRIGGERS.format(name)) for name in names]
    assert all(definitions)
    drop = [f"DROP TRIGGER {name}" for name in names]
    visitor(path, ";;".join([*drop, sql, *definitions]))


def assert_right(memory: AgentMemory) -> None:
    """The index, the tags and the scratchpad must say what the memories say."""
    memories = memory.list_recent(100)
    for word in WORDS:
        expected = {
            found.id for found in memories if word in found.content.lower() or word in found.tags
        }
        hits = memory.search(word, 100, count_accesses=False)
        assert {hit.memory.id for hit in hits} == expected, word
        tagged = [found for found in memories if word in found.tags]
        assert memory.count(filters={"tags": [word]}) == len(tagged)
    ids = {found.id for found in memories}
    assert {entry.id for entry in memory.scratchpad().memories} <= ids


@dataclass(frozen=True)
class Damage:
    """SQL that spoils a store, and what ``check`` must call it.

    ``triggers`` are put aside meanwhile; ``left`` are the memories that are there afterwards.
    """

    name: str
    kinds: set[str]
    sql: str
    triggers: str = ""
    left: tuple[str, ...] = ("first", "second", "third")

    def do(self, visitor: Visitor, path: Path) -> None:
        without(visitor, path, self.triggers, self.sql)


INDEX_TRIGGERS = "memory_index_of_changing memory_index_of_changed"
DAMAGES = [
    Damage(
        "text changed, index not told",
        {"stale_keyword_index"},
        "UPDATE memories SET content = 'Prefer oak' WHERE id = 'first'",
        INDEX_TRIGGERS,
    ),
    Damage(
        "date changed, index not told",
        {"stale_keyword_index"},
        "UPDATE memories SET timestamp = '1999-03-01T00:00:00.000000Z'",
        INDEX_TRIGGERS,
    ),
    Damage(
        "row added, index not told",
        {"stale_keyword_index"},
        "INSERT INTO memories (id, content) VALUES ('fourth', 'oak and 数据')",
        "memory_index_of_new",
        left=("first", "second", "third", "fourth"),
    ),
    Damage(
        "row deleted, index not told",
        {"stale_keyword_index"},
        "DELETE FROM memories WHERE id = 'first'",
        "memory_index_of_deleting",
        left=("second", "third"),
    ),
    Damage(
        "row replaced under its number",
        {"stale_keyword_index", "wrong_tags"},
        "INSERT OR REPLACE INTO memories (seq, id, content) VALUES (1, 'new', 'oak')",
        left=("new", "second", "third"),
    ),
    Damage(
        "row replaced under its id",
        {"stale_keyword_index", "wrong_tags", "orphan"},
        "INSERT OR REPLACE INTO memories (id, content) VALUES ('first', 'oak')",
    ),
    Damage(
        "index blocks deleted",
        {"damaged_file", "stale_keyword_index"},
        "DELETE FROM memory_index_data WHERE id > 10",
    ),
    Damage(
        "all index blocks deleted",
        {"damaged_file", "stale_keyword_index"},
        "DELETE FROM memory_index_data",
    ),
    Damage(
        "index sizes deleted",
        {"stale_keyword_index"},
        "DELETE FROM memory_index_docsize",
    ),
    Damage(
        "index block overwritten",
        {"damaged_file", "stale_keyword_index"},
        "UPDATE memory_index_data SET block = zeroblob(40) WHERE id > 10",
    ),
    Damage("tags deleted", {"wrong_tags"}, "DELETE FROM memory_tags"),
    Damage("tag changed", {"wrong_tags"}, "UPDATE memory_tags SET tag = 'oak' WHERE seq = 1"),
    Damage("tag of another", {"wrong_tags"}, "INSERT INTO memory_tags VALUES (3, 'zoo')"),
    Damage("tag of nothing", {"wrong_tags"}, "INSERT INTO memory_tags VALUES (99, 'zoo')"),
    Damage(
        "tags changed, memory_tags not told",
        {"wrong_tags"},
        "UPDATE memories SET tags = '[\"oak\"]' WHERE id = 'first'",
        "memory_tags_of_changed",
    ),
    Damage(
        "scratchpad entry of nothing",
        {"orphan"},
        "INSERT INTO scratchpad (seq, entered_at, reason)"
        " VALUES (99, '2026-01-30T16:00:00.000000Z', 'stored')",
    ),
    Damage(
        "row deleted, scratchpad and tags not told",
        {"orphan", "wrong_tags"},
        "DELETE FROM memories WHERE id = 'first'",
        "scratchpad_of_deleted memory_tags_of_deleted",
        left=("second", "third"),
    ),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_damage_is_found_told_and_mended(
    damaged: AgentMemory, visitor: Visitor, root: Path, damage: Damage
) -> None:
    damage.do(visitor, damaged.path)
    before = visitor(damaged.path, EVERYTHING)
    first = damaged.check()
    assert not first.ok
    assert {problem.kind for problem in first.problems} >= damage.kinds - {"damaged_file"}
    assert {problem.kind for problem in first.problems} <= damage.kinds
    assert all(problem.detail and not problem.repaired for problem in first.problems)
    assert damaged.check() == first
    assert visitor(damaged.path, EVERYTHING) == before, "looking must change nothing"

    mended = damaged.check(repair=True)
    assert mended.ok
    assert [(problem.kind, problem.repaired) for problem in mended.problems] == [
        (problem.kind, True) for problem in first.problems
    ]
    assert mended.memory_count == len(damage.left)
    assert damaged.check().problems == []
    assert {found.id for found in damaged.list_recent(100)} == set(damage.left)
    assert_right(damaged)
    with AgentMemory("bob", root=root, read_only=True) as other:
        assert_right(other)
    assert visitor(damaged.path, "PRAGMA integrity_check") == "ok"


def test_a_store_with_nothing_wrong_is_left_as_it_is(
    damaged: AgentMemory, visitor: Visitor
) -> None:
    before = visitor(damaged.path, EVERYTHING)
    for repair in (False, True):
        report = damaged.check(repair=repair)
        assert (report.problems, report.ok, report.memory_count) == ([], True, 3)
        assert report.path == str(damaged.path)
    assert visitor(damaged.path, EVERYTHING) == before


def test_several_damages_are_all_told_and_mended_at_once(
    damaged: AgentMemory, visitor: Visitor
) -> None:
    for damage in (DAMAGES[0], DAMAGES[12], DAMAGES[15]):
        damage.do(visitor, damaged.path)
    report = damaged.check(repair=True)
    assert {problem.kind for problem in report.problems} == {
        "stale_keyword_index", "wrong_tags", "orphan",
    }  # fmt: skip
    assert report.ok
    assert damaged.check().problems == []


# JSON that cannot be read -------------------------------------------------------------------------


UNREADABLE = ["{broken", "", "null", '"text"', "NaN", "数 '据\""]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        *(
            (column, text)
            for column in ("metadata", "tags", "task_metadata")
            for text in UNREADABLE
        ),
        ("metadata", "[1]"),
        ("task_metadata", "[1]"),
        ("tags", '{"a":1}'),
    ],
)
def test_json_that_cannot_be_read_is_kept_as_text_in_the_metadata(
    damaged: AgentMemory, visitor: Visitor, column: str, text: str
) -> None:
    quoted = text.replace("'", "''")
    sql = f"{UNCHECKED}UPDATE memories SET {column} = '{quoted}' WHERE id = 'third'"
    without(visitor, damaged.path, "memory_tags_of_changed", sql)
    # The memory can be read and found all the same.
    assert stored(damaged, "third").content == "Thunder at night"
    assert [hit.memory.id for hit in damaged.search("thunder")] == ["third"]
    assert len(damaged.list_recent()) == 3
    first = damaged.check()
    assert "broken_json" in {problem.kind for problem in first.problems}
    assert "third" in " ".join(problem.detail for problem in first.problems)
    assert damaged.check(repair=True).ok
    assert damaged.check().problems == []
    kept = {} if column == "metadata" else {"a": 1}
    assert stored(damaged, "third").metadata == {**kept, f"unreadable_{column}": text}
    assert stored(damaged, "third").tags == []
    assert stored(damaged, "third").task_metadata is None
    assert_right(damaged)


def test_a_memory_with_nothing_but_broken_json_loses_no_text(
    damaged: AgentMemory, visitor: Visitor
) -> None:
    sql = UNCHECKED + "UPDATE memories SET metadata = '{a', tags = '[b', task_metadata = '{c'"
    without(visitor, damaged.path, "memory_tags_of_changed", sql)
    report = damaged.check(repair=True)
    assert len([problem for problem in report.problems if problem.kind == "broken_json"]) == 9
    assert report.ok
    assert damaged.check().problems == []
    for memory_id in ("first", "second", "third"):
        assert stored(damaged, memory_id).metadata == {
            "unreadable_metadata": "{a",
            "unreadable_tags": "[b",
            "unreadable_task_metadata": "{c",
        }
    assert_right(damaged)


def test_the_history_of_a_memory_with_broken_json_can_be_read(
    damaged: AgentMemory, visitor: Visitor
) -> None:
    visitor(damaged.path, UNCHECKED + "UPDATE memories SET metadata = '{broken'")
    newest = damaged.history("third")[0]
    assert newest.old_values == {"metadata": {"a": 1}}
    assert newest.new_values is not None
    assert "broken" in str(newest.new_values["metadata"])
    damaged.check(repair=True)
    assert [entry.event for entry in damaged.history("third")] == ["UPDATE", "UPDATE", "ADD"]


def test_the_mending_of_a_memory_is_in_its_history(damaged: AgentMemory, visitor: Visitor) -> None:
    visitor(damaged.path, UNCHECKED + "UPDATE memories SET metadata = '[1]' WHERE id = 'third'")
    damaged.check(repair=True)
    newest = damaged.history("third")[0]
    assert newest.new_values == {"metadata": {"unreadable_metadata": "[1]"}}
    assert stored(damaged, "third").version == 3


# What cannot be mended, or not at all -------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "kind = 'eternal'",
        "importance = 'extreme'",
        "memory_type = 'none'",
        "timestamp = 'yesterday'",
        "updated_at = ''",
        "last_accessed = 'never'",
        "access_count = -5",
        "archived = 7",
        "content = ''",
    ],
)
def test_a_value_against_the_rules_is_told_and_keeps_nothing_else_from_being_read(
    damaged: AgentMemory, visitor: Visitor, change: str
) -> None:
    visitor(damaged.path, f"{UNCHECKED}UPDATE memories SET {change} WHERE id = 'third'")
    assert not damaged.check().ok
    assert stored(damaged, "third").id == "third"
    assert {found.id for found in damaged.list_recent()} >= {"first", "second"}
    assert [hit.memory.id for hit in damaged.search("walnut", count_accesses=False)] == ["first"]
    assert damaged.search("thunder at night", count_accesses=False) is not None
    # It may mend that or not; but it must say truly which.
    assert damaged.check(repair=True).ok == (damaged.check().problems == [])


@pytest.mark.parametrize("change", ["access_count = -5", "last_accessed = 'never'"])
def test_a_row_that_cannot_be_counted_keeps_no_other_from_being_counted(
    damaged: AgentMemory, visitor: Visitor, root: Path, change: str
) -> None:
    visitor(damaged.path, f"{UNCHECKED}UPDATE memories SET {change} WHERE id = 'third'")
    with AgentMemory("bob", root=root) as other:
        assert len(other.search("thunder")) == 1
        assert len(other.search("walnut")) == 1
        assert other.store("stored after the search", session_id="e")
    assert stored(damaged, "first").access_count == 1
    assert damaged.count() == 4


@pytest.mark.parametrize("trigger", ["memory_index_of_new", "memory_tags_of_new", "history_of_new"])
def test_a_trigger_that_is_gone_is_told(
    damaged: AgentMemory, visitor: Visitor, trigger: str
) -> None:
    # Without it, the next memory is stored and never found.
    visitor(damaged.path, f"DROP TRIGGER {trigger}")
    problems = damaged.check().problems
    assert trigger in " ".join(problem.detail for problem in problems)


def test_a_repaired_store_takes_and_finds_new_memories(
    damaged: AgentMemory, visitor: Visitor
) -> None:
    visitor(damaged.path, "DELETE FROM memory_index_data")
    assert damaged.check(repair=True).ok
    damaged.store("Oak after the storm", id="fourth", tags=["oak"], session_id="d")
    damaged.update("third", content="Nothing at night")
    damaged.delete("second")
    assert damaged.check().problems == []
    assert_right(damaged)


def test_a_page_of_rubbish_is_told(damaged: AgentMemory, root: Path) -> None:
    damaged.store_many({"content": f"filler number {n} " * 20} for n in range(400))
    damaged.close()
    with damaged.path.open("r+b") as file:  # nobody has it open now
        file.seek(8192 * 20)
        file.write(b"\xff" * 8192)
    with AgentMemory("bob", root=root) as memory:
        report = memory.check()
        assert "damaged_file" in {problem.kind for problem in report.problems}
        assert not report.ok


def test_a_store_open_for_reading_only_is_checked_and_not_repaired(damaged: AgentMemory) -> None:
    with AgentMemory.open(damaged.path, read_only=True) as reader:
        assert reader.check().problems == damaged.check().problems
        with pytest.raises(StorageReadOnly, match="read_only"):
            reader.check(repair=True)


def test_the_report_can_be_written_as_json(damaged: AgentMemory, visitor: Visitor) -> None:
    visitor(damaged.path, "DELETE FROM memory_tags")
    written: dict[str, Any] = damaged.check().model_dump(mode="json")
    assert written == {
        "path": str(damaged.path),
        "memory_count": 3,
        "problems": [
            {"kind": "wrong_tags", "detail": written["problems"][0]["detail"], "repaired": False}
        ],
        "notes": [],
        "archived_count": 0,
    }


@pytest.mark.parametrize(
    "changed",
    [
        "UPDATE schema_migrations SET sha256 = 'ab' WHERE number = 5",
        "UPDATE schema_migrations SET name = 'mine' WHERE number = 5",
        "DELETE FROM schema_migrations WHERE number IN (1, 5)",
        "INSERT INTO schema_migrations VALUES (-1, 'mine', 'ab', 'today'), (99, 'm', 'ab', '')",
    ],
)
def test_a_wrong_record_of_a_migration_blocks_nothing_and_is_restored(
    root: Path, visitor: Callable[[Path, str], str], changed: str
) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("kept")
    visitor(memory.path, changed)
    with AgentMemory.open(memory.path) as again:
        assert [memory.content for memory in again.list_recent()] == ["kept"]
        again.store("more")
        assert {problem.kind for problem in again.check().problems} == {"wrong_row"}
        assert again.check(repair=True).ok
        assert again.check().problems == []
    with AgentMemory.open(memory.path) as again:
        assert again.check().problems == []


def test_a_reader_that_misses_a_table_says_what_makes_it_anew(
    damaged: AgentMemory, visitor: Visitor
) -> None:
    visitor(damaged.path, "DROP TABLE memory_index;;DROP TABLE memory_tags")
    for read in (
        lambda: damaged.search("walnut"),
        lambda: damaged.count(filters={"tags": ["zoo"]}),
    ):
        with pytest.raises(StorageError, match="no such") as raised:
            read()
        assert any("check --repair" in note for note in raised.value.__notes__)
    assert damaged.check(repair=True).ok
    assert_right(damaged)
