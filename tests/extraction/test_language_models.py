"""OpenAIChat and AnthropicChat: the official clients against a real HTTP server; choosing one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from chat_server import ChatServer, Said

from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    ProviderError,
    RateLimitExceeded,
)
from agent_memory.extraction.llm.answers import BadAnswer
from agent_memory.extraction.llm.anthropic import AnthropicChat
from agent_memory.extraction.llm.openai import OpenAIChat
from agent_memory.extraction.llm.prompts import EXTRACTION_SCHEMA
from agent_memory.extraction.llm.registry import as_language_model
from agent_memory.models.protocols import LanguageModel
from agent_memory.runtime.api_client import IN_TIME

KEY = "sk-test-0123456789abcdef"
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "JSON please"}]
DRIPS = Said(json.dumps({"text": "a" * 400}), drip_seconds=0.05)
AT_ONCE = {"retry-after-ms": "1"}
Chat = Callable[..., LanguageModel]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def openai_at(server: ChatServer, **settings: Any) -> OpenAIChat:
    given = {"model": "some-model", "api_key": KEY, "max_retries": 0, **settings}
    return OpenAIChat(base_url=server.url, **given)


def anthropic_at(server: ChatServer, **settings: Any) -> AnthropicChat:
    pytest.importorskip("anthropic")
    given = {"model": "some-model", "api_key": KEY, "max_retries": 0, **settings}
    return AnthropicChat(base_url=server.root, **given)


BOTH = pytest.mark.parametrize("at", [openai_at, anthropic_at], ids=["openai", "anthropic"])


def ask(model: LanguageModel) -> str:
    return model.complete(ASKED, schema=EXTRACTION_SCHEMA)


@BOTH
def test_the_answer_comes_back(at: Chat) -> None:
    with ChatServer(Said('{"facts": []}')) as server:
        assert json.loads(ask(at(server))) == {"facts": []}


def test_openai_is_asked_for_the_schema_strictly() -> None:
    with ChatServer(Said()) as server:
        ask(openai_at(server, temperature=0.5, max_tokens=77, organization="org-1"))
        (request,) = server.requests
    assert request.body["messages"] == ASKED
    assert request.body["temperature"] == 0.5
    assert request.body["max_tokens"] == 77
    form = request.body["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    assert form["json_schema"]["schema"] == EXTRACTION_SCHEMA
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["openai-organization"] == "org-1"


def test_anthropic_has_to_call_the_tool() -> None:
    with ChatServer(Said()) as server:
        ask(anthropic_at(server, temperature=0.5, max_tokens=77))
        (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.body["system"] == "Be brief."
    assert request.body["messages"] == [{"role": "user", "content": "JSON please"}]
    assert request.body["tools"][0]["input_schema"] == EXTRACTION_SCHEMA
    assert request.body["tool_choice"] == {"type": "tool", "name": "extracted_facts"}
    assert (request.body["temperature"], request.body["max_tokens"]) == (0.5, 77)
    # The client has sent it in either of these, by its version.
    sent = request.headers.get("x-api-key", "") + request.headers.get("authorization", "")
    assert KEY in sent


def test_a_server_without_schemas_is_asked_for_json_and_then_for_text() -> None:
    refusal = Said("response_format is not supported", status=400)
    with ChatServer(refusal, refusal, Said('{"a": 1}')) as server:
        model = openai_at(server)
        assert ask(model) == '{"a": 1}'
        assert ask(model) == '{"a": 1}'
        forms = [request.body.get("response_format", {}).get("type") for request in server.requests]
    assert forms == ["json_schema", "json_object", None, None]


def test_a_model_that_takes_neither_max_tokens_nor_temperature_is_asked_without() -> None:
    first = Said("use 'max_completion_tokens' instead of 'max_tokens'", status=400)
    second = Said("'temperature' does not support 0.0", status=400)
    with ChatServer(first, second, Said()) as server:
        ask(openai_at(server))
        last = server.requests[-1].body
    assert last["max_completion_tokens"] == 1000
    assert "max_tokens" not in last
    assert "temperature" not in last
    assert last["response_format"]["type"] == "json_schema"


def test_a_model_of_anthropic_that_refuses_what_can_be_left_out_is_asked_without() -> None:
    first = Said("temperature is deprecated for this model", status=400)
    second = Said("tool_choice forces tool use", status=400)
    with ChatServer(first, second, Said('{"a": 1}', as_text=True)) as server:
        model = anthropic_at(server)
        assert ask(model) == '{"a": 1}'
        ask(model)
        bodies = [request.body for request in server.requests]
    assert ["temperature" in body for body in bodies] == [True, False, False, False]
    assert ["tools" in body for body in bodies] == [True, True, False, False]


@BOTH
@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        pytest.param(Said("slow down", 429, AT_ONCE), RateLimitExceeded, "too many", id="429"),
        pytest.param(Said("broken", 500, AT_ONCE), ProviderError, "HTTP status 500", id="500"),
        pytest.param(Said(f"bad key {KEY}", 401), ProviderError, "refuses the API key", id="401"),
        pytest.param(Said("no", 403), ProviderError, "does not let this key", id="403"),
        pytest.param(Said("no such model", 404), ProviderError, "does not know model", id="404"),
        pytest.param(Said("what?", 400), ProviderError, "refuses the request", id="400"),
        pytest.param(Said(raw_body=b"<html>hi</html>"), ProviderError, "base_url", id="a page"),
        pytest.param(Said(hang_up=True), ProviderError, "cannot be reached", id="hung up"),
        pytest.param(Said(delay_seconds=1.0), ProviderError, "within 0.2 seconds", id="too slow"),
        pytest.param(DRIPS, ProviderError, "within 0.2 seconds", id="a drip"),
    ],
)
def test_failures_are_told_without_the_key(
    at: Chat, said: Said, kind: type[AgentMemoryError], told: str
) -> None:
    with ChatServer(said) as server:
        model = at(server, timeout=0.2)
        started = time.monotonic()
        with pytest.raises(kind, match=told) as raised:
            ask(model)
        assert time.monotonic() - started < 10  # all drips take 20 seconds
    assert KEY not in "".join(traceback.format_exception(raised.value))


@BOTH
def test_an_attempt_begins_with_its_request_and_not_with_the_answer(at: Chat) -> None:
    with ChatServer(Said(), Said(delay_seconds=0.9, drip_seconds=0.95)) as server:
        model = at(server, timeout=1.0)
        ask(model)
        started = time.monotonic()
        with pytest.raises(ProviderError, match="within 1 seconds"):
            ask(model)
        assert time.monotonic() - started < 2.5


def test_an_answer_that_is_whole_with_a_late_part_is_taken() -> None:
    with (
        ChatServer(Said(raw_body=b"{}", drip_seconds=1.1)) as server,
        httpx.Client(event_hooks=IN_TIME, timeout=2.0) as client,
    ):
        assert client.post(server.url, json={}).json() == {}


@BOTH
def test_nobody_there(at: Chat) -> None:
    with ChatServer(Said()) as server:
        model = at(server)
    with pytest.raises(ProviderError, match="cannot be reached"):
        ask(model)


@BOTH
def test_the_client_tries_again(at: Chat) -> None:
    with ChatServer(Said(status=429, headers=AT_ONCE), Said('{"a": 1}')) as server:
        assert json.loads(ask(at(server, max_retries=1))) == {"a": 1}
        assert len(server.requests) == 2


def test_a_refusal_is_what_was_said() -> None:
    with ChatServer(Said(refusal="I cannot do that.")) as server:
        assert ask(openai_at(server)) == "I cannot do that."
    with ChatServer(Said("I cannot do that.", as_text=True)) as server:
        assert ask(anthropic_at(server)) == "I cannot do that."


@pytest.mark.parametrize(
    ("at", "reason", "text"),
    [
        (anthropic_at, "max_tokens", '{"facts": []}'),  # it looks whole
        (openai_at, "length", '{"facts": []}'),
        (openai_at, "length", ""),  # it thought, and had no tokens left to say anything
    ],
)
def test_what_was_cut_off_is_no_answer_and_told_with_what_to_do(
    at: Chat, reason: str, text: str
) -> None:
    with ChatServer(Said(text, stop_reason=reason)) as server:
        with pytest.raises(BadAnswer, match="in the middle, at 77 tokens: raise max_tok") as raised:
            ask(at(server, max_tokens=77))
        assert raised.value.is_truncated


def test_an_error_that_comes_as_an_answer_is_told_without_the_key() -> None:
    error = {"error": {"message": f"Provider overloaded, {KEY}", "code": 502}}
    with (
        ChatServer(Said(raw_body=json.dumps(error).encode())) as server,
        pytest.raises(ProviderError, match="Provider overloaded") as raised,
    ):
        ask(openai_at(server))
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_of_an_answer_in_parts_what_was_said_is_taken() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "{}, perhaps?"}]}
    parts = [thinking, {"type": "text", "text": '{"a": '}, {"type": "text", "text": "1}"}]
    answer = {"choices": [{"message": {"role": "assistant", "content": parts}}]}
    with ChatServer(Said(raw_body=json.dumps(answer).encode())) as server:
        assert ask(openai_at(server)) == '{"a": 1}'


# Choosing -------------------------------------------------------------------------------------


def test_no_model_is_none() -> None:
    assert as_language_model(None) is None
    assert as_language_model(" None ") is None


def test_a_model_object_is_taken_as_it_is() -> None:
    with ChatServer(Said()) as server:
        model = openai_at(server)
        assert as_language_model(model) is model


def test_a_function_is_a_model() -> None:
    def my_model(messages: Any, schema: Any) -> dict[str, Any]:
        return {"said": messages[-1]["content"], "title": schema["title"]}

    model = as_language_model(my_model)
    assert model is not None
    assert model.model == "my_model"
    assert json.loads(ask(model)) == {"said": "JSON please", "title": "extracted_facts"}


def test_a_name_has_a_provider_and_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = as_language_model("openai:llama3:8b")
    assert isinstance(model, OpenAIChat)
    assert model.model == "llama3:8b"


def test_settings_as_document_c_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with ChatServer(Said()) as server:
        settings = {
            "provider": "openai",
            "api_key": "${MY_KEY}",
            "model": "gpt-4",
            "temperature": 0.25,
            "max_tokens": 1000,
            "timeout": 30,
            "max_retries": 3,
            "base_url": server.url,
            "custom_fact_extraction_prompt": "only food",
        }
        model = as_language_model(settings)
        assert model is not None
        ask(model)
        (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert (request.body["model"], request.body["temperature"]) == ("gpt-4", 0.25)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("openai:gpt-4.1-mini", "set OPENAI_API_KEY"),
        ("openai", "has no name"),
        ("cohere:x", "unknown language model provider 'cohere'"),
        ({"provider": "openai", "model": "m", "api_key": KEY, "topp": 1}, "no setting 'topp'"),
        ({"provider": "qdrant", "model": "m"}, "unknown language model provider 'qdrant'"),
        ({"model": "m", "api_key": "${NOT_SET}"}, "NOT_SET is not set"),
        ({"model": "m", "api_key": KEY, "temperature": 3}, "temperature is 3"),
        ({"model": "m", "api_key": KEY, "max_tokens": 0}, "max_tokens is 0"),
        ({"model": "m", "api_key": KEY, "max_tokens": 1.5}, "whole number"),
        ({"model": "m", "api_key": KEY, "timeout": "soon"}, "timeout is 'soon'"),
        ({"model": "m", "api_key": KEY, "timeout": True}, "timeout is True"),
        ({"model": "m", "api_key": KEY, "base_url": "localhost:1"}, "no.?t a web address"),
        ({"model": "m", "api_key": "sk with space"}, "a space"),
        ({"model": 5, "api_key": KEY}, "model is a int"),
        (5, "5 is not a language model"),
        (OpenAIChat, "is not a language model"),
    ],
    ids=str,
)
def test_what_cannot_be_is_told_with_what_to_do(
    spec: Any, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "has no name" in told:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(ConfigurationError, match=told) as raised:
        as_language_model(spec)
    assert KEY not in str(raised.value)


def test_no_key_for_anthropic() -> None:
    pytest.importorskip("anthropic")
    with pytest.raises(ConfigurationError, match="set ANTHROPIC_API_KEY"):
        as_language_model("anthropic:claude-sonnet-5")


def test_anthropic_missing_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match=r"pip install 'agent-memory\[anthropic\]'"):
        as_language_model("anthropic:claude-sonnet-5")


def test_no_client_is_imported_before_it_is_used() -> None:
    code = (
        "import sys\n"
        "from agent_memory.extraction import decisions, facts, messages\n"
        "from agent_memory.extraction.llm import registry\n"
        "registry.as_language_model({'model': 'm', 'api_key': 'k'})\n"
        "print([name for name in ('openai', 'anthropic', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_closed_port_is_not_waited_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    with pytest.raises(ProviderError, match="in 1 attempt"):
        ask(OpenAIChat("m", api_key=KEY, base_url=url, max_retries=0))
