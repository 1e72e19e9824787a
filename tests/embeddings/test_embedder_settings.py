"""What is set for embedders that are named: which reach the service, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from embedding_server import Behaviour, EmbeddingServer

from agent_memory.embeddings.chain import EmbedderChain
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.registry import create_embedder
from agent_memory.embeddings.settings import EmbedderSettings
from agent_memory.embeddings.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError, EmbeddingError, EmbeddingRefused

KEY = "sk-test-0123456789abcdef"
SMALL, LARGE = "text-embedding-3-small", "text-embedding-3-large"
ADA = "text-embedding-ada-002"


def shorten(answer: dict[str, Any]) -> None:
    """Answer with vectors of 40 numbers, whatever was asked for."""
    for item in answer["data"]:
        item["embedding"] = item["embedding"][:40]


def created(spec: Any, settings: EmbedderSettings) -> Any:
    embedder = create_embedder(spec, settings)
    assert embedder is not None
    return embedder


@pytest.mark.parametrize("given", ["settings", "environment"])
def test_every_setting_reaches_the_service(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    wanted = {
        "api_key": ("OPENAI_API_KEY", KEY, "sk-other"),
        "base_url": ("OPENAI_BASE_URL", server.url, "http://127.0.0.1:9/v1"),
        "model": ("AGENT_MEMORY_EMBEDDING_MODEL", "some-model", "other"),
        "dimensions": ("AGENT_MEMORY_EMBEDDING_DIMENSIONS", 32, "16"),
        "batch_size": ("AGENT_MEMORY_EMBEDDING_BATCH_SIZE", 2, "9"),
        "timeout_seconds": ("AGENT_MEMORY_EMBEDDING_TIMEOUT", 7.5, "8"),
        "max_retries": ("AGENT_MEMORY_EMBEDDING_RETRIES", 1, "0"),
    }
    arguments: dict[str, Any] = {name: value for name, (_, value, _) in wanted.items()}
    for variable, value, other in wanted.values():
        monkeypatch.setenv(variable, str(value) if given == "environment" else other)
    settings = EmbedderSettings(**arguments) if given == "settings" else EmbedderSettings()
    embedder = created("openai", settings)

    assert [len(vector) for vector in embedder.embed(["red", "green", "blue"])] == [32, 32, 32]
    first = server.requests[0]
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["x-stainless-read-timeout"] == "7.5"
    assert (first.body["model"], first.body["dimensions"]) == ("some-model", 32)
    assert [len(request.body["input"]) for request in server.requests] == [2, 1]

    server.requests.clear()
    server.behaviour = Behaviour(status=500, headers={"retry-after-ms": "1"})
    with pytest.raises(EmbeddingError, match="in 2 attempts"):
        embedder.embed(["red"])
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("spec", "setting", "environment", "in_file", "model"),
    [
        ("openai:named", "set", "environment", "in-file", "named"),
        ("openai", "set", "environment", "in-file", "set"),
        ("openai", None, "environment", "in-file", "environment"),
        ("openai", None, "  ", "in-file", "in-file"),
        ("openai", "", "", "in-file", "in-file"),
        ("openai", None, None, None, SMALL),
        ("openai,none", "set", "environment", "in-file", "set"),
        (["openai"], None, None, "in-file", "in-file"),
        ("auto", "set", "environment", "in-file", "set"),
    ],
)
def test_the_model_is_the_first_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
    spec: Any,
    setting: str | None,
    environment: str | None,
    in_file: str | None,
    model: str,
) -> None:
    if environment is not None:
        monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_MODEL", environment)
    settings = EmbedderSettings(
        api_key=KEY, base_url="http://127.0.0.1:9/v1", model=setting, file_model=in_file
    )
    embedder = created(spec, settings)
    if isinstance(embedder, EmbedderChain):
        embedder.settle(model, 1536)  # raises where no member has the model
    else:
        assert embedder.model == model


def test_an_object_is_taken_as_it_is_whatever_is_set() -> None:
    embedder = OpenAIEmbedder("its-own", api_key=KEY)
    assert create_embedder(embedder, EmbedderSettings(model="set", api_key="k")) is embedder
    assert embedder.model == "its-own"


@pytest.mark.parametrize(
    "settings",
    [
        EmbedderSettings(api_key=KEY),
        EmbedderSettings(base_url="http://127.0.0.1:9/v1"),
        EmbedderSettings(model="m", api_key=KEY),
    ],
    ids=["key", "base_url", "model"],
)
def test_auto_is_openai_where_it_is_set_up(settings: EmbedderSettings) -> None:
    assert isinstance(create_embedder("auto", settings), OpenAIEmbedder)


@pytest.mark.parametrize(
    "settings",
    [
        EmbedderSettings(),
        EmbedderSettings(api_key="", base_url=""),
        EmbedderSettings(dimensions=512, batch_size=3, timeout_seconds=1, max_retries=0),
        EmbedderSettings(file_model=LARGE),
    ],
    ids=["nothing", "blank", "others", "the file's model"],
)
def test_auto_stays_here_where_no_service_is_named(settings: EmbedderSettings) -> None:
    """A file's word alone must send no text anywhere."""
    assert isinstance(create_embedder("auto", settings), WordLlamaEmbedder)


def test_the_model_is_not_wordllamas() -> None:
    assert created("wordllama", EmbedderSettings(model="another")).dimensions == 256


def test_the_key_is_not_in_the_settings_repr() -> None:
    assert KEY not in repr(EmbedderSettings(api_key=KEY))


# Dimensions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "dimensions", "told"),
    [
        (SMALL, 1537, f"{SMALL} has at most 1536 dimensions, not 1537: set embedding_dimensions"),
        (LARGE, 20_000, f"{LARGE} has at most 3072 dimensions, not 20000"),
        (ADA, 512, f"{ADA} has 1536 dimensions, not 512: unset embedding_dimensions"),
        ("unknown", 1_000_000, "is 1000000: give a whole number"),
    ],
)
@pytest.mark.parametrize("given", ["settings", "environment"])
def test_dimensions_that_a_model_cannot_have_are_refused_before_any_request(
    monkeypatch: pytest.MonkeyPatch, model: str, dimensions: int, told: str, given: str
) -> None:
    if given == "environment":
        monkeypatch.setenv("AGENT_MEMORY_EMBEDDING_DIMENSIONS", str(dimensions))
    number = dimensions if given == "settings" else None
    with pytest.raises(ConfigurationError) as caught:
        create_embedder("openai", EmbedderSettings(api_key=KEY, model=model, dimensions=number))
    assert told in str(caught.value)


@pytest.mark.parametrize(("model", "dimensions"), [(SMALL, 1), (SMALL, 1536), (LARGE, 3072)])
def test_dimensions_that_a_model_can_have_are_asked_for(
    server: EmbeddingServer, model: str, dimensions: int
) -> None:
    embedder = OpenAIEmbedder(model, base_url=server.url, dimensions=dimensions)
    assert (len(embedder.embed(["red"])[0]), embedder.dimensions) == (dimensions, dimensions)
    assert server.requests[0].body["dimensions"] == dimensions


def test_a_model_that_cannot_be_shortened_is_not_asked_even_for_its_own(
    server: EmbeddingServer,
) -> None:
    server.behaviour.dimensions = 1536
    embedder = OpenAIEmbedder(ADA, base_url=server.url, dimensions=1536)
    assert (embedder.dimensions, server.requests) == (1536, [])
    assert len(embedder.embed(["red"])[0]) == 1536
    assert "dimensions" not in server.requests[0].body


def test_a_service_that_does_not_heed_the_dimensions_is_set_up_wrong(
    server: EmbeddingServer,
) -> None:
    server.behaviour.change = shorten
    embedder = OpenAIEmbedder("its-own-length", base_url=server.url, dimensions=50)
    told = "its-own-length has 40 dimensions, not 50: unset embedding_dimensions"
    with pytest.raises(ConfigurationError, match=told):
        embedder.embed(["red"])


@pytest.mark.parametrize("status", [400, 422])
def test_a_service_that_refuses_the_dimensions_is_set_up_wrong(
    server: EmbeddingServer, status: int
) -> None:
    server.behaviour = Behaviour(status=status, error_message="it takes no dimensions here")
    embedder = OpenAIEmbedder("fixed", base_url=server.url, dimensions=50, max_retries=0)
    with pytest.raises(ConfigurationError, match=r"fixed has its own dimensions, not 50.*no dim"):
        embedder.embed(["red"])


@pytest.mark.parametrize(
    ("dimensions", "message"), [(None, "no dimensions"), (50, "a text is too long")]
)
def test_a_refusal_of_something_else_is_of_the_texts(
    server: EmbeddingServer, dimensions: int | None, message: str
) -> None:
    server.behaviour = Behaviour(status=400, error_message=message)
    embedder = OpenAIEmbedder("m", base_url=server.url, dimensions=dimensions, max_retries=0)
    with pytest.raises(EmbeddingRefused):
        embedder.embed(["red"])


def test_dimensions_that_were_answered_are_not_what_is_refused_later(
    server: EmbeddingServer,
) -> None:
    embedder = OpenAIEmbedder("m", base_url=server.url, dimensions=50, max_retries=0)
    embedder.embed(["red"])
    server.behaviour = Behaviour(status=400, error_message="not this: all about dimensions")
    with pytest.raises(EmbeddingRefused):
        embedder.embed(["all about dimensions"])
