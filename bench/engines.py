"""The same memories in a file and in PostgreSQL: what each verb costs, and whether they agree.

    python -m bench.engines postgresql://me@/db                      1,000 and 10,000 memories
    python -m bench.engines postgresql://me@/db --sizes 100000 --embedder wordllama
    python -m bench.engines postgresql://me@/db --sizes 1000 --tenants 1000

With ``--tenants`` what one agent's verbs cost is measured again when there are so many others in
the same tables, with 1,000 memories each: the texts of ten of them are their own, and the others
have copies of their rows. To put those in takes a superuser.

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
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psycopg

from agent_memory import AgentMemory, SearchFilters
from bench.machine import describe_machine
from bench.workload import NOW, Workload

AGENT: Final = "bench"
SCHEMA: Final = "bench_engines"
DISTINCT: Final = 10
"""Other agents whose texts are their own."""
FILTERS: Final = {
    "search": SearchFilters(),
    "search, category": SearchFilters(category="decision"),
    "search, tag": SearchFilters(tags=["kafka"]),
}
_TICKS: Final = os.sysconf("SC_CLK_TCK")
# Of this database, and those that write for all; what tidies up meanwhile is nobody's call.
_SELECT_PROCESSES: Final = """
SELECT pid FROM pg_stat_activity
WHERE coalesce(datname, current_database()) = current_database()
  AND backend_type <> 'autovacuum worker'"""
_SELECT_TABLES: Final = """
SELECT c.relname, string_agg(quote_ident(o.attname), ', ')
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'agent_id'
JOIN pg_attribute AS o ON o.attrelid = c.oid AND o.attnum > 0 AND o.attname <> 'agent_id'
WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r' GROUP BY c.relname ORDER BY 1"""


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
        self._connection = psycopg.connect(address, autocommit=True) if address else None

    @property
    def is_there(self) -> bool:
        """Return whether there is one."""
        return self._connection is not None

    def milliseconds(self) -> float:
        """Return the processors' time of its processes."""
        if not self._connection:
            return 0.0
        ticks = 0
        for (pid,) in self._connection.execute(_SELECT_PROCESSES).fetchall():
            try:
                status = Path(f"/proc/{pid}/stat").read_text("utf-8")
            except OSError:  # it ended meanwhile, or it is not on this machine
                continue
            fields = status.rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks * 1000 / _TICKS

    def tidy(self) -> None:
        """Let it do now what it does by itself in a minute."""
        if self._connection:
            for table, _ in self._connection.execute(_SELECT_TABLES, (SCHEMA,)).fetchall():
                self._connection.execute(f"VACUUM (ANALYZE) {SCHEMA}.{table}")

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


class Run:
    """One agent's memory at one place: it is filled, and its verbs are timed."""

    def __init__(self, memory: AgentMemory, server: Server, size: int, rounds: int) -> None:
        self._memory = memory
        self._server = server
        self._workload = Workload()
        self._items = list(self._workload.memories(size))
        asked_about = self._items[:: max(1, size // rounds)][:rounds]
        self.questions = [self._workload.question(item["content"]) for item in asked_about]

    def _report(
        self, name: str, verb: str, call: Callable[[Any], object], arguments: Iterable[Any]
    ) -> float:
        cost = self._server.measured(call, arguments)
        start = f"{len(self._items):>8,}  {name:<11}{verb:<22}"
        print(f"{start}{cost.row()}   n={len(cost.wall)}", flush=True)
        return (cost.client + cost.server) / len(cost.wall)

    def fill(self, name: str, *, embedder: str) -> None:
        """Store the memories, and have vectors made of them where an embedder is named."""
        starts = range(0, len(self._items), 1_000)
        batches = [self._items[start : start + 1_000] for start in starts]
        self._report(name, "store_many of 1,000", self._memory.store_many, batches)
        if embedder != "none":
            self._report(name, "migrate", lambda _: self._memory.migrate(), [None])
        self._server.tidy()

    def searches(self, name: str) -> list[float]:
        """Time the searches; return the processors' milliseconds of one, of each kind."""
        for question in self.questions[:10]:
            self._memory.search(question)
        return [
            self._report(name, verb, partial(self._memory.search, filters=each), self.questions)
            for verb, each in FILTERS.items()
        ]

    def others(self, name: str) -> None:
        """Time what else an agent does often."""
        sentences = [self._workload.sentence() for _ in self.questions]
        self._report(name, "store", self._memory.store, sentences)
        self._report(name, "context", lambda _: self._memory.context(), range(50))


def fill_tenants(address: str, schema: str, count: int) -> None:
    """Give ``count`` other agents 1,000 memories each."""
    for number in range(min(count, DISTINCT)):
        workload = Workload(seed=number + 100)
        with AgentMemory(f"{AGENT}-{number}", root=schema, embedder="none") as other:
            other.store_many(list(workload.memories(1_000)))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # no triggers
        tables = connection.execute(_SELECT_TABLES, (SCHEMA,)).fetchall()
        for table, columns in tables:
            for number in range(DISTINCT, count):
                connection.execute(
                    f"INSERT INTO {SCHEMA}.{table} (agent_id, {columns})"
                    f" SELECT %s, {columns} FROM {SCHEMA}.{table} WHERE agent_id = %s",
                    (f"{AGENT}-{number}", f"{AGENT}-{number % DISTINCT}"),
                )


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
            compare(address, arguments, size)


def compare(address: str, arguments: argparse.Namespace, size: int) -> None:
    """Measure both engines at one size; say what one costs beside the other, and what is alike."""
    found, costs = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, root, server in (
            ("file", folder, Server(None)),
            ("postgresql", address, Server(arguments.address)),
        ):
            with AgentMemory(
                AGENT, root=root, embedder=arguments.embedder, clock=lambda: NOW
            ) as memory:
                run = Run(memory, server, size, arguments.rounds)
                run.fill(name, embedder=arguments.embedder)
                costs[name] = run.searches(name)
                found[name] = answers(memory, run.questions)
                run.others(name)
                if server.is_there and arguments.tenants:
                    fill_tenants(arguments.address, address, arguments.tenants)
                    server.tidy()
                    tenants = f"of {arguments.tenants:,}"
                    costs[tenants] = run.searches(tenants)
                    run.others(tenants)
    same = sum(one == other for one, other in zip(*found.values(), strict=True))
    print(f"{size:>8,}  same answers: {same} of {len(found['file'])}", flush=True)
    for before, after in pairwise(costs):
        ratios = " / ".join(
            f"{b / a:.2f}" for a, b in zip(costs[before], costs[after], strict=True)
        )
        print(f"{size:>8,}  {after}: {ratios} times the processors' time of {before}", flush=True)


if __name__ == "__main__":
    main()
