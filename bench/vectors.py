"""How long a search over vectors takes, how good it is, and how much disk the vectors take.

    python -m bench.vectors                               100,000 vectors of 1,536 numbers
    python -m bench.vectors --count 10000 --dimensions 256
    python -m bench.vectors --count 1000000 --dimensions 384 --ours

The vectors are like those of real models (``bench/vectors_data.py``). Ours are searched by the
library's own code, with each kind of index table; the baselines are sqlite-vec's own tables of
floats and of bytes, on the same disk in the same run. Times are CPU times. Recall@10 is the share
of the ten truly nearest (by exact cosine over the floats) among the first ten. It needs numpy:
``pip install -e '.[test]'``.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agent_memory import AgentMemory
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText
from agent_memory.services.store import Store
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from agent_memory.storage.sqlite.connection import APPLICATION_ID, Database
from bench.engine import engine_of
from bench.exchange import longest_write, peak_megabytes
from bench.machine import describe_machine
from bench.vectors_data import Vectors, embedding_like, queries_near

BATCH = 1_000
CUTOFF = 10


@dataclass
class Measured:
    """The figures of one kind of search: ``seconds`` are those of filling, or of building."""

    name: str
    milliseconds: list[float]
    recall: float
    megabytes: float
    seconds: float

    @property
    def median(self) -> float:
        """Return the median of the times."""
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
        started = time.process_time()
        rows = search(number)
        times.append((time.process_time() - started) * 1000)
        found += len(answer & set(rows))
    return times, found / CUTOFF / len(answers)


def fill(store: Store, vectors: Vectors) -> tuple[EmbeddingModel, float]:
    """Store the vectors as a migration does; return the model and the seconds that it took."""
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
        started = time.process_time()
        pairs = [
            (PendingText(text.row_id, text.text), quantize(row))
            for text, row in zip(batch, rows, strict=True)
        ]
        store.vectors.put(building.model_id, pairs)
        store.vectors.sort_index(len(pairs))
        seconds += time.process_time() - started
    started = time.process_time()
    store.vectors.finish_index()
    return building, seconds + time.process_time() - started


def measure_ours(folder: Path, vectors: Vectors, queries: Vectors) -> list[Measured]:
    """Measure the library, with each kind of index table, and without sqlite-vec."""
    answers = exact_answers(vectors, queries)
    with AgentMemory("bench", root=folder, embedder=None) as memory:
        items = [{"content": f"memory {number}"} for number in range(len(vectors))]
        for start in range(0, len(items), BATCH):
            memory.store_many(items[start : start + BATCH])
        database = engine_of(memory).database
        checkpoint(database)
        before = database.size()
        _, seconds = fill(memory._store, vectors)
        checkpoint(database)
        megabytes = (database.size() - before) / 1e6
        vec0 = Measured("vec0", *measure_search(memory, queries, answers), megabytes, seconds)
        seconds = built(memory, "table")
        database.rows("VACUUM")
        checkpoint(database)
        megabytes = (database.size() - before) / 1e6
        table = Measured("table", *measure_search(memory, queries, answers), megabytes, seconds)
    with hidden_extension(), AgentMemory("bench", root=folder, embedder=None) as memory:
        figures = measure_search(memory, queries, answers)
        without = Measured("table, without sqlite-vec", *figures, megabytes, seconds)
    for kind in ("vec0", "table"):
        build_in_a_process(folder, kind)
    return [vec0, table, without]


def build_in_a_process(folder: Path, kind: str) -> None:
    """Rebuild the index as a table of a kind in a new process, and print the cost."""
    words = [sys.executable, "-m", "bench.vectors", "--build", str(folder), kind]
    print(subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip())


def print_build(folder: Path, kind: str) -> None:
    """Build an index in this process: how long, with how much memory, and how long others wait."""
    with AgentMemory("bench", root=folder, embedder=None) as memory, longest_write() as spans:
        megabytes = peak_megabytes()
        seconds = built(memory, kind)
    print(
        f"built as {kind} in {seconds:.1f} s, {len(spans):,} transactions of {max(spans):.2f} s at"
        f" most, {peak_megabytes():.0f} MB of RAM ({megabytes:.0f} before)"
    )


def built(memory: AgentMemory, kind: str) -> float:
    """Build the index as a table of the other kind, and return the seconds that it took."""
    started = time.process_time()
    memory.configure(vector_index=kind)
    return time.process_time() - started


@contextlib.contextmanager
def hidden_extension() -> Iterator[None]:
    """Run the body as if sqlite-vec were not installed."""
    modules: dict[str, object] = vars(sys)["modules"]
    modules["sqlite_vec"] = None
    try:
        yield
    finally:
        del modules["sqlite_vec"]


def measure_search(
    memory: AgentMemory, queries: Vectors, answers: list[set[int]]
) -> tuple[list[float], float]:
    """Search for each query in a memory; return the milliseconds and the recall."""
    engine, model = engine_of(memory), _model_of(memory)
    quantized = [quantize(query.tolist()).data for query in queries]

    def search(number: int) -> list[int]:
        with engine.read():
            query = QueryVector(model, quantized[number])
            cosines = engine.vectors.nearest(query, NOT_ARCHIVED).cosines
        return sorted(cosines, key=lambda row_id: -cosines[row_id])[:CUTOFF]

    search(0)  # reads the pages of the file
    return timed_recall(search, answers)


def _model_of(memory: AgentMemory) -> EmbeddingModel:
    model = memory._store.vectors.state().building
    assert model is not None
    return model


def checkpoint(database: Database) -> None:
    """Move the log into the file, so that the file's size is what the data takes."""
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
    started = time.process_time()
    for start in range(0, len(vectors), BATCH):
        rows = vectors[start : start + BATCH]
        with database.write():
            database.run_many(
                f"INSERT INTO plain (rowid, v) VALUES (?, {value})",
                ((start + place + 1, row.tobytes()) for place, row in enumerate(rows)),
            )
    seconds = time.process_time() - started
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
    parser.add_argument("--dimensions", type=int, default=1536, help="dimensions of each (1536)")
    parser.add_argument("--queries", type=int, default=100, help="searches (100)")
    parser.add_argument("--ours", action="store_true", help="without the baselines")
    parser.add_argument("--build", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        print_build(Path(arguments.build[0]), arguments.build[1])
        return
    print(describe_machine())
    vectors = embedding_like(arguments.count, arguments.dimensions)
    queries = queries_near(vectors, arguments.queries)
    print(f"{len(vectors):,} vectors of {vectors.shape[1]:,} numbers, {len(queries)} queries")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = measure_ours(folder, vectors, queries)
        kinds = () if arguments.ours else ("float", "int8")
        others = [measure_plain(folder, vectors, queries, kind) for kind in kinds]
    print(f"{'':26}{'p50 ms':>9}{'p95 ms':>9}{'recall@10':>11}{'MB/10,000':>11}{'rows/s':>9}")
    for found in (*ours, *others):
        late = sorted(found.milliseconds)[int(len(found.milliseconds) * 0.95)]
        print(
            f"{found.name:26}{found.median:9.1f}{late:9.1f}{found.recall:11.3f}"
            f"{found.megabytes / len(vectors) * 10_000:11.1f}{len(vectors) / found.seconds:9,.0f}"
        )
    for other in others:
        print(f"{other.name} takes {other.median / ours[0].median:.1f} times as long")


if __name__ == "__main__":
    main()
