"""Other programs at work in the same file while the library's processes store, and copies of it."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from places import finished, line, started

from agent_memory import AgentMemory, NotAMemoryFile, StorageCorrupt, StorageError

NAME = "m.db"
SHELL = shutil.which("sqlite3")

_STORES = """
import sys
from agent_memory import AgentMemory
name, count = sys.argv[2], int(sys.argv[3])
with AgentMemory.open(sys.argv[1], session_id=name) as memory:
    for number in range(count):
        memory.store(f"{name} learned walnut fact {number} " + "x" * (number % 5 * 700),
                     id=f"{name}-{number}")
        print(f"{name}-{number}", flush=True)
        if number % 10 == 9:
            memory.search("walnut fact")
            memory.update(f"{name}-{number - 5}", importance="high")
"""

_VISITS = """
import sqlite3, sys, time
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
for turn in range(int(sys.argv[2])):
    for statement in sys.argv[3].split(";;"):
        try:
            list(c.execute(statement.replace("TURN", str(turn))))
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
    time.sleep(0.01)
c.close()
"""

WORK = {
    "inserting": "INSERT INTO memories (id, content) VALUES ('hand-TURN', 'by hand TURN')",
    "updating": "UPDATE memories SET content = content || ' again' WHERE seq ="
    " (SELECT min(seq) FROM memories WHERE id LIKE 'first-%')",
    "deleting": "INSERT INTO memories (id, content) VALUES ('gone-TURN', 'to be gone');;"
    "DELETE FROM memories WHERE id = 'gone-TURN'",
    "vacuuming": "VACUUM",
    "checkpointing": "PRAGMA wal_checkpoint(TRUNCATE)",
    "switching the journal": "PRAGMA journal_mode = DELETE;;PRAGMA journal_mode = WAL",
    "coming and going": "SELECT count(*) FROM memories",
    "reading for long": "BEGIN;;SELECT count(*) FROM memories;;SELECT sum(length(content))"
    " FROM memories, (SELECT 1 UNION SELECT 2);;ROLLBACK",
}


def prepared(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    with AgentMemory.open(path) as memory:
        memory.store_many([{"id": f"first-{n}", "content": f"first {n}"} for n in range(20)])
    return path


def stored_meanwhile(path: Path, visitor: list[str], *, again: bool) -> list[str]:
    """Let two processes store while a visitor works; return what was acknowledged."""
    children = [started(_STORES, path, name, 25) for name in ("one", "two")]
    acknowledged: list[str] = []
    visit = subprocess.run(visitor, capture_output=True, text=True, timeout=60)
    while again and any(child.poll() is None for child in children):
        visit = subprocess.run(visitor, capture_output=True, text=True, timeout=60)
    for child in children:
        out, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
        acknowledged += out.split()
    assert "locked" in visit.stderr or not visit.returncode, visit.stderr
    return acknowledged


def assert_whole(path: Path, acknowledged: list[str]) -> None:
    with AgentMemory.open(path, create=False) as memory:
        wanted = {*acknowledged, *(f"first-{n}" for n in range(20))}
        there = {one.id: one for one in memory.list_recent(10_000)}
        assert wanted - there.keys() == set()
        for name in acknowledged:
            assert there[name].content.startswith(name.replace("-", " learned walnut fact "))
        assert memory.check().problems == []
        later = memory.store("stored after all the visits")
        assert memory.search("after all the visits")[0].memory.id == later


@pytest.mark.parametrize("work", WORK)
def test_python_visits_while_processes_store(tmp_path: Path, work: str) -> None:
    path = prepared(tmp_path)
    turns = "1" if work == "coming and going" else "25"
    words = [sys.executable, "-c", _VISITS, str(path), turns, WORK[work]]
    acknowledged = stored_meanwhile(path, words, again=work == "coming and going")
    assert len(acknowledged) == 50
    assert_whole(path, acknowledged)
    if work == "inserting":
        with AgentMemory.open(path) as memory:
            assert {hit.memory.id for hit in memory.search("hand", 100)} >= {"hand-3", "hand-24"}


@pytest.mark.skipif(SHELL is None, reason="the sqlite3 shell is not installed")
@pytest.mark.parametrize("work", ["vacuuming", "checkpointing", "coming and going"])
def test_the_shell_comes_and_goes_while_processes_store(tmp_path: Path, work: str) -> None:
    """An old SQLite, which is the last to leave whenever nobody holds a lock."""
    path = prepared(tmp_path)
    assert SHELL is not None
    words = [SHELL, "-cmd", ".timeout 20000", str(path), *WORK[work].split(";;")]
    assert_whole(path, stored_meanwhile(path, words, again=True))


_HOLDS = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN")
print(c.execute("SELECT count(*) FROM memories").fetchone()[0], flush=True)
sys.stdin.readline()
print(c.execute("SELECT count(*) FROM memories").fetchone()[0], flush=True)
"""


def test_one_who_holds_a_view_is_neither_disturbed_nor_in_the_way(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    with started(_HOLDS, path) as holder:
        assert line(holder) == "20"
        visits = _VISITS.replace("timeout=20", "timeout=0.1")
        words = [sys.executable, "-c", visits, str(path), "10", WORK["checkpointing"]]
        acknowledged = stored_meanwhile(path, words, again=False)
        assert holder.communicate("\n", timeout=30)[0] == "20\n"
    assert_whole(path, acknowledged)


def test_the_journal_cannot_be_switched_under_an_open_memory(tmp_path: Path) -> None:
    path = prepared(tmp_path)
    with AgentMemory.open(path) as memory:
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=0.1)\n"
            "try: print(c.execute('PRAGMA journal_mode = DELETE').fetchone()[0])\n"
            "except sqlite3.OperationalError as error: print(error)"
        )
        assert finished(code, path) == "database is locked"
        memory.store("goes on", id="one-0")
    assert finished(code, path) == "delete"
    with AgentMemory.open(path) as memory:
        assert memory.info().journal == "wal"
        assert path.with_name(f"{NAME}-wal").exists()
        assert memory.get("one-0")


# Copies -------------------------------------------------------------------------------------------


def test_a_copy_of_a_file_in_use_opens_or_says_what_is_wrong(tmp_path: Path) -> None:
    """``cp`` sees one part of the file now and another later: it is no backup, and must not lie."""
    path = prepared(tmp_path)
    chance = random.Random(9)
    opened = 0
    with started(_STORES, path, "other", 100_000) as child:
        line(child)
        for turn in range(16):
            time.sleep(chance.random() * 0.03)
            place = tmp_path / str(turn)
            place.mkdir()
            suffixes = [("",), ("", "-wal"), ("-wal", ""), ("", "-wal", "-shm")][turn % 4]
            for suffix in suffixes:
                with_name = path.with_name(NAME + suffix)
                if with_name.exists():
                    subprocess.run(["cp", str(with_name), str(place / with_name.name)], check=True)
            opened += _opens(place / NAME)
        child.kill()
    assert opened >= 8
    assert_whole(path, [])


def _opens(path: Path) -> bool:
    """Use a copy as a user would; return whether it could be opened."""
    try:
        with AgentMemory.open(path, agent_id="agent", create=False) as memory:
            report = memory.check()
            if not report.ok:
                assert all(problem.detail for problem in report.problems)
                return True
            count = memory.count()
            memory.store("stored in the copy")
            assert memory.count() == count + 1
            assert memory.check().problems == []
    except StorageError as error:
        if type(error) is StorageError:
            raise
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_a_stale_log_of_another_file_does_no_silent_harm(tmp_path: Path, seed: int) -> None:
    """What a log adds to a file that it is not of is damage: ``check`` must tell it."""
    path = prepared(tmp_path)
    other = tmp_path / "other" / NAME
    other.parent.mkdir()
    with started(_STORES, other, f"other{seed}", 5 + 30 * seed) as child:
        for _ in range(5 + 30 * seed):
            line(child)
        child.kill()
    log = other.with_name(f"{NAME}-wal")
    if not log.exists():  # it had ended, and took its log with it
        pytest.skip("the other process was done")
    shutil.copy(log, path.with_name(f"{NAME}-wal"))
    try:
        with AgentMemory.open(path, create=False) as memory:
            report = memory.check()
            there = {one.id for one in memory.list_recent(10_000)}
    except (StorageCorrupt, NotAMemoryFile):
        return
    ours = {f"first-{n}" for n in range(20)}
    theirs = {f"other{seed}-{n}" for n in range(5 + 30 * seed)}
    # Either it was not taken, or all of it was (then it is the other file, whole), or it is told.
    assert not report.ok or there == ours or there <= theirs


@pytest.mark.parametrize("turn", range(4))
def test_a_garbage_shm_is_made_anew(tmp_path: Path, turn: int) -> None:
    path = tmp_path / NAME
    with started(_STORES, path, "one", 1000) as child:
        acknowledged = [line(child) for _ in range(30)]
        child.kill()
    index = path.with_name(f"{NAME}-shm")
    garbage = [b"", b"\0" * 32768, random.Random(turn).randbytes(32768), b"\xff" * 1000][turn]
    index.write_bytes(garbage)
    with AgentMemory.open(path) as memory:
        assert [one for one in acknowledged if memory.get(one) is None] == []
        assert memory.check().problems == []
