"""The way back to search by keyword: every memory stays, every vector goes."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from conftest import Visitor
from embedding_server import DIMENSIONS, EmbeddingServer

from agent_memory import AgentMemory, MigrationProgress, OpenAIEmbedder
from agent_memory.errors import StorageLocked

COUNT = 40
SETTINGS = {"migration_batch_size": 10}
VECTOR_TABLES = "SELECT name FROM sqlite_schema WHERE name GLOB 'embedding_index*'"

_READS_ON = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN")
print(c.execute("SELECT count(*) FROM embeddings").fetchone()[0], flush=True)
sys.stdin.readline()
print(c.execute("SELECT count(*) FROM embeddings").fetchone()[0], flush=True)
c.execute("COMMIT")
print(c.execute("SELECT count(*) FROM embeddings").fetchone()[0], flush=True)
"""


@pytest.fixture
def full(memory: AgentMemory) -> AgentMemory:
    memory.store_many([{"id": f"mem-{n}", "content": f"fact number{n}"} for n in range(COUNT)])
    memory.store("We chose PostgreSQL for storage", id="db")
    return memory


def assert_found_by_keyword(memory: AgentMemory) -> None:
    for number in (0, 7, COUNT - 1):
        results = memory.search(f"number{number}")
        assert results[0].memory.id == f"mem-{number}"
        assert results.search_metadata.backend == "file"
        assert results.search_metadata.degraded == []
    assert memory.search("which database do we use?").results == []


def test_back_to_keyword_search_with_every_memory(full: AgentMemory, visitor: Visitor) -> None:
    full.migrate(embedder="wordllama")
    assert full.search("which database do we use?")[0].memory.id == "db"
    full.store("stored after the move", id="new")
    full.update("mem-3", content="changed after the move")
    full.delete("mem-4")
    before = {one.id: one for one in full.list_recent(100)}
    assert full.rollback() is True
    assert_found_by_keyword(full)
    assert full.search("stored after")[0].memory.id in ("new", "mem-3")
    assert full.search("changed")[0].memory.id == "mem-3"
    after = {one.id: one for one in full.list_recent(100)}
    assert after.keys() == before.keys()
    assert len(after) == COUNT + 1
    for memory_id, was in before.items():
        assert after[memory_id].content == was.content
        assert after[memory_id].version == was.version
    for table in ("embeddings", "embedding_models", "embedding_queue"):
        assert visitor(full.path, f"SELECT count(*) FROM {table}") == "0"
    assert visitor(full.path, VECTOR_TABLES) == ""


def test_the_metadata_tells_of_the_way_back(full: AgentMemory) -> None:
    full.migrate(embedder="wordllama")
    full.rollback()
    backup = full.path.with_name("scratchpad.yaml.backup")
    info = full.info()
    assert info.storage_backend == "file"
    assert (info.migration_date, info.vector_model, info.vector_dimensions) == (None, None, None)
    assert info.migration is not None
    assert info.migration.can_rollback is False
    assert info.migration.backup_path == "scratchpad.yaml.backup"
    assert backup.exists()


def test_without_vectors_there_is_nothing_to_go_back_from(full: AgentMemory) -> None:
    assert full.rollback() is False
    full.migrate(embedder="wordllama")
    assert full.rollback() is True
    assert full.rollback() is False
    assert_found_by_keyword(full)


def test_what_is_stored_after_the_way_back_is_not_embedded(
    full: AgentMemory, visitor: Visitor
) -> None:
    full.migrate(embedder="wordllama")
    full.rollback()
    full.store("stored after the way back")
    assert full.info().pending_embeddings == 0
    assert full.embed() == 0
    assert visitor(full.path, "SELECT count(*) FROM embeddings") == "0"


def test_vectors_whose_model_another_program_deleted_are_named_and_stop_nothing(
    full: AgentMemory, visitor: Visitor
) -> None:
    full.migrate(embedder="wordllama")
    visitor(full.path, "PRAGMA foreign_keys = OFF;; DELETE FROM embedding_models")
    full.migrate(embedder="wordllama")
    full.update("mem-3", content="changed after that")  # drops a vector of no model
    report = full.check(repair=True)
    details = [problem.detail for problem in report.problems]
    assert f"{COUNT} embeddings are of a model that is not in embedding_models" in details
    assert all(problem.repaired for problem in report.problems)
    assert full.check().problems == []
    full.update("mem-4", content="changed once more")
    assert visitor(full.path, "SELECT count(*) FROM embeddings") == str(COUNT + 1)


def test_it_can_be_moved_again(full: AgentMemory, visitor: Visitor) -> None:
    full.migrate(embedder="wordllama")
    full.rollback()
    full.store("stored in between", id="between")
    done = full.migrate(embedder="wordllama:128")
    assert (done.status, done.vectors_stored) == ("completed", COUNT + 2)
    assert full.search("which database do we use?")[0].memory.id == "db"
    info = full.info()
    assert info.storage_backend == "vector"
    assert info.migration is not None
    assert info.migration.can_rollback is True
    assert visitor(full.path, "SELECT count(*) FROM embeddings") == str(COUNT + 2)


def test_another_open_handle_searches_by_keyword_from_then_on(
    full: AgentMemory, root: Path
) -> None:
    full.migrate(embedder="wordllama")
    with AgentMemory("bob", root=root) as other:
        assert other.search("which database do we use?")[0].memory.id == "db"
        full.rollback()
        assert_found_by_keyword(other)
        other.store("stored by the other one")
        assert other.info().pending_embeddings == 0


def test_a_rollback_while_a_move_is_under_way_is_refused(
    full: AgentMemory, root: Path, server: EmbeddingServer
) -> None:
    embedder = OpenAIEmbedder(base_url=server.url, api_key="k", dimensions=DIMENSIONS)
    refused: list[StorageLocked] = []

    def roll_back(progress: MigrationProgress) -> None:
        def run() -> None:
            with AgentMemory("bob", root=root) as other, pytest.raises(StorageLocked) as error:
                other.rollback()
            refused.append(error.value)

        if progress.status == "running" and progress.memories_processed and not refused:
            thread = threading.Thread(target=run)
            thread.start()
            thread.join(30)

    assert full.migrate(embedder=embedder, progress=roll_back).status == "completed"
    assert "being migrated" in str(refused[0])
    assert full.info().storage_backend == "vector"
    assert full.rollback() is True


def stopped_half_way(root: Path, embedder: str) -> None:
    def stop(progress: MigrationProgress) -> None:
        if progress.memories_processed >= 20:
            raise KeyboardInterrupt

    with (
        AgentMemory("bob", root=root, config=SETTINGS) as mover,
        pytest.raises(KeyboardInterrupt),
    ):
        mover.migrate(embedder=embedder, progress=stop)


def test_a_half_built_move_is_taken_back(full: AgentMemory, root: Path, visitor: Visitor) -> None:
    stopped_half_way(root, "wordllama")
    assert visitor(full.path, "SELECT count(*) FROM embeddings") == "20"
    assert full.rollback() is True
    assert_found_by_keyword(full)
    assert visitor(full.path, "SELECT count(*) FROM embeddings") == "0"
    assert visitor(full.path, VECTOR_TABLES) == ""
    assert full.migration_plan(embedder="wordllama").to_embed == COUNT + 1


def test_a_half_built_second_model_goes_with_the_first(
    full: AgentMemory, root: Path, visitor: Visitor
) -> None:
    full.migrate(embedder="wordllama")
    stopped_half_way(root, "wordllama:64")
    assert visitor(full.path, "SELECT count(*) FROM embedding_models") == "2"
    assert full.rollback() is True
    assert visitor(full.path, "SELECT count(*) FROM embedding_models") == "0"
    assert visitor(full.path, VECTOR_TABLES) == ""
    assert_found_by_keyword(full)


def test_a_visitor_who_reads_keeps_its_view_and_holds_up_nothing(full: AgentMemory) -> None:
    full.migrate(embedder="wordllama")
    with subprocess.Popen(
        [sys.executable, "-c", _READS_ON, str(full.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == f"{COUNT + 1}\n"
        assert full.rollback() is True
        assert_found_by_keyword(full)
        out, _ = reader.communicate("\n", timeout=30)
    assert out == f"{COUNT + 1}\n0\n"


def test_a_visitor_who_writes_is_waited_for(full: AgentMemory) -> None:
    writes = (
        "import sqlite3, sys, time\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "c.execute(\"UPDATE memories SET content = 'written by hand' WHERE id = 'mem-5'\")\n"
        "print('writing', flush=True)\n"
        "time.sleep(0.3)\n"
        "c.execute('COMMIT')\n"
    )
    full.migrate(embedder="wordllama")
    with subprocess.Popen(
        [sys.executable, "-c", writes, str(full.path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        assert full.rollback() is True
    assert writer.returncode == 0
    assert full.search("written by hand")[0].memory.id == "mem-5"
    assert full.info().pending_embeddings == 0


def test_the_file_that_was_locked_is_gone_afterwards(full: AgentMemory) -> None:
    full.migrate(embedder="wordllama")
    full.rollback()
    assert not list(full.path.parent.glob("*-migration"))
