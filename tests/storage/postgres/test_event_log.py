"""The event log in a database: as events.jsonl of a file, for all processes that use the memory."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import psycopg
import pytest
from conftest import NOW, Clock, engine_of
from postgres_server import PostgresServer, Schemas

from agent_memory import AgentMemory, MemoryEvent
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.event_log import EventLog

Opened = Callable[..., AgentMemory]


@pytest.fixture
def opened(schemas: Schemas) -> Opened:
    def opened(agent_id: str = "bob", **options: object) -> AgentMemory:
        return AgentMemory(
            agent_id, root=schemas.url("own"), clock=Clock(), session_id="s-1", **options  # type: ignore[arg-type]
        )  # fmt: skip

    return opened


def log_of(memory: AgentMemory) -> EventLog:
    log = engine_of(memory).event_log
    assert isinstance(log, EventLog)
    return log


def event(number: int, text: str = "") -> MemoryEvent:
    return MemoryEvent(
        name="memory:rendered",
        agent_id="bob",
        timestamp=NOW,
        session_id="s-1",
        data={"number": number, "text": text},
    )


def numbers(log: EventLog) -> list[int]:
    return [each.data["number"] for each in log.read()]


def test_what_one_process_does_another_one_reads(opened: Opened) -> None:
    with opened() as memory, opened() as other, opened("ann") as ann:
        stored = memory.store("Nobody watches yet")
        memory.configure(event_log="brief")
        tea = memory.store("Prefer tea, “so”")
        memory.search("tea")
        memory.context()
        names = [each.name.removeprefix("memory:") for each in other.events()]
        assert names == ["stored", "searched", "rendered"]
        assert [each.session_id for each in other.events(memory_id=tea)] == ["s-1"] * 2
        assert [each.name for each in other.events(memory_id=stored)] == ["memory:searched"]
        assert not any("query" in each.data or "content" in each.data for each in other.events())
        other.configure(event_log="full")
        memory.store("Half a cup is enough")
        memory.search("what do I drink?")
        *_, text, query = other.events()
        assert text.data["content"].startswith("Half a cup")
        assert query.data["query"] == "what do I drink?"
        assert other.statistics().recalls.event_log == "full"
        assert list(ann.events()) == []
        assert (log_of(memory).failures, log_of(other).failures) == (0, 0)


def test_a_writer_keeps_no_event_waiting(opened: Opened) -> None:
    with opened() as memory, opened() as other:
        memory.configure(event_log="brief")
        with engine_of(memory).write():
            other.search("tea")
            assert [each.name for each in other.events()] == ["memory:searched"]


def test_a_follower_misses_nothing_that_many_write(schemas: Schemas, opened: Opened) -> None:
    opened().close()
    told: list[int] = []

    def write(base: int) -> None:
        address = AgentAddress(server_address(schemas.url("own")), "bob")
        with contextlib.closing(Database(address)) as database:
            log = EventLog(database)
            for number in range(60):
                log.append([event(base + number)])
            assert log.failures == 0

    with opened() as memory:
        log = log_of(memory)
        log.append([event(-1)])
        coming = log.follow(until=lambda: not any(thread.is_alive() for thread in threads))
        threads = [threading.Thread(target=write, args=(1_000 * n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        told = [each.data["number"] for each in coming if each is not None]
        assert sorted(told) == sorted(1_000 * n + number for n in range(3) for number in range(60))
        assert told == numbers(log)[1:], "in the order in which they are read later"


def test_the_oldest_go_when_there_is_too_much(opened: Opened) -> None:
    with opened() as memory, opened("ann") as ann:
        log_of(ann).append([event(7)])
        log = EventLog(engine_of(memory).database, most_bytes=2_000)  # type: ignore[attr-defined]
        for number in range(40):
            log.append([event(number, "x" * 50)])
        with engine_of(memory).database.write_aside("events"):  # type: ignore[attr-defined]
            log.trim()
        kept = numbers(log)
        assert kept == list(range(40 - len(kept), 40))
        assert 5 <= len(kept) <= 15
        assert numbers(log_of(ann)) == [7]


def test_what_cannot_be_written_is_counted_and_fails_no_verb(opened: Opened) -> None:
    with opened() as memory:
        memory.configure(event_log="brief")
        log_of(memory).append([event(0, "half a pair \udc00 and a null \x00 are written")])
        with engine_of(memory).read():  # a listener's thread may be in a transaction
            log_of(memory).append([event(1), event(2)])
        assert log_of(memory).failures == 2
        log_of(memory).append([event(3)])
        assert numbers(log_of(memory)) == [0, 3]


def test_what_another_program_wrote_there_is_passed_over(
    opened: Opened, postgres: PostgresServer, schemas: Schemas
) -> None:
    with opened() as memory:
        log_of(memory).append([event(1)])
        schema = schemas.url("own").partition("schema=")[2]
        with psycopg.connect(postgres.url("postgres")) as connection:
            connection.execute(
                f"INSERT INTO {schema}.events VALUES ('bob', 1, '[\"\\u0000\"]'), ('bob', 2, '5')"
            )
        assert numbers(log_of(memory)) == [1]


def test_erasing_takes_the_memory_and_all_quotations_out(opened: Opened) -> None:
    with opened() as memory:
        memory.configure(event_log="brief")
        kept = memory.store("Tea is green")
        gone = memory.store("The password of the safe is 1234")
        memory.search("tea safe")
        memory.configure(event_log="full")
        memory.search("which password has the safe?")
        memory.configure(event_log="brief")
        receipt = memory.erase(gone)
        assert receipt.clean, receipt.found
        assert gone not in repr(list(memory.events()))
        assert "safe" not in repr(list(memory.events()))
        stored, searched, again = memory.events()
        assert (again.name, "query" in again.data) == ("memory:searched", False)
        assert stored.data["memory_id"] == kept
        assert searched.data["memory_ids"] == [kept]


def test_a_move_leaves_the_log_behind(opened: Opened, tmp_path: object) -> None:
    with opened() as memory:
        memory.configure(event_log="brief")
        memory.store("Prefer tea")
        memory.move_to(str(tmp_path))
    with AgentMemory("bob", root=str(tmp_path)) as moved:
        assert moved.configure().event_log == "brief"
        assert list(moved.events()) == []
