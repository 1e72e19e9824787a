"""How long a search over vectors takes in PostgreSQL, the library and the server together.

    python -m bench.server_vectors postgresql://postgres@/db                100,000 × 384
    python -m bench.server_vectors postgresql://postgres@/db --count 1000000

The vectors are those of ``bench.vectors``; they are inserted directly into the tables, which needs
a superuser, and the library builds the index. Recall@10 is the share of the ten truly nearest (by
exact cosine over the floats). The server must run on this machine, to measure its CPU time.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

import numpy as np
import psycopg

from agent_memory import AgentMemory
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from bench.engines import AGENT, SCHEMA, Server, own_schema
from bench.machine import describe_machine
from bench.vectors import CUTOFF, exact_answers
from bench.vectors_data import Vectors, embedding_like, queries_near

_ADD_MODEL: Final = f"""
INSERT INTO {SCHEMA}.embedding_models (agent_id, model_id, model, dimensions, embedder, state,
  created_at)
VALUES ('{AGENT}', 1, 'bench', %s, 'bench', 'active', '')"""
_COPY_MEMORIES: Final = f"COPY {SCHEMA}.memories (agent_id, seq, id, content) FROM STDIN"
_COPY_VECTORS: Final = f"""
COPY {SCHEMA}.embeddings (agent_id, seq, model_id, text_hash, scale, vector) FROM STDIN"""
_SIZE: Final = f"""
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relnamespace = '{SCHEMA}'::regnamespace AND relname LIKE 'embedding%' AND relkind = 'r'"""


def fill(address: str, vectors: Vectors) -> None:
    """Put memories and vectors into the tables."""
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no triggers
        cursor.execute(_ADD_MODEL, (vectors.shape[1],))
        with cursor.copy(_COPY_MEMORIES) as copy:
            for row_id in range(1, len(vectors) + 1):
                copy.write_row((AGENT, row_id, f"mem-{row_id}", f"memory {row_id}"))
        with cursor.copy(_COPY_VECTORS) as copy:
            for row_id, vector in enumerate(vectors, start=1):
                # As in ``quantize``, which takes lists, and ten times as long.
                scale = float(np.abs(vector).max()) / 127
                data = np.rint(vector / scale).astype(np.int8).tobytes()
                copy.write_row((AGENT, row_id, 1, bytes(16), scale, data))


def measure(address: str, schema: str, vectors: Vectors, queries: Vectors) -> None:
    """Fill, build the index, and search."""
    server = Server(address)
    with AgentMemory(AGENT, root=schema, embedder=None) as memory:
        started = time.perf_counter()
        fill(address, vectors)
        server.tidy()
        print(f"put in: {time.perf_counter() - started:.0f} s by the clock", flush=True)
        engine = memory._store._engine
        model = engine.embeddings.models()[0]

        def build(model: EmbeddingModel) -> None:
            with engine.write():
                engine.vectors.build(model, 1000)

        cost = server.measured(build, [model])
        seconds = (cost.client / 1000, cost.server / 1000)
        print("index built: {:.0f} s of the library, {:.0f} s of the server".format(*seconds))
        server.tidy()
        model = engine.embeddings.models()[0]
        found: list[set[int]] = []

        def search(query: bytes) -> None:
            with engine.read():
                cosines = engine.vectors.nearest(QueryVector(model, query), NOT_ARCHIVED).cosines
            best = sorted(cosines, key=lambda row_id: -cosines[row_id])[:CUTOFF]
            found.append(set(best))

        asked = [quantize(query.tolist()).data for query in queries]
        server.measured(search, asked[:20])
        found.clear()
        cost = server.measured(search, asked)
        answers = exact_answers(vectors, queries)
        recall = sum(len(one & other) for one, other in zip(found, answers, strict=True))
        print(f"{'p50 ms':>9}{'p95':>9}{'library':>9}{'server':>9}{'recall@10':>11}{'MB':>7}")
        with psycopg.connect(address) as connection:
            (size,) = connection.execute(_SIZE).fetchone() or (0,)
        print(
            f"{cost.row()}{recall / CUTOFF / len(queries):11.3f}{float(size) / 1e6:7,.0f}",
            flush=True,
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", help="postgresql://…, as a superuser")
    parser.add_argument("--count", type=int, default=100_000, help="vectors (100000)")
    parser.add_argument("--dimensions", type=int, default=384, help="dimensions of each (384)")
    parser.add_argument("--queries", type=int, default=200, help="searches (200)")
    arguments = parser.parse_args()
    print(describe_machine())
    vectors = embedding_like(arguments.count, arguments.dimensions)
    queries = queries_near(vectors, arguments.queries)
    print(f"{len(vectors):,} vectors of {vectors.shape[1]:,} numbers, {len(queries)} queries")
    with own_schema(arguments.address) as schema:
        measure(arguments.address, schema, vectors, queries)


if __name__ == "__main__":
    main()
