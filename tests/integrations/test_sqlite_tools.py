"""Datasette and sqlite-utils on a file whose vectors are indexed: the real programs open it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from agent_memory import AgentMemory
from agent_memory.errors import StorageUntrusted

LOADS = "import sqlite3, sys; sys.exit(not hasattr(sqlite3.Connection, 'enable_load_extension'))"
SECONDS = 30


def _loading_python() -> str | None:
    """Return a Python of our version that can load extensions: that of the tests often cannot."""
    version = sysconfig.get_python_version()
    for program in (sys.executable, f"/usr/bin/python{version}"):
        path = shutil.which(program)
        if path and subprocess.run([path, "-c", LOADS], check=False).returncode == 0:
            output = subprocess.run([path, "--version"], check=True, capture_output=True, text=True)
            if output.stdout.split()[1].startswith(version):
                return path
    return None


PYTHON = _loading_python()
needs_extensions = pytest.mark.skipif(PYTHON is None, reason="no Python here loads extensions")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a file with a vec0 table."""
    return _make(tmp_path, "vec0")


def _make(root: Path, vector_index: str) -> Path:
    with AgentMemory("bob", root=root) as memory:
        memory.configure(vector_index=vector_index)
        memory.store_many([{"content": f"Fact {number}"} for number in range(3)])
        memory.migrate(embedder="wordllama")
        return memory.path


def _command(*arguments: str, python: str | None = PYTHON) -> tuple[list[str], dict[str, str]]:
    """Return a command of that Python with our packages, and its environment."""
    folders = [str(Path(__file__).parents[2]), sysconfig.get_path("purelib")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    return [str(python), "-m", *arguments], environment


def _sqlite_utils(
    *arguments: str, python: str | None = PYTHON, **environment: str
) -> subprocess.CompletedProcess[str]:
    command, variables = _command("sqlite_utils", *arguments, python=python)
    return subprocess.run(
        command,
        env={**variables, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


@needs_extensions
def test_sqlite_utils_counts_every_table(path: Path) -> None:
    counted = _sqlite_utils("tables", str(path), "--counts")
    assert counted.returncode == 0, counted.stderr
    counts = {row["table"]: row["count"] for row in json.loads(counted.stdout)}
    assert counts["memories"] == counts["embedding_index_1"] == 3


@needs_extensions
def test_a_sqlite_vec_that_cannot_be_loaded_keeps_no_tool_from_starting(
    path: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken" / "sqlite_vec" / "__init__.py"
    broken.parent.mkdir(parents=True)
    broken.write_text("def load(conn): conn.load_extension('/of/another/platform/vec0')")
    folders = [str(broken.parents[1]), _command()[1]["PYTHONPATH"]]
    counted = _sqlite_utils("tables", str(path), PYTHONPATH=os.pathsep.join(folders))
    assert counted.returncode == 0, counted.stderr
    assert {"table": "memories"} in json.loads(counted.stdout)


@needs_extensions
def test_without_the_plugin_that_fails(path: Path) -> None:
    """Else nothing here would show that it is the plugin that helps."""
    script = (
        "import sqlite3, sys;"
        "sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM embedding_index_1')"
    )
    plain = subprocess.run(
        [str(PYTHON), "-c", script, str(path)], check=False, capture_output=True, text=True
    )
    assert "no such module: vec0" in plain.stderr


@needs_extensions
def test_a_dump_of_python_s_own_has_every_memory(path: Path) -> None:
    dumped = _sqlite_utils("dump", str(path))
    assert dumped.returncode == 0, dumped.stderr
    assert all(f"'Fact {number}'" in dumped.stdout for number in range(3))


def test_an_index_that_sqlite_utils_makes_stops_no_store(tmp_path: Path) -> None:
    """It quotes every name; that was taken for an expression, and the agent stored nothing more."""
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("Prefer tea", user_id="ann")
    made = _sqlite_utils(
        *("create-index", str(memory.path), "memories", "user_id", "--", "-timestamp"),
        python=sys.executable,
    )
    assert made.returncode == 0, made.stderr
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("Prefer oolong", user_id="ann")
        assert memory.check().problems == []
    listed = _sqlite_utils("indexes", str(memory.path), python=sys.executable)
    assert "idx_memories_user_id" in listed.stdout


def test_triggers_that_sqlite_utils_makes_are_refused_with_the_way_to_drop_them(
    tmp_path: Path,
) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        memory.store("Prefer tea")
    made = _sqlite_utils(
        *("enable-fts", str(memory.path), "memories", "content", "--create-triggers"),
        python=sys.executable,
    )
    assert made.returncode == 0, made.stderr
    with AgentMemory("bob", root=tmp_path) as memory:
        with pytest.raises(StorageUntrusted, match='DROP TRIGGER "memories_a') as refused:
            memory.store("Prefer oolong")
        advice = re.search(r"`sqlite3 \S+ '(.*?)'`", str(refused.value))
        assert advice is not None
        _sqlite_utils("query", str(memory.path), advice[1].split(";")[0], python=sys.executable)
        with pytest.raises(StorageUntrusted, match="the trigger"):
            memory.store("Prefer oolong")


@needs_extensions
def test_datasette_serves_every_table(path: Path) -> None:
    assert {"memories", "embeddings", "embedding_index_1"} <= _served(path, PYTHON)


def test_with_the_index_in_an_ordinary_table_every_tool_opens_the_file(tmp_path: Path) -> None:
    """On the Python of the tests, which often cannot load extensions."""
    path = _make(tmp_path, "table")
    counted = _sqlite_utils("tables", str(path), "--counts", python=sys.executable)
    assert counted.returncode == 0, counted.stderr
    counts = {row["table"]: row["count"] for row in json.loads(counted.stdout)}
    assert counts["memories"] == counts["embedding_codes_1"] == 3
    assert {"memories", "embedding_codes_1"} <= _served(path, sys.executable)
    script = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).iterdump())"
    dumped = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=False, capture_output=True, text=True
    )
    assert dumped.returncode == 0, dumped.stderr
    assert all(f"'Fact {number}'" in dumped.stdout for number in range(3))


def _served(path: Path, python: str | None) -> set[str]:
    """Return the tables of a file that Datasette serves: an error for one with another status."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command, environment = _command(
        "datasette", "serve", str(path), "--port", str(port), python=python
    )
    server = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}/memories"
        tables = json.loads(_read(f"{address}.json", server))["tables"]
        names = {table["name"] for table in tables}
        for name in names:
            _read(f"{address}/{name}", server)
    finally:
        server.terminate()
        server.wait(timeout=SECONDS)
    return names


def _read(address: str, server: subprocess.Popen[bytes]) -> bytes:
    """Return what the server answers with status 200, once it listens; any other is an error."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            with urllib.request.urlopen(address, timeout=SECONDS) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError:
            raise
        except urllib.error.URLError:
            assert server.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.1)
