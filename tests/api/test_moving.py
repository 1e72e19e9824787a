"""A memory is carried elsewhere, is the same there, and no store there until it is whole."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Visitor
from embedding_server import WordEmbedder

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MemoryReader,
    StorageLocked,
    ValidationError,
)


@pytest.fixture
def memory(root: Path) -> Iterator[AgentMemory]:
    """Yield a memory with something of each kind in it."""
    with AgentMemory("bob", root=root, embedder=WordEmbedder()) as memory:
        memory.configure(sharing="read", categories=["recipes"], scratchpad_max_size=20)
        memory.store("the oven is broken", id="oven", category="recipes", tags=["kitchen"])
        memory.store("Prefer PostgreSQL", id="sql", metadata={"n": 1.0, "é": None}, user_id="ada")
        memory.store("gone tomorrow", id="gone")
        memory.store("the safe's code is 7781", id="safe")
        memory.update("oven", content="the oven is repaired")
        memory.archive("sql")
        memory.delete("gone")
        memory.erase("safe")
        memory.promote("oven")
        memory.reject("the moon is made of cheese")
        memory.graph.add("Ada", "repairs", "the oven", memory_id="oven")
        memory.migrate()
        memory.search("oven")
        yield memory


def test_all_of_it_arrives_and_the_source_stays(memory: AgentMemory, tmp_path: Path) -> None:
    there = tmp_path / "there"
    report = memory.move_to(there)
    assert (report.memories, report.embeddings, report.relationships) == (2, 2, 1)
    assert report.source == str(memory.path)
    with AgentMemory("bob", root=there, embedder=WordEmbedder(), create=False) as moved:
        assert exported(moved, tmp_path / "two.yaml") == exported(memory, tmp_path / "one.yaml")
        assert moved.history() == memory.history()
        assert moved.configure() == memory.configure()
        assert moved.backend == "vector"
        assert moved.search("oven")[0].memory.id == "oven"
        assert moved.check().problems == []
        moved.delete("oven")
        assert moved.undo().memory_ids == ["oven"]
    assert memory.get("oven") is not None


def exported(memory: AgentMemory, path: Path) -> list[str]:
    """Return the lines of an export but that of the last access, which each look changes."""
    memory.export(path, embeddings=True)
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if not line.startswith("  last_accessed")]


def test_what_others_added_to_the_file_is_named_and_a_backup_has_it(
    memory: AgentMemory, tmp_path: Path, visitor: Visitor
) -> None:
    """A move said that all rows arrived, and an import nothing at all."""
    assert memory.move_to(tmp_path / "untouched").notes == []
    visitor(
        memory.path,
        "ALTER TABLE memories ADD COLUMN rating INTEGER;; UPDATE memories SET rating = 5;;"
        "ALTER TABLE history ADD COLUMN who TEXT;; CREATE TABLE mine (x);;"
        "CREATE VIEW best AS SELECT 1;; CREATE VIRTUAL TABLE notes USING fts5(note)",
    )
    parts = "that were added by hand (memories.rating, history.who, best, mine, notes)"
    (note,) = memory.move_to(tmp_path / "there").notes
    assert f"{parts} were not moved" in note
    for form in ("store", "jsonl"):
        assert f"{parts} are not exported" in " ".join(
            memory.export(tmp_path / form, format=form).notes
        )
    report = memory.export(tmp_path / "copy.db", format="sqlite")
    assert report.notes == []
    with AgentMemory("eve", root=tmp_path / "new") as other:
        assert f"{parts}: 5" in " ".join(other.import_(report.path).notes)
    restored = AgentMemory.restore(tmp_path / "restored" / "bob" / "memories.db", report.path)
    assert visitor(Path(restored.path), "SELECT DISTINCT rating FROM memories") == "5"


def test_what_is_there_is_not_joined(memory: AgentMemory, tmp_path: Path) -> None:
    memory.move_to(tmp_path / "there")
    with pytest.raises(ConfigurationError, match="already"):
        memory.move_to(tmp_path / "there")
    with pytest.raises(ValidationError, match="where the memory already is"):
        memory.move_to(memory.path.parents[1])
    assert memory.get("oven") is not None


CHILD = """
import sys
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1], embedder=None) as memory:
    print("ready", flush=True)
    memory.move_to(sys.argv[2])
    print("done", flush=True)
"""


def test_what_a_move_left_half_way_is_no_store_and_the_move_goes_on(
    memory: AgentMemory, tmp_path: Path
) -> None:
    memory.store_many([{"content": f"note {n} of {n * n}"} for n in range(1_200)])
    there = tmp_path / "there"

    def stop(done: int, of: int) -> None:
        if done >= 1_000:
            raise RuntimeError(f"at {done} of {of}")

    with pytest.raises(RuntimeError):
        memory.move_to(there, progress=stop)
    for opened in (
        lambda: AgentMemory("bob", root=there),
        lambda: AgentMemory("bob", root=there, read_only=True),
        lambda: MemoryReader.open("bob", root=there),
    ):
        with pytest.raises(StorageLocked, match="move` again"):
            opened()
    (summary,) = AgentMemory.agents(there)
    assert summary.problem is not None
    assert "move` again" in summary.problem
    memory.move_to(there)
    with AgentMemory("bob", root=there, create=False) as moved:
        assert moved.count() == memory.count()
        assert moved.check().problems == []


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_whenever_it_is_killed_it_is_no_store_yet_or_whole(
    root: Path, tmp_path: Path, share: float
) -> None:
    with AgentMemory("bob", root=root, embedder=None) as memory:
        memory.store_many([{"content": f"note {n} of {n * n}"} for n in range(1_500)])
        started = time.monotonic()
        memory.move_to(tmp_path / "measured")
        seconds = time.monotonic() - started
        there = tmp_path / "there"
        command = [sys.executable, "-c", CHILD, str(root), str(there)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(seconds * share)
            child.send_signal(signal.SIGKILL)
        with contextlib.suppress(ConfigurationError):  # it was whole
            memory.move_to(there)
        with AgentMemory("bob", root=there, embedder=None, create=False) as moved:
            assert moved.count() == 1_500
            assert exported(moved, tmp_path / "a") == exported(memory, tmp_path / "b")
            assert moved.check().problems == []
