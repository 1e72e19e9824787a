"""Moving a store to another engine: every row arrives, and a move that stopped goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import NOW, Clock, database_of, engine_of

from agent_memory import AgentMemory, MoveReport
from agent_memory.errors import ConfigurationError, StorageLocked
from agent_memory.services.transfer.move import Move, refuse_store
from agent_memory.storage.engine import Engine
from agent_memory.storage.opening import open_engine
from agent_memory.storage.stored_rows import TABLES


class StoppedHereError(Exception):
    """What a test stops a move with."""


@pytest.fixture
def lived(memory: AgentMemory, clock: Clock) -> AgentMemory:
    """Give a store in which every table has rows, and numbers of rows that are gone."""
    for number in range(8):
        memory.store(
            f"Fact {number}: Grüße aus 世界, “so” \U0001f600",
            tags=["b", "a"],
            user_id="ann" if number % 2 else None,
            metadata={"n": number, "deep": {"list": [1, None, True, "\x01"]}},
        )
        clock.forward(minutes=1)
    ids = [each.id for each in memory.list_recent(limit=8)]
    memory.update(ids[0], content="Fact 7 was something else")
    memory.archive(ids[1])
    memory.promote(ids[2])
    memory.search("Fact")
    memory.reject("never say this again", reason="a test")
    edge = memory.graph.add("Alice", "works_at", "Acme")
    memory.graph.add_entity("Bob", aliases=["Robert"])
    engine = engine_of(memory)
    with engine.write():
        engine.reviews.add(
            1,
            replaced_by=ids[3],
            confidence=0.5,
            reasoning="as a test",
            session_id="session-1",
            now=NOW,
        )
        for kind, of in (("entity", edge.source_id), ("relationship", edge.id)):
            engine.graph.add_source(kind, of, ids[0], None)
    memory.migrate(embedder="wordllama")
    memory.erase([ids[4]])
    memory.configure(scratchpad_max_size=20)
    memory.delete(memory.store("The last one, which is gone"))
    return memory


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Engine]:
    opened = opened_target(tmp_path)
    yield opened
    opened.close()


def opened_target(folder: Path) -> Engine:
    engine = open_engine(folder / "target.db")
    engine.upgrade(now=NOW)
    return engine


def moved(
    source: Engine, target: Engine, *, progress: Callable[[int, int], None] = lambda *_: None
) -> MoveReport:
    return Move(source, target, progress=progress).run(now=NOW)


def assert_same(source: Engine, target: Engine) -> None:
    for table in TABLES:
        assert target.stored_rows.between(table, None, None) == source.stored_rows.between(
            table, None, None
        ), table.name
    assert target.stored_rows.highest_numbers() == source.stored_rows.highest_numbers()
    assert target.agent.row() == source.agent.row()
    assert target.agent_id == source.agent_id


def test_every_row_arrives_as_it_was(lived: AgentMemory, target: Engine) -> None:
    source = engine_of(lived)
    empty = [table.name for table in TABLES if not source.stored_rows.count(table)]
    assert empty == [], "the test moves rows of all tables"
    report = moved(source, target)
    assert_same(source, target)
    assert (report.memories, report.rows) == (7, report.written)
    assert target.check(repair=False, back_up=lambda: None).problems == []


def test_nothing_is_carried_that_the_library_makes_anew(lived: AgentMemory) -> None:
    """A table that a later migration adds is carried, or made anew: it is in one of these lists."""
    made_anew = {
        "memory_tags", "agent", "schema_migrations", "memory_index", "memory_words",
        "sqlite_sequence",
    }  # fmt: skip
    tables = {
        name
        for (name,) in database_of(lived).rows(
            "SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')"
            " AND schema = 'main' AND name NOT LIKE 'sqlite!_s%' ESCAPE '!'"
        )
        if not name.startswith(("embedding_index", "embedding_c"))
    }
    assert tables - {table.name for table in TABLES} <= made_anew


def test_what_comes_next_has_the_next_numbers(lived: AgentMemory, target: Engine) -> None:
    source = engine_of(lived)
    moved(source, target)
    numbers = source.stored_rows.highest_numbers()
    with target.write():
        row_id = target.memory_rows.insert({"content": "the next one"})
    assert row_id == numbers["memories"] + 1
    assert target.operations.last_number() == numbers["history"] + 1


@pytest.mark.parametrize("at", [1, 5, 20, 40])
def test_a_move_that_stopped_goes_on(lived: AgentMemory, tmp_path: Path, at: int) -> None:
    source, calls = engine_of(lived), []

    def stop(done: int, _total: int) -> None:
        calls.append(done)
        if len(calls) == at:
            raise StoppedHereError

    begun = opened_target(tmp_path)
    try:
        moved(source, begun, progress=stop)
    except StoppedHereError:
        assert begun.agent.identity() is None, "what is not complete is no store"
    begun.close()
    lived.store("Meanwhile somebody stored this")
    lived.delete(lived.list_recent(limit=2)[1].id)
    again = opened_target(tmp_path)
    if again.agent.identity() is None:
        moved(source, again)
        assert_same(source, again)
    again.close()


def test_what_is_stored_during_the_move_arrives(
    lived: AgentMemory, root: Path, target: Engine
) -> None:
    source = engine_of(lived)
    others: list[int] = []

    def store(_done: int, _total: int) -> None:
        if not others:
            others.append(1)
            with AgentMemory("bob", root=root, clock=lambda: NOW) as other:
                other.store("Stored by another process while it moves")

    report = moved(source, target, progress=store)
    assert_same(source, target)
    assert report.memories == 8


def test_nothing_can_be_stored_while_the_rows_are_compared(
    lived: AgentMemory, target: Engine
) -> None:
    """Else it would be in the source alone, when the target is a store already."""
    source, calls = engine_of(lived), [0]
    refused: list[str] = []

    def store(done: int, total: int) -> None:
        is_second_round = calls.count(total) > 0 and done < total
        calls.append(done)
        if is_second_round and not refused:
            other = open_engine(lived._address, create=False)
            with other.nowait(), pytest.raises(StorageLocked), other.write():
                raise AssertionError
            refused.append(other.location)
            other.close()

    moved(source, target, progress=store)
    assert refused


def test_a_store_is_not_moved_over_another(lived: AgentMemory, tmp_path: Path) -> None:
    AgentMemory.open(tmp_path / "target.db", clock=lambda: NOW).close()
    other = opened_target(tmp_path)
    with pytest.raises(ConfigurationError, match="already"):
        refuse_store(other)
    with pytest.raises(StorageLocked, match="was opened while"):
        moved(engine_of(lived), other)
    assert other.memories.is_empty()
    other.close()
