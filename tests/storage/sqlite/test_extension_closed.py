"""SQL loads no library: not through any connection, not for a moment, not from a crafted file."""

from __future__ import annotations

import ast
import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from conftest import database_of

import agent_memory
from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.conformance import power_cut
from agent_memory.storage.in_memory import sqlite_vec
from agent_memory.storage.sqlite import connection
from agent_memory.storage.sqlite.connection import opening

NO_LIBRARY = "no-such-library"
"""Were it tried, the error would be that of the loader, which names a file."""
SECRET = "quetzal"
CLOSED = re.compile("not authorized|unsafe use of load_extension|no such function", re.IGNORECASE)
PLANTS = {
    "a view": "CREATE VIEW planted AS SELECT load_extension('no-such-library') AS x",
    "a trigger on storing": (
        "CREATE TRIGGER planted AFTER INSERT ON memories BEGIN"
        " SELECT load_extension('no-such-library'); END"
    ),
    "a trigger on changing": (
        "CREATE TRIGGER planted BEFORE UPDATE ON memories BEGIN"
        " SELECT load_extension('no-such-library'); END"
    ),
}


class Watch:
    """Every connection that is made, and what SQL answers on it when it asks for a library."""

    def __init__(self) -> None:
        self.made: list[apsw.Connection] = []

    def __call__(self, made: apsw.Connection) -> None:
        self.made.append(made)

    def ask_all(self) -> int:
        """Ask on all that are open; return how many were."""
        asked = 0
        for made in self.made:
            with contextlib.suppress(apsw.ConnectionClosedError, apsw.ConnectionNotClosedError):
                refuse(made)
                asked += 1
        return asked


def refuse(made: apsw.Connection) -> None:
    """Check that a connection loads nothing for SQL."""
    for sql in ("SELECT load_extension(?)", "SELECT load_extension(?, 'sqlite3_vec_init')"):
        with pytest.raises(apsw.SQLError, match="not authorized"):
            list(made.execute(sql, (NO_LIBRARY,)))
    # -1 asks for the setting without changing it.
    assert made.config(apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, -1) == 0


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Hear of every connection that this process makes."""
    watching = Watch()
    apsw.connection_hooks.append(watching)
    yield watching
    apsw.connection_hooks.remove(watching)


class Embedder:
    """An embedder of three numbers, which asks its connections while it is asked."""

    model = "letters"
    dimensions = 3

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def embed(self, texts: Any) -> list[list[float]]:
        self._watch.ask_all()
        return [[len(text), text.count("a") + 1.0, text.count("e") + 1.0] for text in texts]


def test_every_connection_of_every_verb_is_closed_to_it(
    root: Path, tmp_path: Path, watch: Watch
) -> None:
    embedder = Embedder(watch)
    with AgentMemory("bob", root=root, embedder=embedder) as memory:
        memory.store_many([{"content": f"{SECRET} number {n}"} for n in range(5)])
        assert watch.ask_all() >= 1
        memory.migrate(embedder=embedder)
        assert memory.info().vector_model
        assert watch.ask_all() >= 1
        assert memory.search(SECRET)
        copy = memory.backup()
        memory.backups()
        memory.search(SECRET, as_of="2990-01-01")
        with memory.dump(as_of="2990-01-01"):
            assert watch.ask_all() >= 2
        with AgentMemory.opened_copy(copy) as other:
            assert other.search(SECRET)
            assert watch.ask_all() >= 2
        with AgentMemory.open(copy, read_only=True, embedder=embedder) as reader:
            assert reader.search(SECRET)
            assert watch.ask_all() >= 2
        memory.export(tmp_path / "copy.db", format="sqlite")
        assert memory.check(repair=True).ok
        memory.erase(memory.search(SECRET, 1)[0].memory.id, backups=True)
        assert watch.ask_all() >= 1
    AgentMemory.restore(root / "bob" / "memories.db", tmp_path / "copy.db")
    AgentMemory.agents(root)
    with AgentMemory("eve", root=root) as eve:
        eve.import_(tmp_path / "copy.db")
        assert watch.ask_all() >= 1
    assert len(watch.made) >= 12


def test_it_stays_closed_in_the_moment_that_sqlite_vec_is_loaded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting for calls from C is on then; the SQL function is another one."""
    asked = []

    class Asking(apsw.Connection):
        def load_extension(self, filename: str, entrypoint: str | None = None) -> None:
            with pytest.raises(apsw.SQLError, match="not authorized"):
                list(self.execute("SELECT load_extension(?)", (NO_LIBRARY,)))
            asked.append(filename)
            super().load_extension(filename, entrypoint)

    monkeypatch.setattr(opening.apsw, "Connection", Asking)  # type: ignore[attr-defined]
    with AgentMemory("bob", root=root) as memory:
        opened = database_of(memory)
        assert opened.load_vectors()
    assert len(asked) == 1


def test_after_a_library_could_not_be_loaded_it_is_closed(
    root: Path, tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vec0.so").write_bytes(b"\x7fELF" + bytes(500))
    monkeypatch.setattr(sqlite_vec, "_folder_of_sqlite_vec", lambda: tmp_path)
    with AgentMemory("bob", root=root) as memory:
        assert not database_of(memory).load_vectors()
        assert watch.ask_all() >= 1


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("loads_first", [False, True])
def test_a_crafted_file_loads_nothing(root: Path, plant: str, loads_first: bool) -> None:
    """Whatever a verb does with such a file, no library is asked for."""
    with AgentMemory("bob", root=root) as memory:
        memory.store(f"{SECRET} of the first", id="mem-1")
        path = memory.path
    crafted(path, PLANTS[plant])
    with contextlib.suppress(AgentMemoryError), AgentMemory("bob", root=root) as memory:
        opened = database_of(memory)
        if loads_first:
            assert opened.load_vectors()
        for attempt in attempts(memory):
            said = told(attempt)
            assert "shared object" not in said
            assert NO_LIBRARY not in said or CLOSED.search(said), said
        if plant == "a view":
            assert CLOSED.search(told(lambda: opened.rows("SELECT * FROM planted")))


def attempts(memory: AgentMemory) -> list[Callable[[], object]]:
    return [
        lambda: memory.search(SECRET),
        lambda: memory.store("another"),
        lambda: memory.update("mem-1", content="changed"),
        memory.check,
        lambda: memory.check(repair=True),
        memory.backup,
        memory.backups,
        lambda: memory.search(SECRET, as_of="2990-01-01"),
        lambda: memory.delete("mem-1"),
    ]


def told(attempt: Callable[[], object]) -> str:
    try:
        return repr(attempt())
    except AgentMemoryError as error:
        return f"{error} {error.__cause__!r}"


def crafted(path: Path, sql: str) -> None:
    """Plant something, as somebody would who wants it run by whoever opens the file."""
    code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2])"
    code += "; c.commit(); c.close()"
    done = subprocess.run([sys.executable, "-c", code, str(path), sql], capture_output=True)
    assert done.returncode == 0, done.stderr


def imported(path: Path) -> set[str]:
    """Return the packages that a module imports: what it starts in a child is not its own."""
    packages: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            packages.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            packages.add((node.module or "").partition(".")[0])
    return packages


def test_no_other_module_opens_a_database() -> None:
    """All connections are of the package that closes them, or have no file and no SQL of others.

    Nothing else knows APSW or sqlite3, but for what listens to a disk in the conformance kit.
    """
    place = Path(agent_memory.__file__).parent
    inside = Path(connection.__file__).parent
    in_memory = Path(sqlite_vec.__file__).parent
    found = {path for path in place.rglob("*.py") if imported(path) & {"apsw", "sqlite3"}}
    assert found
    listening = Path(power_cut.__file__)
    assert "apsw.Connection" not in listening.read_text()
    assert all(
        path.is_relative_to(inside) or path.is_relative_to(in_memory) or path == listening
        for path in found
    )
    made = [path for path in in_memory.rglob("*.py") if "apsw.Connection(" in path.read_text()]
    assert made
    assert all('apsw.Connection(":memory:")' in path.read_text() for path in made)
    # apsw's own call opens both: the one from C, and the SQL function.
    assert not [path for path in found if ".enable_load_extension(" in path.read_text()]
