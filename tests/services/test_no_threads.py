"""Where no thread can be begun, as a container has too many: each verb does without."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import engine_of

from agent_memory import AgentMemory
from agent_memory.storage.fingerprints import fingerprint_of

pytestmark = pytest.mark.file_only("the pool of psycopg begins threads of its own")


@pytest.fixture(autouse=True)
def _no_threads() -> Iterator[None]:
    """Let each new thread ask for more memory than there is."""
    usual = threading.stack_size(2**46)
    with pytest.raises(RuntimeError):
        threading.Thread(target=print).start()
    yield
    threading.stack_size(usual)


def test_what_a_search_counts_is_written_at_the_end(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the kettle is blue")
        memory.search("kettle")
    with AgentMemory("bob", root=root) as memory:
        assert [kept.access_count for kept in memory.list_recent(5)] == [1]


def test_a_search_by_meaning_goes_by_words(root: Path) -> None:
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        memory.store("Samir adopted a kitten and two puppies")
        memory.migrate()
        assert len(memory.search("which pet animals?")) == 1  # the model is loaded
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        assert [len(memory.search(query)) for query in ("which pet animals?", "kitten")] == [0, 1]
    threading.stack_size(0)
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        assert len(memory.search("which pet animals?")) == 1


def test_a_move_in_the_background_waits(root: Path) -> None:
    settings = {"auto_migrate": True, "migration_threshold": 100}
    with AgentMemory("bob", root=root, embedder="wordllama", config=settings) as memory:
        memory.store_many([{"content": f"fact number{n}"} for n in range(100)])
        assert memory.info().storage_backend == "file"


def test_an_import_computes_its_fingerprints_itself(root: Path, tmp_path: Path) -> None:
    texts = [f"fact number{n}" for n in range(1_000)]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"content": text}) + "\n" for text in texts))
    with AgentMemory("bob", root=root) as memory:
        assert memory.import_(path).new == 1_000
        stored = engine_of(memory).fingerprints.of_rows(range(1, 1_001))
        assert engine_of(memory).fingerprints.is_complete()
    assert list(stored.values()) == [fingerprint_of(text, None, None) for text in texts]


@pytest.mark.parametrize(
    "begin",
    ["threading.Thread(target=run).start()", "atexit.register(run)"],
    ids=["thread", "exit"],
)
def test_an_import_that_outlives_the_main_thread_is_taken_in(
    root: Path, tmp_path: Path, begin: str
) -> None:
    """The module that starts threads cannot be imported any more: the import failed."""
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f'{{"content": "memory {n}"}}\n' for n in range(200)))
    program = f"""
import atexit, sys, threading
from agent_memory import AgentMemory
memory = AgentMemory("bob", root=sys.argv[1], embedder="none")
def run():
    print(memory.import_(sys.argv[2]).new)
    memory.close()
{begin}
"""
    command = [sys.executable, "-c", program, str(root), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("200\n", "")
