"""OpenAIEmbedder: the official client against a real HTTP server."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

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

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.openai import OpenAIEmbedder, cut_to_tokens
from agent_memory.embeddings.usage import EmbeddingUsage
from agent_memory.errors import ConfigurationError, EmbeddingError, EmbeddingRefused

KEY = "sk-test-0123456789abcdef"


def number_all(answer: dict[str, Any], indexes: list[Any]) -> None:
    for item, index in zip(answer["data"], indexes, strict=True):
        item["index"] = index


def embedder_at(server: EmbeddingServer, **settings: Any) -> OpenAIEmbedder:
    settings = {"model": "some-model", "api_key": KEY, "max_retries": 0, **settings}
    return OpenAIEmbedder(base_url=server.url, **settings)


def test_each_text_has_its_own_vector(server: EmbeddingServer) -> None:
    vectors = embedder_at(server).embed(["red apples", "blue sky"])
    assert vectors[0] == pytest.approx(text_vector("red apples"), abs=1e-6)
    assert vectors[1] == pytest.approx(text_vector("blue sky"), abs=1e-6)


def test_many_texts_go_out_in_batches(server: EmbeddingServer) -> None:
    texts = [f"text {n}" for n in range(7)]
    vectors = embedder_at(server, batch_size=3).embed(texts)
    assert [len(request.body["input"]) for request in server.requests] == [3, 3, 1]
    assert vectors[6] == pytest.approx(text_vector("text 6"), abs=1e-6)


def test_vectors_out_of_order_are_put_in_order(server: EmbeddingServer) -> None:
    server.behaviour.change = reorder
    vectors = embedder_at(server).embed(["red apples", "blue sky", "old house"])
    assert vectors[0] == pytest.approx(text_vector("red apples"), abs=1e-6)


def test_plain_numbers_are_read_as_base64_is(server: EmbeddingServer) -> None:
    # Some servers send numbers whatever the client asks for.
    numbers = b'{"object":"list","model":"m","data":[{"index":0,"embedding":[0.5,0.25]}]}'
    server.behaviour.raw_body = numbers
    assert embedder_at(server).embed(["one"]) == [[0.5, 0.25]]


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        pytest.param(Behaviour(change=drop_last), "2 vectors for 3 texts", id="too few"),
        pytest.param(Behaviour(change=add_one), "4 vectors for 3 texts", id="too many"),
        pytest.param(Behaviour(change=repeat_index), "[0, 1]", id="an index twice"),
        pytest.param(
            Behaviour(change=lambda answer: answer["data"][0].update(index=9)),
            "[1, 2, 9]",
            id="an index out of range",
        ),
        pytest.param(
            Behaviour(change=lambda answer: answer["data"][0].pop("index")),
            "not a list of embeddings",
            id="no index",
        ),
        pytest.param(
            Behaviour(change=lambda answer: answer["data"].clear()),
            "No embedding data received",
            id="empty",
        ),
        pytest.param(Behaviour(raw_body=b"{}"), "not a list of embeddings", id="empty JSON"),
        pytest.param(Behaviour(truncate_bytes=20), "not a list of embeddings", id="cut JSON"),
        pytest.param(
            Behaviour(raw_body=b"<html>hello", content_type="text/html"),
            "not a list of embeddings",
            id="HTML",
        ),
        pytest.param(Behaviour(raw_body=b"[1, 2]"), "not a list of embeddings", id="other JSON"),
        pytest.param(
            Behaviour(change=lambda answer: number_all(answer, [KEY, "a", "b"])),
            "['a', 'b', '***']",
            id="keys for indexes",
        ),
        pytest.param(
            Behaviour(change=lambda answer: number_all(answer, [KEY, 1, 2])),
            "not a list of embeddings",
            id="a key among the indexes",
        ),
        pytest.param(
            Behaviour(change=lambda answer: number_all(answer, ["x" * 85 + KEY, "y", "z"])),
            "x***",
            id="a key where the message ends",
        ),
        pytest.param(Behaviour(hang_up=True), "cannot be reached, in 1 attempt", id="hang-up"),
        pytest.param(Behaviour(status=401), "check OPENAI_API_KEY", id="wrong key"),
        pytest.param(Behaviour(status=403), "check OPENAI_API_KEY", id="forbidden"),
        pytest.param(Behaviour(status=404), "check its name and base_url", id="no such model"),
        pytest.param(Behaviour(status=429), "try again later", id="rate limit"),
        pytest.param(Behaviour(status=503), "HTTP status 503, in 1 attempt: try", id="down"),
    ],
)
def test_a_bad_answer_is_an_error_that_says_what_to_do(
    server: EmbeddingServer, behaviour: Behaviour, told: str
) -> None:
    server.behaviour = behaviour
    with pytest.raises(EmbeddingError) as caught:
        embedder_at(server).embed(["red", "green", "blue"])
    assert told in str(caught.value)
    assert not isinstance(caught.value, EmbeddingRefused)
    assert KEY[:12] not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("value", [math.nan, 0.0, math.inf])
def test_unfit_numbers_of_a_server_are_refused(server: EmbeddingServer, value: float) -> None:
    server.behaviour.change = fill_first(value)
    with pytest.raises(EmbeddingError, match="the whole answer was discarded"):
        CheckedEmbedder(embedder_at(server, dimensions=DIMENSIONS)).embed(["red", "green"])


def test_vectors_of_another_length_are_refused(server: EmbeddingServer) -> None:
    with pytest.raises(EmbeddingError, match="64 numbers instead of 1536"):
        CheckedEmbedder(embedder_at(server, model="text-embedding-3-small")).embed(["red"])


def test_the_clients_error_is_the_cause(server: EmbeddingServer) -> None:
    import openai

    server.behaviour.status = 404
    with pytest.raises(EmbeddingError) as caught:
        embedder_at(server).embed(["red"])
    assert isinstance(caught.value.__cause__, openai.NotFoundError)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_texts_that_the_service_will_not_have_are_refused(
    server: EmbeddingServer, status: int
) -> None:
    server.behaviour = Behaviour(status=status)
    with pytest.raises(EmbeddingRefused, match="refuses these texts"):
        embedder_at(server).embed(["red"])


def test_one_refused_text_does_not_spoil_the_next_call(server: EmbeddingServer) -> None:
    server.behaviour.refused_word = "poison"
    embedder = embedder_at(server)
    with pytest.raises(EmbeddingRefused):
        embedder.embed(["good", "poison"])
    assert len(embedder.embed(["good"])) == 1
    assert server.texts == ["good"]


def test_a_rate_limit_is_waited_for(server: EmbeddingServer) -> None:
    server.behaviour = Behaviour(status=429, headers={"retry-after-ms": "1"}, failures=2)
    assert len(embedder_at(server, max_retries=2).embed(["red"])) == 1
    counts = [request.headers["x-stainless-retry-count"] for request in server.requests]
    assert counts == ["0", "1", "2"]


def test_after_three_attempts_it_is_an_error(server: EmbeddingServer) -> None:
    server.behaviour = Behaviour(status=500, headers={"retry-after-ms": "1"})
    with pytest.raises(EmbeddingError, match="in 3 attempts"):
        embedder_at(server, max_retries=None).embed(["red"])
    assert len(server.requests) == 3


@pytest.mark.parametrize("slow", [{"delay_seconds": 1.0}, {"drip_seconds": 0.1}], ids=str)
def test_a_slow_server_is_given_up(server: EmbeddingServer, slow: dict[str, float]) -> None:
    server.behaviour = Behaviour(**slow)  # type: ignore[arg-type]  # those are of seconds
    started = time.monotonic()
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.2 seconds, in 1 attempt"):
        embedder_at(server, timeout_seconds=0.2).embed(["red"])
    assert time.monotonic() - started < 10  # all drips take 30 seconds or more


def test_nobody_listening_is_an_error() -> None:
    with EmbeddingServer() as gone:
        embedder = embedder_at(gone)
    with pytest.raises(EmbeddingError, match="check the network and the base_url"):
        embedder.embed(["red"])


def test_the_key_is_in_no_message_even_where_the_server_sends_it_back(
    server: EmbeddingServer,
) -> None:
    server.behaviour = Behaviour(status=401, error_message=f"wrong key {KEY}")
    embedder = embedder_at(server)
    with pytest.raises(EmbeddingError) as caught:
        embedder.embed(["red"])
    assert "wrong key ***" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in repr(embedder)
    assert KEY not in repr(caught.value)


def test_dimensions_are_asked_for_only_when_given(server: EmbeddingServer) -> None:
    given = embedder_at(server, dimensions=32)
    assert (len(given.embed(["red"])[0]), given.dimensions) == (32, 32)
    embedder_at(server).embed(["red"])
    assert server.requests[0].body["dimensions"] == 32
    assert "dimensions" not in server.requests[1].body


def test_dimensions_of_a_known_model_need_no_request() -> None:
    assert OpenAIEmbedder("text-embedding-3-large", api_key=KEY).dimensions == 3072


def test_dimensions_of_an_unknown_model_are_learned_once(server: EmbeddingServer) -> None:
    embedder = embedder_at(server)
    assert (embedder.dimensions, embedder.dimensions) == (DIMENSIONS, DIMENSIONS)
    assert len(server.requests) == 1


def test_dimensions_are_learned_from_an_answer_too(server: EmbeddingServer) -> None:
    embedder = embedder_at(server)
    embedder.embed(["red"])
    assert embedder.dimensions == DIMENSIONS
    assert server.texts == ["red"]


def test_usage_is_the_servers_count(server: EmbeddingServer) -> None:
    embedder = embedder_at(server, batch_size=2)
    embedder.embed(["one two three", "four", "five"])
    assert embedder.usage == EmbeddingUsage(requests=2, texts=3, tokens=5, cost_usd=0.0)


def test_usage_is_estimated_where_the_server_leaves_it_out(server: EmbeddingServer) -> None:
    server.behaviour.with_usage = False
    embedder = embedder_at(server)
    embedder.embed(["x" * 41])
    assert embedder.usage.tokens == 11


def test_only_openai_itself_costs_money(server: EmbeddingServer) -> None:
    assert OpenAIEmbedder(api_key=KEY).cost_per_1k_tokens == 0.00002
    assert embedder_at(server, model="text-embedding-3-small").cost_per_1k_tokens == 0.0


def test_without_a_key_and_address_the_way_out_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"set OPENAI_API_KEY,.*agent-memory\[local\]"):
        OpenAIEmbedder()


def test_a_local_server_needs_no_key(server: EmbeddingServer) -> None:
    assert len(OpenAIEmbedder("m", base_url=server.url).embed(["red"])) == 1


def test_settings_come_from_the_environment(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "OPENAI_API_KEY": f" {KEY}\n",
        "OPENAI_BASE_URL": server.url,
        "AGENT_MEMORY_EMBEDDING_MODEL": "my-model",
        "AGENT_MEMORY_EMBEDDING_DIMENSIONS": "16",
        "AGENT_MEMORY_EMBEDDING_BATCH_SIZE": "1",
        "AGENT_MEMORY_EMBEDDING_TIMEOUT": "7.5",
        "AGENT_MEMORY_EMBEDDING_RETRIES": "0",
    }.items():
        monkeypatch.setenv(name, value)
    embedder = OpenAIEmbedder()
    embedder.embed(["red", "green"])
    assert (embedder.name, embedder.dimensions) == ("openai:my-model", 16)
    assert [request.body["input"] for request in server.requests] == [["red"], ["green"]]
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-stainless-read-timeout"] == "7.5"
    server.behaviour.status = 500
    with pytest.raises(EmbeddingError, match="in 1 attempt"):
        embedder.embed(["blue"])


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AGENT_MEMORY_EMBEDDING_DIMENSIONS", "many"),
        ("AGENT_MEMORY_EMBEDDING_DIMENSIONS", "-1"),
        ("AGENT_MEMORY_EMBEDDING_DIMENSIONS", "20001"),
        ("AGENT_MEMORY_EMBEDDING_BATCH_SIZE", "0"),
        ("AGENT_MEMORY_EMBEDDING_BATCH_SIZE", "1.5"),
        ("AGENT_MEMORY_EMBEDDING_TIMEOUT", "0"),
        ("AGENT_MEMORY_EMBEDDING_TIMEOUT", "nan"),
        ("AGENT_MEMORY_EMBEDDING_RETRIES", "inf"),
        ("OPENAI_BASE_URL", "localhost:11434"),
        ("OPENAI_BASE_URL", "http://host:port/v1"),
        ("OPENAI_API_KEY", "two words"),
        ("OPENAI_API_KEY", "key…"),
    ],
)
def test_a_wrong_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=variable):
        OpenAIEmbedder()


@pytest.mark.parametrize("argument", ["dimensions", "batch_size", "timeout_seconds"])
def test_a_wrong_argument_is_named(argument: str) -> None:
    wrong: dict[str, Any] = {argument: 0}
    with pytest.raises(ConfigurationError, match=argument):
        OpenAIEmbedder(api_key=KEY, **wrong)


def test_a_password_in_the_address_is_not_shown() -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenAIEmbedder(base_url="me:secret@host/v1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a" * 100, 100),
        ("a" * 200, 200),
        ("a" * 201, 200),
        ("あ" * 50, 50),
        ("あ" * 51, 50),
        ("a" * 100 + "あ" * 100, 125),
    ],
)
def test_only_a_text_that_may_be_too_long_is_cut(text: str, kept: int) -> None:
    assert cut_to_tokens(text, 100) == text[:kept]


def test_a_long_text_is_sent_cut(server: EmbeddingServer) -> None:
    embedder_at(server, model="text-embedding-3-small").embed(["あ" * 10_000])
    assert len(server.texts[0]) == 8191 // 2


def test_threads_share_one_embedder(server: EmbeddingServer) -> None:
    embedder = embedder_at(server)
    threads = [threading.Thread(target=embedder.embed, args=([f"text {n}"],)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(server.texts) == [f"text {n}" for n in range(8)]
    assert embedder.usage.requests == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_opens_a_connection_of_its_own(server: EmbeddingServer) -> None:
    code = (
        "import os, sys\n"
        "from agent_memory import OpenAIEmbedder\n"
        "embedder = OpenAIEmbedder('m', base_url=sys.argv[1])\n"
        "parent = embedder.embed(['parent'])\n"
        "client = embedder._client.get()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if embedder._client.get() is not client\n"
        "             and embedder.embed(['child']) else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, server.url], timeout=60)
    assert done.returncode == 0
    assert server.texts == ["parent", "child"]


def test_the_server_runs_as_a_process_and_logs_its_texts(tmp_path: Path) -> None:
    program = Path(__file__).parents[1] / "embedding_server.py"
    log = tmp_path / "texts.jsonl"
    with subprocess.Popen(
        [sys.executable, str(program), "--log", str(log)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        OpenAIEmbedder("m", base_url=process.stdout.readline().strip()).embed(["red", "grün"])
        process.terminate()
    assert log.read_text().splitlines() == ['"red"', '"gr\\u00fcn"']
