"""How long a search over vectors takes, how good it is, and what the vectors take on the disk.

    python -m bench.vectors                               100,000 vectors of 1,536 numbers
    python -m bench.vectors --count 10000 --dimensions 256

The vectors are like those of real models (``bench/vectors_data.py``). Ours are searched by the
library's own code; the yardsticks are sqlite-vec's own tables of floats and of bytes, on the same
disk in the same run. Recall@10 is the share of the ten truly nearest (by exact cosine over the
floats) among the first ten. Needs numpy: ``pip install -e '.[test]'``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agent_memory import AgentMemory
from agent_memory.models.embedding import EmbeddingModel, PendingText
from agent_memory.services.store import Store
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from agent_memory.storage.sqlite.connection import APPLICATION_ID, Database
from bench.engine import engine_of
from bench.machine import describe_machine
from bench.vectors_data import Vectors, embedding_like, queries_near

BATCH = 1_000
CUTOFF = 10


@dataclass
class Measured:
    """The figures of one way to search."""

    name: str
    milliseconds: list[float]
    recall: float
    megabytes: float
    seconds: float

    @property
    def median(self) -> float:
        """Return the middle of the times."""
        return sorted(self.milliseconds)[len(self.milliseconds) // 2]


def exact_answers(vectors: Vectors, queries: Vectors) -> list[set[int]]:
    """Return the rows, from 1, of the ten nearest to each query."""
    return [set((np.argsort(-(vectors @ query))[:CUTOFF] + 1).tolist()) for query in queries]


def timed_recall(
    search: Callable[[int], Sequence[int]], answers: list[set[int]]
) -> tuple[list[float], float]:
    """Search for each query, and return the milliseconds and the recall."""
    times, found = [], 0
    for number, answer in enumerate(answers):
        started = time.perf_counter()
        rows = search(number)
        times.append((time.perf_counter() - started) * 1000)
        found += len(answer & set(rows))
    return times, found / CUTOFF / len(answers)


def fill(store: Store, vectors: Vectors) -> tuple[EmbeddingModel, float]:
    """Keep the vectors as a move does; return the model and the seconds that it took."""
    model = EmbeddingModel(
        model_id=0,
        model="bench",
        dimensions=vectors.shape[1],
        embedder="bench",
        base_url=None,
        state="building",
        similarity_floor=None,
        vector_weight=1.0,
        is_indexed=False,
    )
    building = store.vectors.begin(model)
    seconds = 0.0
    for start in range(0, len(vectors), BATCH):
        batch = store.vectors.missing(building.model_id, after=start, limit=BATCH)
        rows = vectors[start : start + BATCH].tolist()
        started = time.perf_counter()
        pairs = [
            (PendingText(text.row_id, text.text), quantize(row))
            for text, row in zip(batch, rows, strict=True)
        ]
        store.vectors.put(building.model_id, pairs)
        seconds += time.perf_counter() - started
    return building, seconds


def measure_ours(folder: Path, vectors: Vectors, queries: Vectors) -> tuple[Measured, float]:
    """Measure the library; return also the seconds that building the index alone takes."""
    with AgentMemory("bench", root=folder, embedder=None) as memory:
        items = [{"content": f"memory {number}"} for number in range(len(vectors))]
        for start in range(0, len(items), BATCH):
            memory.store_many(items[start : start + BATCH])
        store, engine = memory._store, engine_of(memory)
        database = engine.database
        checkpoint(database)
        before = database.size()
        model, seconds = fill(store, vectors)
        checkpoint(database)
        megabytes = (database.size() - before) / 1e6
        quantized = [quantize(query.tolist()).data for query in queries]
        model = store.vectors.state().building or model

        def search(number: int) -> list[int]:
            query = QueryVector(model, quantized[number])
            with engine.read():
                found = engine.vectors.nearest(query, NOT_ARCHIVED).cosines
            return sorted(found, key=lambda row_id: -found[row_id])[:CUTOFF]

        times, recall = timed_recall(search, exact_answers(vectors, queries))
        started = time.perf_counter()
        with engine.write():
            engine.vectors.build(model)
        return Measured("agent-memory", times, recall, megabytes, seconds), (
            time.perf_counter() - started
        )


def checkpoint(database: Database) -> None:
    """Bring the log into the file, so that its size is what it takes."""
    database.rows("PRAGMA wal_checkpoint(TRUNCATE)")


def measure_plain(folder: Path, vectors: Vectors, queries: Vectors, kind: str) -> Measured:
    """Measure a plain table of sqlite-vec: ``float`` or ``int8``."""
    dimensions = vectors.shape[1]
    database = Database(folder / f"{kind}.db")
    if not database.load_vectors():
        raise SystemExit(f"there is nothing to compare with: {database.vectors_problem()}")
    database.run(f"PRAGMA application_id = {APPLICATION_ID}")
    database.run(
        f"CREATE VIRTUAL TABLE plain USING vec0(v {kind}[{dimensions}] distance_metric=cosine)"
    )
    value = "?" if kind == "float" else "vec_quantize_int8(?, 'unit')"
    started = time.perf_counter()
    for start in range(0, len(vectors), BATCH):
        rows = vectors[start : start + BATCH]
        with database.write():
            database.run_many(
                f"INSERT INTO plain (rowid, v) VALUES (?, {value})",
                ((start + place + 1, row.tobytes()) for place, row in enumerate(rows)),
            )
    seconds = time.perf_counter() - started
    checkpoint(database)
    sql = f"SELECT rowid FROM plain WHERE v MATCH {value} AND k = {CUTOFF}"
    times, recall = timed_recall(
        lambda number: [row for (row,) in database.rows(sql, (queries[number].tobytes(),))],
        exact_answers(vectors, queries),
    )
    megabytes = database.size() / 1e6
    database.close()
    return Measured(f"sqlite-vec {kind}[{dimensions}]", times, recall, megabytes, seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000, help="vectors (100000)")
    parser.add_argument("--dimensions", type=int, default=1536, help="numbers in each (1536)")
    parser.add_argument("--queries", type=int, default=100, help="searches (100)")
    arguments = parser.parse_args()
    print(describe_machine())
    vectors = embedding_like(arguments.count, arguments.dimensions)
    queries = queries_near(vectors, arguments.queries)
    print(f"{len(vectors):,} vectors of {vectors.shape[1]:,} numbers, {len(queries)} queries")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, index_seconds = measure_ours(folder, vectors, queries)
        others = [measure_plain(folder, vectors, queries, kind) for kind in ("float", "int8")]
    print(f"{'':24}{'p50 ms':>9}{'p95 ms':>9}{'recall@10':>11}{'MB/10,000':>11}{'rows/s':>9}")
    for found in (ours, *others):
        late = sorted(found.milliseconds)[int(len(found.milliseconds) * 0.95)]
        print(
            f"{found.name:24}{found.median:9.1f}{late:9.1f}{found.recall:11.3f}"
            f"{found.megabytes / len(vectors) * 10_000:11.1f}{len(vectors) / found.seconds:9,.0f}"
        )
    print(f"index built anew: {len(vectors) / index_seconds:,.0f} vectors a second")
    for other in others:
        print(f"{other.name} takes {other.median / ours.median:.1f} times as long")


if __name__ == "__main__":
    main()
