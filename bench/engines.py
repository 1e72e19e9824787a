"""The same memories in a file and in PostgreSQL: what each verb costs, and whether they agree.

    python -m bench.engines postgresql://me@/db                      1,000 and 10,000 memories
    python -m bench.engines postgresql://me@/db --sizes 100000 --embedder wordllama
    python -m bench.engines postgresql://me@/db --sizes 1000 --tenants 1000

With ``--tenants`` one agent alone in a schema is compared with the same agent in a schema with that
many others, of 1,000 memories each: ten of them have their own texts, and the rest have copies of
their rows. Inserting those needs a superuser.

Times are milliseconds: wall-clock (p50, p95) and CPU (mean per call). For PostgreSQL the CPU times
of the library and of the server's processes are added; for that the server must run on this
machine. ``same`` is the number of questions with exactly the same answers, in order, as the file.
The agents that it creates are deleted at the end.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
ALONE: Final = "bench_engines_alone"
TURN: Final = 10
"""Calls after which the next place takes its turn."""
DISTINCT: Final = 10
"""Other agents with their own texts."""
FILTERS: Final = {
    "search": SearchFilters(),
    "search, category": SearchFilters(category="decision"),
    "search, tag": SearchFilters(tags=["kafka"]),
    "search, since": SearchFilters.model_validate({"date_range": {"start": "2025-03-01"}}),
    "search, metadata": SearchFilters(custom_filters={"confidence": {"gte": 0.9}}),
    "search, session": SearchFilters(session_id="session-7"),
}
# Those of this database, and those that write for all; autovacuum belongs to no call.
_SELECT_PROCESSES: Final = """
SELECT pid FROM pg_stat_activity
WHERE coalesce(datname, current_database()) = current_database()
  AND backend_type <> 'autovacuum worker'"""
_SELECT_TABLES: Final = """
SELECT c.relname, string_agg(quote_ident(o.attname), ', ')
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'agent_id'
JOIN pg_attribute AS o ON o.attrelid = c.oid AND o.attnum > 0 AND o.attname <> 'agent_id'
WHERE c.relnamespace = to_regnamespace(%s) AND c.relkind = 'r' GROUP BY c.relname ORDER BY 1"""


@dataclass
class Cost:
    """The cost of calls of one verb, in milliseconds."""

    wall: list[float]
    client: float
    server: float

    def add(self, other: Cost) -> None:
        """Add further calls."""
        self.wall += other.wall
        self.client += other.client
        self.server += other.server

    def each(self) -> float:
        """Return the CPU time of a call, of library and server together."""
        return (self.client + self.server) / len(self.wall)

    def row(self) -> str:
        """Return p50, p95, and the CPU time of a call: library, server."""
        ordered = sorted(self.wall)
        middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
        calls = len(ordered)
        return f"{middle:9.2f}{late:9.2f}{self.client / calls:9.2f}{self.server / calls:9.2f}"


class Server:
    """The processes of a server on this machine; none for a file."""

    def __init__(self, address: str | None) -> None:
        self._connection = psycopg.connect(address, autocommit=True) if address else None

    def milliseconds(self) -> float:
        """Return the CPU time of its processes."""
        if not self._connection:
            return 0.0
        nanoseconds = 0
        for (pid,) in self._connection.execute(_SELECT_PROCESSES).fetchall():
            try:
                status = Path(f"/proc/{pid}/schedstat").read_text("utf-8")
            except OSError:  # it has ended, or it is not on this machine
                continue
            nanoseconds += int(status.split()[0])
        return nanoseconds / 1e6

    def tidy(self) -> None:
        """Do now what the server would do by itself within a minute."""
        assert self._connection is not None
        for schema in (SCHEMA, ALONE):
            for table, _ in self._connection.execute(_SELECT_TABLES, (schema,)).fetchall():
                self._connection.execute(f"VACUUM (ANALYZE) {schema}.{table}")

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


@dataclass
class Place:
    """A memory to measure: where it is, and the server that it is on."""

    name: str
    memory: AgentMemory
    server: Server


class Run:
    """The same memories at several places: they are stored, and the verbs are timed.

    The places take turns, so that other work on the machine affects all alike.
    """

    def __init__(self, places: Sequence[Place], size: int, rounds: int) -> None:
        self._places = places
        self._workload = Workload()
        self._items = list(self._workload.memories(size))
        asked_about = self._items[:: max(1, size // rounds)][:rounds]
        self._questions = [self._workload.question(item["content"]) for item in asked_about]

    def _report(
        self, verb: str, call: Callable[[AgentMemory, Any], object], arguments: Sequence[Any]
    ) -> list[Cost]:
        costs = [Cost([], 0.0, 0.0) for _ in self._places]
        for start in range(0, len(arguments), TURN):
            for place, cost in zip(self._places, costs, strict=True):
                turn = arguments[start : start + TURN]
                cost.add(place.server.measured(partial(call, place.memory), turn))
        for place, cost in zip(self._places, costs, strict=True):
            start_of_row = f"{len(self._items):>8,}  {place.name:<11}{verb:<22}"
            print(f"{start_of_row}{cost.row()}   n={len(cost.wall)}", flush=True)
        return costs

    def fill(self, embedder: str) -> None:
        """Store the memories, and embed them if an embedder is named."""
        starts = range(0, len(self._items), 1_000)
        batches = [self._items[start : start + 1_000] for start in starts]
        self._report("store_many of 1,000", AgentMemory.store_many, batches)
        if embedder != "none":
            self._report("migrate", lambda memory, _: memory.migrate(), [None])

    def search(self) -> None:
        """Time the searches; print the cost at each place, and how many answers are the same."""
        size, beside = f"{len(self._items):>8,}", self._places[0].name
        for place in self._places:
            for question in self._questions[:10]:
                place.memory.search(question)
        for verb, filters in FILTERS.items():
            costs = self._report(
                verb, partial(AgentMemory.search, filters=filters), self._questions
            )
            shares = [cost.each() / costs[0].each() for cost in costs[1:]]
            names = [place.name for place in self._places[1:]]
            for name, share in zip(names, shares, strict=True):
                print(f"{size}  {name}: {share:.2f} times the processors' time of {beside}")
        first, *others = [answers(place.memory, self._questions) for place in self._places]
        for place, found in zip(self._places[1:], others, strict=True):
            same = sum(one == other for one, other in zip(first, found, strict=True))
            print(f"{size}  {place.name}: same answers: {same} of {len(first)}", flush=True)

    def others(self) -> None:
        """Time the other frequent calls of an agent."""
        sentences = [self._workload.sentence() for _ in self._questions]
        self._report("store", AgentMemory.store, sentences)
        self._report("context", lambda memory, _: memory.context(), range(50))


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
def own_schema(address: str, schema: str = SCHEMA) -> Iterator[str]:
    """Give the body the address of a temporary schema."""
    drop = f"DROP SCHEMA IF EXISTS {schema} CASCADE"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(drop)
        try:
            yield f"{address}{'&' if '?' in address else '?'}schema={schema}"
        finally:
            connection.execute(drop)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("address", help="postgresql://…, a database to write to")
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
        compare(arguments, size)


def compare(arguments: argparse.Namespace, size: int) -> None:
    """Measure a file and a server, or one agent alone in a schema and the same among others."""
    with ExitStack() as stack:
        server = Server(arguments.address)
        roots = {"postgresql": (stack.enter_context(own_schema(arguments.address)), server)}
        if arguments.tenants:
            alone = stack.enter_context(own_schema(arguments.address, ALONE))
            fill_tenants(arguments.address, roots["postgresql"][0], arguments.tenants)
            roots = {"alone": (alone, server), f"of {arguments.tenants:,}": roots["postgresql"]}
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            roots = {"file": (folder, Server(None)), **roots}
        places = []
        for name, (root, its_server) in roots.items():
            memory = AgentMemory(AGENT, root=root, embedder=arguments.embedder, clock=lambda: NOW)
            places.append(Place(name, stack.enter_context(memory), its_server))
        run = Run(places, size, arguments.rounds)
        run.fill(arguments.embedder)
        server.tidy()
        run.search()
        run.others()


if __name__ == "__main__":
    main()
