"""Another of OpenAI's models or lengths is set: searches go on, say so, and a move changes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Visitor
from embedding_server import Behaviour, EmbeddingServer

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MigrationProgress,
    SearchResults,
    StorageReadOnly,
)

SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"
AT_512 = {"embedding_dimensions": 512}
SET = "agent-memory migrate"
PLUGIN = """
from embedding_server import text_vector
class Theirs:
    name, dimensions = "theirs", 64
    def __init__(self, model):
        self.model = model or "theirs-1"
    def embed(self, texts):
        return [text_vector(text) for text in texts]
"""


@pytest.fixture(autouse=True)
def service(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingServer:
    """Be where the environment says that OpenAI is."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_RETRIES", "0")
    return server


def opened(root: Path, config: Any = None, **arguments: Any) -> AgentMemory:
    return AgentMemory("bob", root=root, config=config, **arguments)


def make(root: Path, embedder: Any = "auto", config: Any = None) -> None:
    """Make a file whose vectors are of the small model, of 512 dimensions unless told otherwise."""
    with opened(root, AT_512 if config is None else config) as memory:
        memory.store_many([{"content": content} for content in ("the dog barks", "a tree falls")])
        memory.migrate(embedder=embedder)


def asked(memory: AgentMemory, server: EmbeddingServer, question: str) -> SearchResults:
    """Search; the question must have been embedded as the vectors in the file were."""
    before = len(server.requests)
    results = memory.search(question)
    assert results.search_metadata.backend == "vector"
    assert "the dog barks" in [hit.memory.content for hit in results]
    *others, request = server.requests[before:]
    assert [other.body["input"] for other in others] in ([], [["hello"]])  # how long is a vector?
    info = memory.info()
    assert request.body["input"] == [question]
    assert request.body["model"] == info.vector_model
    sent = request.body.get("dimensions")
    assert (sent or server.behaviour.dimensions) == info.vector_dimensions
    return results


@pytest.mark.parametrize(
    ("config", "environment", "in_file", "arguments", "target"),
    [
        ({**AT_512, "embedding_model": LARGE}, {}, None, {}, (LARGE, 512)),
        ({"embedding_dimensions": 1024}, {}, None, {}, (SMALL, 1024)),
        (None, {"MODEL": LARGE}, None, {}, (LARGE, 3072)),
        (None, {"DIMENSIONS": "96"}, None, {}, (SMALL, 96)),
        (None, {}, LARGE, {}, (LARGE, 3072)),
        (None, {}, "of-another-server", {}, ("of-another-server", 64)),
        (None, {}, None, {"embedder": f"openai:{LARGE}"}, (LARGE, 3072)),
        (AT_512, {}, LARGE, {"embedder": "openai"}, (LARGE, 512)),
    ],
    ids=["config model", "config dimensions", "variable of the model", "variable of the dimensions",
         "configure", "configure an unknown one", "name", "name and configure"],
)  # fmt: skip
def test_searches_go_on_with_the_files_model_until_a_move(
    root: Path,
    service: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
    config: Any,
    environment: dict[str, str],
    in_file: str | None,
    arguments: dict[str, Any],
    target: tuple[str, int],
) -> None:
    make(root)
    service.behaviour.dimensions = target[1]  # of what is asked for no length
    for name, value in environment.items():
        monkeypatch.setenv(f"AGENT_MEMORY_EMBEDDING_{name}", value)
    with opened(root, config, **arguments) as memory:
        if in_file is not None:
            memory.configure(embedding_model=in_file)
        (note,) = asked(memory, service, "which dog?").search_metadata.degraded
        assert f"vectors were made by {SMALL} with 512 dimensions" in note
        assert target[0] in note
        assert SET in note
        assert memory.info().suggestion == note
        memory.store("the dog sleeps")  # embedded as the others are
        assert service.requests[-1].body["model"] == SMALL
        assert memory.info().pending_embeddings == 0

        assert memory.migrate().status == "completed"
        assert (memory.info().vector_model, memory.info().vector_dimensions) == target
        assert asked(memory, service, "where is the dog?").search_metadata.degraded == []
        assert memory.info().suggestion is None
        assert memory.check().problems == []
        memory.delete(memory.search("the dog sleeps")[0].memory.id)
    with opened(root, config, **arguments) as memory:
        assert asked(memory, service, "and the dog?").search_metadata.degraded == []


@pytest.mark.parametrize(
    ("model", "own", "config"),
    [
        (SMALL, 1536, {}),
        (SMALL, 1536, AT_512),
        (LARGE, 3072, {}),
        (LARGE, 3072, AT_512),
        ("of-another-server", 64, {}),
    ],
)
def test_where_nothing_is_set_any_more_the_files_model_is_kept(
    root: Path, service: EmbeddingServer, model: str, own: int, config: dict[str, Any]
) -> None:
    service.behaviour.dimensions = own
    make(root, config={"embedding_model": model, **config})
    with opened(root) as memory:
        assert asked(memory, service, "which dog?").search_metadata.degraded == []
        assert memory.suggestion() is None
        assert memory.migration_plan().to_embed == 0
        before = len(service.texts)
        memory.migrate()
        assert set(service.texts[before:]) <= {"hello"}  # how long is a vector?
    with opened(root, config) as memory:
        assert asked(memory, service, "which dog?").search_metadata.degraded == []


def test_a_handle_that_is_open_goes_on_after_another_changed_the_length(
    root: Path, service: EmbeddingServer
) -> None:
    make(root)
    with opened(root) as first, opened(root, {"embedding_dimensions": 1024}) as second:
        asked(first, service, "which dog?")
        second.migrate()
        assert asked(first, service, "where is the dog?").search_metadata.degraded == []


def test_wordllamas_file_is_searched_with_wordllama_where_a_model_is_set(
    root: Path, service: EmbeddingServer
) -> None:
    make(root, "wordllama")
    with opened(root, {**AT_512, "embedding_model": LARGE}) as memory:
        results = memory.search("which dog?")
        assert results[0].memory.content == "the dog barks"
        (note,) = results.search_metadata.degraded
        assert f"but {LARGE} with 512 dimensions" in note
        assert service.requests == []
        memory.migrate()
        assert (memory.info().vector_model, memory.info().vector_dimensions) == (LARGE, 512)


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with an embedder, as pip lays it out."""
    (tmp_path / "theirs_plugin.py").write_text(PLUGIN)
    info = tmp_path / "theirs_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs-plugin\nVersion: 1.0\n")
    entry = "[agent_memory.embedders]\ntheirs = theirs_plugin:Theirs\n"
    (info / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("theirs")
def test_another_packages_file_is_searched_with_its_own_model_where_another_is_set(
    root: Path,
) -> None:
    make(root, "theirs")
    with opened(root, {"embedding_model": "another"}) as memory:
        (note,) = memory.search("which dog?").search_metadata.degraded
        assert note.startswith("the stored vectors were made by theirs-1 with 64 dimensions")
        assert memory.migration_plan(embedder="theirs").model == "another"


@pytest.mark.usefixtures("theirs")
@pytest.mark.parametrize("embedder", ["theirs", "theirs,none"])
def test_a_file_does_not_choose_the_model_that_another_embedder_loads(
    root: Path, visitor: Visitor, embedder: str
) -> None:
    make(root)
    visitor(root / "bob" / "memories.db", "UPDATE embedding_models SET model = 'evil/model'")
    with opened(root, embedder=embedder) as memory:
        told = " ".join(memory.search("which dog?").search_metadata.degraded)
        assert "theirs-1" in told
        assert memory.migration_plan().model == "theirs-1"


def test_texts_do_not_go_to_openai_because_a_key_is_set(
    root: Path, service: EmbeddingServer
) -> None:
    make(root, "wordllama")
    with opened(root, {"embedding_api_key": "k", "embedding_base_url": service.url}) as memory:
        assert memory.search("which dog?").search_metadata.degraded == []
        memory.migrate()
        assert memory.suggestion() is None
    assert service.requests == []


def test_a_chain_searches_with_the_files_model_too(root: Path, service: EmbeddingServer) -> None:
    make(root, ["openai", "wordllama"])
    config = {"embedding_model": LARGE}
    with opened(root, config, embedder="openai,wordllama") as memory:
        asked(memory, service, "which dog?")
        service.behaviour = Behaviour(status=500)
        assert "HTTP status 500" in memory.search("another dog").search_metadata.degraded[0]


def test_a_chain_that_came_to_wordllama_does_not_ask_openai_for_its_model(
    root: Path, service: EmbeddingServer
) -> None:
    service.behaviour = Behaviour(status=500)
    make(root, ["openai", "wordllama"])
    before = len(service.requests)
    with opened(root) as memory:
        assert memory.info().vector_model == "wordllama-l2-supercat-256"
        assert memory.search("which dog?").search_metadata.degraded == []
    assert len(service.requests) == before


def test_a_move_that_was_begun_goes_on_whatever_the_variable_says(
    root: Path, service: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_batches = {"migration_batch_size": 10}

    def stop(_progress: MigrationProgress) -> None:
        if service.texts:
            raise KeyboardInterrupt

    service.behaviour.dimensions = 3072
    with opened(root, small_batches) as memory:
        memory.store_many([{"content": f"fact number{n}"} for n in range(30)])
        with pytest.raises(KeyboardInterrupt):
            memory.migrate(embedder=f"openai:{LARGE}", progress=stop)
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_MODEL", SMALL)
    with opened(root, small_batches) as memory:
        memory.migrate()
        assert memory.info().vector_model == LARGE
    assert len(service.texts) == 30


def test_a_length_that_turns_out_wrong_stops_the_move_and_nothing_else(
    root: Path, service: EmbeddingServer
) -> None:
    service.behaviour = Behaviour(status=400, error_message="no such dimensions for this model")
    told: list[MigrationProgress] = []
    with opened(root, {**AT_512, "embedding_model": "fixed"}) as memory:
        memory.store("the dog barks")
        with pytest.raises(ConfigurationError, match="fixed has its own dimensions, not 512"):
            memory.migrate(progress=told.append)
        assert told[-1].status == "failed"
        assert memory.info().storage_backend == "file"
        assert memory.search("dog")[0].memory.content == "the dog barks"


# Read-only ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["migrate", "rollback"])
def test_a_memory_that_was_opened_read_only_is_not_moved(
    root: Path, service: EmbeddingServer, verb: str
) -> None:
    make(root)
    with opened(root, {"embedding_model": LARGE}, read_only=True) as memory:
        service.requests.clear()
        before = {path.name for path in memory.path.parent.iterdir()}
        with pytest.raises(
            StorageReadOnly, match="was opened read-only: open it without read_only"
        ):
            getattr(memory, verb)()
        assert {path.name for path in memory.path.parent.iterdir()} == before
        assert service.requests == []
        assert memory.info().vector_model == SMALL
