"""Other programs read and write the file while the library has it open, and while nobody has.

They need to know nothing but SQL: the file's own rules keep index, tags and history right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import Clock, Visitor

from agent_memory import AgentMemory, Memory

FTS = (
    "SELECT m.id FROM memory_index i JOIN memories m ON m.seq = i.rowid"
    " WHERE memory_index MATCH '{}' ORDER BY i.rank"
)


class Place:
    """A store with one memory, which the library has open while a visitor is there, or not."""

    def __init__(self, root: Path, visitor: Visitor, *, stays_open: bool) -> None:
        self._root = root
        self._visitor = visitor
        self._stays_open = stays_open
        self._memory = self._open()
        self.path = self._memory.path
        self.first = self._memory.store("Prefer walnut wood", tags=["carpentry"], id="first")
        self._pause()

    def _open(self) -> AgentMemory:
        return AgentMemory("bob", root=self._root, clock=Clock(), session_id="session-1")

    def _pause(self) -> None:
        if not self._stays_open:
            self._memory.close()

    def visit(self, sql: str) -> str:
        try:
            return self._visitor(self.path, sql)
        finally:
            if not self._stays_open:
                self._memory = self._open()

    @property
    def memory(self) -> AgentMemory:
        return self._memory

    def found(self, query: str) -> list[str]:
        return [hit.memory.id for hit in self._memory.search(query, 100, count_accesses=False)]

    def stored(self, memory_id: str) -> Memory:
        found = self._memory.get(memory_id)
        assert found is not None
        return found

    def finish(self) -> None:
        """What a visitor did must leave a sound store, which the library goes on using."""
        assert self._memory.check().problems == []
        later = self._memory.store("stored after the visit")
        assert self.found("stored after the visit")[0] == later
        assert self._memory.check().problems == []
        self._memory.close()


@pytest.fixture(params=[True, False], ids=["open", "closed"])
def place(request: pytest.FixtureRequest, root: Path, visitor: Visitor) -> Iterator[Place]:
    made = Place(root, visitor, stays_open=request.param)
    yield made
    made.finish()


# Reading ------------------------------------------------------------------------------------------


def test_a_visitor_lists_and_searches_the_memories(place: Place) -> None:
    assert place.visit("SELECT id, content, tags FROM memories") == (
        'first|Prefer walnut wood|["carpentry"]'
    )
    assert place.visit(FTS.format("preferring AND woods")) == "first"
    assert place.visit(FTS.format("elephant")) == ""
    assert place.visit("SELECT tag FROM memory_tags") == "carpentry"
    assert place.visit("SELECT event, session_id FROM history") == "ADD|session-1"
    assert place.visit("SELECT agent_id FROM agent") == "bob"
    assert place.visit("PRAGMA integrity_check") == "ok"


def test_a_visitor_counts_the_words_of_the_index(place: Place) -> None:
    assert place.visit("SELECT term, doc FROM memory_words WHERE term = 'walnut'") == "walnut|1"


# Adding -------------------------------------------------------------------------------------------


def test_a_row_needs_nothing_but_its_content(place: Place) -> None:
    place.visit("INSERT INTO memories (content) VALUES ('Deploy on Mondays')")
    (found,) = place.found("deployed")
    added = place.stored(found)
    assert re.fullmatch("mem-[0-9a-f]{12}", added.id)
    assert abs(datetime.now(UTC) - added.timestamp) < timedelta(days=1)
    assert added.updated_at == added.timestamp
    assert added.model_dump(exclude={"id", "timestamp", "updated_at"}) == {
        "agent_id": "bob",
        "content": "Deploy on Mondays",
        "category": "note",
        "tags": [],
        "embedding": None,
        "last_accessed": None,
        "access_count": 0,
        "created_by_session": "sqlite3",
        "metadata": {},
        "kind": "learning",
        "importance": "medium",
        "task_metadata": None,
        "archived": False,
        "user_id": None,
        "run_id": None,
        "memory_type": "STANDARD",
        "version": 1,
    }
    assert place.memory.list_recent(1)[0].id == found


def test_a_row_with_all_its_fields_is_read_as_a_memory(place: Place) -> None:
    place.visit(
        "INSERT INTO memories (id, content, category, tags, kind, importance, timestamp,"
        " user_id, task_metadata, metadata) VALUES ('by-hand', 'Ship it', 'task',"
        " '[\"Ops\", \"release \"]', 'task', 'high', '2023-05-08T12:00:00.000000Z',"
        " 'ursula', '{\"status\": \"blocked\"}', '{\"n\": [1, 2.5, null]}')"
    )
    added = place.stored("by-hand")
    assert added.timestamp == datetime(2023, 5, 8, 12, tzinfo=UTC)
    assert added.metadata == {"n": [1, 2.5, None]}
    assert added.task_metadata is not None
    assert added.task_metadata.status == "blocked"
    # Tags are compared as the library writes them, whatever the visitor wrote.
    for tag in ("ops", "release"):
        assert place.memory.count(filters={"tags": [tag]}) == 1
    assert place.found("8 May 2023") == ["by-hand"]
    assert place.found("releases") == ["by-hand"]


def test_chinese_text_of_a_visitor_is_found(place: Place) -> None:
    place.visit("INSERT INTO memories (id, content) VALUES ('chinese', '我们决定使用数据库')")
    assert place.found("数据") == ["chinese"]
    assert place.found("据数") == []


def test_very_many_rows_at_once_are_found(place: Place) -> None:
    place.visit(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
        " INSERT INTO memories (content) SELECT 'row number' || i FROM n"
    )
    assert place.memory.count() == 501
    found = place.found("number321")[0]
    assert place.stored(found).content == "row number321"
    assert len({entry.memory_id for entry in place.memory.history(limit=1_000)}) == 501


def test_insert_or_ignore_keeps_what_is_there(place: Place) -> None:
    place.visit(
        "INSERT OR IGNORE INTO memories (id, content) VALUES ('first', 'other'), ('new', 'other')"
    )
    assert place.stored("first").content == "Prefer walnut wood"
    assert place.found("other") == ["new"]


def test_an_upsert_updates_the_row_and_its_index(place: Place) -> None:
    place.visit(
        "INSERT INTO memories (id, content) VALUES ('first', 'Prefer oak')"
        " ON CONFLICT (id) DO UPDATE SET content = excluded.content"
    )
    assert place.stored("first").content == "Prefer oak"
    assert place.stored("first").version == 2
    assert place.found("oak") == ["first"]
    assert place.found("walnut") == []


# Changing and deleting ----------------------------------------------------------------------------


def test_a_changed_text_is_found_by_its_new_words_only(place: Place) -> None:
    place.visit(
        "UPDATE memories SET content = 'Prefer oak 数据库', tags = '[\"timber\"]',"
        " timestamp = '1999-03-01T00:00:00.000000Z' WHERE id = 'first'"
    )
    for query in ("oak", "数据", "timber", "March 1999"):
        assert place.found(query) == ["first"], query
    for query in ("walnut", "carpentry", "January"):
        assert place.found(query) == [], query
    assert place.memory.count(filters={"tags": ["timber"]}) == 1
    assert place.memory.count(filters={"tags": ["carpentry"]}) == 0


def test_a_deleted_row_leaves_nothing_behind_but_its_history(place: Place) -> None:
    place.visit("DELETE FROM memories WHERE id = 'first'")
    assert place.memory.get("first") is None
    assert place.found("walnut") == []
    assert place.memory.scratchpad().memories == []
    assert place.memory.history("first")[0].event == "DELETE"
    for table in ("memory_tags", "scratchpad"):
        assert place.visit(f"SELECT count(*) FROM {table}") == "0"
    assert place.visit(FTS.format("walnut")) == ""


def test_a_rolled_back_change_never_was(place: Place) -> None:
    place.visit("BEGIN;;UPDATE memories SET content = 'Prefer oak';;ROLLBACK")
    assert place.found("walnut") == ["first"]
    assert place.found("oak") == []
    assert len(place.memory.history()) == 1


def test_a_vacuum_leaves_all_in_place(place: Place) -> None:
    place.visit(
        "DELETE FROM memories;;VACUUM;;INSERT INTO memories (content) VALUES ('Prefer oak')"
    )
    assert place.found("walnut") == []
    (found,) = place.found("oak")
    assert place.stored(found).content == "Prefer oak"


# What the file refuses ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "content = ''",
        "content = '   '",
        "content = NULL",
        "content = 'a' || char(0) || 'b'",
        "content = replace(hex(zeroblob(5001)), '00', 'ab')",
        "timestamp = '2026-01-30'",
        "timestamp = '2026-01-30T16:00:00Z'",
        "timestamp = datetime('now')",
        "timestamp = '2026-21-30T16:00:00.000000Z'",
        "timestamp = '2026-02-30T16:00:00.000000Z'",
        "timestamp = '2026-01-30T25:00:00.000000Z'",
        "timestamp = '2026-01-30 16:00:00.000000Z'",
        "updated_at = 'now'",
        "last_accessed = ''",
        "tags = 'carpentry'",
        "tags = '{}'",
        "tags = NULL",
        "metadata = '[]'",
        "metadata = '{'",
        "task_metadata = '\"completed\"'",
        "kind = 'eternal'",
        "importance = 'HIGH'",
        "memory_type = 'standard'",
        "archived = 2",
        "access_count = -1",
        "access_count = 'many'",
        "id = 'second'",
        "id = 'not an id'",
        "seq = 99",
    ],
)
def test_a_change_to_what_no_memory_can_be_is_refused(
    memory: AgentMemory, visitor: Visitor, change: str
) -> None:
    memory.store("Prefer walnut wood", id="first")
    before = memory.list_recent()
    with pytest.raises(AssertionError, match=r"constraint|cannot|malformed"):
        visitor(memory.path, f"UPDATE memories SET {change}")
    assert memory.list_recent() == before
    assert len(memory.search("walnut", count_accesses=False)) == 1
    assert len(memory.history()) == 1


@pytest.mark.parametrize(
    "values",
    [
        "(id) VALUES ('second')",
        "(content) VALUES ('')",
        "(content, id) VALUES ('fine', 'first')",
        "(content, id) VALUES ('fine', 'not an id')",
        "(content, timestamp) VALUES ('fine', date('now'))",
        "(content, tags) VALUES ('fine', 'carpentry')",
        "(content) VALUES ('fine'), (NULL)",
    ],
)
def test_a_row_that_no_memory_can_be_is_refused(
    memory: AgentMemory, visitor: Visitor, values: str
) -> None:
    memory.store("Prefer walnut wood", id="first")
    with pytest.raises(AssertionError, match=r"constraint|malformed"):
        visitor(memory.path, f"INSERT INTO memories {values}")
    assert [found.content for found in memory.list_recent()] == ["Prefer walnut wood"]
    assert len(memory.history()) == 1


def test_what_the_library_would_refuse_and_the_file_does_not_is_readable(place: Place) -> None:
    place.visit(
        "UPDATE memories SET category = 'unheard-of', metadata = '{\"a\": 1, \"a\": 2}',"
        ' tags = \'["UPPER", " spaced ", "", 5, null, "UPPER"]\', user_id = \'\','
        ' task_metadata = \'{"status": "nearly"}\''
        " WHERE id = 'first'"
    )
    read = place.stored("first")
    assert read.category == "unheard-of"
    assert read.content == "Prefer walnut wood"
    assert place.found("walnut") == ["first"]
    assert place.memory.count(filters={"category": "unheard-of"}) == 1
    assert place.memory.count(filters={"tags": ["upper", "spaced"]}) == 1
    assert place.memory.list_recent(5)[-1].id == "first"
    assert "walnut" in place.memory.context()
    assert len(place.memory.history("first")) == 2
    place.memory.update("first", content="Prefer walnut and oak")
    assert place.stored("first").category == "unheard-of"
    (problem,) = place.memory.check(repair=True).problems
    assert (problem.kind, problem.repaired) == ("wrong_row", True)
    assert place.stored("first").tags == ["upper", "spaced", "5", "null"]


# What the file says of itself ---------------------------------------------------------------------

TABLES = ("memories", "memory_tags", "history", "scratchpad", "agent")
EVIDENT = {
    "change_id", "event", "only_row", "agent_id", "created_at", "total_queries",
    "embeddings_generated", "scratchpad_promotions",
}  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_a_visitor_reads_in_the_schema_what_a_table_and_its_columns_mean(
    memory: AgentMemory, visitor: Visitor, table: str
) -> None:
    sql = visitor(memory.path, f"SELECT sql FROM sqlite_schema WHERE name = '{table}'")
    columns = visitor(memory.path, f"SELECT name FROM pragma_table_info('{table}')").split()
    lines = sql.splitlines()
    assert lines[1].strip().startswith("-- "), "the table's own comment"
    explained = set()
    for before, line in pairwise(lines):
        # A column that was added later stands behind a comma, its comment within the statement.
        if before.strip().startswith("-- ") or " -- " in line or " /* " in line:
            explained.update(line.lstrip(", ").split()[:1])
    unexplained = set(columns) - explained - (EVIDENT if table != "memories" else set())
    assert unexplained == set()


def test_the_shell_search_of_the_schema_works_as_written(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory.store("A database of walnuts", id="first")
    sql = (
        "SELECT m.id, m.content FROM memory_index i JOIN memories m ON m.seq = i.rowid"
        " WHERE memory_index MATCH 'database' ORDER BY i.rank LIMIT 5"
    )
    assert visitor(memory.path, sql) == "first|A database of walnuts"


def test_json_in_the_file_is_json_for_a_visitor(memory: AgentMemory, visitor: Visitor) -> None:
    memory.store("x", tags=["ü", "'"], metadata={"a": {"b": "数据"}})
    printed = visitor(
        memory.path,
        "SELECT metadata ->> '$.a.b' FROM memories;;SELECT value FROM memories, json_each(tags);;"
        "SELECT tags FROM memories",
    ).splitlines()
    assert printed[:3] == ["数据", "ü", "'"]
    assert json.loads(printed[3]) == ["ü", "'"]
