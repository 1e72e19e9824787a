"""What the kills and the crowd found, each by itself, so that it stays mended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from places import forked

from agent_memory import AgentMemory, ConfigurationError, StorageLocked

from .truth import disagreements
from .verbs import AGENT, NAME, Words, opened, sentences

_HOLDS_A_SNAPSHOT = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN")
c.execute("SELECT count(*) FROM memories").fetchone()
print("held", flush=True)
sys.stdin.read()
"""


def _locks_of(process: int, path: Path) -> int:
    """Count the locks that a process holds on a file's shared memory, as the system knows them."""
    inode = str(path.with_name(path.name + "-shm").stat().st_ino)
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return sum(
        line[4] == str(process) and line[5].rpartition(":")[2] == inode
        for line in lines
        if line[1] != "->"  # somebody who waits for it
    )


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells of locks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_holds_locks_of_its_own(tmp_path: Path) -> None:
    """SQLite thought that it had its parent's. Others deleted the log under the child's writes."""
    path = tmp_path / NAME
    with opened(path) as memory:
        memory.store("before the fork")

        def child() -> None:
            memory.store("in the child")
            of_both = [_locks_of(process, path) for process in (os.getpid(), os.getppid())]
            assert of_both[0] == of_both[1] > 0

        assert os.waitpid(forked(child), 0)[1] == 0
        memory.store("in the parent")
        assert memory.count() == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_what_a_forked_child_stores_stays_when_all_others_close_the_file(tmp_path: Path) -> None:
    path = tmp_path / NAME
    turn, told = os.pipe(), os.pipe()
    memory = opened(path)
    memory.store("before the fork")

    def work() -> None:
        for number in range(20):
            memory.store(f"The child's fact {number}", id=f"child-{number}")
            os.write(told[1], b".")
            os.read(turn[0], 1)
        memory.close()

    child = forked(work)
    os.close(told[1])  # so that the end of the child is heard
    for number in range(20):
        assert os.read(told[0], 1)
        if number == 0:
            memory.close()
        else:
            with opened(path) as other:
                other.store(f"Another's fact {number}")
        os.write(turn[1], b".")
    assert os.waitpid(child, 0)[1] == 0
    with opened(path) as after:
        assert [n for n in range(20) if after.get(f"child-{n}") is None] == []
        assert after.count() == 40
        assert after.check().problems == []


def test_a_memory_that_came_back_and_was_archived_leaves_the_index(tmp_path: Path) -> None:
    """It was deleted, undone and archived before anybody looked at its vector."""
    with opened(tmp_path / NAME) as memory:
        memory.store_many(sentences(12))
        memory.migrate()
        memory.delete("fact-11")
        memory.undo()
        memory.archive("fact-11")
        assert memory.check().problems == []
    assert disagreements(tmp_path / NAME) == []


def test_writers_have_their_turn_while_an_erasure_waits_for_a_reader(tmp_path: Path) -> None:
    """The erasure kept them out for the whole of its five seconds: they failed, too."""
    path = tmp_path / NAME
    waits: list[float] = []
    with opened(path) as memory, opened(path) as other:
        memory.store_many(sentences(5))
        words = [sys.executable, "-I", "-c", _HOLDS_A_SNAPSHOT, str(path)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == b"held\n"
            is_done = threading.Event()

            def store() -> None:
                while not is_done.is_set():
                    started = time.monotonic()
                    other.store("Meanwhile", on_duplicate="keep")
                    waits.append(time.monotonic() - started)

            writer = threading.Thread(target=store)
            writer.start()
            with pytest.raises(StorageLocked, match="Nothing was erased"):
                memory.erase("fact-3")
            is_done.set()
            writer.join()
            reader.communicate(b"")
        assert memory.get("fact-3") is not None
        assert len(waits) > 5
        assert max(waits) < 4
        assert memory.erase("fact-3").clean


class _Switching(Words):
    """An embedder during whose work another process moves the file to another model."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.texts = 0
        self.switches = False

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each text; the first time that it matters, after the switch."""
        self.texts += len(texts)
        if self.switches:
            self.switches = False
            with opened(self._path, dimensions=48) as other:
                other.migrate()
            with AgentMemory.open(self._path, embedder=None) as other:
                other.store("What waits for a vector of the new model")
        return super().embed(texts)


def test_a_store_during_which_the_model_changes_does_not_embed_again_and_again(
    tmp_path: Path,
) -> None:
    """It embedded the same texts for five seconds, of a model that was gone, and kept nothing."""
    embedder = _Switching(tmp_path / NAME)
    with AgentMemory.open(tmp_path / NAME, agent_id=AGENT, embedder=embedder) as memory:
        memory.store_many(sentences(12))
        memory.migrate()
        embedder.switches, embedder.texts = True, 0
        memory.store("What was stored meanwhile")
        assert embedder.texts == 1


def test_embed_ends_when_the_model_changes_meanwhile(tmp_path: Path) -> None:
    """It never did: what it embedded was of no use, and so it embedded that again."""
    embedder = _Switching(tmp_path / NAME)
    with AgentMemory.open(tmp_path / NAME, agent_id=AGENT, embedder=embedder) as memory:
        memory.store_many(sentences(12))
        memory.migrate()
        with AgentMemory.open(tmp_path / NAME, embedder=None) as other:
            other.store("What waits")
        embedder.switches, embedder.texts = True, 0
        with pytest.raises(ConfigurationError):
            memory.embed()
        assert embedder.texts == 1


def test_a_check_after_another_s_writes_calls_a_sound_file_sound(tmp_path: Path) -> None:
    """FTS5 checked its index by the structure that it had read before them: "corruption found"."""
    with opened(tmp_path / NAME) as memory, opened(tmp_path / NAME) as other:
        for batch in range(4):
            texts = [f"Fact {batch} {number} of tea and kafka" for number in range(60)]
            other.store_many({"content": text} for text in texts)
            assert memory.search("tea")  # reads the structure
            other.store_many({"content": f"{text} again"} for text in texts)
            assert memory.check().problems == []
