"""A Ctrl-C, or another signal that raises, in the middle of a verb: the next verb works."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import engine_of

from agent_memory import AgentMemory
from agent_memory.runtime import fork_safety
from agent_memory.storage.engine import Engine

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")

POOL = "psycopg's pool may lose a connection, of which there are but ten, to a signal"


@pytest.fixture(autouse=True)
def alarm_is_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_a_lock_is_free_afterwards() -> None:
    lock = fork_safety.Lock()
    for _ in range(300):
        with pytest.raises(KeyboardInterrupt):
            take_until_interrupted(lock)
        assert not lock.bare.locked()


def take_until_interrupted(lock: fork_safety.Lock) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0001)
    while True:
        with lock.bare:
            pass


@pytest.mark.file_only(POOL)
def test_no_transaction_is_open_afterwards(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory, AgentMemory("bob", root=root) as other:
        for _ in range(100):
            with pytest.raises(KeyboardInterrupt):
                write_until_interrupted(engine_of(memory))
            with engine_of(other).nowait(), engine_of(other).write():
                pass
        assert memory.get(memory.store("afterwards"))


def write_until_interrupted(engine: Engine) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    while True:
        with engine.write():
            pass


@pytest.mark.file_only(POOL)
def test_a_store_that_is_interrupted_anywhere_keeps_no_other_waiting(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("first")
        for number in range(100):
            signal.setitimer(signal.ITIMER_REAL, 0.0001 * (number + 1))
            try:
                memory.store(f"interrupted {number}")
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                continue
        assert memory.get(memory.store("afterwards"))
