"""A move that stopped goes on where it was, whatever stopped it, and pays for nothing twice."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from embedding_server import DIMENSIONS, EmbeddingServer
from places import started

from agent_memory import AgentMemory, MigrationError, MigrationProgress, OpenAIEmbedder
from agent_memory.errors import AgentMemoryError, StorageLocked

COUNT = 60

_MOVES = """
import sys
from agent_memory import AgentMemory, StorageLocked
with AgentMemory("bob", root=sys.argv[1], config={"migration_batch_size": 10}) as memory:
    try:
        print(memory.migrate(embedder="openai").status)
    except StorageLocked as error:
        sys.exit(f"locked: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")
"""


def opened(root: Path, server: EmbeddingServer, **settings: Any) -> AgentMemory:
    """Open the memory with the server for its embedder, and batches of ten."""
    embedder = OpenAIEmbedder(
        base_url=server.url, api_key="k", dimensions=DIMENSIONS, **{"max_retries": 0, **settings}
    )
    return AgentMemory("bob", root=root, embedder=embedder, config={"migration_batch_size": 10})


@pytest.fixture
def memory(root: Path, server: EmbeddingServer) -> Iterator[AgentMemory]:
    with opened(root, server) as memory:
        memory.store_many([{"id": f"mem-{n}", "content": f"fact number{n}"} for n in range(COUNT)])
        yield memory
        memory.info()
        assert memory.check().problems == []


def fail_after(server: EmbeddingServer, count: int) -> None:
    """Let the server fail for good once it has answered so many texts, in requests of ten."""

    def spoil(_answer: dict[str, Any]) -> None:
        # The texts of this answer are noted after this.
        if len(server.texts) + 10 >= count:
            server.behaviour.status = 500

    server.behaviour.change = spoil


def repeated(server: EmbeddingServer) -> int:
    return sum(times - 1 for times in Counter(server.texts).values())


def test_a_move_goes_on_after_the_service_failed_for_good(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    told: list[MigrationProgress] = []
    fail_after(server, 30)
    with pytest.raises(MigrationError, match=r"stopped after 30 of 60 memories.*HTTP status 500"):
        memory.migrate(progress=told.append)
    assert told[-1].status == "failed"
    assert told[-1].can_retry
    assert (told[-1].memories_processed, told[-1].vectors_stored) == (30, 30)
    assert "500" in told[-1].errors[-1]
    assert memory.info().storage_backend == "file"
    results = memory.search("number50")
    assert results[0].memory.id == "mem-50"
    assert (results.search_metadata.backend, results.search_metadata.degraded) == ("file", [])
    assert memory.count() == COUNT
    server.behaviour.change, server.behaviour.status = None, 200
    again = memory.migrate()
    assert (again.status, again.memories_processed) == ("completed", COUNT)
    assert again.embeddings_generated == 30
    assert memory.info().stats.embeddings_generated == COUNT
    assert len(server.texts) == COUNT
    assert repeated(server) == 0


@pytest.mark.parametrize("fault", ["short", "nan"])
def test_a_wrong_answer_stops_the_move_and_nothing_of_it_is_kept(
    memory: AgentMemory, server: EmbeddingServer, fault: str
) -> None:
    answered = iter(range(2))

    def spoil(answer: dict[str, Any]) -> None:
        if next(answered, None) is None:
            if fault == "short":
                answer["data"].pop()
            else:
                answer["data"][3]["embedding"] = [float("nan")] * DIMENSIONS

    server.behaviour.change = spoil
    with pytest.raises(MigrationError, match="stopped after 20 of 60"):
        memory.migrate()
    server.behaviour.change = None
    assert memory.migrate().embeddings_generated == 40
    assert repeated(server) == 10  # those of the answer that could not be used


def test_a_move_goes_on_after_ctrl_c(memory: AgentMemory, server: EmbeddingServer) -> None:
    def stop(progress: MigrationProgress) -> None:
        if progress.memories_processed == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.migrate(progress=stop)
    assert memory.info().storage_backend == "file"
    assert not list(memory.path.parent.glob("*-migration"))
    assert memory.migrate().embeddings_generated == 20
    assert repeated(server) == 0


def test_the_same_program_stopped_by_ctrl_c_goes_on_in_another(
    root: Path, memory: AgentMemory, server: EmbeddingServer
) -> None:
    """SIGINT while a request is under way, as in a terminal."""
    server.behaviour.delay_seconds = 0.5  # with 0.1 a slow machine saw it complete
    mover = start_mover(root, server)
    wait_for_texts(server, 20)
    mover.send_signal(signal.SIGINT)
    _, err = mover.communicate(timeout=30)
    assert err == "interrupted\n"
    assert not list(memory.path.parent.glob("*-migration"))
    server.behaviour.delay_seconds = 0
    assert memory.migrate().status == "completed"
    assert repeated(server) <= 10  # the batch that was under way


def start_mover(root: Path, server: EmbeddingServer) -> subprocess.Popen[str]:
    """Move bob's memory to the server's model, in a process of its own, ten texts at a time."""
    return started(_MOVES, root, **server.variables)


def wait_for_texts(server: EmbeddingServer, count: int) -> None:
    reached = threading.Event()
    for _ in range(3_000):
        if len(server.texts) >= count:
            return
        reached.wait(0.01)
    raise AssertionError(f"the server was asked for {len(server.texts)} texts only")


def test_a_move_whose_memory_is_closed_by_another_thread_goes_on_later(
    root: Path, memory: AgentMemory, server: EmbeddingServer
) -> None:
    server.behaviour.delay_seconds = 0.05
    mover = opened(root, server)
    ends: list[object] = []

    def move() -> None:
        try:
            ends.append(mover.migrate().status)
        except AgentMemoryError as error:
            ends.append(error)

    thread = threading.Thread(target=move)
    thread.start()
    wait_for_texts(server, 20)
    mover.close()
    thread.join(30)
    assert not thread.is_alive()
    assert len(ends) == 1
    assert ends[0] != "completed"
    assert memory.info().storage_backend == "file"
    server.behaviour.delay_seconds = 0
    assert memory.migrate().status == "completed"
    assert repeated(server) <= 10  # the batch that was under way


@pytest.mark.usefixtures("memory")
def test_what_the_service_took_is_not_sent_again_though_the_batch_was_not_complete(
    root: Path, server: EmbeddingServer
) -> None:
    """A batch of the move may be many requests; those that were answered were paid for."""
    with opened(root, server, batch_size=3) as mover:
        fail_after(server, 26)
        with pytest.raises(MigrationError):
            mover.migrate()
        sent = len(server.texts)
        assert 0 < sent < COUNT
        server.behaviour.change, server.behaviour.status = None, 200
        assert mover.migrate().status == "completed"
    assert repeated(server) == 0
    assert len(server.texts) == COUNT


def test_a_refused_text_is_reported_and_does_not_stop_the_move(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    memory.store("a forbidden text", id="bad")
    server.behaviour.refused_word = "forbidden"
    done = memory.migrate()
    assert done.status == "completed"
    assert (done.memories_processed, done.vectors_stored) == (COUNT + 1, COUNT)
    assert done.embeddings_generated == COUNT
    assert len(done.errors) == 1
    assert "refused 1 text" in done.errors[0]
    assert memory.info().storage_backend == "vector"
    assert memory.search("forbidden")[0].memory.id == "bad"
    assert repeated(server) == 0


def test_a_refused_text_waits_and_is_embedded_once_it_is_taken(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    memory.store("a forbidden text", id="bad")
    server.behaviour.refused_word = "forbidden"
    memory.migrate()
    assert memory.check().problems == []
    assert memory.info().pending_embeddings == 1
    server.behaviour.refused_word = None
    assert memory.embed() == 1
    assert memory.info().pending_embeddings == 0


def test_a_refused_text_of_several_memories_is_counted_right(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    memory.store_many([{"content": "a forbidden text"} for _ in range(4)])
    server.behaviour.refused_word = "forbidden"
    told: list[MigrationProgress] = []
    done = memory.migrate(progress=told.append)
    assert (done.vectors_stored, done.embeddings_generated) == (COUNT, COUNT)
    generated = [one.embeddings_generated for one in told]
    assert generated == sorted(generated)
    assert memory.embedding_usage.texts == COUNT


@pytest.mark.usefixtures("memory")
def test_a_service_that_asks_to_wait_is_waited_for(root: Path, server: EmbeddingServer) -> None:
    server.behaviour.status = 429
    server.behaviour.headers = {"retry-after-ms": "20"}
    server.behaviour.failures = 2
    with opened(root, server, max_retries=2) as mover:
        assert mover.migrate().status == "completed"
    assert len(server.requests) == 2 + COUNT // 10
    assert repeated(server) == 0


def test_a_service_that_goes_on_to_limit_stops_the_move_until_it_is_run_again(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    server.behaviour.status = 429
    server.behaviour.headers = {"retry-after": "0"}
    with pytest.raises(MigrationError, match="refused too many requests"):
        memory.migrate()
    server.behaviour.status = 200
    assert memory.migrate().status == "completed"


# Two movers at once -------------------------------------------------------------------------------


def test_two_threads_do_not_move_the_same_memory(
    root: Path, memory: AgentMemory, server: EmbeddingServer
) -> None:
    refused: list[StorageLocked] = []

    def move_too(progress: MigrationProgress) -> None:
        def move() -> None:
            with opened(root, server) as other, pytest.raises(StorageLocked) as error:
                other.migrate()
            refused.append(error.value)

        if progress.memories_processed == 20 and not refused:
            thread = threading.Thread(target=move)
            thread.start()
            thread.join(30)

    assert memory.migrate(progress=move_too).status == "completed"
    assert "is already migrating this memory" in str(refused[0])
    assert repeated(server) == 0
    assert not list(memory.path.parent.glob("*-migration"))


def test_two_processes_do_not_move_the_same_memory(
    root: Path, memory: AgentMemory, server: EmbeddingServer
) -> None:
    server.behaviour.delay_seconds = 0.1
    movers = [start_mover(root, server) for _ in range(2)]
    outcomes = [mover.communicate(timeout=60) for mover in movers]
    codes = [mover.returncode for mover in movers]
    # The one that came late may find the other one done.
    assert 0 in codes
    for code, (_, err) in zip(codes, outcomes, strict=True):
        assert code == 0 or err.startswith(
            "locked: another process is already migrating this memory"
        )
    assert repeated(server) == 0
    assert len(server.texts) == COUNT
    assert memory.info().storage_backend == "vector"
    assert not list(memory.path.parent.glob("*-migration"))


def test_the_lock_does_not_outlive_a_mover_that_was_killed(
    root: Path, memory: AgentMemory, server: EmbeddingServer
) -> None:
    server.behaviour.delay_seconds = 0.2
    mover = start_mover(root, server)
    wait_for_texts(server, 10)
    with pytest.raises(StorageLocked, match="is already migrating this memory"):
        memory.migrate()
    mover.kill()
    mover.communicate(timeout=30)
    server.behaviour.delay_seconds = 0
    assert memory.migrate().status == "completed"
    assert not list(memory.path.parent.glob("*-migration"))


def test_what_is_deleted_and_brought_back_while_a_second_move_waits_stays_in_no_index(
    memory: AgentMemory, server: EmbeddingServer
) -> None:
    """Its code stayed in the index that was half-built, and its vector had gone."""
    memory.migrate()
    fail_after(server, COUNT + 30)
    longer = OpenAIEmbedder(
        base_url=server.url, api_key="k", dimensions=2 * DIMENSIONS, max_retries=0
    )
    with pytest.raises(MigrationError, match="stopped after 30 of 60"):
        memory.migrate(embedder=longer)
    server.behaviour.change, server.behaviour.status = None, 200
    memory.delete_many(["mem-3", "mem-4"])
    memory.undo()
    memory.embed()
    assert memory.check().problems == []
    assert memory.migrate(embedder=longer).memories_processed == COUNT
