"""Locks of other programs: what waits for them, and what holds them from its start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agent_memory import AgentMemory

_READS_FOR_A_WHILE = """
import sqlite3, sys, time
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN")
c.execute("SELECT count(*) FROM sqlite_master").fetchone()
print("reading", flush=True)
time.sleep(0.5)
c.execute("COMMIT")
"""

_TRIES_TO_WRITE = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
try:
    c.execute("BEGIN IMMEDIATE")
    print("got the lock")
except sqlite3.OperationalError as error:
    print(error)
"""


def test_a_new_file_is_opened_while_another_program_reads_it(tmp_path: Path) -> None:
    """The switch to the write-ahead log needs the file for itself, and SQLite does not wait."""
    path = tmp_path / "m.db"
    path.touch(0o600)
    words = [sys.executable, "-c", _READS_FOR_A_WHILE, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        with AgentMemory.open(path) as memory:
            assert memory.get(memory.store("after the wait")) is not None
    assert reader.returncode == 0


def test_a_write_holds_the_lock_from_its_start(root: Path) -> None:
    """One that only reads at first would fail when another program wrote in between."""
    with AgentMemory("bob", root=root) as memory, memory._store._database.write():
        words = [sys.executable, "-c", _TRIES_TO_WRITE, str(memory.path)]
        tried = subprocess.run(words, capture_output=True, text=True, timeout=30)
        assert tried.stdout == "database is locked\n"
