"""The plan of a move, the move itself, and what others do meanwhile; from one model to another."""

from __future__ import annotations

import random
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Visitor, engine_of
from embedding_server import DIMENSIONS, EmbeddingServer

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    EmbeddingError,
    MigrationError,
    MigrationProgress,
    OpenAIEmbedder,
)
from agent_memory.embeddings.registry import EMBEDDERS
from agent_memory.formats.scratchpad import read_scratchpad
from agent_memory.storage.engine import Capability

pytestmark = pytest.mark.usefixtures("service")
SMALL_BATCHES = {"migration_batch_size": 10}
INDEXES = "SELECT name FROM sqlite_schema WHERE name GLOB 'embedding_index_*' AND sql LIKE '%vec0%'"


def numbered(count: int) -> list[dict[str, Any]]:
    return [{"id": f"mem-{n}", "content": f"fact number{n}"} for n in range(count)]


@pytest.fixture
def full(root: Path) -> Iterator[AgentMemory]:
    """Open a memory with 45 memories, which is moved in five batches."""
    with AgentMemory("bob", root=root, config=SMALL_BATCHES) as memory:
        memory.store_many(numbered(45))
        yield memory
        memory.info()
        assert memory.check().problems == []


def raw(memory: AgentMemory, sql: str, visitor: Visitor) -> str:
    return visitor(memory.path, sql)


# The plan -----------------------------------------------------------------------------------------


def test_a_plan_says_what_a_move_takes_and_changes_nothing(
    full: AgentMemory, server: EmbeddingServer
) -> None:
    full.store("é" * 10)
    before = {path.name: path.read_bytes() for path in full.path.parent.iterdir()}
    plan = full.migration_plan(embedder="openai")
    size = sum(len(memory.content.encode()) for memory in full.list_recent(100))
    assert (plan.agent_id, plan.memory_count, plan.to_embed) == ("bob", 46, 46)
    assert plan.estimated_tokens == -(-size // 4)
    assert (plan.current_backend, plan.target_backend) == ("file", "vector")
    assert (plan.embedder, plan.model) == ("openai", "text-embedding-3-small")
    assert (plan.dimensions, plan.batch_size) == (DIMENSIONS, 10)
    assert plan.estimated_duration_seconds == pytest.approx(46 / 20, abs=0.1)
    assert plan.estimated_cost_usd == 0.0  # it is not OpenAI that is asked
    assert plan.backup_path == str(full.path.with_name("scratchpad.yaml.backup"))
    assert server.requests == []
    assert {path.name: path.read_bytes() for path in full.path.parent.iterdir()} == before
    assert full.info().storage_backend == "file"


def test_openai_itself_has_a_price(full: AgentMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    plan = full.migration_plan(embedder=OpenAIEmbedder(api_key="k"))
    assert plan.estimated_cost_usd == pytest.approx(plan.estimated_tokens / 1000 * 0.00002)
    assert plan.estimated_cost_usd > 0


def test_a_plan_of_nothing_costs_nothing(root: Path) -> None:
    with AgentMemory("empty", root=root) as memory:
        plan = memory.migration_plan(embedder="openai")
        assert (plan.memory_count, plan.to_embed, plan.estimated_tokens) == (0, 0, 0)
        assert (plan.estimated_duration_seconds, plan.estimated_cost_usd) == (0, 0)


def test_a_plan_after_a_half_done_move_counts_only_what_is_left(
    full: AgentMemory,
) -> None:
    stop_after(full, 30)
    plan = full.migration_plan(embedder="openai")
    assert (plan.memory_count, plan.to_embed) == (45, 15)
    other = full.migration_plan(embedder="wordllama")
    assert other.to_embed == 45
    full.migrate(embedder="openai")
    assert full.migration_plan(embedder="openai").to_embed == 0


def stop_after(memory: AgentMemory, count: int) -> None:
    """Move to the server's model, until a number of memories is done."""

    def stop(progress: MigrationProgress) -> None:
        if progress.memories_processed >= count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.migrate(embedder="openai", progress=stop)


@pytest.mark.parametrize(
    ("opened_with", "asked_for"), [(None, None), ("none", None), ("auto", "none"), (None, "none")]
)
def test_without_an_embedder_the_error_says_what_to_install(
    root: Path, opened_with: str | None, asked_for: str | None
) -> None:
    with AgentMemory("bob", root=root, embedder=opened_with) as memory:
        memory.store("a fact")
        for ask in (memory.migration_plan, memory.migrate):
            with pytest.raises(ConfigurationError, match=r"pip install 'agent-memory\[local\]'"):
                ask(embedder=asked_for)
        assert memory.info().storage_backend == "file"
        assert not memory.path.with_name("scratchpad.yaml.backup").exists()


def test_auto_without_key_and_packages_says_what_to_install(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    for package in (kind.package for kind in EMBEDDERS.values() if kind.package):
        monkeypatch.setitem(sys.modules, package, None)  # so Python takes it for not installed
    with (
        AgentMemory("bob", root=root) as memory,
        pytest.raises(ConfigurationError, match="pip install"),
    ):
        memory.migration_plan()


def test_a_move_goes_to_the_embedder_that_the_memory_was_opened_with(
    root: Path, service: EmbeddingServer
) -> None:
    """With a key in the environment, nothing may be sent where the user chose a local model."""
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        memory.store("a private fact")
        assert memory.migration_plan().embedder == "wordllama"
        memory.migrate()
        assert memory.info().vector_model == "wordllama-l2-supercat-256"
    assert service.requests == []


# The move -----------------------------------------------------------------------------------------


def test_progress_is_told_after_each_batch(full: AgentMemory) -> None:
    told: list[MigrationProgress] = []
    done = full.migrate(embedder="openai", progress=told.append)
    assert [one.status for one in told[:-1]] == ["running"] * (len(told) - 1)
    assert told[-1] == done
    processed = [one.memories_processed for one in told]
    assert processed == sorted(processed)
    assert {0, 10, 20, 30, 40, 45} <= set(processed)
    assert [one.status for one in told].count("completed") == 1
    assert (done.memories_processed, done.embeddings_generated, done.vectors_stored) == (45,) * 3
    assert done.percent_complete() == 100.0
    assert done.errors == []
    assert done.started_at is not None
    assert done.completed_at is not None
    assert done.completed_at >= done.started_at


def test_info_tells_of_the_move(full: AgentMemory) -> None:
    full.migrate(embedder="openai")
    info = full.info()
    assert info.storage_backend == "vector"
    assert info.migration_date is not None
    assert info.migration is not None
    has_file = Capability.FILE_BACKUP in engine_of(full).capabilities
    assert info.migration.backup_path == ("scratchpad.yaml.backup" if has_file else None)
    assert info.migration.can_rollback is True
    assert info.migration.migration_duration_seconds is not None
    assert info.stats.embeddings_generated == 45
    assert (info.vector_model, info.vector_dimensions) == ("text-embedding-3-small", DIMENSIONS)
    assert info.pending_embeddings == 0


def test_running_it_again_sends_nothing(full: AgentMemory, service: EmbeddingServer) -> None:
    full.migrate(embedder="openai")
    sent = list(service.texts)
    again = full.migrate(embedder="openai")
    assert (again.status, again.memories_processed) == ("completed", 45)
    assert service.texts == sent
    assert sorted(sent) == sorted(item["content"] for item in numbered(45))


def test_what_a_killed_move_left_of_its_backup_goes_with_the_next(full: AgentMemory) -> None:
    left = full.path.with_name(".scratchpad.yaml.backup.0a1b2c3d")
    other = full.path.with_name(".scratchpad.yaml.backup.mine")
    for path in (left, other):
        path.write_text("memories: [{content: in plain text}]")
    full.migrate(embedder="wordllama")
    assert not left.exists()
    assert other.exists()  # nobody here names a file like that


@pytest.mark.file_only("it backs up into a file")
def test_the_backup_holds_every_memory_in_the_scratchpads_format(
    root: Path,
) -> None:
    with AgentMemory(
        "bob", root=root, synchronous="NORMAL", config={"migration_batch_size": 1000}
    ) as memory:
        memory.store_many(numbered(2_000))
        memory.store("café\u2028: - 'x' 🦊", id="odd", tags=["b", "a"], category="insight")
        memory.migrate(embedder="wordllama")
        backup = memory.path.with_name("scratchpad.yaml.backup")
        saved = {entry["id"]: entry for entry in read_scratchpad(backup).memories}
        assert len(saved) == 2_001
        odd = memory.get("odd")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    data = yaml.load(backup.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    assert (data["agent_id"], data["max_size"], len(data["memories"])) == ("bob", 50, 2_001)
    entry = next(one for one in data["memories"] if one["id"] == "odd")
    keys = ["id", "timestamp", "category", "content", "tags", "access_count", "last_accessed"]
    assert list(entry)[:7] == keys
    assert odd is not None
    for found in (entry, saved["odd"]):
        assert found["content"] == odd.content
        assert found["tags"] == odd.tags
        assert found["category"] == "insight"


def test_an_empty_memory_moves_and_embeds_what_comes(root: Path, service: EmbeddingServer) -> None:
    with AgentMemory("bob", root=root) as memory:
        done = memory.migrate(embedder="openai")
        assert (done.status, done.memories_processed) == ("completed", 0)
        assert memory.info().storage_backend == "vector"
        assert service.texts == []
        memory.store("the first fact")
        assert service.texts == ["the first fact"]
        assert memory.check().problems == []


def test_odd_contents_and_archived_memories_move(root: Path, visitor: Visitor) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("long " * 2_000, id="long")
        memory.store("🦊🎉", id="emoji")
        memory.store("archived fact", id="old")
        raw(memory, "UPDATE memories SET archived = 1 WHERE id = 'old'", visitor)
        assert memory.migrate(embedder="openai").vectors_stored == 3
        assert memory.search("🦊🎉")[0].memory.id == "emoji"
        assert memory.search("archived fact", similarity_threshold=0.9).results == []
        found = memory.search("archived fact", filters={"archived": True})
        assert found[0].memory.id == "old"
        assert memory.check().problems == []


def test_a_text_of_many_memories_is_sent_once(root: Path, service: EmbeddingServer) -> None:
    with AgentMemory("bob", root=root, config=SMALL_BATCHES) as memory:
        memory.store_many([{"content": f"text {n % 3}"} for n in range(60)])
        done = memory.migrate(embedder="openai")
        assert sorted(service.texts) == ["text 0", "text 1", "text 2"]
        assert (done.embeddings_generated, done.vectors_stored) == (3, 60)
        assert memory.check().problems == []


# Others meanwhile ---------------------------------------------------------------------------------


def change_from_outside(root: Path) -> None:
    """Store, edit and delete, as another process that has the same memory open would."""
    with AgentMemory("bob", root=root) as other:
        other.store("stored meanwhile zebra", id="new")
        for edited in ("mem-2", "mem-18", "mem-40"):  # before, in and after the batch under way
            other.update(edited, content=f"edited meanwhile {edited}")
        for deleted in ("mem-3", "mem-19", "mem-41"):
            other.delete(deleted)


@pytest.mark.parametrize("moment", ["between two batches", "while the service answers"])
def test_what_another_handle_changes_meanwhile_is_right_afterwards(
    full: AgentMemory, service: EmbeddingServer, root: Path, moment: str, visitor: Visitor
) -> None:
    changes = iter([lambda: change_from_outside(root)])

    def on_progress(progress: MigrationProgress) -> None:
        if moment == "between two batches" and progress.memories_processed >= 20:
            next(changes, int)()

    def on_answer(_answer: dict[str, Any]) -> None:
        # The 10 texts from mem-10 on are with the service now.
        if moment == "while the service answers" and len(service.requests) == 2:
            next(changes, int)()

    service.behaviour.change = on_answer
    assert full.migrate(embedder="openai", progress=on_progress).status == "completed"
    assert next(changes, None) is None
    assert full.info().pending_embeddings == 0
    assert raw(full, "SELECT count(*) FROM embeddings", visitor) == "43"
    assert full.check().problems == []
    for number in (2, 18, 40):
        assert f"edited meanwhile mem-{number}" in service.texts
        # Of the same words, so that the vector's cosine is 1.
        assert full.search(f"edited meanwhile mem-{number}")[0].memory.id == f"mem-{number}"
    assert full.search("stored meanwhile zebra")[0].memory.id == "new"
    assert full.get("mem-19") is None


def test_readers_search_by_keyword_during_a_first_move(full: AgentMemory, root: Path) -> None:
    found: list[tuple[str, str, list[str]]] = []

    def search(_progress: MigrationProgress) -> None:
        with AgentMemory("bob", root=root) as reader:
            for memory in (reader, full):
                results = memory.search("number7")
                metadata = results.search_metadata
                found.append((results[0].memory.id, metadata.backend, metadata.degraded))

    full.migrate(embedder="openai", progress=search)
    assert len(found) >= 12
    assert {memory_id for memory_id, _, _ in found} == {"mem-7"}
    assert {degraded for _, _, reasons in found for degraded in reasons} == set()
    assert found[0][1] == "file"
    assert found[-1][1] == "vector"


# What must stop a move ----------------------------------------------------------------------------


class Moody:
    """An embedder whose vectors say nothing: it answers differently each time."""

    model = "moody"
    dimensions = 32

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[random.gauss(0, 1) for _ in range(self.dimensions)] for _ in texts]


def test_an_embedder_that_answers_differently_each_time_is_refused(full: AgentMemory) -> None:
    with pytest.raises(MigrationError):
        full.migrate(embedder=Moody())
    assert full.info().storage_backend == "file"


class Unreachable(Moody):
    """An embedder that asks its service how long vectors are."""

    @property
    def dimensions(self) -> int:  # type: ignore[override]
        raise TimeoutError("no answer")


def test_an_embedder_that_cannot_say_its_dimensions_stops_the_move(full: AgentMemory) -> None:
    with pytest.raises(EmbeddingError, match="no answer"):
        full.migration_plan(embedder=Unreachable())
    with pytest.raises(MigrationError, match=r"has not begun: .*no answer"):
        full.migrate(embedder=Unreachable())
    assert full.info().storage_backend == "file"


EMPTY = "UPDATE embeddings SET vector = zeroblob(length(vector)) WHERE embedding_id = 5"
SHORT = "UPDATE embeddings SET vector = x'0102' WHERE embedding_id = 5"
SWAPPED = """UPDATE embeddings SET vector = (SELECT vector FROM embeddings WHERE embedding_id = 6)
WHERE embedding_id = 5"""


def move_with_damage(memory: AgentMemory, damage: str, visitor: Visitor) -> MigrationProgress:
    """Damage a vector in the middle of a move; return the last that was told of it."""
    told: list[MigrationProgress] = []

    def spoil(progress: MigrationProgress) -> None:
        told.append(progress)
        if progress.memories_processed == 20:
            raw(memory, damage, visitor)

    with pytest.raises(MigrationError, match="vectors are wrong"):
        memory.migrate(embedder="openai", progress=spoil)
    return told[-1]


@pytest.mark.parametrize("damage", [EMPTY, SHORT, SWAPPED], ids=["empty", "short", "swapped"])
def test_a_vector_that_was_damaged_meanwhile_stops_the_move(
    full: AgentMemory, visitor: Visitor, damage: str
) -> None:
    last = move_with_damage(full, damage, visitor)
    assert last.status == "failed"
    assert "the new vectors are wrong" in last.errors[-1]
    assert full.info().storage_backend == "file"
    assert full.search("number7")[0].memory.id == "mem-7"
    full.check(repair=True)


@pytest.mark.parametrize("damage", [EMPTY, SHORT], ids=["empty", "short"])
def test_a_damaged_vector_is_made_again_when_the_move_is_run_again(
    full: AgentMemory, visitor: Visitor, damage: str
) -> None:
    """The message says that the move goes on then; it must not stop there for ever."""
    move_with_damage(full, damage, visitor)
    assert full.migrate(embedder="openai").status == "completed"
    assert full.search("number4")[0].memory.id == "mem-4"


# From model to model ------------------------------------------------------------------------------


def asked_meanwhile(memory: AgentMemory, embedder: str, question: str) -> set[tuple[str, ...]]:
    """Move to a model; return what was answered meanwhile: backend, what was degraded, the hit."""
    answers: list[tuple[str, ...]] = []

    def ask(progress: MigrationProgress) -> None:
        if progress.status == "running":
            results = memory.search(question)
            metadata = results.search_metadata
            answers.append((metadata.backend, *metadata.degraded, results[0].memory.id))

    assert memory.migrate(embedder=embedder, progress=ask).status == "completed"
    assert len(answers) >= 3
    return set(answers)


def test_the_old_model_serves_until_the_new_one_is_complete(
    root: Path, service: EmbeddingServer, visitor: Visitor
) -> None:
    with AgentMemory("bob", root=root, config=SMALL_BATCHES) as memory:
        memory.store_many(numbered(25))
        memory.store("We chose PostgreSQL for storage", id="db")
        memory.migrate(embedder="wordllama")
        # Questions that only the vectors of the old model answer: the words find nothing.
        for name, model, question in (
            ("openai", "text-embedding-3-small", "which database is used?"),
            ("wordllama:128", "wordllama-l2-supercat-128", "we for"),
        ):
            assert asked_meanwhile(memory, name, question) == {("vector", "db")}
            assert (question in service.texts) == (name != "openai")
            assert memory.info().vector_model == model
            assert raw(memory, "SELECT count(*) FROM embeddings", visitor) == "26"
            (number,) = raw(memory, "SELECT DISTINCT model_id FROM embeddings", visitor).split()
            assert raw(memory, INDEXES, visitor) == f"embedding_index_{number}"
            assert memory.check().problems == []
        assert memory.search("which database is used?")[0].memory.id == "db"


def test_another_server_of_the_same_model_makes_its_own_vectors(
    full: AgentMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches refuse vectors that another server made, and say that a move helps."""
    full.migrate(embedder="openai")
    with EmbeddingServer() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        with AgentMemory("bob", root=root) as memory:
            assert "migrate" in memory.search("number7").search_metadata.degraded[0]
            assert memory.migrate(embedder="openai").status == "completed"
            assert len(other.texts) == 45
        with AgentMemory("bob", root=root) as memory:
            assert memory.search("number7").search_metadata.degraded == []


def test_a_half_built_model_of_another_kind_is_dropped(full: AgentMemory, visitor: Visitor) -> None:
    stop_after(full, 20)
    full.migrate(embedder="wordllama")
    assert raw(full, "SELECT model FROM embedding_models", visitor) == "wordllama-l2-supercat-256"
    assert raw(full, "SELECT count(*) FROM embeddings", visitor) == "45"
    assert len(raw(full, INDEXES, visitor).splitlines()) == 1
