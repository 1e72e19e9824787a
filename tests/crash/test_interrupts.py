"""A Ctrl-C, or another signal that raises, in the middle of a verb: the next verb works."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
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


@pytest.mark.file_only(POOL)
def test_an_import_that_is_interrupted_anywhere_leaves_nothing_and_no_thread(
    root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"content": "memory {n}"}}\n' for n in range(1_000)))
    for number in range(40):
        with AgentMemory("bob", root=root / str(number)) as memory:
            interrupted(partial(memory.import_, path), after=0.002 * (number + 1))
            for thread in threading.enumerate():
                # One without a number was interrupted before it was started.
                if thread.name.startswith("agent-memory-side") and thread.ident:
                    thread.join(timeout=10)
                    assert not thread.is_alive()
            assert memory.count() in (0, 1_000)
            assert engine_of(memory).fingerprints.is_complete()


@pytest.mark.file_only(POOL)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_that_is_interrupted_while_it_waits_leaves_no_lock_held(root: Path) -> None:
    """The next memory that was opened waited for ever. (Python passes no Ctrl-C on from there.)"""
    with AgentMemory("bob", root=root) as memory:
        memory.store("first")
        is_inside = threading.Event()

        def write() -> None:
            with engine_of(memory).write():
                is_inside.set()
                time.sleep(1)

        writing = threading.Thread(target=write)
        writing.start()
        is_inside.wait()
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                signal.setitimer(signal.ITIMER_REAL, 30)
                memory.store("from the child")
                os._exit(0)
            os._exit(1)
        writing.join()
        assert os.waitpid(child, 0)[1] == 0
        opening = threading.Thread(
            target=lambda: AgentMemory("bob", root=root).close(), daemon=True
        )
        opening.start()
        opening.join(timeout=10)
        assert not opening.is_alive()
        assert memory.count() == 2
