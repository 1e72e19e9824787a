"""The same memories in a file and in PostgreSQL: what each verb costs, and whether they agree.

    python -m bench.engines postgresql://me@/db                      1,000 and 10,000 memories
    python -m bench.engines postgresql://me@/db --sizes 100000 --embedder wordllama
    python -m bench.engines postgresql://me@/db --tenants 100        others beside the one

Times are milliseconds: the clock's (p50, p95) and the processors' (mean of a call). Of PostgreSQL
the processors' time of the library and of the server's processes are added; for that the server
must run on this machine. ``same`` is how many of the questions have the very same answers, in
order, as the file. The agents that it makes are deleted in the end.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg

from agent_memory import AgentMemory, SearchFilters
from bench.machine import describe_machine
from bench.workload import NOW, Workload

AGENT: Final = "bench"
SCHEMA: Final = "bench_engines"
FILTERS: Final = {
    "search": SearchFilters(),
    "search, category": SearchFilters(category="decision"),
    "search, tag": SearchFilters(tags=["kafka"]),
}
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """What calls of one verb took, in milliseconds."""

    wall: list[float]
    client: float
    server: float

    def row(self) -> str:
        """Return p50, p95, and the processors' time of a call: library, server."""
        ordered = sorted(self.wall)
        middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
        calls = len(ordered)
        return f"{middle:9.2f}{late:9.2f}{self.client / calls:9.2f}{self.server / calls:9.2f}"


class Server:
    """The processes of a server on this machine; none for a file."""

    def __init__(self, address: str | None) -> None:
        self._connection = address and psycopg.connect(address, autocommit=True)

    def milliseconds(self) -> float:
        """Return the processors' time of its processes."""
        if not self._connection:
            return 0.0
        ticks = 0
        for (pid,) in self._connection.execute("SELECT pid FROM pg_stat_activity").fetchall():
            try:
                status = Path(f"/proc/{pid}/stat").read_text("utf-8")
            except OSError:  # it ended meanwhile, or it is not on this machine
                continue
            fields = status.rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks * 1000 / _TICKS

    def measured(self, call: Callable[[Any], object], arguments: Iterable[Any]) -> Cost:
        """Call with each argument and return what that took."""
        wall: list[float] = []
        client, server = time.process_time(), self.milliseconds()
        for argument in arguments:
            started = time.perf_counter()
            call(argument)
            wall.append((time.perf_counter() - started) * 1000)
        return Cost(wall, (time.process_time() - client) * 1000, self.milliseconds() - server)


def answers(memory: AgentMemory, questions: Sequence[str]) -> list[list[tuple[str, float]]]:
    """Return texts and scores of each question's hits."""
    return [
        [
            (hit.memory.content, round(hit.relevance_score, 9))
            for hit in memory.search(each, count_accesses=False)
        ]
        for each in questions
    ]


def measure(
    memory: AgentMemory, name: str, server: Server, size: int, *, rounds: int, embedder: str
) -> list[list[tuple[str, float]]]:
    """Fill a memory, time its verbs, and return its answers."""
    workload = Workload()
    items = list(workload.memories(size))
    batches = [items[start : start + 1000] for start in range(0, size, 1000)]

    def report(verb: str, call: Callable[[Any], object], arguments: Iterable[Any]) -> None:
        cost = server.measured(call, arguments)
        print(f"{size:>8,}  {name:<11}{verb:<22}{cost.row()}   n={len(cost.wall)}", flush=True)

    report("store_many of 1,000", memory.store_many, batches)
    if embedder != "none":
        report("migrate", lambda _: memory.migrate(), [None])
    step = max(1, size // rounds)
    questions = [workload.question(item["content"]) for item in items[::step][:rounds]]
    for question in questions[:5]:
        memory.search(question)
    for verb, filters in FILTERS.items():
        report(verb, partial(memory.search, filters=filters), questions)
    found = answers(memory, questions)
    report("store", memory.store, [workload.sentence() for _ in questions])
    report("context", lambda _: memory.context(), range(50))
    return found


def fill_tenants(address: str, count: int) -> None:
    """Give other agents 1,000 memories each."""
    for number in range(count):
        workload = Workload(seed=number + 100)
        with AgentMemory(f"{AGENT}-{number}", root=address, embedder="none") as other:
            other.store_many(list(workload.memories(1_000)))


@contextmanager
def own_schema(address: str) -> Iterator[str]:
    """Give the body the address of a schema that goes with it."""
    drop = f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(drop)
        try:
            yield f"{address}{'&' if '?' in address else '?'}schema={SCHEMA}"
        finally:
            connection.execute(drop)


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("address", help="postgresql://…, a database that may be written to")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=100, help="questions")
    parser.add_argument("--tenants", type=int, default=0, help="other agents, 1,000 memories each")
    parser.add_argument("--embedder", default="none", help="a name, such as wordllama")
    arguments = parser.parse_args()
    print(describe_machine())
    print(
        f"{'memories':>8}  {'where':<11}{'verb':<22}{'p50':>9}{'p95':>9}{'library':>9}{'server':>9}"
    )
    for size in arguments.sizes:
        with own_schema(arguments.address) as address:
            fill_tenants(address, arguments.tenants)
            compare(address, arguments, size)


def compare(address: str, arguments: argparse.Namespace, size: int) -> None:
    """Measure both engines at one size, and say how many answers are the same."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, root, server in (
            ("file", folder, Server(None)),
            ("postgresql", address, Server(arguments.address)),
        ):
            with AgentMemory(
                AGENT, root=root, embedder=arguments.embedder, clock=lambda: NOW
            ) as memory:
                found[name] = measure(
                    memory,
                    name,
                    server,
                    size,
                    rounds=arguments.rounds,
                    embedder=arguments.embedder,
                )
    same = sum(one == other for one, other in zip(*found.values(), strict=True))
    print(f"{size:>8,}  same answers: {same} of {len(found['file'])}", flush=True)


if __name__ == "__main__":
    main()
