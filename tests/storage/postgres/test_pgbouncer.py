"""Behind PgBouncer, which gives each transaction another connection, or two agents the same one."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer

from agent_memory import AgentMemory, AgentMemoryError, StorageLocked

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

SETTINGS = """
[databases]
memories = host={server} dbname=memories user=app
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
"""


@pytest.fixture(scope="module")
def pooled(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run it with two connections to the server; return an address, without a schema."""
    if PROGRAM is None:
        pytest.skip("PgBouncer is not installed: `apt-get install pgbouncer`")
    folder = postgres.folder / "bouncer"
    folder.mkdir()
    settings = folder / "settings"
    settings.write_text(SETTINGS.format(server=postgres.folder, folder=folder))
    owner = None
    if os.geteuid() == 0:  # it does not run as root
        owner = "nobody"
        for path in (folder, settings):
            os.chown(path, pwd.getpwnam(owner).pw_uid, -1)
    with (tmp_path_factory.mktemp("bouncer") / "log").open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, str(settings)], user=owner, cwd="/", stdout=log, stderr=log
        )
    url = f"postgresql://app@/memories?host={folder}&port=6432"
    wait_until_it_answers(url, process, Path(log.name))
    yield url
    process.terminate()
    process.wait(30)


def wait_until_it_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return


def test_agents_that_share_connections_stay_apart_and_lose_nothing(pooled: str) -> None:
    """Eight threads of four agents on two connections; statements run often are prepared else."""
    url = f"{pooled}&schema=pooled_apart"
    failures: list[AgentMemoryError | AssertionError] = []

    def work(agent: str, name: str) -> None:
        try:
            with AgentMemory(agent, root=url) as memory:
                for number in range(12):
                    memory_id = memory.store(f"{agent} likes tea {name} {number}", tags=["tea"])
                    memory.update(memory_id, importance="high")
                    hits = memory.search(f"tea {name} {number}", limit=20)
                    assert memory_id in {hit.memory.id for hit in hits}
                    assert all(hit.memory.content.startswith(agent) for hit in hits)
        except (AgentMemoryError, AssertionError) as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=work, args=(agent, name))
        for agent in ("ann", "bob", "eve", "joe")
        for name in ("one", "two")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failures == []
    for agent in ("ann", "bob", "eve", "joe"):
        with AgentMemory(agent, root=url) as memory:
            assert memory.count() == 24
            assert len(memory.history(limit=1000)) == 48
            assert memory.check().ok


def test_locks_and_long_tasks_end_with_their_transaction(pooled: str) -> None:
    url = f"{pooled}&schema=pooled_locks"
    with AgentMemory("bob", root=url) as memory, AgentMemory("bob", root=url) as other:
        engine, same = memory._store._engine, other._store._engine
        with engine.alone(busy="wait"):
            with pytest.raises(StorageLocked, match="wait"), same.alone(busy="wait"):
                pass
            other.store("Others go on")
        with same.alone(busy="wait"):
            assert memory.search("others")
        other.undo()
        assert memory.count() == 0


def test_what_the_pooler_forgets_is_done_again(pooled: str, postgres: PostgresServer) -> None:
    """The server behind it ends its connections: the pooler's clients are told of it."""
    with AgentMemory("bob", root=f"{pooled}&schema=pooled_lost") as memory:
        memory.store("Prefer tea in the morning")
        for number in range(3):
            postgres.administer(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE usename = 'app' AND pid <> pg_backend_pid()"
            )
            memory.store(f"Drink tea at night {number}")
            postgres.administer(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE usename = 'app' AND pid <> pg_backend_pid()"
            )
            assert len(memory.search("tea")) == 2 + number
