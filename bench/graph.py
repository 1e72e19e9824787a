"""How long walks through the graph take, and at what size SQL is no longer enough.

    python -m bench.graph                       1,000, 10,000 and 100,000 relationships
    python -m bench.graph --edges 10000

The graph is generated from a seed: a fifth as many entities as relationships, with ends drawn so
that a few entities have very many (the sum of two throws, cubed), as people and towns do. The
figures are the median of 21 runs and the slowest of them, in milliseconds, on one open store.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from agent_memory import AgentMemory
from agent_memory.api.graph import MemoryGraph
from agent_memory.storage.sqlite.connection import Database
from bench.engine import engine_of
from bench.machine import describe_machine

SEED = 11
RUNS = 21


def fill(database: Database, edges: int) -> list[str]:
    """Write a graph of this many relationships directly into the tables; return some names."""
    dice = random.Random(SEED)
    count = max(2, edges // 5)
    names = [f"entity {n}" for n in range(count)]
    database.run_many(
        "INSERT INTO entities (id, name, name_key) VALUES (?, ?, ?)",
        ((f"ent-{n}", name, name) for n, name in enumerate(names)),
    )

    def end() -> int:
        return int(((dice.random() + dice.random()) / 2) ** 3 * count)

    verbs = ("knows", "likes", "works_at", "is_near", "made")
    database.run_many(
        "INSERT INTO relationships (source_id, relationship, target_id) VALUES (?, ?, ?)",
        (
            (f"ent-{end()}", dice.choice(verbs), f"ent-{dice.randrange(count)}")
            for _ in range(edges)
        ),
    )
    return [names[end()] for _ in range(RUNS)]


def measured(what: str, run: Callable[[int], object]) -> None:
    """Print the median and the slowest of the runs."""
    times, notes = [], 0
    for number in range(RUNS):
        began = time.perf_counter()
        result = run(number)
        times.append((time.perf_counter() - began) * 1000)
        notes += bool(getattr(result, "truncated", False))
    times.sort()
    more = f"   {notes} of {RUNS} were cut short" if notes else ""
    print(f"  {what:<28} {times[RUNS // 2]:9.2f} {times[-1]:9.2f}{more}")


def _size(database: Database) -> int:
    pages, length = database.value("PRAGMA page_count"), database.value("PRAGMA page_size")
    return int(pages) * int(length)


def _near(graph: MemoryGraph, names: list[str], depth: int) -> Callable[[int], object]:
    return lambda number: graph.neighbours(names[number], depth)


def _path(graph: MemoryGraph, names: list[str], depth: int) -> Callable[[int], object]:
    return lambda number: graph.path(names[number], names[number - 1], depth)


def measure(edges: int) -> None:
    """Measure everything at one size."""
    with tempfile.TemporaryDirectory() as folder, AgentMemory.open(Path(folder) / "g.db") as memory:
        graph, database = memory.graph, engine_of(memory).database
        with database.write():
            names = fill(database, edges)
        print(f"{edges:,} relationships, {_size(database) / 1e6:.1f} MB")
        print(f"  {'':<28} {'median':>9} {'slowest':>9}")
        measured("add", lambda n: graph.add(f"new {n}", "knows", names[n]))
        measured("entity", lambda n: graph.entity(names[n]))
        measured("relationships of one", lambda n: graph.relationships(names[n]))
        for depth in (1, 2, 3, 4):
            measured(f"neighbours, depth {depth}", _near(graph, names, depth))
        for depth in (2, 4, 6):
            measured(f"path, up to {depth}", _path(graph, names, depth))
        moment = memory._now()
        measured("the same as of now, up to 4", lambda n: graph.path(
            names[n], names[n - 1], as_of=moment))  # fmt: skip
        measured("related_memory_ids", lambda n: graph.related_memory_ids(f"what of {names[n]}?"))


def main() -> None:
    """Measure the requested sizes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--edges", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    print(describe_machine())
    for edges in parser.parse_args().edges:
        measure(edges)


if __name__ == "__main__":
    main()
