"""Locks of other programs: what waits for them, and what holds them from its start."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from conftest import database_of

from agent_memory import AgentMemory

_HOLDS_THE_LOCK = """
import sqlite3, sys, time
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
time.sleep(0.5)
c.execute("ROLLBACK")
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


def test_a_new_file_is_opened_while_another_program_has_its_lock(tmp_path: Path) -> None:
    """SQLite does not wait for the lock when it switches to the write-ahead log: we must."""
    path = tmp_path / "m.db"
    path.touch(0o600)
    words = [sys.executable, "-c", _HOLDS_THE_LOCK, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "locked\n"
        with AgentMemory.open(path) as memory:
            assert memory.get(memory.store("after the wait")) is not None
    assert reader.returncode == 0


def test_a_write_holds_the_lock_from_its_start(root: Path) -> None:
    """One that only reads at first would fail when another program wrote in between."""
    with AgentMemory("bob", root=root) as memory, database_of(memory).write():
        words = [sys.executable, "-c", _TRIES_TO_WRITE, str(memory.path)]
        tried = subprocess.run(words, capture_output=True, text=True, timeout=30)
        assert tried.stdout == "database is locked\n"


def test_a_search_is_not_kept_waiting_for_its_count(root: Path) -> None:
    """Another program held the lock: the answer came after the five seconds of a write."""
    with AgentMemory("bob", root=root) as memory:
        memory.store("Kafka is what we stream with")
        words = [sys.executable, "-m", "agent_memory", "--root", str(root), "--agent", "bob"]
        with database_of(memory).write():
            started = time.monotonic()
            asked = subprocess.run(
                [*words, "search", "kafka"], capture_output=True, text=True, timeout=30
            )
            assert time.monotonic() - started < 4
        assert "Kafka is what we stream with" in asked.stdout
