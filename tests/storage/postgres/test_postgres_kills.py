"""Clients and the server killed in the middle of verbs, and eight processes at once.

What was acknowledged is there, once; nothing is there by half; what follows the rows agrees.
"""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer, running_server

from agent_memory import AgentMemory, StorageUnavailable
from agent_memory.runtime.addresses import AgentAddress, server_address
from agent_memory.storage.postgres.connection import Database

WORKER = Path(__file__).with_name("postgres_worker.py")
NUMBERS = count()

# What must hold of every store, as who owns the server sees it: each query finds what does not.
LAWS = {
    "a memory without its history": """
SELECT m.id FROM memories AS m WHERE NOT EXISTS (
  SELECT 1 FROM history AS h WHERE h.agent_id = m.agent_id AND h.memory_id = m.id
  AND h.event = 'ADD')""",
    "a memory added twice": """
SELECT memory_id FROM history GROUP BY agent_id, memory_id
HAVING count(*) FILTER (WHERE event = 'ADD') > 1 + count(*) FILTER (WHERE event = 'DELETE')""",
    "a memory that is not what its history says last": """
SELECT m.id FROM memories AS m JOIN LATERAL (
  SELECT h.new_values::json ->> 'content' AS content FROM history AS h
  WHERE h.agent_id = m.agent_id AND h.memory_id = m.id
    AND h.new_values::json ->> 'content' IS NOT NULL
  ORDER BY h.change_id DESC LIMIT 1) AS last ON true WHERE last.content <> m.content""",
    "a memory that was deleted last, and is there": """
SELECT m.id FROM memories AS m WHERE (
  SELECT h.event FROM history AS h WHERE h.agent_id = m.agent_id AND h.memory_id = m.id
  ORDER BY h.change_id DESC LIMIT 1) = 'DELETE'""",
    "a version that counts other than the history": """
SELECT m.id FROM memories AS m WHERE m.version <> (
  SELECT count(*) FROM history AS h WHERE h.agent_id = m.agent_id AND h.memory_id = m.id)""",
    "words of a memory that is stale": "SELECT seq FROM memory_text WHERE tokens IS NULL",
    "a memory without words": """
SELECT id FROM memories AS m WHERE NOT EXISTS (
  SELECT 1 FROM memory_text AS t WHERE t.agent_id = m.agent_id AND t.seq = m.seq)""",
    "a word in the index that no memory has": """
SELECT i.word FROM memory_index AS i WHERE NOT EXISTS (
  SELECT 1 FROM memory_text AS t WHERE t.agent_id = i.agent_id AND t.seq = i.seq
  AND i.word = ANY (regexp_split_to_array(t.tokens, '\\s')))""",
    "a wrong count of a word": """
SELECT w.word FROM memory_words AS w WHERE w.doc <> (
  SELECT count(*) FROM memory_index AS i WHERE i.agent_id = w.agent_id AND i.word = w.word)""",
    "a tag that follows no memory": """
SELECT id FROM memories AS m WHERE (m.tags = '["a"]') <> EXISTS (
  SELECT 1 FROM memory_tags AS t WHERE t.agent_id = m.agent_id AND t.seq = m.seq)""",
    "a fingerprint of no memory": """
SELECT seq FROM fingerprints AS f WHERE NOT EXISTS (
  SELECT 1 FROM memories AS m WHERE m.agent_id = f.agent_id AND m.seq = f.seq)""",
    "numbers with a gap that nothing deleted": """
SELECT 1 FROM history HAVING max(change_id) <> count(*)""",
}

BREAKS = {
    "a memory without its history": "DELETE FROM history WHERE change_id = 1",
    "a memory added twice": "UPDATE history SET event = 'ADD', memory_id = 'mem-1'",
    "a memory that is not what its history says last": "UPDATE memories SET content = 'other'",
    "a memory that was deleted last, and is there": "UPDATE history SET event = 'DELETE'",
    "a version that counts other than the history": "UPDATE memories SET version = 9",
    "words of a memory that is stale": "UPDATE memory_text SET tokens = NULL",
    "a memory without words": "DELETE FROM memory_text",
    "a word in the index that no memory has": "UPDATE memory_text SET tokens = 'else'",
    "a wrong count of a word": "DELETE FROM memory_index",
    "a tag that follows no memory": "DELETE FROM memory_tags",
    "a fingerprint of no memory": "DELETE FROM memories WHERE seq = 2",
    "numbers with a gap that nothing deleted": "DELETE FROM history WHERE change_id = 1",
}
"""What breaks each law."""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Run a server that may be killed: what it acknowledges is on the disk."""
    with running_server(durable=True) as running:
        yield running


@pytest.fixture
def schema(server: PostgresServer) -> Iterator[str]:
    name = f"killed_{next(NUMBERS)}"
    yield name
    server.administer(f"DROP SCHEMA IF EXISTS {name} CASCADE")


class Crowd:
    """Processes that use one store, and the journals that they keep."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *, verbs: int = 100_000) -> None:
        seed = str(sum(name.encode()))
        words = [self._url, str(self._folder / name), name, seed, str(verbs)]
        with (self._folder / f"{name}.err").open("wb") as errors:
            self._processes[name] = subprocess.Popen(
                [sys.executable, str(WORKER), *words], stderr=errors
            )

    def wait_for_verbs(self, number: int) -> None:
        """Wait until each has done so many."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if all(len(self.notes(name)) >= number for name in self._processes):
                return
            time.sleep(0.05)
        raise AssertionError([self.errors(name) for name in self._processes])

    def kill(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGKILL)
        self._processes[name].wait()

    def kill_all(self) -> None:
        for name in self._processes:
            self.kill(name)

    def wait(self) -> None:
        """Wait until all are done; each must have ended by itself."""
        for name, process in self._processes.items():
            assert process.wait(300) == 0, self.errors(name)

    def notes(self, name: str) -> list[list[str]]:
        """Return what a process wrote down; the last line may be torn."""
        with suppress(FileNotFoundError):
            text = (self._folder / name).read_text()
            return [line.split() for line in text.splitlines() if text and len(line.split()) == 3]
        return []

    def lost_verbs(self, name: str) -> int:
        """Return how many verbs were begun and not done, but for the one it was killed in."""
        states = [state for _, state, _ in self.notes(name)]
        return states[:-1].count("begun") - states.count("done") + 1

    def errors(self, name: str) -> str:
        return (self._folder / f"{name}.err").read_text()[-2000:]

    @property
    def names(self) -> list[str]:
        return list(self._processes)


def assert_nothing_lost(crowd: Crowd, url: str) -> None:
    """Compare what was acknowledged with what is there."""
    with AgentMemory("bob", root=url) as memory:
        for name in crowd.names:
            notes = crowd.notes(name)
            begun = {(verb, of) for verb, state, of in notes if state == "begun"}
            done = {(verb, of) for verb, state, of in notes if state == "done"}
            unsure = {of for verb, of in begun - done}
            deleted = {of for verb, of in done if verb == "delete"}
            stored = {of for verb, of in done if verb == "store"}
            for memory_id in stored - deleted - unsure:
                assert memory.get(memory_id) is not None, f"{memory_id} was stored, and is lost"
            for memory_id in deleted:
                assert memory.get(memory_id) is None, f"{memory_id} was deleted, and is there"
            for verb, of in begun:
                if verb == "store_many":
                    there = [memory.get(f"{of}.{n}") is not None for n in range(5)]
                    wanted = (all, any)[(verb, of) not in done]
                    assert all(there) or not any(there), f"{of} is there by half"
                    assert wanted(there) or (verb, of) not in done
            last_changes: dict[str, int] = {}
            for verb, state, of in notes:
                if verb.startswith("update:") and state == "done":
                    last_changes[of] = int(verb.partition(":")[2])
            for memory_id, number in last_changes.items():
                kept = memory.get(memory_id)
                if kept is not None and memory_id not in unsure:
                    assert kept.metadata == {"last": number}, f"{memory_id} lost a change"


def assert_laws(server: PostgresServer, schema: str) -> None:
    with psycopg.connect(server.url("postgres")) as connection:
        connection.execute(f"SET search_path = {schema}")
        for law, query in LAWS.items():
            assert connection.execute(query).fetchall() == [], law


@pytest.mark.parametrize("law", LAWS)
def test_what_breaks_a_law_is_noticed(server: PostgresServer, schema: str, law: str) -> None:
    with AgentMemory("bob", root=server.url(schema=schema)) as memory:
        for number in (1, 2):
            memory.store(f"Fact {number} of tea", id=f"mem-{number}", tags=["a"])
    assert_laws(server, schema)
    with psycopg.connect(server.url("postgres")) as connection:
        connection.execute(f"SET search_path = {schema}")
        connection.execute("SET session_replication_role = replica")  # no trigger mends it
        connection.execute(BREAKS[law])
        assert connection.execute(LAWS[law]).fetchall() != []


def test_a_client_that_is_killed_leaves_whole_verbs(
    server: PostgresServer, schema: str, tmp_path: Path
) -> None:
    url, chance = server.url(schema=schema), random.Random(7)
    AgentMemory("bob", root=url).close()
    crowd = Crowd(url, tmp_path)
    for round_number in range(6):
        names = [f"w{round_number}-{n}" for n in range(2)]
        for name in names:
            crowd.start(name)
        while not all(len(crowd.notes(name)) > 8 for name in names):
            time.sleep(0.05)
        time.sleep(chance.random() * 0.5)
        for name in names:
            crowd.kill(name)
    assert_nothing_lost(crowd, url)
    assert_laws(server, schema)


def test_a_server_that_is_killed_loses_nothing_acknowledged(
    server: PostgresServer, schema: str, tmp_path: Path
) -> None:
    """The clients stay, and go on when it is back."""
    url, chance = server.url(schema=schema), random.Random(8)
    AgentMemory("bob", root=url).close()
    crowd = Crowd(url, tmp_path)
    for n in range(3):
        crowd.start(f"w{n}")
    for round_number in range(4):
        crowd.wait_for_verbs(10 * (round_number + 1))
        time.sleep(chance.random() * 0.3)
        server.stop("immediate")
        time.sleep(chance.random() * 0.5)
        server.start()
    crowd.wait_for_verbs(60)
    crowd.kill_all()
    assert_nothing_lost(crowd, url)
    assert_laws(server, schema)


def test_a_number_that_is_given_anew_after_a_crash_acknowledges_nothing(
    server: PostgresServer, schema: str
) -> None:
    url = server.url(schema=schema)
    AgentMemory("bob", root=url).close()
    database = Database(AgentAddress(server_address(url), "bob"))
    query = "SELECT pg_current_xact_id()::text"
    with contextlib.closing(database):
        with contextlib.closing(psycopg.connect(server.url("postgres"))) as lost:
            row = lost.execute(f"{query}, {database.pool.incarnation}").fetchone()
            server.stop("immediate")
        assert row is not None
        number, incarnation = row
        server.start()
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            while (taken := connection.execute(query).fetchone()) != (number,):
                assert taken is not None
                assert int(taken[0]) < int(number)
        with pytest.raises(StorageUnavailable, match="is not known"):
            database._was_committed(number, incarnation, psycopg.OperationalError("lost"))


def test_a_replica_that_takes_the_place_of_a_killed_server_has_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    """The clients stay, and go on there; each of them searched it before.

    What is acknowledged is on both, as the server was told to see to.
    """
    with (
        running_server(durable=True) as leader,
        running_server(durable=True, leader=leader) as replica,
    ):
        leader.administer("ALTER SYSTEM SET synchronous_standby_names = '*'")
        leader.administer("SELECT pg_reload_conf()")
        url = (
            f"postgresql://app@/memories?host={leader.folder},{replica.folder}&schema=moved"
            f"&target_session_attrs=read-write&replica={replica.folder}"
        )
        AgentMemory("bob", root=url).close()
        crowd = Crowd(url, tmp_path)
        for n in range(3):
            crowd.start(f"w{n}")
        crowd.wait_for_verbs(30)
        leader.stop("immediate")
        replica.promote()
        crowd.wait_for_verbs(60)
        crowd.kill_all()
        assert_nothing_lost(crowd, url)
        assert_laws(replica, "moved")
        leader.start()  # that its end finds it


def test_a_replica_that_is_killed_breaks_no_verb(
    server: PostgresServer, schema: str, tmp_path: Path
) -> None:
    with running_server(durable=True, leader=server) as replica:
        url = server.url(schema=schema, replica=str(replica.folder))
        AgentMemory("bob", root=url).close()
        crowd = Crowd(url, tmp_path)
        for n in range(2):
            crowd.start(f"w{n}")
        for round_number in range(2):
            crowd.wait_for_verbs(12 * (round_number + 1))
            replica.stop("immediate")
            crowd.wait_for_verbs(12 * (round_number + 1) + 6)
            replica.start()
        crowd.kill_all()
        for name in crowd.names:
            assert crowd.lost_verbs(name) == 0, crowd.errors(name)
        assert_nothing_lost(crowd, url)
        assert_laws(server, schema)


def test_eight_processes_of_one_agent_do_not_cross(
    server: PostgresServer, schema: str, tmp_path: Path
) -> None:
    url = server.url(schema=schema, pool_size="3")
    AgentMemory("bob", root=url).close()
    crowd = Crowd(url, tmp_path)
    for n in range(8):
        crowd.start(f"w{n}", verbs=40)
    crowd.wait()
    assert_nothing_lost(crowd, url)
    assert_laws(server, schema)


def test_eight_processes_make_the_schema_once(
    server: PostgresServer, schema: str, tmp_path: Path
) -> None:
    crowd = Crowd(server.url(schema=schema), tmp_path)
    for n in range(8):
        crowd.start(f"w{n}", verbs=2)
    crowd.wait()
    assert_laws(server, schema)
