"""A Ctrl-C, or another signal that raises, in the middle of a verb: the next verb works."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from conftest import engine_of

from agent_memory import AgentMemory
from agent_memory.runtime import fork_safety

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here"),
    # One that falls into a callback of Python's own is told, and not raised.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

POOL = "psycopg's pool may lose a connection, of which there are but ten, to a signal"


@pytest.fixture(autouse=True)
def alarm_is_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(step: Callable[[], object], *, after: float) -> None:
    """Do a step again and again, until a signal comes, or for some time where it was swallowed."""
    end = time.monotonic() + 100 * after
    with contextlib.suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, after)
        while time.monotonic() < end:
            step()
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_a_lock_is_free_afterwards() -> None:
    lock = fork_safety.Lock()

    def take() -> None:
        with lock.bare:
            pass

    for _ in range(300):
        interrupted(take, after=0.0001)
        assert not lock.bare.locked()


@pytest.mark.file_only(POOL)
def test_no_transaction_is_open_afterwards(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory, AgentMemory("bob", root=root) as other:

        def write() -> None:
            with engine_of(memory).write():
                pass

        for _ in range(100):
            interrupted(write, after=0.0005)
            with engine_of(other).nowait(), engine_of(other).write():
                pass
        assert memory.get(memory.store("afterwards"))


@pytest.mark.file_only(POOL)
def test_a_store_that_is_interrupted_anywhere_keeps_no_other_waiting(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("first")
        for number in range(100):
            interrupted(partial(memory.store, f"interrupted {number}"), after=0.0001 * (number + 1))
        assert memory.get(memory.store("afterwards"))
