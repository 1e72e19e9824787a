"""How long each verb takes, and how that grows with the memories stored.

    python -m bench.speed                     1,000, 10,000 and 100,000 memories
    python -m bench.speed --sizes 1000        a short one
    python -m bench.speed --embedder wordllama    with search by meaning

Times are milliseconds: the middle (p50), and what 95 and 99 of 100 stay below. Every store is
durable (synchronous=FULL). As yardsticks, in the same run, on the same disk and file system: one
4 KB write and fsync, and FTS5's own bm25() over all the words of the same questions.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeVar

import apsw

from agent_memory import AgentMemory, SearchFilters
from bench.machine import describe_machine
from bench.workload import NOW, Workload

Argument = TypeVar("Argument")

FILTERS: Final = {
    "search": SearchFilters(),
    "search, category": SearchFilters(category="decision"),
    "search, tag": SearchFilters(tags=["kafka"]),
    "search, since": SearchFilters.model_validate({"date_range": {"start": "2025-10-01"}}),
    "search, metadata": SearchFilters(custom_filters={"confidence": {"gte": 0.9}}),
}


def percentiles(times: list[float]) -> str:
    """Return p50, p95 and p99 as columns."""
    ordered = sorted(times)
    picked = [
        ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95, 0.99)
    ]
    return "".join(f"{value:10.2f}" for value in picked)


def timed(call: Callable[[Argument], object], arguments: Iterable[Argument]) -> list[float]:
    """Call with each argument and return the milliseconds that each call took."""
    times = []
    for argument in arguments:
        started = time.perf_counter()
        call(argument)
        times.append((time.perf_counter() - started) * 1000)
    return times


def report(size: int, name: str, times: list[float]) -> None:
    """Print one row."""
    print(f"{size:>8,}  {name:34}{percentiles(times)}   n={len(times)}", flush=True)


def measure(size: int, rounds: int, embedder: str) -> None:
    """Fill a store and time each verb on it."""
    workload = Workload()
    with tempfile.TemporaryDirectory() as folder:
        with AgentMemory("bench", root=folder, clock=lambda: NOW, embedder=embedder) as memory:
            batches: list[float] = []
            for start in range(0, size, 1000):
                items = list(workload.memories(min(1000, size - start), start=start))
                batches += timed(memory.store_many, [items])
            report(size, "store_many of 1,000", batches)
            if embedder != "none":
                report(size, "migrate", timed(lambda _: memory.migrate(), [None]))
            contents = [found.content for found in memory.list_recent(limit=size)]
            step = max(1, len(contents) // rounds)
            questions = [workload.question(about) for about in contents[::step][:rounds]]
            report(size, "store", timed(memory.store, [workload.sentence() for _ in questions]))
            measure_searches(memory, size, questions)
            report(size, "context", timed(lambda _: memory.context(), range(100)))
            report(size, "count", timed(lambda _: memory.count(), range(20)))
            report(size, "statistics", timed(lambda _: memory.statistics(), range(10)))
            report(size, "store beside `agent-memory stats`", stores_beside(memory, workload))
            measure_yardsticks(memory.path, size, questions)
        report(size, "open and close", timed(lambda _: reopen(folder), range(50)))
        report(size, "cold `agent-memory search`", timed(cold_search(folder), questions[:20]))
        used = AgentMemory.agents(folder)[0].storage_size_mb * 1e6
        print(
            f"{size:>8,}  {'bytes a memory':34}{used / (size + len(questions)):10.0f}", flush=True
        )


def measure_searches(memory: AgentMemory, size: int, questions: list[str]) -> None:
    """Time searches without and with filters."""
    for question in questions[:5]:
        memory.search(question)
    for name, filters in FILTERS.items():
        report(size, name, timed(functools.partial(memory.search, filters=filters), questions))


def stores_beside(memory: AgentMemory, workload: Workload) -> list[float]:
    """Store while another process counts the statistics of the same file; return the times."""
    program = str(Path(sys.executable).with_name("agent-memory"))
    command = [program, "--db", str(memory.path), "stats", "--json"]
    times: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as counting:
        while counting.poll() is None:
            times += timed(memory.store, [workload.sentence()])
            time.sleep(0.005)
    return times


def reopen(folder: str) -> None:
    """Open an agent's file and close it."""
    AgentMemory("bench", root=folder).close()


def cold_search(folder: str) -> Callable[[str], object]:
    """Return what runs a whole process that searches."""
    program = str(Path(sys.executable).with_name("agent-memory"))
    command = [program, "--root", folder, "--agent", "bench", "search"]

    def run(question: str) -> None:
        subprocess.run([*command, question], check=True, capture_output=True)

    return run


def measure_yardsticks(path: Path, size: int, questions: list[str]) -> None:
    """Time a bare durable write, and FTS5 alone."""
    with tempfile.NamedTemporaryFile(dir=path.parent) as scratch:

        def write(block: bytes) -> None:
            scratch.seek(0)
            scratch.write(block)
            scratch.flush()
            os.fsync(scratch.fileno())

        report(size, "yardstick: 4 KB write + fsync", timed(write, [os.urandom(4096)] * 200))
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT rowid FROM memory_index WHERE memory_index MATCH ? ORDER BY rank LIMIT 5"

    def search(question: str) -> None:
        words = "".join(letter if letter.isalnum() else " " for letter in question).split()
        list(connection.execute(sql, (" OR ".join(f'"{word}"' for word in words),)))

    report(size, "yardstick: FTS5 bm25() of all words", timed(search, questions))
    connection.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    parser.add_argument("--rounds", type=int, default=300, help="calls of each verb")
    arguments = parser.parse_args()
    print(describe_machine())
    print(f"{'memories':>8}  {'':34}{'p50 ms':>10}{'p95 ms':>10}{'p99 ms':>10}")
    for size in arguments.sizes:
        measure(size, arguments.rounds, arguments.embedder)
        print()


if __name__ == "__main__":
    main()
