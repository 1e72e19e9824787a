"""A move that is killed at any moment goes on when it is run again, and pays for nothing twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from embedding_server import EmbeddingServer

from agent_memory import AgentMemory

COUNT, BATCH, KILLS = 1_500, 100, 6


def _start(root: Path, server: EmbeddingServer) -> subprocess.Popen[str]:
    program = Path(sys.executable).with_name("agent-memory")
    words = ["--root", str(root), "--agent", "bob", "migrate", "--yes", "--embedder", "openai"]
    return subprocess.Popen(
        [str(program), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **server.variables},
    )


def _wait_for_requests(server: EmbeddingServer, count: int, mover: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while len(server.requests) < count and mover.poll() is None:
        assert time.monotonic() < deadline, "the move asks for nothing"
        time.sleep(0.001)


def test_a_move_that_was_killed_again_and_again_ends_complete(
    root: Path, server: EmbeddingServer
) -> None:
    chance = random.Random(30)
    server.behaviour.delay_seconds = 0.1
    with AgentMemory("bob", root=root, synchronous="NORMAL") as memory:
        memory.store_many([{"content": f"fact number{n} of many"} for n in range(COUNT)])
    killed = 0
    for _ in range(KILLS):
        mover = _start(root, server)
        # Anywhere: before its first request, while it waits, while it commits.
        _wait_for_requests(server, len(server.requests) + chance.choice([0, 1, 1, 2]), mover)
        time.sleep(chance.random() * 0.15)
        killed += mover.poll() is None
        mover.kill()
        mover.communicate(timeout=30)
        with AgentMemory("bob", root=root, create=False) as memory:
            assert memory.check().problems == []
            assert memory.search("number700")[0].memory.content == "fact number700 of many"
    assert killed == KILLS
    mover = _start(root, server)
    out, err = mover.communicate(timeout=60)
    assert mover.returncode == 0, err
    assert "1,500 memories" in out
    with AgentMemory("bob", root=root, create=False, embedder=None) as memory:
        assert memory.check().problems == []
        info = memory.info()
        assert (info.storage_backend, info.pending_embeddings) == ("vector", 0)
        assert memory.migration_plan(embedder="wordllama").memory_count == COUNT
        assert memory.count() == COUNT
        vectors = memory._store.vectors
        active = vectors.state().active
        assert active is not None
        assert vectors.count(active.model_id) == COUNT
    times = Counter(server.texts)
    assert len(times) == COUNT
    # What was under way at a kill is asked for again, and nothing else.
    assert sum(times.values()) - COUNT <= BATCH * KILLS
    assert max(times.values()) <= KILLS + 1
    assert not list((root / "bob").glob("*-migration"))


def test_only_the_batch_under_way_is_sent_again(root: Path, server: EmbeddingServer) -> None:
    server.behaviour.delay_seconds = 0.02
    with AgentMemory("bob", root=root, synchronous="NORMAL") as memory:
        memory.store_many([{"content": f"fact number{n} of many"} for n in range(500)])
    for kill in range(1, 4):
        before = len(server.requests)
        mover = _start(root, server)
        _wait_for_requests(server, before + 2, mover)
        mover.kill()
        mover.communicate(timeout=30)
        time.sleep(0.05)  # the server notes what it was answering
        repeats = len(server.texts) - len(set(server.texts))
        assert repeats <= BATCH * kill
        with AgentMemory("bob", root=root, create=False) as memory:
            state = memory._store.vectors.state()
            model = state.active or state.building
            assert model is not None
            kept = memory._store.vectors.count(model.model_id)
        # All that was answered is kept, but for the one batch that was not committed yet.
        assert len(set(server.texts)) - kept <= BATCH
    mover = _start(root, server)
    _, err = mover.communicate(timeout=60)
    assert mover.returncode == 0, err
    assert len(set(server.texts)) == 500
