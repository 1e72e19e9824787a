"""What a server undid is done again; what it acknowledges is on its disk; who waits is told why."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer, Schemas

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    StorageError,
    StorageLocked,
    StorageUnavailable,
)
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.postgres import schema
from agent_memory.storage.postgres.connection import Database

Visitor = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def memory(schemas: Schemas) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=schemas.url("own")) as memory:
        memory.store("Prefer tea in the morning", id="mem-1")
        yield memory


@pytest.fixture
def visitor(schemas: Schemas) -> Iterator[Visitor]:
    """Connect as another program would, and begin to change what is bob's."""
    url = schemas.url("own")
    with psycopg.connect(url.partition("&schema=")[0]) as connection:
        connection.execute(f"SET LOCAL search_path = {url.rpartition('schema=')[2]}")
        connection.execute("SELECT set_config('agent_memory.agent', 'bob', true)")
        yield connection


class InBackground:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.failure: AgentMemoryError | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except AgentMemoryError as failure:
            self.failure = failure

    def done(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert self.failure is None


def wait_for_a_lock(postgres: PostgresServer) -> int:
    """Wait until a connection of the library waits for a row, and return its process."""
    query = """SELECT pid FROM pg_stat_activity WHERE application_name = 'agent-memory'
AND wait_event_type = 'Lock' AND wait_event IN ('transactionid', 'tuple')"""
    deadline = time.monotonic() + 30
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as connection:
        while (row := connection.execute(query).fetchone()) is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    return int(row[0])


# What was undone ----------------------------------------------------------------------------------


def test_a_verb_that_a_deadlock_undid_is_done_again(
    memory: AgentMemory, visitor: Visitor, postgres: PostgresServer
) -> None:
    """The visitor has a row that the verb needs, and needs the lock that the verb has."""
    visitor.execute("SELECT FROM memories WHERE id = 'mem-1' FOR UPDATE")
    verb = InBackground(lambda: memory.update("mem-1", content="Prefer milk"))
    wait_for_a_lock(postgres)
    visitor.execute("INSERT INTO memories (id, content) VALUES ('mem-2', 'Of the visitor')")
    visitor.commit()
    verb.done()
    assert [found.content for found in memory.list_recent()] == ["Of the visitor", "Prefer milk"]
    assert [entry.event for entry in memory.history("mem-1")] == ["UPDATE", "ADD"]


def test_a_verb_whose_connection_was_lost_before_its_commit_is_done_again(
    memory: AgentMemory, visitor: Visitor, postgres: PostgresServer
) -> None:
    visitor.execute("SELECT FROM memories WHERE id = 'mem-1' FOR UPDATE")
    verb = InBackground(lambda: memory.update("mem-1", content="Prefer milk"))
    for _ in range(2):
        process = wait_for_a_lock(postgres)
        postgres.administer(f"SELECT pg_terminate_backend({process}, 5000)")
    visitor.rollback()
    verb.done()
    assert [found.content for found in memory.list_recent()] == ["Prefer milk"]
    assert [entry.event for entry in memory.history("mem-1")] == ["UPDATE", "ADD"]


def test_a_verb_that_is_undone_each_time_is_an_error_at_last(
    memory: AgentMemory, visitor: Visitor, postgres: PostgresServer
) -> None:
    visitor.execute("SELECT FROM memories WHERE id = 'mem-1' FOR UPDATE")
    verb = InBackground(lambda: memory.delete("mem-1"))
    for _ in range(4):
        process = wait_for_a_lock(postgres)
        postgres.administer(f"SELECT pg_terminate_backend({process}, 5000)")
    with pytest.raises(AssertionError):
        verb.done()
    assert isinstance(verb.failure, StorageUnavailable)
    visitor.rollback()
    assert memory.get("mem-1") is not None


def test_a_search_whose_connection_was_lost_in_the_middle_is_done_again(
    memory: AgentMemory, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection of its snapshot is lost after its first statement."""
    row = Database.row
    lost: list[int] = []

    def lose(self: Database, sql: str, values: Any = ()) -> Any:
        connection = self._thread.connection
        is_reading = self._of_snapshot.computed is not None
        if connection is not None and is_reading and len(lost) < 2:
            lost.append(connection.info.backend_pid)
            postgres.administer(f"SELECT pg_terminate_backend({lost[-1]}, 5000)")
        return row(self, sql, values)

    monkeypatch.setattr(Database, "row", lose)
    (hit,) = memory.search("tea")
    assert hit.memory.id == "mem-1"
    assert len(lost) == 2


# On the disk --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_role", "synchronous", "in_force"),
    [
        ("off", "FULL", "on"),
        ("local", "FULL", "local"),
        ("remote_apply", "FULL", "remote_apply"),
        ("on", "NORMAL", "off"),
    ],
)
def test_what_is_acknowledged_is_on_the_disk_whatever_the_role_has(
    schemas: Schemas, of_role: str, synchronous: str, in_force: str
) -> None:
    url = f"{schemas.url('own')}&options=-c%20synchronous_commit%3D{of_role}"
    address = AgentAddress(server_address(url), "bob")
    with contextlib.closing(Database(address, synchronous=synchronous)) as database:
        schema.prepare(database, now="2026-01-30T16:00:00.000000Z")
        assert database.value("SHOW synchronous_commit") == of_role
        with database.write():
            assert database.value("SHOW synchronous_commit") == in_force
        with database.write(durable=False):
            assert database.value("SHOW synchronous_commit") == "off"
        assert database.value("SHOW synchronous_commit") == of_role


# Who waits ----------------------------------------------------------------------------------------


def test_who_waits_for_a_connection_is_told_what_is_in_the_way(
    schemas: Schemas, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.postgres.connection.pool._WAIT_SECONDS", 0.3)
    url = f"{schemas.url('few')}&pool_size=1"
    address = AgentAddress(server_address(url), "bob")
    with contextlib.closing(Database(address)) as database:
        schema.prepare(database, now="2026-01-30T16:00:00.000000Z")
        with database.read():
            waiting = InBackground(lambda: database.value("SELECT 1"))
            with pytest.raises(AssertionError):
                waiting.done()
            assert "all connections of this process were in use" in str(waiting.failure)
            assert "?pool_size=" in str(waiting.failure)
            assert isinstance(waiting.failure, StorageError)
            assert not waiting.failure.is_undone
        postgres.administer("ALTER ROLE app NOLOGIN")
        try:
            process = database.value("SELECT pg_backend_pid()")
            postgres.administer(f"SELECT pg_terminate_backend({process}, 5000)")
            with pytest.raises(StorageUnavailable, match="not permitted to log in"):
                database.value("SELECT 1")
        finally:
            postgres.administer("ALTER ROLE app LOGIN")


def test_a_limit_on_idle_transactions_is_told_and_ends_no_long_task(schemas: Schemas) -> None:
    option = "options=-c%20idle_in_transaction_session_timeout%3D150"
    address = AgentAddress(server_address(f"{schemas.url('idle')}&{option}"), "bob")
    with (
        contextlib.closing(Database(address)) as database,
        contextlib.closing(Database(address)) as other,
    ):
        schema.prepare(database, now="2026-01-30T16:00:00.000000Z")
        with database.alone(busy="wait"):
            time.sleep(0.5)
            with pytest.raises(StorageLocked, match="wait"), other.alone(busy="wait"):
                pass
        with pytest.raises(StorageUnavailable, match="idle_in_transaction"):
            write_slowly(database)
        with database.write():
            assert database.value("SELECT 1") == 1


def write_slowly(database: Database) -> None:
    with database.write():
        time.sleep(0.5)
        database.value("SELECT 1")
