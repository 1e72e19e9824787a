"""A memory is carried elsewhere whole, is the same there, and is there whole or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agent_memory import AgentMemory, StorageLocked, ValidationError
from agent_memory.errors import MigrationError


class Letters:
    """An embedder that counts letters: small vectors that differ."""

    model = "letters-8"
    dimensions = 8

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0 + text.lower().count(letter) for letter in "aeinorst"] for text in texts]


@pytest.fixture
def memory(root: Path) -> Iterator[AgentMemory]:
    """Yield a memory with something of each kind in it."""
    with AgentMemory("bob", root=root, embedder=Letters()) as memory:
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
    assert (report.memory_count, report.source) == (2, str(memory.path))
    assert report.counts["vector"] == 2
    assert report.counts["relationship"] == 1
    assert report.counts["rejection"] == 1
    with AgentMemory("bob", root=there, embedder=Letters(), create=False) as moved:
        assert exported(moved, tmp_path / "two.yaml") == exported(memory, tmp_path / "one.yaml")
        assert moved.configure() == memory.configure()
        assert moved.backend == "vector"
        assert moved.search("oven")[0].memory.id == "oven"
        assert moved.check().problems == []
        with pytest.raises(ValidationError, match="nothing is left to undo"):
            moved.undo()  # it is no import that one could take back by mistake
        assert [change.event for change in moved.history("gone")] == ["DELETE", "ADD"]
    assert memory.get("oven") is not None


def exported(memory: AgentMemory, path: Path) -> list[str]:
    """Return the lines of an export but that of the last access, which each look changes."""
    memory.export(path, embeddings=True)
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if not line.startswith("  last_accessed")]


def test_moving_again_changes_nothing_and_others_memories_are_not_joined(
    memory: AgentMemory, tmp_path: Path
) -> None:
    memory.move_to(tmp_path / "there")
    again = memory.move_to(tmp_path / "there")
    assert again.notes[0] == "it was there already: nothing was changed"
    memory.store("one more")
    with pytest.raises(ValidationError, match="not those of here"):
        memory.move_to(tmp_path / "there")
    with AgentMemory("bob", root=tmp_path / "there", embedder=Letters()) as moved:
        assert moved.count() == 1


def test_it_is_not_moved_onto_itself(memory: AgentMemory, root: Path) -> None:
    with pytest.raises(ValidationError, match="already"):
        memory.move_to(root)
    assert memory.get("oven") is not None


def test_nobody_writes_into_what_is_being_moved(memory: AgentMemory, tmp_path: Path) -> None:
    refused: list[int] = []

    def look(done: int, total: int) -> None:
        if total and not refused:
            refused.append(done)
            with (
                AgentMemory.open(memory.path, embedder=None) as other,
                pytest.raises(StorageLocked),
            ):
                other.store("written meanwhile")

    memory.move_to(tmp_path / "there", progress=look)
    assert refused


def test_what_arrives_otherwise_is_told_and_nothing_is_taken_away(
    memory: AgentMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = AgentMemory._take_in

    def careless(self: AgentMemory, *args: object, **named: object) -> object:
        plan = taken(self, *args, **named)  # type: ignore[arg-type]
        self.update("oven", content="something else")
        return plan

    monkeypatch.setattr(AgentMemory, "_take_in", careless)
    with pytest.raises(MigrationError, match=r"not the same: .*change \(6 there, 7 arrived\)"):
        memory.move_to(tmp_path / "there")
    oven = memory.get("oven")
    assert oven is not None
    assert oven.content == "the oven is repaired"


CHILD = """
import sys
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1], embedder=None) as memory:
    print("ready", flush=True)
    memory.move_to(sys.argv[2])
    print("done", flush=True)
"""


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_whenever_it_is_killed_it_is_there_whole_or_not_at_all(
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
        with AgentMemory("bob", root=there, embedder=None) as moved:
            assert moved.count() in (0, 1_500)
            assert moved.check().problems == []
        assert memory.move_to(there).memory_count == 1_500
