"""EmbedderChain: a backup answers, and two models are never mixed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from embedding_server import Behaviour, EmbeddingServer, fill_first, text_vector

from agent_memory.embeddings.chain import EmbedderChain
from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.openai import OpenAIEmbedder
from agent_memory.embeddings.wordllama import WordLlamaEmbedder
from agent_memory.errors import ConfigurationError, EmbeddingError, EmbeddingRefused
from agent_memory.models.embedding_traits import MODEL_TRAITS

DOWN = Behaviour(status=503)


@pytest.fixture
def primary(server: EmbeddingServer) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", base_url=server.url, max_retries=0)


def test_the_first_member_answers_when_it_can(primary: OpenAIEmbedder) -> None:
    chain = EmbedderChain([primary, WordLlamaEmbedder()])
    assert chain.embed(["red"])[0] == array("f", text_vector("red"))
    assert (chain.model, chain.dimensions) == ("m", 64)


def test_a_query_goes_to_a_member_as_a_query() -> None:
    class Telling:
        model, dimensions = "m", 64

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [text_vector(text) for text in texts]

        def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
            return self.embed([f"query: {text}" for text in texts])

    chain = EmbedderChain([Telling(), WordLlamaEmbedder()])
    assert chain.embed_queries(["red"]) == [array("f", text_vector("query: red"))]
    assert CheckedEmbedder(chain).embed(["red"]) == [array("f", text_vector("red"))]
    words = EmbedderChain([WordLlamaEmbedder()])
    assert words.embed_queries(["red"]) == words.embed(["red"])


@pytest.mark.parametrize("fault", [DOWN, Behaviour(change=fill_first(float("nan")))])
def test_the_next_member_answers_when_the_first_fails(
    server: EmbeddingServer, primary: OpenAIEmbedder, fault: Behaviour
) -> None:
    server.behaviour = fault
    chain = EmbedderChain([primary, WordLlamaEmbedder()])
    assert len(chain.embed(["red"])[0]) == 256
    assert chain.model == "wordllama-l2-supercat-256"
    server.behaviour = Behaviour()
    assert len(chain.embed(["blue"])[0]) == 256  # the primary is back, but has another model
    assert server.texts in ([], ["red"])


def test_a_settled_chain_never_falls_back_to_another_model(
    server: EmbeddingServer, primary: OpenAIEmbedder
) -> None:
    chain = EmbedderChain([primary, WordLlamaEmbedder()])
    chain.embed(["red"])
    server.behaviour = DOWN
    with pytest.raises(EmbeddingError, match=r"openai:m: .*503"):
        chain.embed(["blue"])


def test_a_server_of_the_same_model_is_a_backup_at_any_time(
    server: EmbeddingServer, primary: OpenAIEmbedder
) -> None:
    with EmbeddingServer() as other:
        chain = EmbedderChain([primary, OpenAIEmbedder("m", base_url=other.url)])
        chain.embed(["red"])
        server.behaviour = DOWN
        assert chain.embed(["blue"])[0] == array("f", text_vector("blue"))
        assert other.texts == ["hello", "blue"]  # the first text tells its dimensions


def test_the_same_model_with_other_dimensions_is_no_backup(
    server: EmbeddingServer, primary: OpenAIEmbedder
) -> None:
    chain = EmbedderChain([primary, OpenAIEmbedder("m", base_url=server.url, dimensions=32)])
    chain.settle("m", 32)
    assert len(chain.embed(["red"])[0]) == 32


def test_a_file_settles_the_chain(server: EmbeddingServer, primary: OpenAIEmbedder) -> None:
    chain = EmbedderChain([primary, WordLlamaEmbedder()])
    chain.settle("wordllama-l2-supercat-256", 256)
    assert len(chain.embed(["red"])[0]) == 256
    assert server.requests == []
    with pytest.raises(ConfigurationError, match="already uses"):
        chain.settle("m", 64)


def test_a_file_of_an_unknown_model_is_refused() -> None:
    chain = EmbedderChain([WordLlamaEmbedder(), WordLlamaEmbedder(64)])
    with pytest.raises(ConfigurationError, match=r"'other'.*supercat-256, wordllama.*supercat-64"):
        chain.settle("other", 256)


def test_when_all_fail_each_is_named(server: EmbeddingServer, primary: OpenAIEmbedder) -> None:
    server.behaviour = DOWN
    chain = EmbedderChain([primary, OpenAIEmbedder("n", base_url=server.url, max_retries=0)])
    with pytest.raises(EmbeddingError, match=r"openai:m: .*; openai:n: "):
        chain.embed(["red"])
    with pytest.raises(EmbeddingError, match="openai:m: "):
        _ = chain.model


def test_refused_texts_are_refused_by_the_chain(
    server: EmbeddingServer, primary: OpenAIEmbedder
) -> None:
    server.behaviour.refused_word = "poison"
    with pytest.raises(EmbeddingRefused):
        EmbedderChain([primary]).embed(["red", "poison"])


def test_before_it_is_settled_a_short_text_settles_it(
    server: EmbeddingServer, primary: OpenAIEmbedder
) -> None:
    checked = CheckedEmbedder(EmbedderChain([primary, WordLlamaEmbedder()]))
    assert server.requests == []
    assert (checked.model, checked.dimensions) == ("m", 64)
    assert server.texts == ["hello"]


def test_no_texts_settle_nothing(server: EmbeddingServer, primary: OpenAIEmbedder) -> None:
    chain = EmbedderChain([primary, WordLlamaEmbedder()])
    assert chain.embed([]) == []
    server.behaviour = DOWN
    assert chain.dimensions == 256


def test_a_chain_has_what_its_members_have(server: EmbeddingServer) -> None:
    first = OpenAIEmbedder("m", base_url=server.url, batch_size=7)
    chain = EmbedderChain([first, WordLlamaEmbedder()])
    chain.settle("wordllama-l2-supercat-256", 256)
    chain.embed(["abcd"])
    assert (chain.name, chain.batch_size) == ("openai:m,wordllama", 7)
    facts = MODEL_TRAITS["wordllama-l2-supercat-256"]
    assert chain.vector_weight == facts["vector_weight"]
    assert chain.similarity_floor == facts["similarity_floor"]
    assert (chain.usage.texts, chain.cost_per_1k_tokens) == (1, 0.0)


def test_a_chain_needs_a_member() -> None:
    with pytest.raises(ConfigurationError):
        EmbedderChain([])
