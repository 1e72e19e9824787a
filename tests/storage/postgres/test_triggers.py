"""What the triggers of PostgreSQL write is what those of a file write, byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres_server import Schemas

from agent_memory import ValidationError
from agent_memory.models.fields import to_json
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.postgres import schema
from agent_memory.storage.postgres.connection import Database as PostgresDatabase
from agent_memory.storage.sqlite import schema as sqlite_schema
from agent_memory.storage.sqlite.connection import Database as SQLiteDatabase

NOW: Final = "2026-01-30T16:00:00.000000Z"
TEXTS: Final = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12
)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS, lambda part: st.lists(part, max_size=2)
)
ROWS: Final = st.fixed_dictionaries(
    {"content": TEXTS.map(lambda text: f"x{text}"), "created_by_session": TEXTS},
    optional={
        "category": TEXTS,
        "tags": st.lists(TEXTS, max_size=3).map(to_json),
        "user_id": st.none() | TEXTS,
        "run_id": st.none() | TEXTS,
        "archived": st.integers(0, 1),
        "task_metadata": st.none() | st.dictionaries(TEXTS, JSON, max_size=2).map(to_json),
        "metadata": st.dictionaries(TEXTS, JSON, max_size=2).map(to_json),
    },
)


@pytest.fixture
def database(schemas: Schemas) -> Iterator[PostgresDatabase]:
    database = PostgresDatabase(AgentAddress(server_address(schemas.url("own")), "bob"))
    with contextlib.closing(database):
        schema.prepare(database, now=NOW)
        yield database


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SQLiteDatabase]:
    file = SQLiteDatabase(tmp_path / "memories.db")
    with contextlib.closing(file):
        sqlite_schema.upgrade(file, now=NOW, before_upgrade=lambda: None)
        yield file


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=ROWS, second=ROWS)
def test_history_and_tags_are_those_of_a_file(
    first: dict[str, Any], second: dict[str, Any], database: PostgresDatabase, file: SQLiteDatabase
) -> None:
    for other, mark in ((database, "%s"), (file, "?")):
        with other.write():
            other.run("DELETE FROM memories")
            other.run("DELETE FROM history")
            stored = {"id": "m1", "timestamp": NOW, "updated_at": NOW, **first}
            names, marks = ", ".join(stored), ", ".join([mark] * len(stored))
            other.run(f"INSERT INTO memories ({names}) VALUES ({marks})", tuple(stored.values()))
            changed = "".join(f"{name} = {mark}, " for name in second)
            sql = f"UPDATE memories SET {changed}version = version + 1 WHERE id = 'm1'"
            other.run(sql, tuple(second.values()))
    history = "SELECT memory_id, event, session_id, old_values, new_values FROM history"
    tags = "SELECT tag FROM memory_tags ORDER BY tag"
    defaults = {"sqlite3": "psql"}  # who wrote it by hand
    rows = [
        tuple(
            defaults.get(v, v.replace('"sqlite3"', '"psql"')) if isinstance(v, str) else v
            for v in row
        )
        for row in file.rows(f"{history} ORDER BY change_id")
    ]
    assert database.rows(f"{history} ORDER BY change_id") == rows
    assert database.rows(tags) == file.rows(tags)


def test_numbers_are_given_once_to_each_agent(database: PostgresDatabase) -> None:
    with database.write():
        for number in (1, 2, 3):
            row = database.row("INSERT INTO memories (content) VALUES ('x') RETURNING seq")
            assert row == (number,)
        database.run("DELETE FROM memories WHERE seq >= 2")
        assert database.value("INSERT INTO memories (content) VALUES ('x') RETURNING seq") == 4
        database.run("DELETE FROM memories")
        assert database.value("INSERT INTO memories (content) VALUES ('x') RETURNING seq") == 5
        database.run("DELETE FROM history")
        database.run("UPDATE memories SET content = 'y'")
        assert database.value("SELECT change_id FROM history") == 10


def test_a_change_by_hand_is_counted(database: PostgresDatabase) -> None:
    with database.write():
        database.run("INSERT INTO memories (id, content) VALUES ('m1', 'x')")
        database.run("UPDATE memories SET content = 'y' WHERE id = 'm1'")
        assert database.value("SELECT version FROM memories") == 2
        database.run("UPDATE memories SET content = 'y', access_count = 7 WHERE id = 'm1'")
        assert database.value("SELECT version FROM memories") == 2
        assert database.value("SELECT count(*) FROM history") == 2


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO memories (content) VALUES ('  ')",
        "INSERT INTO memories (id, content) VALUES ('a b', 'x')",
        "INSERT INTO memories (content, tags) VALUES ('x', '{}')",
        "INSERT INTO memories (content, tags) VALUES ('x', 'nonsense')",
        "INSERT INTO memories (content, metadata) VALUES ('x', '[]')",
        "INSERT INTO memories (content, timestamp) VALUES ('x', '2026-02-30T12:00:00.000000Z')",
        "INSERT INTO memories (content, timestamp) VALUES ('x', '2026-02-28T24:00:00.000000Z')",
        "INSERT INTO memories (content, timestamp) VALUES ('x', '2026-02-28')",
        "INSERT INTO memories (content, kind) VALUES ('x', 'other')",
        "UPDATE memories SET id = 'other'",
        "UPDATE memories SET seq = seq + 1",
    ],
)
def test_what_a_file_refuses_is_refused(database: PostgresDatabase, sql: str) -> None:
    with database.write():
        database.run("INSERT INTO memories (content) VALUES ('first')")
    with pytest.raises(ValidationError), database.write():
        database.run(sql)
    assert database.value("SELECT count(*) FROM memories") == 1
