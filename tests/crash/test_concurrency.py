"""Processes, threads and forks on one file. Many at once, and killed: see ``tests/survival``."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from places import forked

from agent_memory import AgentMemory
from agent_memory.runtime.lazy_parts import lazy_property
from agent_memory.runtime.logs import logger

_READS_TWICE = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute('BEGIN')
print(c.execute('SELECT count(*) FROM memories').fetchone()[0], flush=True)
sys.stdin.readline()
print(c.execute('SELECT count(*) FROM memories').fetchone()[0], flush=True)
"""


def test_searches_by_several_processes_lose_no_access(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory_id = memory.store("The deployment key is in the vault")

    def search() -> None:
        with AgentMemory("bob", root=root) as own:
            for _ in range(25):
                assert own.search("deployment key")[0].memory.id == memory_id

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=search) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    with AgentMemory("bob", root=root) as memory:
        found = memory.get(memory_id)
        assert found is not None
        assert found.access_count == 100


def test_a_transaction_belongs_to_the_thread_that_began_it(memory: AgentMemory) -> None:
    """The threads share one connection under a lock: nobody writes into another's transaction."""
    inside, order = threading.Event(), []

    def slow_items() -> None:
        def progress(_done: int, _total: int) -> None:
            inside.set()
            time.sleep(0.3)
            order.append("many")

        memory.store_many([{"content": f"fact {n}"} for n in range(10)], progress=progress)

    def other() -> None:
        inside.wait(10)
        memory.store("from another thread")
        order.append("one")

    threads = [threading.Thread(target=slow_items), threading.Thread(target=other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert order == ["many", "one"]
    assert memory.count() == 11


def test_two_memories_on_one_file_in_one_process(root: Path) -> None:
    with AgentMemory("bob", root=root) as one, AgentMemory("bob", root=root) as two:
        for number in range(50):
            one.store(f"one {number}")
            two.store(f"two {number}")
        assert one.count() == two.count() == 100
        one.close()
        two.store("after the other was closed")
        assert two.check().problems == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("in_transaction_thread", [False, True])
def test_after_fork_parent_and_child_both_go_on(root: Path, *, in_transaction_thread: bool) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("before the fork")
        memory.search("fork")
        stop = threading.Event()

        def keep_busy() -> None:
            number = 0
            while not stop.is_set():
                memory.store(f"busy thread {number}")
                number += 1

        thread = threading.Thread(target=keep_busy)
        if in_transaction_thread:
            thread.start()
            time.sleep(0.05)
        children = [forked(lambda: _child_stores(memory)) for _ in range(5)]
        for number in range(20):
            memory.store(f"parent {number}")
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        stop.set()
        if in_transaction_thread:
            thread.join(30)
        assert codes == [0] * 5
        assert memory.count(filters={"category": "insight"}) == 100
        assert memory.check().problems == []


class _Slow:
    def __init__(self) -> None:
        self.computing, self.may_end = threading.Event(), threading.Event()

    @lazy_property
    def part(self) -> object:
        self.computing.set()
        assert self.may_end.wait(30)
        return object()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_a_lazy_part_is_made_can_make_its_own() -> None:
    """On Python 3.11 ``add`` in the child waited for ever for the lock of ``cached_property``."""
    ours, childs = _Slow(), _Slow()
    thread = threading.Thread(target=lambda: ours.part)
    thread.start()
    assert ours.computing.wait(30)
    childs.may_end.set()

    def make() -> None:
        signal.alarm(20)  # a child that waits for ever is killed
        assert childs.part is childs.part

    child = forked(make)
    ours.may_end.set()
    thread.join(30)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_that_make_a_lazy_part_at_once_get_the_same() -> None:
    together = threading.Barrier(4)
    parts: list[object] = []

    class Slow:
        @lazy_property
        def part(self) -> object:
            together.wait(30)  # all four are computing
            return object()

    slow = Slow()
    threads = [threading.Thread(target=lambda: parts.append(slow.part)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(parts) == 4
    assert len(set(map(id, parts))) == 1


def _child_stores(memory: AgentMemory) -> None:
    for number in range(20):
        memory.store(f"child {os.getpid()} number {number}", category="insight")
    assert memory.search("before the fork")
    memory.close()


def test_no_logger_is_asked_for_inside_a_transaction(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork with the lock of ``logging`` waited for the transaction, and that for the lock."""
    ask = logging.getLogger
    names: set[str] = set()

    def ask_while_another_thread_counts(name: str) -> logging.Logger:
        counting = threading.Thread(target=memory.count, daemon=True)
        counting.start()
        counting.join(5)
        assert not counting.is_alive()
        names.add(name)
        return ask(name)

    logger.cache_clear()  # it is asked once for each name
    with monkeypatch.context() as patch:
        patch.setattr(logging, "getLogger", ask_while_another_thread_counts)
        memory.store("The lighthouse is red")
        memory.store_many([{"content": "The kettle is blue"}])
    assert names >= {"agent_memory.duplicates", "agent_memory.events"}


def test_a_reader_with_an_old_view_does_not_hold_up_a_writer(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("old fact")
        reader = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _READS_TWICE,
                str(memory.path),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        for number in range(200):
            memory.store(f"new fact {number}")
        out, _ = reader.communicate("\n", timeout=30)
        assert out == "1\n"
        assert memory.count() == 201
        assert memory.check().problems == []
