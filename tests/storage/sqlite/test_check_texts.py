"""Texts that are not UTF-8: they are named, encoded anew, and keep nobody from reading the rest."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

import pytest
from conftest import Clock, database_of, engine_of
from reads import read_everything

from agent_memory import AgentMemory
from agent_memory.storage.sqlite import schema

LATIN_1 = "Le café de la gare, réservé à 20 h\nGrüße aus Köln\nplain tea\n".encode("latin-1")
TEXTS = ["Le café de la gare, réservé à 20 h", "Grüße aus Köln", "plain tea"]
SELECT_COLUMNS = "SELECT name FROM pragma_table_info(?) WHERE type = 'TEXT'"
OF_THE_FILE = {
    "name of schema_migrations",
    "sha256 of schema_migrations",
    "agent_id of agent",
    "storage_backend of agent",
    "last_accessed of agent",  # each use writes it anew
    "recalled_at of recalls",  # goes after an hour
    "config of agent",  # which no search may do without
}
"""What holds for the file as a whole: that is no row of many."""


@pytest.fixture
def full(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    """A store that has a row in each table that holds texts, and whose triggers let all pass."""
    with AgentMemory("bob", root=root, clock=clock, session_id="session-1") as memory:
        memory.store("tea with Alice", tags=["drinks"], metadata={"place": "Köln"}, id="first")
        memory.store("Alice works at Acme", user_id="u1", run_id="r1", id="second")
        memory.store("go", kind="task", task_metadata={"status": "blocked"}, id="third")
        memory.graph.add_entity("Alice", type="person", aliases=["Ali"], memory_id="first")
        memory.graph.add("Alice", "works_at", "Acme", memory_id="first")
        memory.reject("never this", reason="because")
        memory.delete(memory.store("gone"))
        engine = engine_of(memory)
        with engine.write():
            review = {"replaced_by": "second", "reasoning": "why", "session_id": "s"}
            engine.reviews.put(1, {**review, "proposed_at": "2026-01-30T16:00:00.000000Z"})
        memory.search("tea")
        yield memory


def spoil(path: Path, table: str, column: str) -> bool:
    """Put a byte of Latin-1 at the end of a column's texts; return whether there are any.

    As a program would that knows nothing of the file's rules.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        triggers = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        for name, _ in (own := triggers.fetchall()):
            connection.execute(f"DROP TRIGGER {name}")
        value = f"CAST({column} AS BLOB)"
        whole = f"substr({value}, 1, length({value}) - 1) || x'e9' || substr({value}, -1)"
        changed = connection.execute(
            f"UPDATE {table} SET {column} = CAST({whole} AS TEXT)"
            f" WHERE rowid = (SELECT min(rowid) FROM {table} WHERE {column} IS NOT NULL)"
        ).rowcount
        for _, sql in own:
            connection.execute(sql)
    return changed > 0


def columns_of_text(memory: AgentMemory) -> list[tuple[str, str]]:
    database = database_of(memory)
    return [
        (table, column)
        for kind, table, sql in schema.objects()
        if kind == "table" and sql.startswith("CREATE TABLE") and "WITHOUT ROWID" not in sql
        for (column,) in database.rows(SELECT_COLUMNS, (table,))
    ]


def test_a_latin_1_file_that_the_shell_imported(root: Path, tmp_path: Path) -> None:
    """One such row blocked `recent`, `history`, `undo`, exports, and the searches that hit it."""
    shell = shutil.which("sqlite3")
    if shell is None:
        pytest.skip("the sqlite3 shell is not installed")
    with AgentMemory("bob", root=root) as memory:
        memory.store("good tea", id="good")
        path = memory.path
    (tmp_path / "rows.csv").write_bytes(b"line\n" + LATIN_1.replace(b", ", b" - "))
    commands = (
        f".import --csv {tmp_path}/rows.csv loaded\n"
        "INSERT INTO memories (content) SELECT line FROM loaded;\nDROP TABLE loaded;\n"
    )
    subprocess.run([shell, "-bail", str(path)], input=commands, text=True, check=True)
    texts = [text.replace(", ", " - ") for text in TEXTS]
    with AgentMemory("bob", root=root) as memory:
        read_everything(memory, tmp_path)
        assert [found.content for found in memory.list_recent()][::-1] == ["good tea", *texts]
        problems = memory.check().problems
        named = [problem.detail for problem in problems if problem.kind == "unreadable_text"]
        ids = [found.id for found in memory.list_recent(4)][::-1]
        assert named == [
            f"content of memory {ids[1]} is not UTF-8: it has the bytes E9 E9 E9 E0",
            f"content of memory {ids[2]} is not UTF-8: it has the bytes FC DF F6",
        ]
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        assert [found.content for found in memory.list_recent()][::-1] == ["good tea", *texts]
        assert [hit.memory.content for hit in memory.search("Köln")] == [texts[1]]
        assert len(memory.history(ids[1])) == 1, "what is encoded anew is no change"
        backup = Path(memory.backups()[0].path)
        memory.undo()
    with closing(sqlite3.connect(backup)) as connection:
        sql = "SELECT CAST(content AS BLOB) FROM memories ORDER BY seq"
        kept = [data for (data,) in connection.execute(sql)]
    assert kept[1] == texts[0].encode("latin-1"), "the bytes as they were"


def _is_of(detail: str, place: str) -> bool:
    column, _, table = place.partition(" of ")
    named = {"memories": "memory", "history": "change"}.get(table, table)
    return detail.startswith(f"{column} of ") and named in detail


def test_every_column_of_every_table(full: AgentMemory, tmp_path: Path) -> None:
    path = full.path
    places = columns_of_text(full)
    full.close()
    fresh = path.with_name("fresh.db")
    shutil.copy(path, fresh)
    tables = dict.fromkeys(table for table, _ in places)
    columns = [[place for place in places if place[0] == table] for table in tables]
    tried = set()
    for together in zip_longest(*columns):  # one column of each table at a time
        shutil.copy(fresh, path)
        spoiled = {
            f"{place[1]} of {place[0]}"
            for place in together
            if place is not None and f"{place[1]} of {place[0]}" not in OF_THE_FILE
            and spoil(path, *place)
        }  # fmt: skip
        with AgentMemory.open(path) as memory:
            read_everything(memory, tmp_path)
            named = [problem.detail for problem in memory.check().problems]
            unnamed = {
                place
                for place in spoiled
                if not any("UTF-8" in detail and _is_of(detail, place) for detail in named)
            }
            assert not unnamed
            report = memory.check(repair=True)
            assert report.ok, (spoiled, [each for each in report.problems if not each.repaired])
            assert memory.check().problems == [], spoiled
            read_everything(memory, tmp_path)
        tried |= spoiled
    assert len(tried) > 40


def test_a_content_that_grows_too_long_is_kept_whole(
    memory: AgentMemory, visitor: Callable[[Path, str], str]
) -> None:
    """Each byte that is no character of anything is written as four."""
    visitor(
        memory.path,
        "INSERT INTO memories (id, content)"
        " VALUES ('long', CAST(x'41' || CAST(replace(hex(zeroblob(4500)), '0', 'x') AS BLOB)"
        " || CAST(replace(hex(zeroblob(400)), '00', CAST(x'81' AS TEXT)) AS BLOB) AS TEXT))",
    )
    read = memory.get("long")
    assert read is not None
    assert len(read.content) > 10_000
    assert memory.check(repair=True).ok
    mended = memory.get("long")
    assert mended is not None
    assert len(mended.content) == 10_000
    assert mended.metadata["unreadable_content"] == read.content
