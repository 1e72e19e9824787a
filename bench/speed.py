"""How long each verb takes, and how that grows with the memories stored.

    python -m bench.speed                     1,000, 10,000 and 100,000 memories
    python -m bench.speed --sizes 1000        a short one
    python -m bench.speed --sizes 1000000 --rounds 100    the largest: twenty minutes, 2 GB
    python -m bench.speed --embedder wordllama    with search by meaning

Times are milliseconds: the median (p50) and the 95th percentile (p95), first wall-clock time, then
CPU time, which other work on the machine affects less. Every store is durable (synchronous=FULL).
Each search is measured by turns with FTS5's own bm25() over all the words of the same questions,
and each cold command, which is a whole process, with the bare interpreter. The last column says how
many times as long as those it takes: that changes little where a machine's speed changes from
minute to minute. A bare 4 KB write and fsync on the same disk is measured too. For a cold search
Python reports how long its imports took, by package.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import apsw

from agent_memory import AgentMemory, SearchFilters
from bench.machine import describe_machine
from bench.workload import NOW, SESSION_LENGTH, Workload

Argument = TypeVar("Argument")

FILTERS: Final = {
    "search": SearchFilters(),
    "search, category": SearchFilters(category="decision"),
    "search, tag": SearchFilters(tags=["kafka"]),
    "search, since": SearchFilters.model_validate({"date_range": {"start": "2025-10-01"}}),
    "search, metadata": SearchFilters(custom_filters={"confidence": {"gte": 0.9}}),
    "search, user": SearchFilters(user_id="carla"),
    "search, nobody's": SearchFilters(category="question", tags=["nobody-has-this"]),
}
_SESSIONS_A_USER: Final = 40
"""One of this many sessions is a user's."""
_TURN: Final = 10
"""How many calls are made before it is the turn of the yardstick."""
_IMPORT: Final = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")


class Time(NamedTuple):
    """The milliseconds of a call: wall-clock and CPU."""

    wall: float
    cpu: float


def percentiles(times: list[float]) -> str:
    """Return p50 and p95 as columns."""
    ordered = sorted(times)
    picked = [ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.5, 0.95)]
    return "".join(f"{value:10.2f}" for value in picked)


def timed(call: Callable[[Argument], object], arguments: Iterable[Argument]) -> list[Time]:
    """Call with each argument and return the time of each call, including child processes."""
    times = []
    for argument in arguments:
        started, used = time.perf_counter(), _cpu()
        call(argument)
        times.append(Time((time.perf_counter() - started) * 1000, (_cpu() - used) * 1000))
    return times


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def by_turns(
    call: Callable[[Argument], object],
    yardstick: Callable[[Argument], object],
    arguments: list[Argument],
) -> tuple[list[Time], list[Time]]:
    """Time two calls with the same arguments, a few of one after a few of the other."""
    times: list[Time] = []
    beside: list[Time] = []
    for start in range(0, len(arguments), _TURN):
        beside += timed(yardstick, arguments[start : start + _TURN])
        times += timed(call, arguments[start : start + _TURN])
    return times, beside


def report(size: int, name: str, times: list[Time], beside: list[Time] | None = None) -> None:
    """Print one row, and how many times the CPU time of the yardstick it took."""
    columns = percentiles([each.wall for each in times]) + percentiles([each.cpu for each in times])
    if beside:
        own, other = (statistics.median(each.cpu for each in of) for of in (times, beside))
        columns += f"{own / other:9.2f}x"
    print(f"{size:>8,}  {name:34}{columns}   n={len(times)}", flush=True)


def batches(workload: Workload, size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the memories, 1,000 at a time, some of them a user's."""
    for start in range(0, size, 1000):
        items = list(workload.memories(min(1000, size - start), start=start))
        for place, item in enumerate(items, start):
            if place // SESSION_LENGTH % _SESSIONS_A_USER == 0:
                item["user_id"] = "carla"
        yield items


def measure(size: int, rounds: int, embedder: str) -> None:
    """Fill a store and time each verb on it."""
    workload = Workload()
    with tempfile.TemporaryDirectory() as folder:
        with AgentMemory("bench", root=folder, clock=lambda: NOW, embedder=embedder) as memory:
            filling: list[Time] = []
            contents: list[str] = []
            step = max(1, size // rounds)
            for items in batches(workload, size):
                filling += timed(memory.store_many, [items])
                contents += [item["content"] for item in items[:: min(step, len(items))]]
            report(size, "store_many of 1,000", filling)
            if embedder != "none":
                report(size, "migrate", timed(lambda _: memory.migrate(), [None]))
            spread = contents[:: max(1, len(contents) // rounds)]
            questions = [workload.question(about) for about in spread[:rounds]]
            report(size, "store", timed(memory.store, [workload.sentence() for _ in questions]))
            measure_searches(memory, size, questions)
            report(size, "context", timed(lambda _: memory.context(), range(100)))
            report(size, "count", timed(lambda _: memory.count(), range(20)))
            report(size, "info", timed(lambda _: memory.info(), range(20)))
            report(size, "statistics", timed(lambda _: memory.statistics(), range(3)))
            report(size, "store beside `agent-memory stats`", stores_beside(memory, workload))
            report(size, "yardstick: 4 KB write + fsync", bare_writes(memory.path))
        report(size, "open and close", timed(lambda _: reopen(folder), range(50)))
        measure_cold(folder, size, questions[:20], workload)
        print(f"{size:>8,}  of it imports: {cold_imports(folder, questions[0])}", flush=True)
        used = AgentMemory.agents(folder)[0].storage_size_mb * 1e6
        print(
            f"{size:>8,}  {'bytes a memory':34}{used / (size + len(questions)):10.0f}", flush=True
        )


def measure_searches(memory: AgentMemory, size: int, questions: list[str]) -> None:
    """Time searches without and with filters, and FTS5 alone beside each."""
    connection = apsw.Connection(str(memory.path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT rowid FROM memory_index WHERE memory_index MATCH ? ORDER BY rank LIMIT 5"

    def rank(question: str) -> None:
        words = "".join(letter if letter.isalnum() else " " for letter in question).split()
        list(connection.execute(sql, (" OR ".join(f'"{word}"' for word in words),)))

    for question in questions[:5]:
        memory.search(question)
        rank(question)
    yardstick: list[Time] = []
    for name, filters in FILTERS.items():
        search = functools.partial(memory.search, filters=filters)
        times, beside = by_turns(search, rank, questions)
        report(size, name, times, beside)
        yardstick += beside
    report(size, "yardstick: FTS5 bm25() of all words", yardstick)
    connection.close()


def stores_beside(memory: AgentMemory, workload: Workload) -> list[Time]:
    """Store while another process computes the statistics of the same file; return the times."""
    program = str(Path(sys.executable).with_name("agent-memory"))
    command = [program, "--db", str(memory.path), "stats", "--json"]
    times: list[Time] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as counting:
        while counting.poll() is None:
            times += timed(memory.store, [workload.sentence()])
            time.sleep(0.005)
    return times


def reopen(folder: str) -> None:
    """Open an agent's file and close it."""
    AgentMemory("bench", root=folder).close()


def measure_cold(folder: str, size: int, questions: list[str], workload: Workload) -> None:
    """Time whole processes: the bare interpreter, and commands with and without models."""
    program = str(Path(sys.executable).with_name("agent-memory"))
    command = [program, "--root", folder, "--agent", "bench"]

    def run(words: list[str], word: str) -> None:
        subprocess.run([*words, word], check=True, capture_output=True)

    def bare(_: str) -> None:
        run([sys.executable, "-c"], "pass")

    yardstick: list[Time] = []
    commands = {
        "search": questions,
        "search --json": questions,
        "search --tag kafka": questions,
        "store": [workload.sentence() for _ in questions],
    }
    for name, words in commands.items():
        times, beside = by_turns(functools.partial(run, [*command, *name.split()]), bare, words)
        report(size, f"cold `{name}`", times, beside)
        yardstick += beside
    report(size, "yardstick: `python -c pass`", yardstick)


def cold_imports(folder: str, question: str) -> str:
    """Return how many milliseconds a cold search spends on imports, by package."""
    command = [sys.executable, "-X", "importtime", "-m", "agent_memory"]
    done = subprocess.run(
        [*command, "--root", folder, "--agent", "bench", "search", question],
        check=True,
        capture_output=True,
        text=True,
    )
    shares: Counter[str] = Counter()
    for used, name in _IMPORT.findall(done.stderr):
        package = name.partition(".")[0]
        shares["Python's own" if package in sys.stdlib_module_names else package] += int(used)
    return ", ".join(f"{name} {used / 1000:.1f}" for name, used in shares.most_common(8))


def bare_writes(path: Path) -> list[Time]:
    """Time a bare durable write on the same disk."""
    with tempfile.NamedTemporaryFile(dir=path.parent) as scratch:

        def write(block: bytes) -> None:
            scratch.seek(0)
            scratch.write(block)
            scratch.flush()
            os.fsync(scratch.fileno())

        return timed(write, [os.urandom(4096)] * 200)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    parser.add_argument("--rounds", type=int, default=300, help="calls of each verb")
    arguments = parser.parse_args()
    print(describe_machine())
    columns = "".join(
        f"{name:>10}" for name in ("p50 ms", "p95 ms", "p50 CPU", "p95 CPU", "beside")
    )
    print(f"{'memories':>8}  {'':34}{columns}")
    for size in arguments.sizes:
        measure(size, arguments.rounds, arguments.embedder)
        print()


if __name__ == "__main__":
    main()
