"""A replica that searches are looked up in: it lags, it goes, it takes the server's place."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import psycopg
import pytest
from embedding_server import WordEmbedder
from postgres_server import PostgresServer, running_server

from agent_memory import AgentMemory, ConfigurationError, StorageClosed, StorageUnavailable
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.connection.pool import SharedPool
from agent_memory.storage.postgres.connection.replica import Replica
from agent_memory.storage.postgres.engine import PostgresEngine

NUMBERS = count()


class Pair:
    """A server, and a replica of it."""

    def __init__(self, leader: PostgresServer, replica: PostgresServer) -> None:
        self.leader = leader
        self.replica = replica

    def url(self) -> str:
        """Return the address of a new schema, with the replica in it."""
        return self.leader.url(schema=f"followed_{next(NUMBERS)}", replica=str(self.replica.folder))

    def failover_url(self) -> str:
        """Return the address of a new schema on whichever of the two can be written."""
        hosts = f"{self.leader.folder},{self.replica.folder}"
        return (
            f"postgresql://app@/memories?host={hosts}&target_session_attrs=read-write"
            f"&schema=followed_{next(NUMBERS)}&replica={self.replica.folder}"
        )

    def catch_up(self) -> None:
        self.replica.wait_for(self.leader)

    @contextlib.contextmanager
    def lagging(self) -> Iterator[None]:
        """Let the replica show nothing new during the body."""
        self.replica.administer("SELECT pg_wal_replay_pause()")
        try:
            yield
        finally:
            self.replica.administer("SELECT pg_wal_replay_resume()")


@contextlib.contextmanager
def running_pair() -> Iterator[Pair]:
    with (
        running_server(durable=True) as leader,
        running_server(durable=True, leader=leader) as replica,
    ):
        yield Pair(leader, replica)


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with running_pair() as pair:
        yield pair


@pytest.fixture
def own_pair() -> Iterator[Pair]:
    """Run a pair that the test may break."""
    with running_pair() as pair:
        yield pair


def test_threads_that_use_it_first_at_once_share_one_pool(postgres: PostgresServer) -> None:
    replica = Replica(server_address(postgres.url()))
    together = threading.Barrier(8)

    def first_use(_: int) -> SharedPool | None:
        together.wait()
        return replica.pool()

    with ThreadPoolExecutor(8) as threads:
        pools = {pool for pool in threads.map(first_use, range(8)) if pool is not None}
    (pool,) = pools
    assert pool.users == 1
    replica.close()
    assert pool.users == 0


def test_what_is_closed_before_its_first_use_connects_to_nothing(postgres: PostgresServer) -> None:
    replica = Replica(server_address(postgres.url()))
    replica.close()  # by another thread, say, between what a search asks the two servers
    with pytest.raises(StorageClosed):
        replica.pool()


def replica_of(memory: AgentMemory) -> Replica:
    engine = memory._store._engine
    assert isinstance(engine, PostgresEngine)
    replica = engine.database.replica
    assert replica is not None
    return replica


def looked_up(memory: AgentMemory, query: str) -> tuple[list[str], int, int]:
    """Search, and return the texts, and how often the replica was searched, and was behind."""
    replica = replica_of(memory)
    searches, lagging = replica.searches, replica.lagging
    texts = [hit.memory.content for hit in memory.search(query, count_accesses=False)]
    return texts, replica.searches - searches, replica.lagging - lagging


# Searching it -----------------------------------------------------------------------------------


def test_a_replica_that_has_everything_is_searched(pair: Pair) -> None:
    url = pair.url()
    with AgentMemory("bob", root=url) as memory:
        memory.store("Prefer tea in the morning")
        pair.catch_up()
        assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 1, 0)
        assert memory.search("tea")  # an access, which is written to the server itself
    with AgentMemory("bob", root=url) as again:
        assert [found.access_count for found in again.list_recent()] == [1]


@pytest.mark.parametrize("embedder", [None, WordEmbedder()])
def test_what_was_acknowledged_is_found_though_the_replica_lags(
    pair: Pair, embedder: WordEmbedder | None
) -> None:
    url = pair.url()
    looks = 1 if embedder is None else 2  # for its words first, which may have to be corrected
    with (
        AgentMemory("bob", root=url, embedder=embedder) as memory,
        AgentMemory("bob", root=url, embedder=embedder) as other,
    ):
        kept = memory.store("Prefer tea in the morning")
        if embedder is not None:
            memory.migrate(embedder=embedder)
        pair.catch_up()
        assert looked_up(memory, "tea")[1:] == (looks, 0)
        with pair.lagging():
            memory.store("Drink tea at night too", id="mem-night")
            for own in (memory, other):  # who stored, and another process of the same agent
                texts, searches, lagging = looked_up(own, "tea")
                assert sorted(texts) == ["Drink tea at night too", "Prefer tea in the morning"]
                assert (searches, lagging) == (0, looks)
            memory.delete(kept)
            assert looked_up(other, "tea") == (["Drink tea at night too"], 0, looks)
            memory.update("mem-night", content="Drink milk at night")
            assert looked_up(other, "milk night")[0] == ["Drink milk at night"]
            memory.erase(["mem-night"])
            assert looked_up(other, "milk night") == ([], 0, looks)
        pair.catch_up()
        assert looked_up(other, "milk night") == ([], looks, 0)


def test_what_another_program_stored_is_found_though_the_replica_lags(pair: Pair) -> None:
    url = pair.url()
    with AgentMemory("bob", root=url) as memory:
        memory.store("Prefer tea in the morning")
        pair.catch_up()
        with pair.lagging(), psycopg.connect(pair.leader.url("postgres")) as connection:
            connection.execute(f"SET LOCAL search_path = {url_schema(url)}")
            connection.execute("SELECT set_config('agent_memory.agent', 'bob', true)")
            connection.execute("INSERT INTO memories (content) VALUES ('Tea for the visitors')")
            connection.commit()
            assert "Tea for the visitors" in looked_up(memory, "tea visitors")[0]


def url_schema(url: str) -> str:
    return url.partition("schema=")[2].partition("&")[0]


def test_an_agents_replica_is_searched_while_others_write(pair: Pair) -> None:
    url = pair.url()
    with AgentMemory("bob", root=url) as memory, AgentMemory("eve", root=url) as eve:
        memory.store("Prefer tea in the morning")
        pair.catch_up()
        with pair.lagging():
            eve.store("Coffee it is")
            assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 1, 0)
            assert looked_up(eve, "tea") == ([], 0, 1)


# It goes ----------------------------------------------------------------------------------------


def test_a_search_that_the_replica_breaks_off_is_done_by_the_server(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_current = Replica.is_current

    def break_off(self: Replica, state: object, own: object) -> bool:
        pair.replica.administer(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app'"
        )
        return is_current(self, state, own)  # type: ignore[arg-type]

    with AgentMemory("bob", root=pair.url()) as memory:
        memory.store("Prefer tea in the morning")
        pair.catch_up()
        monkeypatch.setattr(Replica, "is_current", break_off)
        assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 1, 0)
        monkeypatch.undo()
        assert replica_of(memory).is_resting
        assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 0, 0)


def test_a_replica_that_is_gone_is_left_alone_and_used_again_when_it_is_back(
    own_pair: Pair, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    root = "agent_memory.storage.postgres.connection"
    own_pair.replica.stop("immediate")
    with (
        AgentMemory("bob", root=own_pair.url()) as memory,
        caplog.at_level(logging.WARNING, "agent_memory"),
    ):
        memory.store("Prefer tea in the morning")
        for _ in range(3):
            assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 0, 0)
        (warning,) = [record.getMessage() for record in caplog.records]
        assert str(own_pair.replica.folder) in warning
        assert "the server searched instead" in warning
        own_pair.replica.start()
        own_pair.catch_up()
        monkeypatch.setattr(f"{root}.replica._REST_SECONDS", 0.0)
        replica_of(memory)._resting_until = 0.0
        assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 1, 0)
        own_pair.replica.stop("immediate")  # now with connections that were used
        assert looked_up(memory, "tea") == (["Prefer tea in the morning"], 0, 0)
        own_pair.replica.start()
        own_pair.catch_up()
        deadline = time.monotonic() + 60  # the pool tries again ever more seldom
        while looked_up(memory, "tea") != (["Prefer tea in the morning"], 1, 0):
            assert time.monotonic() < deadline


# It takes the server's place ----------------------------------------------------------------------


def test_the_same_handle_goes_on_where_the_replica_takes_the_servers_place(own_pair: Pair) -> None:
    with AgentMemory("bob", root=own_pair.failover_url()) as memory:
        memory.store("Prefer tea in the morning", id="mem-before")
        own_pair.catch_up()
        own_pair.leader.stop("immediate")
        own_pair.replica.promote()
        memory.store("Drink tea at night too", id="mem-after")
        texts = {hit.memory.content for hit in memory.search("tea")}
        assert texts == {"Prefer tea in the morning", "Drink tea at night too"}
        assert memory.update("mem-before", content="Prefer milk").version == 2
        assert memory.check().ok


def test_a_number_that_another_server_gave_again_acknowledges_nothing(own_pair: Pair) -> None:
    """What the replica never had is lost with the server, and its number goes to another write."""
    url = own_pair.failover_url()
    AgentMemory("eve", root=url).close()
    own_pair.catch_up()
    own_pair.replica.stop()
    with contextlib.closing(Database(AgentAddress(server_address(url), "eve"))) as database:
        with database.write():
            number, incarnation = database.row(
                f"SELECT pg_current_xact_id()::text, {database.pool.incarnation}"
            ) or ("", "")
        loss = psycopg.OperationalError("the answer was lost")
        assert database._was_committed(number, incarnation, loss)
        own_pair.leader.stop("immediate")
        own_pair.replica.start()
        own_pair.replica.promote()
        with AgentMemory("bob", root=url) as memory:
            assert not database._was_committed(str(int(number) + 1000), incarnation, loss)
            given = 0
            while given < int(number):
                given = int(database.value("SELECT pg_snapshot_xmax(pg_current_snapshot())::text"))
                memory.store(f"Tea of another kind, number {given}")
        with pytest.raises(StorageUnavailable, match="not known"):
            database._was_committed(number, incarnation, loss)


# Addresses --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "conninfo"),
    [
        ("db2", "postgresql://app:s3cret@db2/m?sslmode=require"),
        ("db2:5433,db3", "postgresql://app:s3cret@db2:5433,db3/m?sslmode=require"),
        ("[::1]:5433", "postgresql://app:s3cret@[::1]:5433/m?sslmode=require"),
        ("%2Frun%2Fpg:5433", "postgresql://app:s3cret@%2Frun%2Fpg:5433/m?sslmode=require"),
    ],
)
def test_a_replica_is_the_same_database_of_another_host(hosts: str, conninfo: str) -> None:
    place = "postgresql://app:s3cret@db1,db4:5432/m"
    options = "?sslmode=require&target_session_attrs=read-write&port=5432&schema=x"
    address = server_address(f"{place}{options}&replica={hosts}")
    assert address.replica is not None
    assert address.replica.conninfo == conninfo
    assert address.replica.schema == "x"
    assert "replica" not in address.conninfo
    assert address == server_address(f"{place}{options}")  # whose connections it shares
    assert "s3cret" not in f"{address!r} {address.replica} {address.replica!r}"


@pytest.mark.parametrize("hosts", ["", "app@db2", "db2,", "db2?x", "db 2", "postgresql://db2"])
def test_a_replica_that_cannot_be_is_refused(hosts: str) -> None:
    with pytest.raises(ConfigurationError, match="replica=db2:5432"):
        server_address(f"postgresql://db1/m?replica={hosts.replace('?', '%3F')}")
