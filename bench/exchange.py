"""Exporting a whole store and importing it again: how long, in how much memory, and unchanged.

    python -m bench.exchange                      100,000 memories
    python -m bench.exchange --count 3000         a short one
    python -m bench.exchange --embedder wordllama     with vectors, in the formats that have them

For each format a store is exported, imported into a new one and exported from there again, each in
its own process. Reported are CPU seconds, the largest resident set in MB of 10**6 bytes (Python and
the library alone take about 60), and the size of the file; for the import also memories per second,
and how long it holds the file while other writers wait. Both exports must be the same bytes, and
both stores must hold the same; otherwise the run fails. For comparison: what Python's own json
needs to write and read as many memories.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agent_memory import AgentMemory
from agent_memory.storage.sqlite.connection import Database
from bench.machine import describe_machine
from bench.workload import NOW, Workload

FORMATS: Final = ("store", "directory", "jsonl", "json", "record-jsonl", "backup", "sqlite")
WITH_VECTORS: Final = ("store", "sqlite")
AGENT: Final = "bench"


def fill(root: Path, count: int, embedder: str) -> None:
    """Create the store to export: with tags, tasks, changes, deletions, an archive."""
    workload = Workload()
    with AgentMemory(AGENT, root=root, clock=lambda: NOW, embedder=embedder) as memory:
        for start in range(0, count, 1000):
            items = list(workload.memories(min(1000, count - start), start=start))
            for number, item in enumerate(items):
                item["kind"] = ("learning", "learning", "core", "task")[number % 4]
            ids = memory.store_many(items)
            memory.update(ids[0], content="changed: " + workload.sentence(), tags=["changed"])
            memory.archive(ids[1:10])
            memory.promote(ids[-1])
            extra = memory.store("one more, to be deleted")
            memory.delete(extra)
        if embedder != "none":
            memory.migrate()


def step(verb: str, root: Path, path: Path, form: str, *, embeddings: bool) -> dict[str, Any]:
    """Export or import, and return how long it took and the peak memory."""
    started = time.process_time()
    with AgentMemory(AGENT, root=root, clock=lambda: NOW, embedder=None) as memory:
        if verb == "export":
            count = memory.export(path, format=form, embeddings=embeddings).memory_count
            held = 0.0
        else:
            with longest_write() as spans:
                count = memory.import_(path, format=form).new
            held = max(spans)
    seconds = time.process_time() - started
    return {"count": count, "seconds": seconds, "held": held, "megabytes": peak_megabytes()}


@contextlib.contextmanager
def longest_write() -> Iterator[list[float]]:
    """Yield a list that gets the CPU seconds of each write transaction of the body."""
    write, spans = Database.write, list[float]()

    @contextlib.contextmanager
    def timed(database: Database, **options: bool) -> Iterator[None]:
        with write(database, **options):
            started = time.process_time()
            yield
        spans.append(time.process_time() - started)

    Database.write = timed  # type: ignore[method-assign,assignment]
    try:
        yield spans
    finally:
        Database.write = write  # type: ignore[method-assign]


def peak_megabytes() -> float:
    """Return the largest resident set of this process.

    (``getrusage`` reports that of the parent process if it was larger.)
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024 / 1e6


def run(verb: str, root: Path, path: Path, form: str, *, embeddings: bool) -> dict[str, Any]:
    """Run a step in its own process."""
    words = ["--step", verb, str(root), str(path), form] + ["--embeddings"] * embeddings
    done = subprocess.run(
        [sys.executable, "-m", "bench.exchange", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def digest(path: Path) -> str:
    """Return a hash of a file, or of all files of a folder except its backups."""
    paths = sorted(it for it in path.rglob("*") if it.is_file()) if path.is_dir() else [path]
    whole = hashlib.sha256()
    for one in paths:
        whole.update(str(one.relative_to(path)).encode())
        with one.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def held(root: Path) -> str:
    """Return a hash of everything that a store holds about its memories."""
    whole = hashlib.sha256()
    with AgentMemory(AGENT, root=root, read_only=True, embedder=None) as memory:
        for found in memory.list_recent(10**9, filters={"archived": None}):
            whole.update(found.model_dump_json().encode())
    return whole.hexdigest()


def size(path: Path) -> float:
    """Return the MB of a file or folder."""
    paths = [it for it in path.rglob("*") if it.is_file()] if path.is_dir() else [path]
    return sum(it.stat().st_size for it in paths) / 1e6


def measure(folder: Path, form: str, *, embeddings: bool) -> None:
    """Export one format, import it, and export it again."""
    first, again, other = folder / "first", folder / "again", folder / "other"
    out = run("export", folder / "root", first, form, embeddings=embeddings)
    into = run("import", other, first, form, embeddings=embeddings)
    run("export", other, again, form, embeddings=embeddings)
    same_bytes = form == "sqlite" or digest(first) == digest(again)
    same_store = held(folder / "root") == held(other)
    print(
        f"{form:14}{size(first):9.1f}{out['seconds']:10.1f}{out['megabytes']:9.0f}"
        f"{into['seconds']:10.1f}{into['megabytes']:9.0f}"
        f"{into['count'] / into['seconds']:9,.0f}{into['held']:8.1f}"
        f"   {'same bytes' if same_bytes else 'OTHER BYTES'},"
        f" {'same store' if same_store else 'OTHER STORE'}",
        flush=True,
    )
    for path in (first, again, other):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if not (same_bytes and same_store):
        sys.exit(f"{form}: what came back is not what went out")


def compare(folder: Path) -> None:
    """Time Python's json on as many memories: the least that JSON can take here."""
    with AgentMemory(AGENT, root=folder / "root", read_only=True, embedder=None) as memory:
        every = [it.model_dump(mode="json") for it in memory.list_recent(10**9)]
    started = time.process_time()
    text = "\n".join(json.dumps(one) for one in every)
    written = time.process_time() - started
    started = time.process_time()
    for line in text.splitlines():
        json.loads(line)
    read = time.process_time() - started
    print(f"{'(json alone)':14}{len(text) / 1e6:9.1f}{written:10.1f}{'':9}{read:10.1f}")


def main() -> None:
    """Run the benchmark, or one step of it."""
    parser = argparse.ArgumentParser(description="Exporting and importing stores.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=None)
    parser.add_argument("--step", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--embeddings", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        verb, root, path, form = chosen.step
        print(json.dumps(step(verb, Path(root), Path(path), form, embeddings=chosen.embeddings)))
        return
    print(describe_machine())
    print(f"{chosen.count:,} memories, embedder {chosen.embedder}\n")
    print(
        f"{'format':14}{'MB':>9}{'out, s':>10}{'MB RAM':>9}"
        f"{'in, s':>10}{'MB RAM':>9}{'a second':>9}{'held, s':>8}"
    )
    with_vectors = chosen.embedder != "none"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder / "root", chosen.count, chosen.embedder)
        for form in chosen.formats or (WITH_VECTORS if with_vectors else FORMATS):
            measure(folder, form, embeddings=with_vectors)
        compare(folder)


if __name__ == "__main__":
    main()
