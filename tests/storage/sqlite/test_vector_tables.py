"""The index of vectors in an ordinary table: the same answers, in a file any program reads."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest
from conftest import TESTS, Ran, Visitor
from embedding_server import DIMENSIONS, WordEmbedder

from agent_memory import AgentMemory, ValidationError
from agent_memory.storage.code_search import EXACT_UP_TO
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.engine import SQLiteEngine
from agent_memory.storage.sqlite.tables.plain_codes import PlainCodes
from agent_memory.storage.sqlite.tables.vec0_codes import Vec0Codes

MANY = EXACT_UP_TO + 500
WORDS = "red green blue old new fast slow house river tree cat dog train garden".split()
QUESTIONS = ["dog and cat", "a fast train", "river", "garden house", "item7", "red red red"]


def opened(root: Path) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=WordEmbedder())


def make(root: Path, count: int) -> None:
    numbers = np.random.default_rng(7)
    with opened(root) as memory:
        memory.store_many(
            {
                "content": f"item{number} {' '.join(numbers.choice(WORDS, 5))}",
                "id": f"m{number}",
                "session_id": f"s{number}",
                "category": "task" if number % 8 else "note",
            }
            for number in range(count)
        )
        memory.migrate(embedder=WordEmbedder())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store that is too large for every vector to be compared."""
    root = tmp_path_factory.mktemp("large")
    make(root, MANY)
    return root


@pytest.fixture
def memory(root: Path, large: Path) -> Iterator[AgentMemory]:
    """Return that store, a copy of its own, with its index in an ordinary table."""
    shutil.copytree(large, root)
    with opened(root) as opened_memory:
        opened_memory.configure(vector_index="table")
        yield opened_memory


def index_tables(path: Path) -> list[str]:
    """Return the tables that are the index of vectors, without the parts of a virtual one."""
    database = Database(path, read_only=True)
    rows = database.rows("SELECT name FROM sqlite_schema WHERE name GLOB 'embedding_*_[0-9]'")
    database.close()
    names = [name for (name,) in rows]
    names.remove("embedding_cells_1")
    return names


def change(path: Path, *statements: str) -> None:
    database = Database(path)
    with database.write():
        for statement in statements:
            database.run(statement)
    database.close()


def answers(memory: AgentMemory, category: str | None = None) -> list[list[tuple[str, float]]]:
    results = [
        memory.search(text, 10, category=category, count_accesses=False) for text in QUESTIONS
    ]
    assert all(len(result) == 10 for result in results)
    assert all(result.search_metadata.degraded == [] for result in results)
    return [[(hit.memory.id, hit.relevance_score) for hit in result] for result in results]


@pytest.mark.parametrize("category", [None, "task"])
def test_both_tables_give_the_same_answers_with_and_without_sqlite_vec(
    large: Path, root: Path, monkeypatch: pytest.MonkeyPatch, category: str | None
) -> None:
    shutil.copytree(large, root)
    asked: list[type] = []
    for table in (Vec0Codes, PlainCodes):
        original = table.nearest

        def nearest(
            self: Vec0Codes | PlainCodes,
            *values: object,
            original: Callable[..., object] = original,
            **limits: object,
        ) -> object:
            asked.append(type(self))
            return original(self, *values, **limits)

        monkeypatch.setattr(table, "nearest", nearest)
    with opened(root) as memory:
        expected = answers(memory, category)
        memory.configure(vector_index="table")
        assert answers(memory, category) == expected
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with opened(root) as memory:
        without = answers(memory, category)
    assert [[name for name, _ in hits] for hits in without] == [
        [name for name, _ in hits] for hits in expected
    ]
    assert asked == [Vec0Codes] * len(QUESTIONS) + [PlainCodes] * len(QUESTIONS) * 2


def test_the_setting_moves_the_index_at_once_there_and_back(memory: AgentMemory) -> None:
    assert index_tables(memory.path) == ["embedding_codes_1"]
    assert memory.configure().vector_index == "table"
    assert memory.check().problems == []
    before = answers(memory)
    memory.configure(vector_index="vec0")
    assert index_tables(memory.path) == ["embedding_index_1"]
    assert memory.check().problems == []
    assert answers(memory) == before
    memory.configure(scratchpad_max_size=30)
    assert index_tables(memory.path) == ["embedding_index_1"]


def test_a_setting_that_there_is_not_is_refused(
    memory: AgentMemory, cli: Callable[..., Ran]
) -> None:
    with pytest.raises(ValidationError, match="vector_index"):
        memory.configure(vector_index="hnsw")
    shown = cli("--agent", "bob", "configure", "vector_index", "vec0")
    assert "vec0" in shown.out
    assert index_tables(memory.path) == ["embedding_index_1"]


def test_a_setting_that_another_program_wrote_is_followed_by_the_next_search(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory.configure(vector_index="vec0")
    visitor(memory.path, "UPDATE agent SET config = json_set(config, '$.vector_index', 'table')")
    expected = answers(memory)
    assert index_tables(memory.path) == ["embedding_codes_1"]
    assert answers(memory) == expected


def test_the_table_follows_the_memories_and_other_programs(
    memory: AgentMemory, visitor: Visitor
) -> None:
    memory.store("lantern", id="lantern")
    memory.delete("m1")
    memory.undo()
    memory.update("m2", archived=True)
    memory.erase("m3")
    visitor(
        memory.path,
        "DELETE FROM memories WHERE id = 'm4';;"
        "UPDATE memories SET content = 'anchor' WHERE id = 'm5';;"
        "INSERT INTO memories (content, id) VALUES ('harbour', 'm-new')",
    )
    for text in ("lantern", "anchor", "harbour"):
        assert memory.search(text, 1, similarity_threshold=0.99)[0].memory.content == text
    assert memory.check().problems == []
    indexed = "SELECT count(*) FROM embedding_codes_1"
    kept = "SELECT count(*) FROM memories WHERE archived = 0"
    assert visitor(memory.path, indexed) == visitor(memory.path, kept) == str(MANY - 1)


CODE = f"zeroblob({DIMENSIONS * 5 // 8})"
TAIL = " STRICT, WITHOUT ROWID"
CELL_COLUMNS = (
    "(cell INTEGER PRIMARY KEY, centre BLOB NOT NULL, made_of INTEGER NOT NULL,"
    " retired INTEGER NOT NULL) STRICT"
)
DAMAGES = {
    "a row is gone": (["DELETE FROM embedding_codes_1 WHERE seq = 2"], "1 row"),
    "a row is another's": ([f"UPDATE embedding_codes_1 SET code = {CODE} WHERE seq = 2"], "1 row"),
    "a row is cut": (["UPDATE embedding_codes_1 SET code = x'01' WHERE seq = 2"], "1 row"),
    "a row of nothing": ([f"INSERT INTO embedding_codes_1 VALUES (0, 900000, {CODE})"], "1 row"),
    "the table is gone": (["DROP TABLE embedding_codes_1"], "embedding_codes_1 is missing"),
    "a row is in no cell": (["UPDATE embedding_codes_1 SET cell = 5 WHERE seq = 2"], "1 row"),
    "there are no cells": (["DELETE FROM embedding_cells_1"], "20 rows of"),
    "the table of cells is gone": (["DROP TABLE embedding_cells_1"], "_codes_1 is missing"),
    "the table of cells is another's": (
        ["DROP TABLE embedding_cells_1", "CREATE TABLE embedding_cells_1 (cell, centre)"],
        "embedding_codes_1 is missing",
    ),
    "the table is another's": (
        [
            "DROP TABLE embedding_codes_1",
            "CREATE TABLE embedding_codes_1 (seq INTEGER PRIMARY KEY, code BLOB CHECK (0))",
        ],
        "embedding_codes_1 is missing",
    ),
    "the table refuses writes": (
        ["CREATE UNIQUE INDEX refuse ON embedding_codes_1 (1 + 0)"],
        "the index refuse",
    ),
    "cells of no model": (
        ["CREATE TABLE embedding_cells_7 " + CELL_COLUMNS],
        "embedding_cells_7 belongs to no model",
    ),
    "a table of no model": (
        ["CREATE TABLE embedding_codes_7 (seq INTEGER PRIMARY KEY, code BLOB NOT NULL)" + TAIL],
        "embedding_codes_7 belongs to no model",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_to_the_table_is_found_named_and_mended(root: Path, name: str) -> None:
    make(root, 20)
    statements, words = DAMAGES[name]
    with opened(root) as memory:
        memory.configure(vector_index="table")
        if "refuses" in name:
            change(memory.path, "DELETE FROM embedding_codes_1")
        change(memory.path, *statements)
        details = [problem.detail for problem in memory.check().problems]
        assert any(words in detail for detail in details), details
        assert memory.search("item7", 1)[0].memory.id == "m7"
        assert memory.check(repair=True).ok
        memory.store("lantern", id="lantern")
        assert memory.search("lantern", 1)[0].memory.id == "lantern"
        assert memory.check().problems == []
        assert index_tables(memory.path) == ["embedding_codes_1"]


def test_where_sqlite_vec_is_not_a_store_is_searched_by_the_table_and_later_by_vec0(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite_vec", None)
        make(root, 20)
        with opened(root) as memory:
            assert index_tables(memory.path) == ["embedding_codes_1"]
            memory.store("lantern", id="lantern")
            assert memory.check().problems == []
    with opened(root) as memory:
        assert memory.search("lantern", 1)[0].memory.id == "lantern"
        assert index_tables(memory.path) == ["embedding_index_1"]
        assert memory.check().problems == []


def connection_of(memory: AgentMemory) -> apsw.Connection:
    engine = memory._store._engine
    assert isinstance(engine, SQLiteEngine)
    return engine.database._connected()


def executed(memory: AgentMemory, verb: Callable[[], object]) -> list[str]:
    """Return the statements that a verb executes."""
    connection = connection_of(memory)
    statements: list[str] = []

    def trace(_: object, sql: str, _values: object) -> bool:
        statements.append(sql)
        return True

    connection.exec_trace = trace
    verb()
    connection.exec_trace = None
    return statements


def test_a_store_reads_what_tables_an_index_has_no_oftener_than_needed(
    root: Path,
) -> None:
    make(root, 20)
    with opened(root) as memory:
        memory.store("item20 red")
        statements = executed(memory, lambda: memory.store("item21 green"))
        tables = [sql for sql in statements if "FROM sqlite_schema" in sql]
        assert len(tables) == 2
        assert len(statements) <= 60


def test_a_list_that_is_stored_is_taken_off_the_queue_in_one_pass(root: Path) -> None:
    make(root, 20)
    with opened(root) as memory:
        items = [{"content": f"item{number} red"} for number in range(20, 320)]
        statements = executed(memory, lambda: memory.store_many(items))
        assert sum("DELETE FROM embeddings" in sql for sql in statements) == len(items)


def test_by_turns_a_store_and_a_search_prepare_no_statement_again(root: Path) -> None:
    make(root, 20)
    with opened(root) as memory:
        connection = connection_of(memory)
        for number in range(20, 24):
            before = connection.cache_stats()
            memory.store(f"item{number} red")
            memory.search("fast train", 5)
        after = connection.cache_stats()
        # Pragmas are not kept, and a search has statements of its own.
        assert after["misses"] - before["misses"] < 20


def test_what_changes_while_the_index_is_missing_is_in_the_one_that_is_built(root: Path) -> None:
    make(root, 20)
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.update("m1", archived=True)
        memory.store("a text that m2 has as well", id="m2b")
        memory.update("m2", content="a text that m2 has as well")
    with opened(root) as memory:
        memory.embed()
        memory.update("m1", archived=False)
        change(memory.path, "UPDATE embedding_models SET is_indexed = 0")
        memory.store("lantern")
        assert memory.check().problems == []


def test_a_migration_to_the_model_in_use_builds_an_index_that_is_missing(root: Path) -> None:
    make(root, 20)
    with opened(root) as memory:
        change(memory.path, "UPDATE embedding_models SET is_indexed = 0")
        memory.migrate()
        database = Database(memory.path, read_only=True)
        assert database.value("SELECT is_indexed FROM embedding_models") == 1
        database.close()


MOVER = """
import sys
from pathlib import Path
from test_vector_tables import opened
with opened(Path(sys.argv[1])) as memory:
    print("open", flush=True)
    while True:
        for kind in ("vec0", "table"):
            memory.configure(vector_index=kind)
"""


def test_a_kill_between_the_tables_leaves_one_of_them_whole(
    memory: AgentMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(memory)
    memory.close()
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{TESTS}")
    chance = random.Random(5)
    for _ in range(3):
        command = [sys.executable, "-c", MOVER, str(root)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mover:
            assert mover.stdout is not None
            assert mover.stdout.readline() == "open\n"
            time.sleep(chance.random() * 0.5)
            assert mover.poll() is None
            mover.kill()
        with opened(root) as again:
            assert again.check().problems == []
            assert answers(again) == expected
            assert len(index_tables(again.path)) == 1
