"""EmbeddingGenerator: document D's async interface."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from embedding_server import EmbeddingServer, text_vector

from agent_memory.embeddings.async_generator import EmbeddingGenerator
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError, EmbeddingError, ValidationError


@pytest.fixture
def generator(server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> EmbeddingGenerator:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.behaviour.dimensions = 1536
    return EmbeddingGenerator()


def test_a_text_becomes_a_list_of_numbers(
    generator: EmbeddingGenerator, server: EmbeddingServer
) -> None:
    vector = asyncio.run(generator.generate("red apples"))
    assert isinstance(vector, list)
    assert vector == pytest.approx(text_vector("red apples", 1536), abs=1e-6)
    assert server.requests[0].body["model"] == "text-embedding-3-small"


def test_a_batch_keeps_its_order(generator: EmbeddingGenerator, server: EmbeddingServer) -> None:
    texts = ["text 1", "text 2", "text 1"]
    vectors = asyncio.run(generator.generate_batch(texts))
    assert vectors == [pytest.approx(text_vector(text, 1536), abs=1e-6) for text in texts]
    assert server.texts == ["text 1", "text 2"]
    assert generator.usage.texts == 2


def test_an_empty_batch_is_an_empty_list(
    generator: EmbeddingGenerator, server: EmbeddingServer
) -> None:
    assert asyncio.run(generator.generate_batch([])) == []
    assert server.requests == []


@pytest.mark.parametrize("text", ["", " \n", None, 7, b"red"])
def test_what_is_no_text_is_refused(generator: EmbeddingGenerator, text: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        asyncio.run(generator.generate(text))
    assert caught.value.errors()[0]["loc"] == ("text",)
    with pytest.raises(ValidationError, match=r"texts\[1\]"):
        asyncio.run(generator.generate_batch(["red", text]))


def test_a_text_in_place_of_a_batch_is_refused(generator: EmbeddingGenerator) -> None:
    with pytest.raises(ValidationError, match="give a list"):
        asyncio.run(generator.generate_batch("red"))  # type: ignore[arg-type]


def test_a_failing_service_is_an_embedding_error(server: EmbeddingServer) -> None:
    server.behaviour.status = 401
    inner = OpenAIEmbedder("m", base_url=server.url, max_retries=0)
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY"):
        asyncio.run(EmbeddingGenerator(embedder=inner).generate("red"))


def test_another_embedder_may_be_given() -> None:
    vector = asyncio.run(EmbeddingGenerator(embedder=WordLlamaEmbedder()).generate("red"))
    assert len(vector) == 256


def test_without_a_key_it_cannot_be_made() -> None:
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        EmbeddingGenerator()


def test_the_event_loop_goes_on_meanwhile() -> None:
    may_answer = threading.Event()

    class Waiting:
        model = "waiting"
        dimensions = 2

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            assert may_answer.wait(10), "the event loop stood still"
            return [[1.0, 0.0] for _ in texts]

    async def both() -> list[float]:
        task = asyncio.create_task(EmbeddingGenerator(embedder=Waiting()).generate("red"))
        await asyncio.sleep(0)
        may_answer.set()
        return await task

    assert asyncio.run(both()) == [1.0, 0.0]
