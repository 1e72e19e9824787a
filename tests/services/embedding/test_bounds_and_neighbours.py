"""Bounds and neighbours: a provider is asked so often and no more, whatever others do meanwhile.

The others are threads, forks, handles and programs that use the same file at the same time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import TESTS, Visitor
from embedding_server import DIMENSIONS, EmbeddingServer, text_vector

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    EmbeddingError,
    MigrationError,
    OpenAIEmbedder,
    SearchResults,
    StorageReadOnly,
)

IN_ENGLISH = {"hund": "dog", "katze": "cat", "baum": "tree"}
THRESHOLD = 100
BATCH = 10
BY_ITSELF = {"auto_migrate": True, "migration_threshold": 100, "migration_batch_size": BATCH}
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@dataclass
class Local:
    """Takes ``seconds`` a call, and gives German words the vectors of the English ones."""

    seconds: float = 0.0
    model: str = "local"
    name: str = "local"
    batch_size: int = BATCH
    dimensions: int = DIMENSIONS
    asked: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        time.sleep(self.seconds)
        return [text_vector(IN_ENGLISH.get(text, text)) for text in texts]


def opened(root: Path, embedder: Any, **config: Any) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=embedder, config=config)


def asking(server: EmbeddingServer, **options: Any) -> OpenAIEmbedder:
    settings: dict[str, Any] = {"api_key": "k", "dimensions": DIMENSIONS, "max_retries": 0}
    return OpenAIEmbedder(base_url=server.url, **settings | options)


def facts(count: int) -> list[dict[str, str]]:
    return [{"content": f"fact number{n}", "session_id": f"of {n}"} for n in range(count)]


def fill(root: Path, count: int) -> None:
    with opened(root, None) as memory:
        memory.store_many(facts(count))


def moved(root: Path, *texts: str) -> None:
    with opened(root, Local()) as memory:
        memory.store_many({"content": text, "session_id": f"of {text}"} for text in texts)
        memory.migrate()


def is_moved(memory: AgentMemory) -> bool:
    return memory.info().storage_backend == "vector"


def found(memory: AgentMemory, question: str) -> list[str]:
    results = memory.search(question, similarity_threshold=0.9, count_accesses=False)
    assert results.search_metadata.degraded == []
    return [hit.memory.content for hit in results]


def sent(server: EmbeddingServer, *, since: int) -> list[str]:
    return [text for request in server.requests[since:] for text in request.body["input"]]


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


@pytest.mark.parametrize("seconds", [0.01, 0.12])
def test_a_move_ends_while_memories_are_stored_faster_than_batches_are_answered(
    root: Path, seconds: float
) -> None:
    """Each request takes less, or more, than the time from one store to the next."""
    fill(root, 300)
    is_over = threading.Event()

    def keep_storing() -> None:
        with opened(root, None) as other:
            for number in range(80):
                if is_over.wait(0.05):
                    return
                other.store(f"stored meanwhile {number}")

    thread = threading.Thread(target=keep_storing)
    with opened(root, Local(seconds, batch_size=50)) as memory:
        thread.start()
        progress = memory.migrate()
        was_still_storing = thread.is_alive()
        is_over.set()
        thread.join(30)
        assert progress.status == "completed"
        assert was_still_storing
        memory.embed()
        assert memory.info().pending_embeddings == 0
        assert memory.check().problems == []


def test_a_provider_that_refuses_everything_is_not_asked_for_every_text(
    root: Path, server: EmbeddingServer
) -> None:
    server.behaviour.refused_word = "fact"
    with opened(root, asking(server)) as memory:
        memory.store_many(facts(300))
        with pytest.raises(MigrationError, match="refused"):
            memory.migrate()
        assert not is_moved(memory)
        assert 0 < len(server.requests) < 500


def test_a_move_to_the_model_that_is_active_embeds_what_waits(
    root: Path, server: EmbeddingServer
) -> None:
    with opened(root, asking(server)) as memory:
        memory.store("before")
        memory.migrate()
        server.behaviour.status = 500
        memory.store_many(facts(3))
        assert memory.info().pending_embeddings == 3
        server.behaviour.status = 200
        assert memory.migrate().status == "completed"
        assert memory.info().pending_embeddings == 0
        assert server.texts == ["before", *(fact["content"] for fact in facts(3))]


def test_a_move_is_made_by_many_processes_of_one_store_each(root: Path) -> None:
    fill(root, THRESHOLD)
    backup = root / "bob" / "scratchpad.yaml.backup"
    embedder, backups = Local(0.02), set()
    for number in range(1, 21):
        with opened(root, embedder, **BY_ITSELF) as memory:
            memory.store(f"one more: {number}")
        assert len(set(embedder.asked)) >= min(number * BATCH, THRESHOLD + number)
        backups.add((backup.stat().st_ino, backup.stat().st_mtime_ns))
    assert len(backups) == 1
    with opened(root, None) as memory:
        assert is_moved(memory)


def test_stores_at_once_at_the_threshold_start_one_move(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(root, THRESHOLD)
    movers: list[int] = []

    class Counting(Local):
        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            names = [thread.name for thread in threading.enumerate()]
            movers.append(names.count("agent-memory-migration"))
            return super().embed(texts)

    together = threading.Barrier(8)

    def store(content: str) -> None:
        together.wait(30)
        memory.store(content)

    with opened(root, Counting(0.05), **BY_ITSELF) as memory:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(store, [f"of thread {number}" for number in range(8)]))
        wait_until(lambda: is_moved(memory))
    assert max(movers) == 1
    assert caplog.messages == []  # the second would say that the memory is being moved already


def test_whoever_went_back_to_keywords_stays_there(root: Path) -> None:
    def store(content: str) -> bool:
        """Store as the shell does, in a memory of its own, and return whether that is moved."""
        with opened(root, Local(), **BY_ITSELF | {"migration_strategy": "immediate"}) as memory:
            memory.store(content)
            return is_moved(memory)

    fill(root, THRESHOLD)
    assert store("the threshold is reached")
    for time_of in ("first", "second"):
        with opened(root, Local()) as memory:
            assert memory.rollback()
        assert not store(f"after the {time_of} rollback")
        with opened(root, Local()) as memory:
            memory.migrate()
        assert store(f"after the {time_of} move by hand")


@pytest.mark.parametrize("verb", ["migrate", "rollback"])
def test_a_handle_that_may_only_read_moves_nothing_and_leaves_no_file(
    root: Path, verb: str
) -> None:
    moved(root, "dog", "cat")
    with AgentMemory("bob", root=root, embedder=Local(model="other"), read_only=True) as memory:
        before = sorted(root.rglob("*"))
        with pytest.raises(StorageReadOnly):
            getattr(memory, verb)()
        assert sorted(root.rglob("*")) == before
        assert is_moved(memory)


@pytest.mark.parametrize("is_same_object", [True, False])
def test_usage_adds_up_over_moves_and_a_rollback(
    root: Path, server: EmbeddingServer, *, is_same_object: bool
) -> None:
    first = asking(server)
    other = asking(server, model="text-embedding-3-large")
    with opened(root, first) as memory:
        memory.store_many(facts(5))
        for embedder in (first, other, None, first, first):
            if embedder is None:
                memory.rollback()
            else:
                memory.migrate(
                    embedder=embedder if is_same_object else asking(server, model=embedder.model)
                )
            assert memory.embedding_usage.texts == len(server.texts)
        assert len(server.texts) == 15
        assert memory.embedding_usage.requests == len(server.requests)


def test_refused_texts_wait_behind_the_others_and_are_not_asked_for_again(
    root: Path, server: EmbeddingServer
) -> None:
    refused = ["poison one", "poison two", "poison three"]
    server.behaviour.refused_word = "poison"
    with opened(root, asking(server, batch_size=3)) as memory:
        memory.store("before")
        memory.migrate()
        ids = memory.store_many({"content": text} for text in [*refused, "good one", "good two"])
        assert server.texts == ["before", "good one", "good two"]
    with opened(root, asking(server, batch_size=3)) as memory:
        start = len(server.requests)
        memory.search("a question")
        memory.store("good three")
        assert sent(server, since=start) == ["a question", "good three"]
        memory.update(ids[0], content="healed")
        assert sent(server, since=start) == ["a question", "good three", "healed"]
        start = len(server.requests)
        with pytest.raises(EmbeddingError, match="2 memories"):
            memory.embed()
        assert set(sent(server, since=start)) == set(refused[1:])
        server.behaviour.refused_word = None
        assert memory.embed() == 2
        assert memory.info().pending_embeddings == 0


def test_one_store_does_not_work_off_a_backlog(root: Path) -> None:
    moved(root, "dog")
    fill(root, 1_000)
    embedder = Local(0.2)
    with opened(root, embedder, embedding_timeout_seconds=1.0) as memory:
        memory.search("dog")
        before = len(embedder.asked)
        memory.store("one more")
        assert BATCH <= len(embedder.asked) - before <= 10 * BATCH
    with opened(root, Local(0.2), embedding_timeout_seconds=1.0) as memory:
        waiting = memory.info().pending_embeddings
        memory.store("the first of a new process")
        assert 900 - 10 * BATCH < memory.info().pending_embeddings < waiting


def _is_embedding() -> bool:
    return any(thread.name == "agent-memory-embedder" for thread in threading.enumerate())


def test_a_model_that_loads_for_long_is_loaded_once_and_serves_later(root: Path) -> None:
    moved(root, "dog", "cat")
    may_load, loads = threading.Event(), []

    class Heavy(Local):
        def load(self) -> None:
            loads.append(threading.current_thread().name)
            may_load.wait(30)

    together = threading.Barrier(6)

    def search(query: str) -> SearchResults:
        together.wait(30)
        return memory.search(query, count_accesses=False)

    with opened(root, Heavy(), embedding_timeout_seconds=0.3) as memory:
        with ThreadPoolExecutor(6) as pool:
            for results in pool.map(search, ["dog"] * 6):
                assert results[0].memory.content == "dog"
                assert results.search_metadata.degraded != []
        may_load.set()
        wait_until(lambda: not _is_embedding())
        assert found(memory, "hund") == ["dog"]
        assert len(loads) == 1


def test_threads_that_store_at_once_embed_no_text_twice(root: Path) -> None:
    moved(root, "dog")
    embedder = Local(0.05)
    texts = [f"stored at once: {number}" for number in range(30)]
    with opened(root, embedder) as memory:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(memory.store, texts))
        memory.embed()
        assert sorted(embedder.asked) == sorted(texts)


def test_a_text_that_cannot_be_read_keeps_no_other_from_its_meaning(
    root: Path, visitor: Visitor
) -> None:
    moved(root, "dog", "cat")
    with opened(root, Local()) as memory:
        visitor(memory.path, "INSERT INTO memories (content) VALUES (CAST(x'ff6162' AS TEXT))")
        assert found(memory, "hund") == ["dog"]
        memory.store("tree", session_id="tree")
        assert found(memory, "baum") == ["tree"]
        memory.check()
        assert memory.migrate(embedder=Local(model="other")).status == "completed"
        assert found(memory, "katze") == ["cat"]


@pytest.mark.parametrize(
    "name",
    [f"{before}sentence-transformers:/some/dir" for before in ("", " ", "none,")],
)
def test_a_model_that_a_file_names_is_not_loaded_on_its_word(root: Path, name: str) -> None:
    with opened(root, Local(name=name)) as memory:
        memory.store("dog")
        memory.migrate()
    with AgentMemory("bob", root=root) as memory:
        results = memory.search("dog")
        assert results[0].memory.content == "dog"
        assert "AGENT_MEMORY_EMBEDDER" in " ".join(results.search_metadata.degraded)
        with pytest.raises(ConfigurationError, match="AGENT_MEMORY_EMBEDDER"):
            memory.migrate()


_HEAD = f"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(TESTS)!r})
from embedding_server import DIMENSIONS, text_vector
from agent_memory import AgentMemory
"""

_FORKS = f"""{_HEAD}
inside, gate, parent = threading.Event(), threading.Event(), os.getpid()

class Waits:
    dimensions = DIMENSIONS
    def __init__(self, model):
        self.model = model
    def embed(self, texts):
        inside.set()
        if os.getpid() == parent:
            gate.wait(30)
        return [text_vector(text) for text in texts]

signal.alarm(50)
memory = AgentMemory("bob", root=sys.argv[1], embedder=Waits("local"))
work = {{
    "storing": lambda: memory.store("tree"),
    "searching": lambda: memory.search("tree"),
    "catching up": memory.embed,
    "moving": lambda: memory.migrate(embedder=Waits("other")),
}}
thread = threading.Thread(target=work[sys.argv[2]])
thread.start()
assert inside.wait(30)
child = os.fork()
if child == 0:
    signal.alarm(20)
    memory.store("stored by the child")
    assert memory.info().pending_embeddings == 0
    assert memory.search("dog")[0].memory.content == "dog"
    memory.close()
    os._exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
gate.set()
thread.join()
memory.embed()
assert memory.check().problems == []
memory.close()
assert code == 7, code
"""

_DIES_MOVING = f"""{_HEAD}
class Forks:
    model, dimensions = "local", DIMENSIONS
    def embed(self, texts):
        child = os.fork()
        if child:
            print(child, flush=True)
        time.sleep(60)
        os._exit(0)

AgentMemory("bob", root=sys.argv[1], embedder=Forks()).migrate()
"""


@forks
@pytest.mark.parametrize("what", ["storing", "searching", "catching up", "moving"])
def test_a_child_forked_while_a_thread_is_inside_the_embedder_goes_on(
    root: Path, what: str
) -> None:
    moved(root, "dog")
    fill(root, 1)  # something waits
    subprocess.run([sys.executable, "-c", _FORKS, str(root), what], check=True, timeout=60)


@forks
def test_a_forked_child_does_not_keep_the_lock_of_a_mover_that_was_killed(root: Path) -> None:
    fill(root, 3)
    words = [sys.executable, "-c", _DIES_MOVING, str(root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as mover:
        assert mover.stdout is not None
        child = int(mover.stdout.readline())
        mover.kill()
        mover.wait(30)
        try:
            with opened(root, Local()) as memory:
                assert memory.migrate().status == "completed"
            os.kill(child, 0)  # it lived all the time
        finally:
            os.kill(child, signal.SIGKILL)
