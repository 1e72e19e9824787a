"""MemoryToolConfig's embedding fields: they reach the service, in their order, and no one else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Visitor
from embedding_server import Behaviour, EmbeddingServer
from pydantic import SecretStr
from pydantic import ValidationError as PydanticValidationError

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MemoryToolConfig,
    MigrationError,
    OpenAIEmbedder,
    ValidationError,
)

KEY = "sk-test-0123456789abcdef"
SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"
OBJECT = OpenAIEmbedder("object", base_url="http://127.0.0.1:9/v1", dimensions=8)


@pytest.fixture
def service(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingServer:
    """Be where the environment says that OpenAI is."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    return server


def opened(root: Path, config: Any = None, **arguments: Any) -> AgentMemory:
    return AgentMemory("bob", root=root, config=config, **arguments)


def planned(root: Path, config: Any = None, **arguments: Any) -> tuple[str | None, int | None]:
    """Return the model and the dimensions that a memory would move to."""
    with opened(root, config) as memory:
        plan = memory.migration_plan(**arguments)
    return plan.model, plan.dimensions


def test_each_field_reaches_the_service_before_the_environment(
    root: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in {
        "OPENAI_API_KEY": "sk-environment",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "AGENT_MEMORY_EMBEDDING_MODEL": "environment",
        "AGENT_MEMORY_EMBEDDING_DIMENSIONS": "16",
        "AGENT_MEMORY_EMBEDDING_BATCH_SIZE": "9",
        "AGENT_MEMORY_EMBEDDING_TIMEOUT": "8",
        "AGENT_MEMORY_EMBEDDING_RETRIES": "0",
    }.items():
        monkeypatch.setenv(variable, value)
    config = {
        "embedding_api_key": KEY,
        "embedding_base_url": server.url,
        "embedding_model": "some-model",
        "embedding_dimensions": 512,
        "embedding_batch_size": 3,
        "embedding_timeout": 7.5,
        "embedding_max_retries": 1,
    }
    with opened(root, config) as memory:
        memory.store_many([{"content": f"fact number {n}"} for n in range(7)])
        assert memory.migrate().status == "completed"
        assert (memory.info().vector_model, memory.info().vector_dimensions) == ("some-model", 512)
        for request in server.requests:
            assert request.headers["authorization"] == f"Bearer {KEY}"
            assert request.headers["x-stainless-read-timeout"] == "7.5"
            assert (request.body["model"], request.body["dimensions"]) == ("some-model", 512)
        assert [len(request.body["input"]) for request in server.requests] == [3, 3, 1]

        server.requests.clear()
        server.behaviour = Behaviour(status=500, headers={"retry-after-ms": "1"})
        results = memory.search("another question, on a fact")
        assert "in 2 attempts" in results.search_metadata.degraded[0]
        counts = [request.headers["x-stainless-retry-count"] for request in server.requests]
        assert counts == ["0", "1"]


def test_the_timeout_is_that_of_a_request(root: Path, server: EmbeddingServer) -> None:
    config = {
        "embedding_api_key": KEY,
        "embedding_base_url": server.url,
        "embedding_timeout": 0.05,
        "embedding_max_retries": 0,
    }
    server.behaviour.delay_seconds = 1.0
    with opened(root, config) as memory:
        memory.store("one memory")
        with pytest.raises(MigrationError, match=r"within 0\.05 seconds.*raise embedding_timeout"):
            memory.migrate()


# One order ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("embedder", "config", "environment", "in_file", "model"),
    [
        ("openai:named", "config", "environment", "in-file", "named"),
        ("openai", "config", "environment", "in-file", "config"),
        ("auto", "config", "environment", "in-file", "config"),
        ("auto", None, "environment", "in-file", "environment"),
        ("openai", None, "environment", "in-file", "environment"),
        ("openai", None, None, "in-file", "in-file"),
        ("auto", None, None, "in-file", "in-file"),
        ("auto", None, None, None, SMALL),
        (OBJECT, "config", "environment", "in-file", "object"),
    ],
)
@pytest.mark.parametrize("given", ["at the opening", "to the move"])
@pytest.mark.usefixtures("service")
def test_the_model_is_the_first_that_is_said(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    embedder: Any,
    config: str | None,
    environment: str | None,
    in_file: str | None,
    model: str,
    given: str,
) -> None:
    if environment is not None:
        monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_MODEL", environment)
    settings = {} if config is None else {"embedding_model": config}
    arguments = {"embedder": embedder}
    at_opening, to_move = (arguments, {}) if given == "at the opening" else ({}, arguments)
    with opened(root, settings, **at_opening) as memory:
        if in_file is not None:
            memory.configure(embedding_model=in_file)
        assert memory.migration_plan(**to_move).model == model


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    ("config", "environment", "dimensions"),
    [
        ({"embedding_dimensions": 512}, "600", 512),
        ({"embedding_dimensions": 1536}, "600", 1536),
        ({}, "600", 600),
        ({"embedding_model": LARGE}, "600", 600),
        ({}, "", 1536),
        ({"embedding_model": LARGE}, "", 3072),
        (MemoryToolConfig(), "600", 600),
        (MemoryToolConfig(embedding_dimensions=512), "600", 512),
    ],
)
def test_a_default_of_the_config_is_not_set_and_does_not_count(
    root: Path, monkeypatch: pytest.MonkeyPatch, config: Any, environment: str, dimensions: int
) -> None:
    monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_DIMENSIONS", environment)
    assert planned(root, config)[1] == dimensions


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"embedding_dimensions": 2000}, f"{SMALL} has at most 1536 dimensions, not 2000"),
        (
            {"embedding_dimensions": 512, "embedding_model": "text-embedding-ada-002"},
            "text-embedding-ada-002 has 1536 dimensions, not 512: unset embedding_dimensions",
        ),
        ({"embedding_base_url": "localhost:80"}, "'localhost:80' is not a web address"),
    ],
)
def test_a_setting_that_cannot_be_is_an_error_that_says_so(
    root: Path, config: dict[str, Any], told: str
) -> None:
    with opened(root, config) as memory:
        memory.store("kept")
        for move in (memory.migration_plan, memory.migrate):
            with pytest.raises(ConfigurationError) as caught:
                move()
            assert told in str(caught.value)
        assert memory.search("kept")[0].memory.content == "kept"


def test_the_files_model_sends_nothing_anywhere(root: Path) -> None:
    """Without a key the words of a file name no service."""
    with opened(root) as memory:
        memory.configure(embedding_model=LARGE)
        assert memory.migration_plan().embedder == "wordllama"


@pytest.mark.usefixtures("service")
def test_the_files_model_makes_no_other_embedders_file_openais(root: Path) -> None:
    with opened(root) as memory:
        memory.store("dog")
        memory.migrate(embedder="wordllama")
        memory.configure(embedding_model=LARGE)
        assert memory.migration_plan().embedder == "wordllama"
        assert memory.suggestion() is None


# The key ------------------------------------------------------------------------------------------


def test_the_key_is_in_nothing_that_is_shown_or_written(
    root: Path, server: EmbeddingServer
) -> None:
    config = MemoryToolConfig(
        embedding_api_key=SecretStr(KEY),
        embedding_base_url=server.url,
        embedding_dimensions=512,
        embedding_max_retries=0,
    )
    with opened(root, config) as memory:
        memory.store("dog")
        progress = memory.migrate()
        server.behaviour = Behaviour(status=401, error_message=f"wrong key {KEY}")
        memory.store("cat")
        shown = [
            repr(config),
            str(config),
            str(config.model_dump()),
            config.model_dump_json(),
            repr(memory),
            repr(vars(memory)),
            repr(vars(memory._embedding)),
            repr(progress),
            memory.info().model_dump_json(),
            memory.search("question").search_metadata.model_dump_json(),
        ]
        assert "wrong key ***" in shown[-1]
        with pytest.raises(Exception, match=r"wrong key \*\*\*") as caught:
            memory.migrate(embedder="openai:other")
        shown.append(str(caught.value))
    assert not [text for text in shown if KEY in text]
    files = [path for path in root.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedding_api_key", f"{KEY} {KEY}"),
        ("embedding_api_key", f"{KEY}\u00e9"),
        ("embedding_api_key", f"{KEY}\n{KEY}"),
        ("embedding_api_key", KEY.encode()),
        ("embedding_api_key", [KEY]),
        ("embedding_api_keys", KEY),
        ("openai_API_KEY", KEY),
    ],
)
def test_a_wrong_key_is_refused_without_being_shown(root: Path, name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name) as caught:
        opened(root, {name: value})
    assert KEY not in f"{caught.value}{caught.value.errors()}{caught.value.__cause__}"
    with pytest.raises(PydanticValidationError) as raw:
        MemoryToolConfig(**{name: value})
    assert KEY not in f"{raw.value}{raw.value.errors()}"


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(("key", "sent"), [("", "sk-environment"), (f" {KEY}\n", KEY)])
def test_a_blank_key_is_none_and_blanks_around_one_are_not_sent(
    root: Path, server: EmbeddingServer, key: str, sent: str
) -> None:
    config = {"embedding_api_key": key, "embedding_dimensions": 512}
    with opened(root, config, embedder="openai") as memory:
        memory.store("dog")
        memory.migrate()
    assert server.requests[0].headers["authorization"] == f"Bearer {sent}"


@pytest.mark.parametrize(
    ("name", "lowest", "highest", "refused"),
    [
        ("embedding_batch_size", 1, 2048, [0, 2049, 1.5, "many"]),
        ("embedding_timeout", 0.001, 86_400.0, [0, -1, 86_401, float("nan"), float("inf")]),
        ("embedding_max_retries", 0, 20, [-1, 21]),
        ("embedding_base_url", "http://a", "http://b", [7, "http://\x00"]),
    ],
)
def test_a_field_is_unset_by_default_and_has_limits(
    name: str, lowest: Any, highest: Any, refused: list[Any]
) -> None:
    assert getattr(MemoryToolConfig(), name) is None
    for value in (lowest, highest):
        assert getattr(MemoryToolConfig(**{name: value}), name) == value
    for value in refused:
        with pytest.raises(PydanticValidationError, match=name):
            MemoryToolConfig(**{name: value})


# What a file names --------------------------------------------------------------------------------


def test_a_model_in_a_file_is_one_name_however_it_is_written(
    root: Path, service: EmbeddingServer, visitor: Visitor
) -> None:
    """With commas it must not become a list of embedders, of which one loads a directory."""
    name = "m,sentence-transformers:/some/dir"
    with opened(root, {"embedding_model": SMALL, "embedding_dimensions": 512}) as memory:
        memory.store("dog")
        memory.migrate()
        path = memory.path
    visitor(path, f"UPDATE embedding_models SET model = '{name}'")
    with opened(root) as memory:
        service.requests.clear()
        memory.search("question")
        memory.migration_plan()
    assert {request.body["model"] for request in service.requests} <= {name}
    assert service.requests


def test_a_files_address_is_not_asked(
    root: Path, service: EmbeddingServer, visitor: Visitor
) -> None:
    with opened(root, {"embedding_dimensions": 512}) as memory:
        memory.store("dog")
        memory.migrate()
        path = memory.path
    with EmbeddingServer() as evil:
        visitor(path, f"UPDATE embedding_models SET base_url = '{evil.url}'")
        asked = len(service.requests)
        with opened(root, {"embedding_api_key": KEY}) as memory:
            assert "migrate" in memory.search("question").search_metadata.degraded[0]
            assert memory.migration_plan().to_embed == 1
        assert (evil.requests, len(service.requests)) == ([], asked)
