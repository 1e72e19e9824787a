"""Other memories in PostgreSQL compared with this one: the same server, texts, vectors and tenants.

    python -m bench.server_peers postgresql://me@/db
    python -m bench.server_peers postgresql://me@/db --environments ~/peers --tenants 30 --each 500

One tenant has ten times as many memories as each of the others. Each peer gets its own environment,
as in ``bench.peers``, and its own schema, which is deleted at the end; the stores are in
``bench/peer_stores.py``. All get their vectors from one service on 127.0.0.1, which already has
them.

- store: one memory after the other, into the largest tenant, when half of all are stored
- search: the best ten of one tenant; CPU time is of the peer's process and of the server
- returned: how many of ten; every tenant has hundreds
- nearest: the share of the tenant's ten nearest by exact cosine that was returned. A peer that also
  ranks by words returns others on purpose
- asked about: the share of questions whose ten hits include the very memory they were made from

The server must run on this machine, have pgvector, and let the role create schemas.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg

from agent_memory import AgentMemory
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.quantization import quantize
from agent_memory.storage.records import QueryVector
from bench.embedding_service import EmbeddingService
from bench.engines import Server
from bench.machine import describe_machine
from bench.peer_process import Process, python_of
from bench.peers import PROJECT, percentile
from bench.workload import Workload

REQUIREMENTS: Final = {
    "agent-memory on a server": [f"{PROJECT}[postgres]"],
    "langgraph on a server": ["langgraph-checkpoint-postgres", "psycopg[binary]"],
    "mem0 on a server": ["mem0ai", "psycopg[binary,pool]"],
}
SCHEMA: Final = "bench_peers"
CUTOFF: Final = 10
BATCH: Final = 500
STORED: Final = 200
_SIZE: Final = f"""
SELECT sum(pg_total_relation_size(oid)) FROM pg_class
WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'r'"""

Texts = Mapping[str, Sequence[str]]


class Tenants:
    """The texts of each tenant, and the questions about them."""

    def __init__(self, service: EmbeddingService, count: int, each: int, questions: int) -> None:
        workload = Workload()
        sizes = {"large": 10 * each, **{f"small-{number}": each for number in range(count)}}
        self.texts: dict[str, list[str]] = {}
        for tenant, size in sizes.items():
            texts = dict.fromkeys(item["content"] for item in workload.memories(size + size // 20))
            self.texts[tenant] = list(texts)[:size]
        # Half of the questions are of the large tenant.
        asked = ["large", *(f"small-{number % count}" for number in range(questions))]
        order = [asked[0] if number % 2 else asked[1 + number // 2] for number in range(questions)]
        self.questions = []
        for number, tenant in enumerate(order):
            about = self.texts[tenant][number * 7 % len(self.texts[tenant])]
            self.questions.append((tenant, workload.question(about), about))
        self.vectors = {tenant: _unit(service, texts) for tenant, texts in self.texts.items()}
        self._asked = _unit(service, [question for _, question, _ in self.questions])

    def nearest(self, number: int) -> set[str]:
        """Return the ten texts nearest to a question among those of its tenant."""
        tenant = self.questions[number][0]
        order = np.argsort(-(self.vectors[tenant] @ self._asked[number]))[:CUTOFF]
        return {self.texts[tenant][place] for place in order}

    def report(self, found: Sequence[Sequence[str]]) -> str:
        """Return how good the answers are."""
        pairs = list(enumerate(found))
        near = sum(len(self.nearest(number) & set(texts)) for number, texts in pairs)
        about = sum(self.questions[number][2] in texts for number, texts in pairs)
        returned = sum(map(len, found)) / len(found)
        return (
            f"returned {returned:.2f} of {CUTOFF}, nearest {near / CUTOFF / len(found):.3f},"
            f" asked about {about / len(found):.3f}"
        )


def _unit(service: EmbeddingService, texts: Sequence[str]) -> Any:  # noqa: ANN401 - an array
    rows = np.asarray(service.vectors(texts), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def install(environments: Path, name: str) -> None:
    """Create a peer's environment, unless it exists."""
    python = python_of(environments, name)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *REQUIREMENTS[name]], check=True)


@contextmanager
def own_schema(address: str, name: str) -> Iterator[str]:
    """Give the body the address of a temporary schema."""
    drop = f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(drop)
        sign = "&" if "?" in address else "?"
        try:
            if name.startswith("agent-memory"):
                yield f"{address}{sign}schema={SCHEMA}"
            else:
                connection.execute(f"CREATE SCHEMA {SCHEMA}")
                yield f"{address}{sign}options=-csearch_path%3D{SCHEMA},public"
        finally:
            connection.execute(drop)


def measure(
    address: str, environments: Path, name: str, service: EmbeddingService, tenants: Tenants
) -> None:
    """Store everything, search, and print the times."""
    install(environments, name)
    server = Server(address)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        schema = stack.enter_context(own_schema(address, name))
        process = stack.enter_context(Process(service, environments, name, folder, server=schema))
        versions = ", ".join(f"{what} {which}" for what, which in process.about["versions"].items())
        print(f"\n{name}: {versions}", flush=True)
        left = _store_half(process, tenants.texts)
        singles, left["large"] = left["large"][:STORED], left["large"][STORED:]
        before = server.milliseconds()
        process.ask("store", tenant="large", items=[{"content": text} for text in singles])
        _say("store", [process.answer() for _ in singles], server.milliseconds() - before)
        for tenant, texts in left.items():
            _store(process, tenant, texts)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
            (size,) = connection.execute(_SIZE).fetchone() or (0,)
        stored = sum(map(len, tenants.texts.values()))
        print(f"  {stored:,} memories, {float(size) / stored:,.0f} bytes each", flush=True)
        _search(process, tenants, 20)  # it opens tenants, and reads their pages
        before = server.milliseconds()
        found = _search(process, tenants, len(tenants.questions))
        _say("search", found, server.milliseconds() - before)
        print(f"  {tenants.report([answer['texts'] for answer in found])}", flush=True)
        if name.startswith("agent-memory"):
            print(f"  its vectors alone: {tenants.report(_by_vectors(schema, service, tenants))}")


def _store_half(process: Process, texts_of: Texts) -> dict[str, list[str]]:
    for tenant, texts in texts_of.items():
        _store(process, tenant, texts[: len(texts) // 2])
    return {tenant: list(texts[len(texts) // 2 :]) for tenant, texts in texts_of.items()}


def _store(process: Process, tenant: str, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), BATCH):
        items = [{"content": text} for text in texts[start : start + BATCH]]
        process.call("store_many", tenant=tenant, items=items)


def _search(process: Process, tenants: Tenants, count: int) -> list[dict[str, Any]]:
    answers = []
    for tenant, question, _ in tenants.questions[:count]:
        command = {"tenant": tenant, "queries": [question], "limit": CUTOFF}
        answers.append(process.call("search", **command))
    return answers


def _say(what: str, answers: Sequence[Mapping[str, Any]], server: float) -> None:
    wall = [answer["wall"] for answer in answers]
    library = sum(answer["cpu"] for answer in answers) / len(answers)
    print(
        f"  {what}, p50 / p95: {percentile(wall, 0.5):.1f} / {percentile(wall, 0.95):.1f} ms;"
        f" processors: {library:.1f} + {server / len(answers):.1f} ms",
        flush=True,
    )


def _by_vectors(schema: str, service: EmbeddingService, tenants: Tenants) -> list[list[str]]:
    """Return the texts that the vector index finds by itself."""
    found = []
    for tenant, question, _ in tenants.questions:
        with AgentMemory(tenant, root=schema, embedder="none") as memory:
            engine = memory._store._engine
            (vector,) = service.vectors([question])
            with engine.read():
                (model,) = engine.embeddings.models()
                query = QueryVector(model, quantize(vector.tolist()).data)
                cosines = engine.vectors.nearest(query, NOT_ARCHIVED).cosines
                best = sorted(cosines, key=lambda row_id: -cosines[row_id])[:CUTOFF]
                found.append([each.content for each in engine.memories.get_many(best).values()])
    return found


def main() -> None:
    """Measure each peer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", help="postgresql://…, a database to write to")
    parser.add_argument("--tenants", type=int, default=30, help="besides the large tenant (30)")
    parser.add_argument("--each", type=int, default=500, help="memories of each (500)")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--embedder", default="wordllama", help="wordllama, or minilm")
    parser.add_argument("--environments", type=Path, help="keep the environments here")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        service = stack.enter_context(EmbeddingService(arguments.embedder))
        kept = arguments.environments or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        environments = kept.expanduser().resolve()
        tenants = Tenants(service, arguments.tenants, arguments.each, arguments.questions)
        print(describe_machine())
        print(
            f"embedder: {service.model}, {service.dimensions} numbers; {len(tenants.texts)} tenants"
        )
        for name in REQUIREMENTS:
            measure(arguments.address, environments, name, service, tenants)


if __name__ == "__main__":
    main()
