"""The schema's migrations: well named, all or nothing, the same file by whichever way.

``UPDATE_GOLDEN=1 pytest tests/storage/sqlite/test_migrations.py`` writes ``migrations/schema.sql``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from conftest import CHECKOUT

from agent_memory import AgentMemory, MigrationError, StorageError
from agent_memory.storage.migrations import Migration
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.agent import AgentTable

SNAPSHOT = CHECKOUT / "migrations" / "schema.sql"
HEADER = """\
-- The schema that the migrations make together: a new file is made of it. Written by the tests.
"""
SHIPPED = schema.migrations()
OLDER_VERSIONS = range(1, len(SHIPPED))

# FTS5 makes its own tables, and each SQLite may write their SQL in its own way.
DUMP = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
for mark in ("application_id", "user_version"):
    print(f"PRAGMA {mark} = {c.execute(f'PRAGMA {mark}').fetchone()[0]};")
for (sql,) in c.execute('''
    SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'
    AND NOT (type = 'table' AND name LIKE 'memory!_index!_%' ESCAPE '!')
    ORDER BY type = 'table' DESC, type = 'index' DESC, type = 'view' DESC, ''' + sys.argv[2]):
    print(sql + ";")
c.close()
"""


def dumped(path: Path, order: str = "name") -> str:
    """Return the whole schema of a file, as another program sees it."""
    command = [sys.executable, "-c", DUMP, str(path), order]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """Return the schema of a new file."""
    AgentMemory.open(tmp_path / "fresh.db", agent_id="bob").close()
    return dumped(tmp_path / "fresh.db")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the library a folder of migrations that the test may change; ``reread`` reads it."""
    place = tmp_path / "library" / "migrations"
    shutil.copytree(CHECKOUT / "migrations", place)
    monkeypatch.setattr(schema, "_PACKAGE", place.parent)
    schema.migrations.cache_clear()
    yield place
    schema.migrations.cache_clear()


def reread() -> tuple[Migration, ...]:
    schema.migrations.cache_clear()
    return schema.migrations()


def older_file(path: Path, version: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a file as a version of the library with fewer migrations did."""
    path.parent.mkdir(exist_ok=True)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: SHIPPED[:version])
        database = Database(path)
        schema.upgrade(database, now="2026-01-28T12:00:00.000000Z", before_upgrade=pytest.fail)
        database.run("INSERT INTO memories (id, content) VALUES ('mem-1', 'kept')")
        database.close()
    return path


# The files --------------------------------------------------------------------------------------


def test_migrations_are_numbered_from_one_without_a_gap_and_named_alike() -> None:
    files = sorted((CHECKOUT / "migrations").glob("[0-9]*"))
    assert [migration.name for migration in SHIPPED] == [path.name for path in files]
    assert [migration.number for migration in SHIPPED] == list(range(1, len(files) + 1))
    for path in files:
        assert re.fullmatch(r"\d{4}_[a-z][a-z0-9_]*\.sql", path.name)
        assert "-- " in path.read_text(encoding="utf-8")  # explains itself to who opens the file


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("0099_far.sql", "not numbered"),
        ("0006_twice.sql", "not numbered"),
        ("7_short.sql", "not named like"),
        ("0007_Upper.sql", "not named like"),
        ("0007.sql", "not named like"),
    ],
)
def test_a_migration_with_a_wrong_number_or_name_is_refused(
    folder: Path, name: str, message: str
) -> None:
    (folder / name).write_text("CREATE TABLE extra (x);\n")
    with pytest.raises(MigrationError, match=message):
        reread()


@pytest.mark.parametrize("leaves_folder", [False, True])
def test_a_library_without_its_migrations_says_so(
    folder: Path, tmp_path: Path, leaves_folder: bool
) -> None:
    AgentMemory.open(tmp_path / "s.db").close()
    shutil.rmtree(folder)
    if leaves_folder:
        folder.mkdir()
    schema.migrations.cache_clear()
    for path in (tmp_path / "s.db", tmp_path / "new.db"):
        with pytest.raises(MigrationError, match="install agent-memory again"):
            AgentMemory.open(path)


def test_a_library_without_the_whole_schema_says_so(folder: Path, tmp_path: Path) -> None:
    (folder / "schema.sql").unlink()
    with pytest.raises(MigrationError, match="install agent-memory again"):
        AgentMemory.open(tmp_path / "s.db")


def test_line_endings_of_a_checkout_do_not_count_as_an_edit(folder: Path, tmp_path: Path) -> None:
    AgentMemory.open(tmp_path / "s.db").close()
    for path in folder.glob("*.sql"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert [one.sha256 for one in reread()] == [one.sha256 for one in SHIPPED]
    AgentMemory.open(tmp_path / "s.db").close()


def test_an_edited_migration_is_refused(folder: Path, tmp_path: Path) -> None:
    AgentMemory.open(tmp_path / "s.db").close()
    with (folder / SHIPPED[2].name).open("a") as file:
        file.write("CREATE TABLE notes (text TEXT) STRICT;\n")
    reread()
    with pytest.raises(MigrationError, match=SHIPPED[2].name):
        AgentMemory.open(tmp_path / "s.db")


# What they make ---------------------------------------------------------------------------------


def test_a_new_file_is_what_the_migrations_make_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "read_snapshot", lambda _: "")
        path = older_file(tmp_path / "made" / "s.db", len(SHIPPED), monkeypatch)
    made = HEADER + dumped(path, "rowid")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        SNAPSHOT.write_text(made, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == made
    AgentMemory.open(tmp_path / "s.db").close()
    assert dumped(tmp_path / "s.db") == dumped(path)


def test_a_migration_that_is_not_in_the_snapshot_yet_is_applied(
    folder: Path, tmp_path: Path
) -> None:
    number = len(SHIPPED) + 1
    (folder / f"{number:04}_extra.sql").write_text("CREATE TABLE extra (x TEXT) STRICT;\n")
    reread()
    with AgentMemory.open(tmp_path / "s.db") as memory:
        assert memory.info().schema_version == number
    assert "CREATE TABLE extra" in dumped(tmp_path / "s.db")


def test_each_migration_is_recorded_with_its_hash_and_the_time(
    tmp_path: Path, visitor: Callable[[Path, str], str], clock: Callable[[], datetime]
) -> None:
    AgentMemory.open(tmp_path / "s.db", clock=clock).close()
    rows = visitor(tmp_path / "s.db", "SELECT * FROM schema_migrations ORDER BY number")
    assert rows.splitlines() == [
        f"{one.number}|{one.name}|{hashlib.sha256(one.sql.encode()).hexdigest()}"
        "|2026-01-30T16:00:00.000000Z"
        for one in SHIPPED
    ]


def with_the_shell(path: Path, sql: str) -> str:
    program = shutil.which("sqlite3")
    if program is None:
        pytest.skip("the sqlite3 shell is not installed")
    done = subprocess.run([program, "-bail", path], input=sql, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def with_python(path: Path, sql: str) -> str:
    if sqlite3.sqlite_version_info < (3, 37):
        pytest.skip("this Python's SQLite is older than STRICT tables")
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "*script, last = sys.stdin.read().rsplit('\\n-- last\\n', 1)\n"
        "c.executescript(script[0]); print(*(r[0] for r in c.execute(last)), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], input=sql, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("program", [with_the_shell, with_python])
def test_the_schema_works_without_the_library(
    tmp_path: Path, program: Callable[[Path, str], str]
) -> None:
    script = (
        "\n".join(migration.sql for migration in SHIPPED)
        + """
INSERT INTO memories (id, content, tags) VALUES ('mem-1', 'Prefer PostgreSQL', '["database"]');
INSERT INTO memories (id, content) VALUES ('mem-2', 'a walnut'), ('mem-3', 'a mistake');
UPDATE memories SET content = 'a chestnut' WHERE id = 'mem-2';
DELETE FROM memories WHERE id = 'mem-3';
INSERT INTO memory_index (memory_index, rank) VALUES ('integrity-check', 1);
-- last
SELECT m.content || ' ' || m.version FROM memories AS m JOIN memory_index AS i ON i.rowid = m.seq
  WHERE memory_index MATCH 'databases OR walnut OR chestnuts OR mistake'
UNION ALL SELECT tag FROM memory_tags
UNION ALL SELECT event || ' ' || memory_id FROM history;
"""
    )
    assert program(tmp_path / "s.db", script).splitlines() == [
        "Prefer PostgreSQL 1", "a chestnut 2", "database",
        "ADD mem-1", "ADD mem-2", "ADD mem-3", "UPDATE mem-2", "DELETE mem-3",
    ]  # fmt: skip


# Upgrading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", OLDER_VERSIONS)
def test_an_older_file_is_backed_up_and_then_like_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: str, version: int
) -> None:
    path = older_file(tmp_path / "old" / "s.db", version, monkeypatch)
    before = dumped(path)
    with AgentMemory.open(path, agent_id="bob") as memory:
        found = memory.get("mem-1")
        assert found is not None
        assert found.content == "kept"
    assert dumped(path) == fresh
    (backup,) = (tmp_path / "old" / "backups").iterdir()
    assert dumped(backup) == before
    assert f"user_version = {version};" in before


def test_a_new_or_current_file_is_not_backed_up(tmp_path: Path) -> None:
    for _ in range(2):
        AgentMemory.open(tmp_path / "s.db").close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.db"]


def test_an_older_file_opened_read_only_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = older_file(tmp_path / "s.db", 3, monkeypatch)
    before = path.read_bytes()
    with pytest.raises(MigrationError, match="open it once for writing"):
        AgentMemory.open(path, read_only=True)
    assert path.read_bytes() == before
    assert not (tmp_path / "backups").exists()


def test_a_disk_that_fails_as_an_old_files_agent_is_recorded_leaves_it_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = older_file(tmp_path / "s.db", 3, monkeypatch)
    before = dumped(path)
    with monkeypatch.context() as patch:
        patch.setattr(AgentTable, "_INSERT", "INSERT INTO no VALUES (?, ?, ?)")
        with pytest.raises(StorageError, match="no such table"):
            AgentMemory.open(path, agent_id="bob")
    assert dumped(path) == before
    with AgentMemory.open(path, agent_id="bob") as memory:  # it was "being moved here" for good
        assert [one.content for one in memory.list_recent()] == ["kept"]


BROKEN = (
    "CREATE TABLE extra (x TEXT);\nINSERT INTO extra VALUES ('half');\nINSERT INTO no VALUES (1);\n"
)


def test_a_migration_that_fails_leaves_an_old_file_as_it_was(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store("kept")
    before = dumped(path)
    number = len(SHIPPED) + 1
    broken = folder / f"{number:04}_extra.sql"
    broken.write_text(BROKEN)
    reread()
    with pytest.raises(StorageError, match="no such table"):
        AgentMemory.open(path)
    assert dumped(path) == before
    broken.write_text(BROKEN.replace("INTO no ", "INTO extra "))
    reread()
    with AgentMemory.open(path) as memory:  # it can be mended and tried again
        assert memory.info().schema_version == number
        assert [one.content for one in memory.list_recent()] == ["kept"]


def test_a_migration_that_fails_leaves_nothing_in_a_new_file(folder: Path, tmp_path: Path) -> None:
    (folder / f"{len(SHIPPED) + 1:04}_extra.sql").write_text(BROKEN)
    reread()
    with pytest.raises(StorageError, match="no such table"):
        AgentMemory.open(tmp_path / "s.db")
    assert dumped(tmp_path / "s.db") == "PRAGMA application_id = 0;\nPRAGMA user_version = 0;\n"


OPEN_WHEN_TOLD = """
import sys
from agent_memory import AgentMemory
print("ready", flush=True)
sys.stdin.readline()
with AgentMemory.open(sys.argv[1], agent_id="bob") as memory:
    memory.store("stored at once")
    print(memory.info().schema_version)
"""


@pytest.mark.parametrize("version", [0, 3])
def test_processes_that_upgrade_a_file_at_once_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: str, version: int
) -> None:
    path = tmp_path / "s.db"
    if version:
        older_file(path, version, monkeypatch)
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_WHEN_TOLD, path],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=60) for process in processes]
    assert ended == [(f"{len(SHIPPED)}\n", "")] * 4
    assert dumped(path) == fresh
    with AgentMemory.open(path, clock=lambda: datetime.now(UTC)) as memory:
        assert memory.count() == 4 + bool(version)
        assert memory.check().problems == []


@pytest.mark.parametrize("asked", ["schema_version", "user_version", "sqlite_schema"])
def test_a_file_that_another_makes_while_it_is_looked_at_is_no_other_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    path = tmp_path / "s.db"
    made: list[str] = []

    def make_meanwhile(_: object, sql: str, __: object) -> bool:
        if asked in sql and not made:
            made.append(sql)
            with AgentMemory.open(path, agent_id="bob") as other:
                other.store("stored by another")
        return True

    def hook(connection: apsw.Connection) -> None:
        if not made:
            connection.exec_trace = make_meanwhile

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, hook])
    with AgentMemory.open(path, agent_id="bob") as memory:
        assert made
        assert [found.content for found in memory.list_recent()] == ["stored by another"]


# Splitting --------------------------------------------------------------------------------------

TRIGGER = "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM b;\n  DELETE FROM c;\nEND;"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", []),
        ("-- only a comment\n\n", []),
        ("CREATE TABLE a (x);\n", ["CREATE TABLE a (x);"]),
        ("CREATE TABLE a (x);", ["CREATE TABLE a (x);"]),
        ("SELECT 1;\nSELECT 2;\n", ["SELECT 1;", "SELECT 2;"]),
        (f"{TRIGGER}\nSELECT 1;\n", [TRIGGER, "SELECT 1;"]),
        ("SELECT 'a;\nb';\n", ["SELECT 'a;\nb';"]),
        ("SELECT 1 -- one;\n  + 1;\n", ["SELECT 1 -- one;\n  + 1;"]),
        ("/* two;\nlines; */\nSELECT 1;\n", ["/* two;\nlines; */\nSELECT 1;"]),
        ("SELECT 1;\n-- the end\n", ["SELECT 1;"]),
        ("SELECT 1;\n  -- the end, indented\n", ["SELECT 1;"]),
    ],
)
def test_sql_is_split_where_statements_end(sql: str, expected: list[str]) -> None:
    assert list(schema.statements(sql)) == expected


@pytest.mark.parametrize(
    "sql",
    ["CREATE TABLE a (x)", "SELECT 1;\nSELECT 2", TRIGGER.removesuffix("END;"), "SELECT 'a;\n",
     "/* never closed;\nSELECT 1;\n"],
)  # fmt: skip
def test_an_unfinished_statement_is_refused(sql: str) -> None:
    with pytest.raises(MigrationError, match="ends inside a statement"):
        list(schema.statements(sql))


def test_two_statements_on_a_line_with_a_comment_behind_are_both_run(tmp_path: Path) -> None:
    database = Database(tmp_path / "s.db")
    for statement in schema.statements(
        "CREATE TABLE a (x); CREATE TABLE b (x); -- both\nCREATE TABLE c (x);\n"
    ):
        database.run(statement)
    assert database.rows("SELECT name FROM sqlite_schema ORDER BY 1") == [("a",), ("b",), ("c",)]
    database.close()
