"""A store moves from a file into a database and back, whatever is killed on the way."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Clock
from postgres_server import PostgresServer, Schemas, running_server

from agent_memory import AgentMemory, MigrationError, StorageLocked
from agent_memory.storage.engine import Engine
from agent_memory.storage.stored_rows import TABLES

SIZE = 4_500
"""Memories: many pages, so that a move of them can be killed between any two."""
MOVER = """
import sys
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1]) as memory:
    memory.move_to(sys.argv[2], progress=lambda done, of: print(done, of, flush=True))
"""


@pytest.fixture
def house(tmp_path: Path, clock: Clock) -> Path:
    """Give the root of a file with memories, a history, a graph, vectors, and what was erased."""
    with AgentMemory("bob", root=tmp_path / "file", clock=clock, embedder="wordllama") as memory:
        for number in range(30):
            memory.store(f"Fact {number}: Grüße aus 世界 \U0001f600", tags=["b", "a"])
        ids = [each.id for each in memory.list_recent(limit=30)]
        memory.update(ids[0], content="It was something else")
        memory.archive(ids[1])
        memory.promote(ids[2])
        memory.reject("never say so", reason="a test")
        memory.graph.add("Alice", "works_at", "Acme")
        memory.migrate(embedder="wordllama")
        memory.erase(ids[3])
        memory.delete(ids[4])
        memory.configure(scratchpad_max_size=20)
    return tmp_path / "file"


def engine_of(memory: AgentMemory) -> Engine:
    return memory._store._engine


def rows_of(root: object) -> dict[str, object]:
    with AgentMemory("bob", root=str(root), read_only=True) as memory:
        engine = engine_of(memory)
        rows: dict[str, object] = {
            table.name: engine.stored_rows.between(table, None, None) for table in TABLES
        }
        rows["numbers"] = engine.stored_rows.highest_numbers()
        rows["agent"] = {**engine.agent.row(), "last_accessed": None}
        return rows


def answers_of(root: object, clock: Clock) -> list[object]:
    with AgentMemory("bob", root=str(root), clock=clock, embedder="wordllama") as memory:
        return [
            [(hit.memory.id, round(hit.relevance_score, 6)) for hit in memory.search(query)]
            for query in ("Grüße 7", "世界", "who works where", "something else")
        ]


def test_there_and_back_again(house: Path, schemas: Schemas, tmp_path: Path, clock: Clock) -> None:
    url, before = schemas.url("house"), rows_of(house)
    with AgentMemory("bob", root=house, clock=clock) as memory:
        report = memory.move_to(url)
    assert report.memories == 28
    assert rows_of(url) == before
    with AgentMemory("bob", root=url, clock=clock) as memory:
        memory.move_to(tmp_path / "back")
    assert rows_of(tmp_path / "back") == before
    answers = answers_of(house, clock)
    assert answers_of(url, clock) == answers
    assert answers_of(tmp_path / "back", clock) == answers
    with AgentMemory("bob", root=url, clock=clock) as memory:
        undone = memory.undo()  # the deletion, in the file
        assert undone
        assert memory.count() == 28


def test_a_column_that_others_added_to_the_database_is_named(
    postgres: PostgresServer, house: Path, schemas: Schemas, tmp_path: Path, clock: Clock
) -> None:
    url = schemas.url("house")
    with AgentMemory("bob", root=house, clock=clock) as memory:
        assert memory.move_to(url).notes == []
    with AgentMemory("bob", root=url, clock=clock) as memory:
        assert memory.move_to(tmp_path / "untouched").notes == []
        schema = url.rpartition("schema=")[2]
        postgres.administer(f"ALTER TABLE {schema}.memories ADD COLUMN rating integer")
        try:
            notes = memory.move_to(tmp_path / "back").notes
            exported = memory.export(tmp_path / "1.yaml").notes
        finally:  # other tests use the schema again
            postgres.administer(f"ALTER TABLE {schema}.memories DROP COLUMN rating")
        assert [note.partition("hand ")[2] for note in notes] == [
            "(memories.rating) were not moved"
        ]
        assert "(memories.rating)" in " ".join(exported)


def test_what_is_being_moved_in_is_no_store_yet(
    house: Path, schemas: Schemas, clock: Clock
) -> None:
    url = schemas.url("house")
    refused: list[str] = []

    def look(_done: int, _of: int) -> None:
        if not refused:
            with pytest.raises(StorageLocked) as error:
                AgentMemory("bob", root=url).close()
            refused.append(str(error.value))

    with AgentMemory("bob", root=house, clock=clock) as memory:
        memory.move_to(url, progress=look)
    assert "move" in refused[0]
    assert rows_of(url) == rows_of(house)


def test_a_database_that_changes_what_it_is_given_is_found_out(
    postgres: PostgresServer, schemas: Schemas, house: Path, clock: Clock
) -> None:
    url = schemas.url("house")
    schema = url.rpartition("schema=")[2]
    AgentMemory("amy", root=url).close()
    postgres.administer(
        f"CREATE FUNCTION {schema}.meddle() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.category := 'theirs'; RETURN NEW; END $$;"
        f"CREATE TRIGGER theirs BEFORE INSERT OR UPDATE ON {schema}.memories"
        f" FOR EACH ROW EXECUTE FUNCTION {schema}.meddle()"
    )
    try:
        with (
            AgentMemory("bob", root=house, clock=clock) as memory,
            pytest.raises(MigrationError, match="do not stay"),
        ):
            memory.move_to(url)
    finally:
        postgres.administer(f"DROP FUNCTION {schema}.meddle CASCADE")


# Killed on the way --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    """Run a server that may be killed."""
    with running_server(durable=True) as server:
        yield server


@pytest.fixture
def large(tmp_path: Path) -> Path:
    with AgentMemory("bob", root=tmp_path / "large") as memory:
        memory.store_many([{"content": f"Fact {n}, which is {n * 7}"} for n in range(SIZE)])
    return tmp_path / "large"


def begun(source: object, target: object) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", MOVER, str(source), str(target)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def killed(source: object, target: object, *, after: int) -> None:
    """Begin a move, and kill it when it has told so often of its progress."""
    moving = begun(source, target)
    assert moving.stdout is not None
    for _ in range(after):
        assert moving.stdout.readline(), "it ended before it was killed"
    moving.send_signal(signal.SIGKILL)
    moving.communicate()


def finished(source: object, target: object) -> None:
    moving = begun(source, target)
    _, errors = moving.communicate(timeout=300)
    assert moving.returncode == 0, errors.decode()


@pytest.mark.parametrize("is_back", [False, True], ids=["into a database", "into a file"])
def test_a_move_that_is_killed_goes_on(
    durable: PostgresServer, large: Path, tmp_path: Path, is_back: bool
) -> None:
    chance = random.Random(5)
    url: object = durable.url(schema=f"killed_{int(is_back)}")
    source, target = (large, url)
    if is_back:
        finished(large, url)
        source, target = (url, tmp_path / "back")  # type: ignore[assignment]
    before = rows_of(source)
    for _ in range(3):  # in the first of the two rounds, which have 31 pages each
        killed(source, target, after=chance.randint(1, 30))
    killed(source, target, after=40)
    assert rows_of(source) == before
    finished(source, target)
    assert rows_of(target) == before


def test_a_move_into_a_server_that_is_killed_goes_on(durable: PostgresServer, large: Path) -> None:
    url = durable.url(schema="server_killed")
    moving = begun(large, url)
    assert moving.stdout is not None
    for _ in range(7):
        assert moving.stdout.readline()
    durable.stop("immediate")
    time.sleep(0.5)
    durable.start()
    _, errors = moving.communicate(timeout=300)
    if moving.returncode:
        assert b"StorageUnavailable" in errors
        finished(large, url)
    assert rows_of(url) == rows_of(large)
