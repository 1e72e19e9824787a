"""A provider fails in every way there is: memories stay safe, and are embedded when it is well."""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedding_server import (
    DIMENSIONS,
    Behaviour,
    EmbeddingServer,
    add_one,
    drop_last,
    fill_first,
    reorder,
    repeat_index,
    text_vector,
)
from reads import contents

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    EmbeddingError,
    OpenAIEmbedder,
)
from agent_memory.storage.sqlite.connection import Database

STORED = ["dog", "cat", "horse", "tree", "river"]
LATER = ["walnut", "lantern", "harbour"]
HANGS = 60.0
"""Seconds that the server waits before it answers, where it is to hang."""


def asking(url: str, **options: Any) -> OpenAIEmbedder:
    settings: dict[str, Any] = {
        "api_key": "k",
        "dimensions": DIMENSIONS,
        "max_retries": 0,
    } | options
    return OpenAIEmbedder(base_url=url, **settings)


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a provider that failed be asked again at once."""
    monkeypatch.setattr("agent_memory.services.embedding.service.REST_SECONDS", 0.0)


def opened(root: Path, embedder: Any, **config: Any) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=embedder, config=config)


@pytest.fixture
def moved(root: Path, server: EmbeddingServer) -> Path:
    """Make a store that was moved with the server, and return its root."""
    with opened(root, asking(server.url)) as memory:
        store_apart(memory, STORED)
        memory.migrate(embedder=asking(server.url))
    return root


def store_apart(memory: AgentMemory, texts: Sequence[str]) -> None:
    memory.store_many({"content": text, "session_id": f"of {text}"} for text in texts)


def embedded(path: Path) -> dict[str, list[int]]:
    """Return the vectors in the file by text, as they stand there."""
    database = Database(path, read_only=True)
    rows = database.rows("SELECT content, vector FROM embeddings JOIN memories USING (seq)")
    database.close()
    return {text: memoryview(vector).cast("b").tolist() for text, vector in rows}


def assert_right(path: Path, texts: Sequence[str]) -> None:
    """Assert that these texts have vectors, no others, and that each is the text's own."""
    vectors = embedded(path)
    assert sorted(vectors) == sorted(texts)
    for text, vector in vectors.items():
        product = sum(a * b for a, b in zip(text_vector(text), vector, strict=True))
        assert product == pytest.approx(math.hypot(*vector), rel=0.001)


def assert_pending(memory: AgentMemory, texts: Sequence[str]) -> None:
    """Assert that what was stored is safe, waits, is found by keyword, and broke nothing."""
    assert memory.count() == len(STORED) + len(texts)
    assert memory.info().pending_embeddings == len(texts)
    assert_right(memory.path, STORED)
    assert memory.check().problems == []
    for text in texts:
        assert contents(memory.search(text, 1, count_accesses=False)) == [text]


def assert_well(memory: AgentMemory, texts: Sequence[str]) -> None:
    """Assert that everything was caught up with."""
    assert memory.info().pending_embeddings == 0
    assert_right(memory.path, [*STORED, *texts])
    assert memory.check().problems == []
    results = memory.search(texts[0], 1, count_accesses=False)
    assert contents(results) == [texts[0]]
    assert results.search_metadata.backend == "vector"
    assert results.search_metadata.degraded == []


def too_short(answer: dict[str, Any]) -> None:
    for entry in answer["data"]:
        entry["embedding"] = entry["embedding"][:-1]


PAGE = b"<!doctype html><html><body>Sign in to the hotel's network</body></html>"
FAILURES = {
    "401": (Behaviour(status=401), "API key"),
    "404": (Behaviour(status=404), "does not know model"),
    "429": (Behaviour(status=429, headers={"Retry-After": "1"}), "refused too many requests"),
    "500": (Behaviour(status=500), "HTTP status 500"),
    "503 as a page": (Behaviour(status=503, content_type="text/html"), "HTTP status 503"),
    "hangs up": (Behaviour(hang_up=True), "cannot be reached"),
    "a page": (Behaviour(raw_body=PAGE, content_type="text/html"), "not a list of embeddings"),
    "an empty body": (Behaviour(raw_body=b""), ""),
    "an error with 200": (Behaviour(raw_body=b'{"error": {"message": "no"}}'), ""),
    "truncated": (Behaviour(truncate_bytes=40), ""),
    "too few": (Behaviour(change=drop_last), ""),
    "too many": (Behaviour(change=add_one), "vectors for"),
    "a number twice": (Behaviour(change=repeat_index), ""),
    "NaN": (Behaviour(change=fill_first(math.nan)), ""),
    "infinity": (Behaviour(change=fill_first(math.inf)), ""),
    "zeros": (Behaviour(change=fill_first(0.0)), ""),
    "too short": (Behaviour(change=too_short), "63"),
}
OF_ONE_TEXT = [name for name in FAILURES if name != "a number twice"]
"""What goes wrong with a question too."""


@pytest.mark.parametrize("name", OF_ONE_TEXT)
def test_a_failing_provider_costs_nothing_but_meaning_for_a_while(
    moved: Path, server: EmbeddingServer, name: str
) -> None:
    behaviour, reason = FAILURES[name]
    with opened(moved, asking(server.url)) as memory:
        server.behaviour = behaviour
        store_apart(memory, LATER)
        assert_pending(memory, LATER)
        how = memory.search("walnut", 1).search_metadata
        assert how.backend == "file"
        assert "searched by keyword only" in how.degraded[0]
        assert reason in how.degraded[0]
        with pytest.raises(EmbeddingError):
            memory.embed()
        assert_pending(memory, LATER)
        server.behaviour = Behaviour()
        memory.search("anything")
        assert_well(memory, LATER)


def test_two_vectors_for_one_text_are_both_left(moved: Path, server: EmbeddingServer) -> None:
    with opened(moved, asking(server.url)) as memory:
        server.behaviour.change = repeat_index
        store_apart(memory, LATER)
        assert memory.info().pending_embeddings == len(LATER)
        assert_right(memory.path, STORED)
        with pytest.raises(EmbeddingError, match="numbered"):
            memory.embed()
        server.behaviour.change = None
        assert memory.embed() == len(LATER)
        assert_well(memory, LATER)


def test_an_answer_in_another_order_is_put_in_order(moved: Path, server: EmbeddingServer) -> None:
    server.behaviour.change = reorder
    with opened(moved, asking(server.url)) as memory:
        store_apart(memory, LATER)
        assert_well(memory, LATER)


@pytest.mark.parametrize("failure", [{"status": 500}, {"status": 429}, {"hang_up": True}])
def test_a_provider_that_fails_twice_is_asked_a_third_time(
    moved: Path, server: EmbeddingServer, failure: dict[str, Any]
) -> None:
    with opened(moved, asking(server.url, max_retries=2)) as memory:
        server.behaviour = Behaviour(failures=2, headers={"Retry-After": "0.01"}, **failure)
        store_apart(memory, LATER)
        assert_well(memory, LATER)
        assert server.texts == [*STORED, *LATER]
        assert len(server.requests) == 1 + 3


def test_a_provider_that_cannot_be_reached_is_asked_again_later(root: Path) -> None:
    with EmbeddingServer() as server:
        port, url = int(server.url.split(":")[2].split("/")[0]), server.url
        with opened(root, asking(url)) as memory:
            store_apart(memory, STORED)
            memory.migrate(embedder=asking(url))
    with opened(root, asking(url)) as memory:
        store_apart(memory, LATER)
        assert_pending(memory, LATER)
        assert "cannot be reached" in memory.search("walnut").search_metadata.degraded[0]
        with EmbeddingServer(port):
            assert memory.embed() == len(LATER)
            assert_well(memory, LATER)


def test_without_a_key_a_moved_store_is_searched_by_keyword(root: Path) -> None:
    class Own:
        name = "openai"
        model = "text-embedding-3-small"
        dimensions = 1536

        def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [text_vector(text, 1536) for text in texts]

    with opened(root, Own()) as memory:
        store_apart(memory, STORED)
        memory.migrate(embedder=Own())
    with opened(root, "auto") as memory:
        store_apart(memory, LATER)
        assert memory.info().pending_embeddings == len(LATER)
        results = memory.search("walnut", 1)
        assert contents(results) == ["walnut"]
        assert "OPENAI_API_KEY" in results.search_metadata.degraded[0]
    with opened(root, Own()) as memory:
        assert memory.embed() == len(LATER)
        assert memory.check().problems == []


# Slow ones ----------------------------------------------------------------------------------------


def test_nobody_waits_for_a_provider_that_hangs(moved: Path, server: EmbeddingServer) -> None:
    with opened(moved, asking(server.url), embedding_timeout_seconds=0.5) as memory:
        server.behaviour.delay_seconds = HANGS
        started = time.monotonic()
        results = memory.search("dog", 1)
        store_apart(memory, LATER)
        assert time.monotonic() - started < HANGS
        assert contents(results) == ["dog"]
        assert "did not answer within 0.5 s" in results.search_metadata.degraded[0]
        assert_pending(memory, LATER)
    server.behaviour.delay_seconds = 0.0
    with opened(moved, asking(server.url)) as memory:
        memory.embed()
        assert_well(memory, LATER)


def test_a_conversation_does_not_wait_for_it_either(moved: Path, server: EmbeddingServer) -> None:
    with opened(moved, asking(server.url), embedding_timeout_seconds=0.5) as memory:
        server.behaviour.delay_seconds = HANGS
        started = time.monotonic()
        answer = memory.add("I live in Oslo. My sister lives in Rome.", user_id="ann")
        assert time.monotonic() - started < HANGS
        assert [decision.event for decision in answer.data] == ["ADD", "ADD"]
        server.behaviour.delay_seconds = 0.0


def test_after_a_failure_a_provider_is_left_alone(
    moved: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.services.embedding.service.REST_SECONDS", 3600.0)
    with opened(moved, asking(server.url)) as memory:
        server.behaviour.status = 500
        memory.store("walnut")
        asked = len(server.requests)
        for number in range(20):
            memory.store(f"another {number}")
            how = memory.search(f"question {number}").search_metadata
            assert "HTTP status 500" in how.degraded[0]
            assert "not asked again for a while" in how.degraded[0]
        assert len(server.requests) == asked
        server.behaviour.status = 200
        assert memory.embed() == 21  # who asks for it does not wait


# Objects of the protocol --------------------------------------------------------------------------


class Plain:
    """The server's vectors without a server; ``answer`` makes what is returned of them."""

    model = "plain"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self.answer: Callable[[list[list[float]]], Any] = lambda vectors: vectors

    def embed(self, texts: Sequence[str]) -> Any:
        return self.answer([text_vector(text) for text in texts])


@pytest.fixture
def plain() -> Plain:
    return Plain()


@pytest.fixture
def memory(root: Path, plain: Plain) -> Iterator[AgentMemory]:
    with opened(root, plain) as made:
        store_apart(made, STORED)
        made.migrate(embedder=plain)
        yield made


def raises(_vectors: list[list[float]]) -> Any:
    raise ZeroDivisionError("the plugin's own fault")


def fails_halfway(vectors: list[list[float]]) -> Iterator[list[float]]:
    yield vectors[0]
    raise OSError("the weights went away")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (raises, "the plugin's own fault"),
        (fails_halfway, "the weights went away"),
        (lambda _: None, "failed"),
        (lambda _: 7, "failed"),
        (lambda _: [], "0 vectors for"),
        (lambda vectors: vectors * 2, "vectors for"),
        (lambda vectors: [None for _ in vectors], "not a vector"),
        (lambda vectors: ["text" for _ in vectors], ""),
        (lambda vectors: [vector[1:] for vector in vectors], ""),
        (lambda vectors: np.zeros((len(vectors), DIMENSIONS)), ""),
        (lambda vectors: np.array(vectors) * math.nan, ""),
        (lambda vectors: np.array(vectors) * 1e300, ""),
    ],
)
def test_an_object_that_fails_costs_nothing_but_meaning(
    memory: AgentMemory, plain: Plain, answer: Callable[..., Any], reason: str
) -> None:
    plain.answer = answer
    store_apart(memory, LATER)
    assert_pending(memory, LATER)
    how = memory.search("walnut", 1).search_metadata
    assert "searched by keyword only" in how.degraded[0]
    assert reason in how.degraded[0]
    plain.answer = lambda vectors: vectors
    assert memory.embed() == len(LATER)
    assert_well(memory, LATER)


@pytest.mark.parametrize(
    "answer",
    [
        np.array,
        lambda vectors: np.array(vectors, dtype=np.float32),
        lambda vectors: [np.array(vector, dtype=np.float16) for vector in vectors],
        lambda vectors: [array("f", vector) for vector in vectors],
        lambda vectors: (tuple(vector) for vector in vectors),
    ],
)
def test_vectors_come_in_many_kinds(
    memory: AgentMemory, plain: Plain, answer: Callable[..., Any]
) -> None:
    plain.answer = answer
    store_apart(memory, LATER)
    assert_well(memory, LATER)


def test_an_object_that_hangs_is_not_waited_for_nor_asked_twice(root: Path, plain: Plain) -> None:
    with opened(root, plain, embedding_timeout_seconds=0.3) as memory:
        store_apart(memory, STORED)
        memory.migrate(embedder=plain)
        before, goes_on, calls = set(threading.enumerate()), threading.Event(), []

        def hang(vectors: list[list[float]]) -> list[list[float]]:
            calls.append(len(vectors))
            goes_on.wait(60)
            return vectors

        plain.answer = hang
        store_apart(memory, LATER)
        first = memory.search("lantern", 1)
        again = memory.search("harbour", 1)
        assert (contents(first), contents(again)) == (["lantern"], ["harbour"])
        assert "answering an earlier question" in again.search_metadata.degraded[0]
        assert len(calls) == 1
        assert_pending(memory, LATER)
        goes_on.set()
        plain.answer = lambda vectors: vectors
        for thread in set(threading.enumerate()) - before:
            thread.join(60)
        assert memory.embed() == len(LATER)
        assert_well(memory, LATER)


# Texts that are refused ---------------------------------------------------------------------------


def test_a_refused_text_keeps_no_other_from_being_embedded(
    moved: Path, server: EmbeddingServer
) -> None:
    server.behaviour.refused_word = "forbidden"
    texts = [f"word{number}" for number in range(230)]
    texts[7] = texts[150] = "forbidden"
    with opened(moved, asking(server.url)) as memory:
        store_apart(memory, texts)
        assert memory.info().pending_embeddings == 2
        assert sorted(embedded(memory.path)) == sorted(
            [*STORED, *(text for text in texts if text != "forbidden")]
        )
        (hit,) = memory.search("forbidden", 1)
        assert (hit.memory.content, len(hit.repeats)) == ("forbidden", 1)
        with pytest.raises(EmbeddingError, match="texts of 2 memories"):
            memory.embed()
        server.behaviour.refused_word = None
        assert memory.embed() == 2
        assert memory.check().problems == []
        assert all(server.texts.count(text) == 1 for text in texts if text != "forbidden")


def test_a_whole_batch_of_refused_texts_does_not_hold_up_the_next(
    moved: Path, server: EmbeddingServer
) -> None:
    server.behaviour.refused_word = "forbidden"
    with opened(moved, asking(server.url, batch_size=4)) as memory:
        store_apart(memory, [*(f"forbidden {number}" for number in range(9)), *LATER])
        assert set(LATER) <= embedded(memory.path).keys()
        assert memory.info().pending_embeddings == 9


# Other models and servers -------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"model": "another-model"}, {"dimensions": 32}])
def test_another_model_writes_nothing_into_the_file(
    moved: Path, server: EmbeddingServer, other: dict[str, Any]
) -> None:
    (name,) = other.values()
    with opened(moved, asking(server.url, **other)) as memory:
        store_apart(memory, LATER)
        how = memory.search("walnut", 1).search_metadata
        assert str(name) in how.degraded[0]
        assert "migrate" in how.degraded[0]
        with pytest.raises(ConfigurationError, match=str(name)):
            memory.embed()
        assert_pending(memory, LATER)
    with opened(moved, asking(server.url)) as memory:
        assert memory.embed() == len(LATER)
        assert_well(memory, LATER)


def test_a_server_that_did_not_make_the_vectors_is_sent_nothing(
    moved: Path, server: EmbeddingServer
) -> None:
    with EmbeddingServer() as another, opened(moved, asking(another.url)) as memory:
        store_apart(memory, LATER)
        how = memory.search("a private question", 1).search_metadata
        assert server.url in how.degraded[0]
        assert another.url in how.degraded[0]
        assert_pending(memory, LATER)
        assert another.requests == []
