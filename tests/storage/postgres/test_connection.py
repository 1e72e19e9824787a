"""Transactions on a PostgreSQL server: whose rows they see, who waits, what is lost if it stops."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer, Schemas, running_server

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    AgentNotFound,
    ConfigurationError,
    MigrationError,
    NewerSchema,
    StorageClosed,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
    ValidationError,
)
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.postgres import schema
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.connection.pool import Connection
from agent_memory.storage.postgres.tables.agent import AgentTable

NOW = "2026-01-30T16:00:00.000000Z"


@contextlib.contextmanager
def opened(url: str, agent_id: str = "bob", *, read_only: bool = False) -> Iterator[Database]:
    database = Database(AgentAddress(server_address(url), agent_id), read_only=read_only)
    with contextlib.closing(database):
        schema.prepare(database, now=NOW)
        yield database


@pytest.fixture
def database(schemas: Schemas) -> Iterator[Database]:
    with opened(schemas.url("own")) as database:
        with database.write():
            AgentTable(database).create("bob", now=datetime(2026, 1, 30, tzinfo=UTC))
        yield database


def insert(database: Database, *texts: str) -> None:
    with database.write():
        for text in texts:
            database.run("INSERT INTO memories (content) VALUES (%s)", (text,))


def contents(database: Database) -> list[str]:
    return [text for (text,) in database.rows("SELECT content FROM memories ORDER BY seq")]


# Transactions ---------------------------------------------------------------------------------


def test_what_fails_leaves_nothing_and_what_ends_stays(database: Database) -> None:
    with pytest.raises(ValidationError), database.write():
        database.run("INSERT INTO memories (content) VALUES ('half'), ('')")
    insert(database, "whole")
    assert contents(database) == ["whole"]
    # Its number was not used up: nobody has seen it.
    assert database.value("SELECT seq FROM memories") == 1


def test_a_read_sees_one_unchanging_snapshot(database: Database, schemas: Schemas) -> None:
    with opened(schemas.url("own")) as other, database.read():
        assert contents(database) == []
        insert(other, "later")
        assert contents(database) == []
    assert contents(database) == ["later"]


def test_a_thread_cannot_begin_a_transaction_inside_of_one(database: Database) -> None:
    with (
        database.write(),
        pytest.raises(AgentMemoryError, match="inside a transaction"),
        database.read(),
    ):
        pass
    insert(database, "still good")


def test_nothing_is_written_outside_of_a_write(database: Database) -> None:
    with pytest.raises(StorageReadOnly):
        database.rows("INSERT INTO memories (content) VALUES ('x') RETURNING seq")
    with database.read(), pytest.raises(StorageReadOnly):
        database.run("INSERT INTO memories (content) VALUES ('x')")
    assert contents(database) == []


def test_a_savepoint_lets_the_rest_go_on(database: Database) -> None:
    with database.write():
        database.run("INSERT INTO memories (id, content) VALUES ('m1', 'first')")
        with pytest.raises(ValidationError, match="memories_by_id"), database.savepoint():
            database.run("INSERT INTO memories (id, content) VALUES ('m1', 'again')")
        database.run("INSERT INTO memories (content) VALUES ('second')")
    assert contents(database) == ["first", "second"]


def test_one_writer_an_agent_and_others_do_not_wait(database: Database, schemas: Schemas) -> None:
    with (
        opened(schemas.url("own")) as same,
        opened(schemas.url("own"), "eve") as another,
        database.write(),
    ):
        failures: list[BaseException] = []

        def store_without_waiting() -> None:
            try:
                with same.nowait():
                    insert(same, "no")
            except StorageLocked as error:
                failures.append(error)
            insert(another, "of eve")

        thread = threading.Thread(target=store_without_waiting)
        thread.start()
        thread.join(20)
        assert len(failures) == 1
        assert contents(another) == ["of eve"]
    insert(database, "now")
    assert contents(database) == ["now"]


def test_writers_take_turns_and_lose_nothing(database: Database, schemas: Schemas) -> None:
    def store(name: str) -> None:
        with opened(schemas.url("own")) as own:
            for number in range(20):
                insert(own, f"{name} {number}")

    threads = [threading.Thread(target=store, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(contents(database))) == 80
    rows = database.rows("SELECT seq FROM memories ORDER BY seq")
    assert [number for (number,) in rows] == list(range(1, 81))


def test_a_long_task_is_done_by_one_at_a_time(database: Database, schemas: Schemas) -> None:
    with opened(schemas.url("own")) as other:
        with database.alone(busy="wait"):
            with pytest.raises(StorageLocked, match="wait"), other.alone(busy="wait"):
                pass
            insert(other, "others go on")
        with other.alone(busy="wait"):
            assert contents(database) == ["others go on"]


# Agents apart ---------------------------------------------------------------------------------


def test_every_table_with_an_agent_keeps_agents_apart(database: Database) -> None:
    rows = database.rows(
        """SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
  (SELECT count(*) FROM pg_policy AS p WHERE p.polrelid = c.oid), a.attname IS NOT NULL
FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'agent_id'
WHERE c.relnamespace = current_schema::regnamespace AND c.relkind = 'r'"""
    )
    apart = {name for name, is_apart, policies, _ in rows if is_apart and policies == 1}
    assert apart == {name for name, _, _, has_agent in rows if has_agent}
    assert {name for name, *_ in rows} - apart == {"schema_migrations", "agent_names"}


def test_the_key_of_every_table_begins_with_the_agent(database: Database) -> None:
    rows = database.rows(
        """SELECT i.indrelid::regclass::text, i.indexrelid::regclass::text, a.attname
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE c.relnamespace = current_schema::regnamespace"""
    )
    assert {(table, first) for table, _, first in rows if first != "agent_id"} == {
        ("schema_migrations", "number"),
        ("agent_names", "agent_name"),
    }


def test_no_connection_carries_an_agent_along(database: Database) -> None:
    insert(database, "of bob")
    pool = database.pool
    connection = pool.take()
    try:
        path = f"SET search_path = {database.schema}; SELECT count(*) FROM memories"
        cursor = connection.execute(path)
        while cursor.nextset():
            pass
        assert cursor.fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO memories (agent_id, content) VALUES ('bob', 'x')")
    finally:
        connection.execute("RESET ALL")
        pool.give_back(connection)


# The schema -----------------------------------------------------------------------------------


def test_a_newer_database_is_refused_and_not_touched(postgres: PostgresServer) -> None:
    url = postgres.url(schema="newer")
    with opened(url):
        pass
    postgres.administer("INSERT INTO newer.schema_migrations VALUES (99, 'x', 'y', 'z')")
    with pytest.raises(NewerSchema, match="newer checkout"):
        AgentMemory("bob", root=url)


def test_a_migration_that_was_never_shipped_is_refused(postgres: PostgresServer) -> None:
    url = postgres.url(schema="edited")
    with opened(url):
        pass
    postgres.administer("UPDATE edited.schema_migrations SET sha256 = 'x' WHERE number = 1")
    with pytest.raises(MigrationError, match="0001_memories"):
        AgentMemory("bob", root=url)


def test_processes_that_open_at_once_make_the_schema_once(postgres: PostgresServer) -> None:
    url = postgres.url(schema="at_once")
    failures: list[BaseException] = []

    def prepare() -> None:
        try:
            database = Database(AgentAddress(server_address(url), "bob"))
            with contextlib.closing(database):
                database.pool.is_current = False
                schema.prepare(database, now=NOW)
        except AgentMemoryError as error:
            failures.append(error)

    threads = [threading.Thread(target=prepare) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with opened(url) as database:
        assert schema.current_version(database) == schema.latest_version()


def test_an_agent_that_is_not_there_is_not_made_to_be_read(schemas: Schemas) -> None:
    url = schemas.url("own")
    with AgentMemory("bob", root=url):
        pass
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(AgentNotFound, match="eve"):
            AgentMemory("eve", root=url, **options)  # type: ignore[arg-type]
    assert [agent.agent_id for agent in AgentMemory.agents(url)] == ["bob"]
    assert AgentMemory.exists("bob", url)
    assert not AgentMemory.exists("eve", url)


def test_a_schema_that_was_dropped_under_an_open_memory_is_opened_again(
    postgres: PostgresServer,
) -> None:
    url = postgres.url(schema="dropped")
    with AgentMemory("bob", root=url) as memory:
        memory.store("stored before")
        postgres.administer("DROP SCHEMA dropped CASCADE")
        for use in (memory.list_recent, lambda: memory.store("stored after")):
            with pytest.raises(StorageUnavailable, match="opening it again for writing"):
                use()
    with AgentMemory("bob", root=url) as memory:
        assert memory.list_recent() == []
        memory.store("stored after")
    postgres.administer("DROP SCHEMA dropped CASCADE")


# Connections that go ----------------------------------------------------------------------------


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """Run a server that the test may stop."""
    with running_server(durable=True) as server:
        yield server


def test_a_server_that_was_restarted_is_used_again(own_server: PostgresServer) -> None:
    with opened(own_server.url()) as database:
        insert(database, "before")
        for mode in ("fast", "immediate"):
            own_server.stop(mode)
            own_server.start()
            assert contents(database)[0] == "before"
            own_server.stop(mode)
            own_server.start()
            insert(database, f"after {mode}")
            own_server.stop(mode)
            own_server.start()
            with database.read():
                assert contents(database)[-1] == f"after {mode}"


def test_a_server_that_goes_in_the_middle_of_a_write_keeps_nothing_of_it(
    own_server: PostgresServer,
) -> None:
    with opened(own_server.url()) as database:
        insert(database, "before")
        with pytest.raises(StorageUnavailable):
            insert_around_restart(database, own_server)
        assert contents(database) == ["before"]


def insert_around_restart(database: Database, server: PostgresServer) -> None:
    with database.write():
        database.run("INSERT INTO memories (content) VALUES ('half')")
        server.stop("immediate")
        server.start()
        database.run("INSERT INTO memories (content) VALUES ('other half')")


class _AnswerLost:
    """A connection whose server goes right after it has committed, or right before."""

    def __init__(self, connection: Connection, *, commits: bool) -> None:
        self.connection, self.commits = connection, commits

    def execute(self, sql: str) -> object:
        if self.commits:
            self.connection.execute(sql)
        with psycopg.connect(self.connection.info.dsn, user="postgres", autocommit=True) as other:
            process = self.connection.info.backend_pid
            other.execute("SELECT pg_terminate_backend(%s, 5000)", (process,))
        return self.connection.execute("SELECT 1")


@pytest.mark.parametrize("commits", [True, False])
def test_where_the_answer_is_lost_it_is_asked_what_became_of_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, *, commits: bool
) -> None:
    commit = Database._commit

    def lose_answer(self: Database, connection: Connection, *marks: str) -> None:
        commit(self, _AnswerLost(connection, commits=commits), *marks)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "_commit", lose_answer)
    if commits:
        insert(database, "stored")
    else:
        with pytest.raises(StorageUnavailable):
            insert(database, "not stored")
    monkeypatch.undo()
    assert contents(database) == (["stored"] if commits else [])


def test_who_waits_for_a_connection_is_told_when_there_is_none(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.postgres.connection.pool._WAIT_SECONDS", 0.3)
    with opened(f"{schemas.url('few')}&pool_size=1") as database, database.read():
        failures: list[BaseException] = []

        def look() -> None:
            try:
                contents(database)
            except StorageUnavailable as error:
                failures.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join(20)
        (failure,) = failures
        assert "pool_size" in str(failure)


def test_a_statement_that_takes_too_long_is_a_typed_error(schemas: Schemas) -> None:
    url = f"{schemas.url('slow')}&options=-c%20statement_timeout%3D200"
    with opened(url) as database, pytest.raises(StorageUnavailable, match="statement_timeout"):
        database.value("SELECT 1 FROM pg_sleep(5)")


def test_closed_is_closed(database: Database) -> None:
    database.close()
    database.close()
    with pytest.raises(StorageClosed):
        contents(database)


def test_a_forked_child_has_connections_of_its_own(database: Database) -> None:
    insert(database, "of the parent")
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            insert(database, "of the child")
            code = 0 if contents(database) == ["of the parent", "of the child"] else 2
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    insert(database, "of the parent again")
    assert contents(database) == ["of the parent", "of the child", "of the parent again"]


# Addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:s3c/ret@host/db",
        "postgresql://bob:s3c?ret@host/db",
        "postgresql://bob:5432/ret@host/db",
        "postgresql://bob@corp:s3c/ret@host/db",
        "postgresql://host/db?user=bob@s3c",
        "postgresql://bob:s3c@ret@host/db",
        "postgresql://bob:s3c%ret@host/db",
        "postgresql://bob:s3c%00ret@host/db",
        "postgresql://bob:s3c ret@host/db",
        "postgresql://host/db?password=s3c%00ret",
        "postgresql://bob:s3cret/db",  # the host is forgotten
        "postgresql://host:5432,bob:s3cret/db",
    ],
)
def test_a_password_that_is_cut_in_the_middle_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="%2F") as raised:
        server_address(url)
    assert "s3c" not in str(raised.value)
    assert "ret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["POSTGRESQL://", " postgresql://", "postgresql:/"])
def test_what_is_nearly_an_address_makes_no_folder(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="begins with postgresql://") as raised:
        AgentMemory("bob", root=f"{scheme}bob:s3cret@host/db")
    assert "s3cret" not in str(raised.value)
    with pytest.raises(ConfigurationError, match="begins with postgresql://"):
        AgentMemory.open(f"{scheme}bob:s3cret@host/db".replace("postgresql://", "Postgresql://"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "root",
    ["host=db dbname=m user=bob password=s3cret", "user = bob\tpassword = s3cret", "dbname=m"],
)
def test_keys_and_values_of_libpq_make_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.chdir(tmp_path)
    opening = [partial(AgentMemory, "bob", root=root), partial(AgentMemory.open, root)]
    for opened in opening:
        with pytest.raises(ConfigurationError, match="write postgresql://") as raised:
            opened()
        assert "s3cret" not in str(raised.value)
    assert not list(tmp_path.iterdir())
    AgentMemory("bob", root="user=bob/data").close()  # a folder may be named so


@pytest.mark.parametrize(
    "hosts", ["db", "db:5432", "[::1]:5432", "db1:5432,db2,[::1]", "%2Ftmp%2Fsockets", "", ":5432"]
)
def test_hosts_are_read_as_the_client_library_reads_them(hosts: str) -> None:
    assert str(server_address(f"postgresql://bob:s3c@{hosts}/m")) == f"postgresql://bob@{hosts}/m"


def test_no_message_and_no_name_shows_the_password() -> None:
    address = server_address("postgresql://bob:s3cret@127.0.0.1:1/db?sslpassword=s3cret&schema=x")
    assert str(address) == "postgresql://bob@127.0.0.1:1/db?schema=x"
    assert "s3cret" not in repr(address)
    with pytest.raises(StorageUnavailable) as failure:
        Database(AgentAddress(address, "bob"))
    assert "s3cret" not in str(failure.value)
    assert "127.0.0.1" in str(failure.value)
    with pytest.raises(ConfigurationError, match="…@db2") as refused:
        server_address("postgresql://db1/m?replica=bob:s3cret%0A@db2")
    assert "s3cret" not in str(refused.value)


def test_who_is_not_let_in_is_told_so(postgres: PostgresServer) -> None:
    with pytest.raises(StorageUnavailable, match=r"lets this user in.*does not exist") as refused:
        AgentMemory.agents(postgres.url("nobody"))
    assert "(agent" not in str(refused.value)  # nobody's memories were asked for


@pytest.mark.parametrize("setting", ["row_security", "standard_conforming_strings"])
def test_what_a_role_has_switched_off_is_on_in_each_transaction(
    setting: str, postgres: PostgresServer
) -> None:
    postgres.administer(f"ALTER ROLE app SET {setting} = off")
    try:
        with AgentMemory("bob", root=postgres.url(schema=f"without_{setting}")) as memory:
            memory.store("the oven is broken")
            assert memory.search("oven")[0].memory.content == "the oven is broken"
            assert memory.check().problems == []
    finally:
        postgres.administer(f"ALTER ROLE app RESET {setting}")


def test_a_database_that_is_not_there_is_said_at_once(postgres: PostgresServer) -> None:
    with pytest.raises(StorageUnavailable, match="does not exist"):
        AgentMemory("bob", root=postgres.url(database="nowhere"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("schema=Bob", "lower-case"),
        ("schema=pg_x", "pg_"),
        ("schema=a;b", "lower-case"),
        ("pool_size=0", "1 to 1000"),
        ("pool_size=many", "1 to 1000"),
        ("no_such_option=1", "no_such_option"),
    ],
)
def test_an_address_that_cannot_be_is_refused(query: str, message: str) -> None:
    with pytest.raises(AgentMemoryError, match=message):
        AgentMemory("bob", root=f"postgresql://127.0.0.1:1/db?{query}")


def test_a_file_is_no_database_and_a_database_no_file(schemas: Schemas) -> None:
    url = schemas.url("own")
    with pytest.raises(ConfigurationError, match="not a file"):
        AgentMemory.open(url)
    with AgentMemory("bob", root=url) as memory:
        assert memory.location.endswith("(agent bob)")
        with pytest.raises(ConfigurationError, match="not a file"):
            _ = memory.path
