"""Fixtures: a real file in a temporary directory, a clock that tests set, the real programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from command_server import CommandServer
from embedding_server import EmbeddingServer
from places import small_disk
from postgres_server import PostgresServer, Schemas, ServerRoot, running_server

from agent_memory import AgentMemory, ConfigurationError
from agent_memory.services.store import Store
from agent_memory.storage.engine import Engine
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.engine import SQLiteEngine

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parent
NOW = datetime(2026, 1, 30, 16, 0, tzinfo=UTC)
PROGRAM = str(Path(sys.executable).with_name("agent-memory"))
Visitor = Callable[[Path, str], str]
"""Another program, which runs SQL on a file: see the fixture ``visitor``."""

_HOMES = count()

# A shell starts what runs in its background with Ctrl-C switched off, and every program that a test
# starts would inherit that: five tests that press it failed so.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_settings_from_outside(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Keep the tester's own memories and settings out of the tests, and the tests out of them."""
    for name in [name for name in os.environ if name.startswith(("AGENT_MEMORY_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    # A home of its own, which no test needs to be there: half of them touch no file at all.
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp() / "homes" / str(next(_HOMES))))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("NO_COLOR", "1")


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    """Run a server that speaks the embeddings API, and does what a test tells it to."""
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def service(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingServer:
    """Let `openai` mean the test's server, for every memory that is opened."""
    for name, value in {**server.variables, "AGENT_MEMORY_EMBEDDING_RETRIES": "0"}.items():
        monkeypatch.setenv(name, value)
    return server


SLOW_FIRST = ("survival", "property", "crash", "text", "test_peers.py")
"""Folders and files of few tests that take long. At the end, one processor would wait for them."""


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist hand out the files as they are collected, and start no hung test anew."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
        config.option.maxworkerrestart = "0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes long."""
    slow = [Path(__file__).with_name(name) for name in SLOW_FIRST]
    items.sort(key=lambda item: not any(item.path.is_relative_to(path) for path in slow))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        choices=("sqlite", "postgres"),
        default="sqlite",
        help="which engine the tests of api and services run on, as far as they name no file",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Skip, on another engine, a test for which a fixture needs what only a file can do."""
    if item.config.getoption("--engine") != "sqlite":
        if (mark := item.get_closest_marker("file_only")) is not None:
            pytest.skip(f"only on SQLite: {mark.args[0]}")
        if "visitor" in getattr(item, "fixturenames", ()):
            pytest.skip("only on SQLite: another program opens the file")
    with skipped_where_refused(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Skip, on another engine, the rest of a test that comes to what only a file can do."""
    with skipped_where_refused(item):
        return (yield)


@contextmanager
def skipped_where_refused(item: pytest.Item) -> Iterator[None]:
    """Skip a test that uses a verb that its engine says it has not, or asks for a file's path."""
    try:
        yield
    except ConfigurationError as error:
        frames = traceback.extract_tb(error.__traceback__)
        is_refused = frames[-1].name == "require"
        is_path = frames[-1].name == "path" and TESTS in Path(frames[-2].filename).parents
        if item.config.getoption("--engine") == "sqlite" or not (is_refused or is_path):
            raise
        pytest.skip(f"only on SQLite: {'the path of the file' if is_path else error}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Run a PostgreSQL server."""
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def all_schemas(postgres: PostgresServer) -> Iterator[Schemas]:
    """Keep the schemas from test to test."""
    with closing(Schemas(postgres)) as schemas:
        yield schemas


@pytest.fixture
def schemas(all_schemas: Schemas) -> Iterator[Schemas]:
    """Give addresses of empty schemas, a place each; they are emptied after the test."""
    yield all_schemas
    all_schemas.empty()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep temporary files in a folder of the test, which must be empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the root of all agents: a folder, or with ``--engine postgres`` a database."""
    if request.config.getoption("--engine") == "postgres":
        return cast("Path", ServerRoot(request.getfixturevalue("schemas").url("root")))
    return tmp_path / "root"


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Make a folder that any user may enter, as none but the tester may ``tmp_path``."""
    for name in (tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"):
        way = [Path(name), *Path(name).parents]
        if all(each.is_dir() and each.stat().st_mode & stat.S_IXOTH for each in way):
            break
    else:
        pytest.skip("no folder for temporary files may be entered by other users")
    with tempfile.TemporaryDirectory(dir=name) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 64 kB, on which no memory fits."""
    with small_disk(tmp_path / "disk", 64) as disk:
        yield disk


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty memory of agent bob: to copy it costs a tenth of a new one's migrations."""
    root = tmp_path_factory.mktemp("empty")
    AgentMemory("bob", root=root, clock=Clock()).close()
    return root / "bob" / "memories.db"


@pytest.fixture
def memory(root: Path, clock: Clock, empty_file: Path) -> Iterator[AgentMemory]:
    """Open a memory of agent bob; when the test is over, it must still be sound."""
    place = None if isinstance(root, ServerRoot) else root / "bob" / "memories.db"
    if place is None:
        pass  # a schema is there, and empty
    elif clock.now == NOW and not place.exists():  # else a test has made it, or wants another time
        place.parent.mkdir(parents=True, exist_ok=True)
        place.parent.chmod(0o700)
        shutil.copy(empty_file, place)
    with AgentMemory("bob", root=root, clock=clock, session_id="session-1") as opened:
        yield opened
        opened.info()  # writes what searches counted
        problems = opened.check().problems
        # What a test planted beside the file, or a process that it killed left, is no damage.
        assert [problem for problem in problems if problem.kind != "leftover"] == []


@pytest.fixture
def plain(root: Path, clock: Clock) -> Iterator[AgentMemory]:
    """Open an empty store that is searched by keyword."""
    with AgentMemory("bob", root=root, clock=clock, embedder=None) as memory:
        yield memory


Open = Callable[..., AbstractContextManager[AgentMemory]]
"""Opens another store: see the fixture ``other``."""


@pytest.fixture
def other(tmp_path: Path, clock: Clock) -> Open:
    """Open another store, of bob unless it is said, that lives by the same clock."""

    def opened(name: str = "other", *, agent: str = "bob", **options: Any) -> AgentMemory:
        return AgentMemory(
            agent, root=tmp_path / name, clock=clock, **{"session_id": "session-2", **options}
        )

    return opened


def engine_of(memory: AgentMemory | Store) -> Engine:
    """Return the engine of an open memory."""
    store = memory if isinstance(memory, Store) else memory._store
    return store._engine


def database_of(memory: AgentMemory | Store) -> Database:
    """Return the open file of a memory, for SQL that the library has no verb for."""
    engine = engine_of(memory)
    if not isinstance(engine, SQLiteEngine):
        pytest.skip("only on SQLite: the test looks into the file with SQL")
    return engine.database


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The data of the JSON envelope."""
        envelope = json.loads(self.out)
        assert envelope["success"] is True
        return envelope["data"]


@pytest.fixture(scope="session")
def commands() -> Iterator[CommandServer]:
    """Start commands quickly, each as a process of its own."""
    server = CommandServer()
    yield server
    server.close()


Cli = Callable[..., Ran]
"""The program, run with some words: see the fixture ``cli``."""


@pytest.fixture
def as_bob(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands be about agent bob, without an option."""
    monkeypatch.setenv("AGENT_MEMORY_AGENT", "bob")


@pytest.fixture
def cli(root: Path, commands: CommandServer) -> Cli:
    """Run `agent-memory` as a process of its own, on the test's root."""

    def run(*words: str, input: str | bytes = b"", env: dict[str, str] | None = None) -> Ran:
        command = [PROGRAM, "--root", str(root), *words]
        stdin = input.encode() if isinstance(input, str) else input
        whole = {**os.environ, **(env or {})}
        ran = commands.run(command, stdin=stdin, env=whole, timeout=60)
        if ran is None:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, env=whole)
            ran = done.returncode, done.stdout, done.stderr
        code, out, errors = ran
        return Ran(code, out.decode(), errors.decode())

    return run


def _python_visitor(path: Path, sql: str) -> str:
    """Run SQL with Python's own sqlite3, in a process of its own: never beside APSW in one."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], timeout=5)\n"
        "c.isolation_level = None\n"
        "for statement in sys.argv[2].split(';;'):\n"
        "    for row in c.execute(statement):\n"
        "        print('|'.join('' if v is None else str(v) for v in row))\n"
        "c.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), sql], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _shell_visitor(path: Path, sql: str) -> str:
    """Run SQL with the sqlite3 shell, as a user would."""
    done = subprocess.run(
        ["sqlite3", "-bail", str(path), *sql.split(";;")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout.strip()


@pytest.fixture(params=["sqlite3 shell", "Python's sqlite3"])
def visitor(request: pytest.FixtureRequest) -> Visitor:
    """Another program that runs SQL on a file; statements are parted by ``;;``."""
    if request.param == "sqlite3 shell":
        if shutil.which("sqlite3") is None:
            pytest.skip("the sqlite3 shell is not installed")
        return _shell_visitor
    if sqlite3.sqlite_version_info < (3, 37):
        pytest.skip("this Python's SQLite is older than STRICT tables")
    return _python_visitor
