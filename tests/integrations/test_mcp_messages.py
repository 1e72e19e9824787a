"""Messages over stdio, byte by byte: as MCP's own schemas say, malformed, many at once."""

from __future__ import annotations

import io
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp_types")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from agent_memory import AgentMemory
from agent_memory.integrations.mcp import MemoryServer, ServedMemory, stdio
from agent_memory.integrations.mcp.asking import NOBODY, Client
from agent_memory.integrations.mcp.messages import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from agent_memory.integrations.mcp.server import Params

META = "io.modelcontextprotocol"
ENVELOPE = {
    f"{META}/protocolVersion": "2026-07-28",
    f"{META}/clientInfo": {"name": "test", "version": "1"},
    f"{META}/clientCapabilities": {},
}


@pytest.fixture
def server(root: Path) -> Iterator[MemoryServer]:
    """A server of agent bob, who has one memory."""
    with AgentMemory("bob", root=root) as memory:
        memory.promote(memory.store("a walnut", id="mem-1"))
    serving = MemoryServer(ServedMemory("bob", root=root))
    yield serving
    serving.close()


def said(server: MemoryServer, incoming: bytes) -> list[dict[str, Any]]:
    """Return what a client is answered that says this and goes."""
    outgoing = io.BytesIO()
    stdio.Conversation(server, io.BytesIO(incoming), outgoing).serve()
    lines = outgoing.getvalue().split(b"\n")
    assert lines.pop() == b""
    answers = [json.loads(line) for line in lines]
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    return answers


def request(method: str, params: Mapping[str, Any] | None = None, **others: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **others}
    return json.dumps(message).encode() + b"\n"


def result_of(server: MemoryServer, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    (answer,) = said(server, request(method, params))
    result: dict[str, Any] = answer["result"]
    return result


def error_of(server: MemoryServer, incoming: bytes) -> tuple[Any, int, str]:
    (answer,) = said(server, incoming)
    return answer["id"], answer["error"]["code"], answer["error"]["message"]


# As the protocol says -----------------------------------------------------------------------

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "memory_search", "arguments": {"query": "walnut"}}),
    ("tools/call", {"name": "memory_get", "arguments": {"memory_id": "mem-nix"}}),
    ("tools/call", {"name": "memory_list_recent"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "memory://bob/mem-1"}),
    ("resources/read", {"uri": "memory://bob/scratchpad"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "scratchpad"}),
]


def test_the_revisions_are_those_that_there_are() -> None:
    assert HANDSHAKE_VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert MODERN_VERSIONS == MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
def test_results_are_valid_in_every_revision_with_a_handshake(
    server: MemoryServer, version: str
) -> None:
    hello = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    shaken = result_of(server, "initialize", hello)
    assert shaken["protocolVersion"] == version
    validate_server_result("initialize", version, shaken)
    validate_server_result("ping", version, result_of(server, "ping", {}))
    for method, params in REQUESTS:
        validate_server_result(method, version, result_of(server, method, params))


def test_results_are_valid_in_the_revision_without_a_handshake(server: MemoryServer) -> None:
    for method, params in [("server/discover", {}), *REQUESTS]:
        result = result_of(server, method, {**params, "_meta": ENVELOPE})
        validate_server_result(method, "2026-07-28", result)
        assert result["resultType"] == "complete"
        assert result["_meta"][f"{META}/serverInfo"]["name"] == "agent-memory"
        assert ("ttlMs" in result) == (method not in ("tools/call", "prompts/get"))
    discovered = result_of(server, "server/discover", {"_meta": ENVELOPE})
    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert discovered["capabilities"].keys() == {"tools", "resources", "prompts"}


def test_a_resource_that_may_be_out_of_date_says_so(server: MemoryServer, root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        for text in ("I live in Oslo.", "I moved to Bergen."):
            memory.add([{"role": "user", "content": text}])
        texts = {
            each.content: result_of(server, "resources/read", {"uri": f"memory://bob/{each.id}"})
            for each in memory.list_recent(2)
        }
    marked = {
        content: "(under review" in read["contents"][0]["text"] for content, read in texts.items()
    }
    assert marked == {"I live in Oslo.": True, "I moved to Bergen.": False}


def test_a_revision_that_is_not_known_is_answered_with_one_that_is(server: MemoryServer) -> None:
    shaken = result_of(server, "initialize", {"protocolVersion": "2031-01-01"})
    assert shaken["protocolVersion"] == "2025-11-25"
    meta = {**ENVELOPE, f"{META}/protocolVersion": "2031-01-01"}
    (answer,) = said(server, request("tools/list", {"_meta": meta}))
    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


@pytest.mark.parametrize(
    ("incoming", "code", "says"),
    [
        (request("nonsense"), -32601, "nonsense"),
        (request("logging/setLevel", {"level": "info"}), -32601, "logging/setLevel"),
        (request("initialize"), -32602, "protocolVersion"),
        (request("tools/call"), -32602, "params.name must be a string"),
        (request("tools/call", {"name": "memory_get", "arguments": []}), -32602, "arguments"),
        (request("tools/list", {"cursor": "x"}), -32602, "cursor"),
        (request("resources/read", {"uri": 1}), -32602, "params.uri"),
        (request("resources/read", {"uri": "memory://bob"}), -32002, "memory://bob/"),
        (request("resources/read", {"uri": "memory://eve/mem-1"}), -32002, "memory://bob/"),
        (request("resources/read", {"uri": "memory://bob/"}), -32002, "memory://bob/"),
        (request("tools/list", {"_meta": {f"{META}/protocolVersion": 1}}), -32602, "_meta"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_request_that_cannot_be_answered_says_why(
    server: MemoryServer, incoming: bytes, code: int, says: str
) -> None:
    request_id, told, message = error_of(server, incoming)
    assert (request_id, told) == (1, code)
    assert says in message


# Malformed messages -------------------------------------------------------------------------

BROKEN: dict[str, tuple[bytes, Any, int]] = {
    "no JSON": (b"Content-Length: 17\r\n", None, -32700),
    "half of it": (request("ping")[:-3] + b"\n", None, -32700),
    "not UTF-8": (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}\n', None, -32700),
    "NaN": (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}\n', None, -32700),
    "nested too deep": (b"[" * 100_000 + b"\n", None, -32700),
    "a number of many digits": (b"9" * 10_000 + b"\n", None, -32700),
    "several in one": (b"[" + request("ping")[:-1] + b"]\n", None, -32600),
    "a text": (b'"ping"\n', None, -32600),
    "another JSON-RPC": (request("ping", jsonrpc="1.0"), None, -32600),
    "an id that is none": (request("ping", id=None), None, -32600),
    "an id that is a truth": (request("ping", id=True), None, -32600),
    "an id that is a list": (request("ping", id=[1]), None, -32600),
    "no method": (b'{"jsonrpc": "2.0", "id": 7}\n', 7, -32600),
    "a method that is a number": (b'{"jsonrpc": "2.0", "id": 7, "method": 1}\n', 7, -32600),
    "params that are a list": (b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": []}\n', 7,
                               -32600),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_message_is_refused_and_the_next_one_answered(
    server: MemoryServer, name: str
) -> None:
    incoming, request_id, code = BROKEN[name]
    refused, answered = said(server, incoming + request("ping", id="next"))
    assert (refused["id"], refused["error"]["code"]) == (request_id, code)
    assert (answered["id"], answered["result"]) == ("next", {})


def test_what_needs_no_answer_gets_none(server: MemoryServer) -> None:
    lines = [
        b"\n",
        b"  \r\n",
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n',
        b'{"jsonrpc": "2.0", "method": "nonsense", "params": {"x": 1}}\n',
        b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}}\n',
        b'{"jsonrpc": "2.0", "id": 5, "result": {}}\n',
        b'{"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": ""}}\n',
    ]
    assert said(server, b"".join(lines)) == []


def test_a_line_that_is_too_long_is_passed_over(
    server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "LONGEST_LINE", 500)
    long_one = request("ping", {"x": "y" * 2_000})
    refused, answered = said(server, long_one + request("ping", id=2))
    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    assert "500 bytes at most" in refused["error"]["message"]
    assert answered == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_the_last_line_needs_no_end(server: MemoryServer) -> None:
    assert said(server, request("ping").rstrip()) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


def test_half_a_pair_of_surrogates_is_refused_in_an_answer_that_can_be_read(
    server: MemoryServer,
) -> None:
    arguments = {"content": "half \ud800 of a pair"}
    result = result_of(server, "tools/call", {"name": "memory_store", "arguments": arguments})
    assert result["isError"] is True
    assert "surrogate" in result["content"][0]["text"]
    request_id, code, _ = error_of(server, request("\ud800", id="\udfff"))
    assert (request_id, code) == ("?", -32601)


def test_an_answer_is_one_line_to_all_programs_that_read_lines(server: MemoryServer) -> None:
    text = "line\u2028line\u2029line\x85line\nline\rline"
    stored = result_of(
        server, "tools/call", {"name": "memory_store", "arguments": {"content": text}}
    )
    get = {
        "name": "memory_get",
        "arguments": {"memory_id": stored["structuredContent"]["memory_id"]},
    }
    outgoing = io.BytesIO()
    incoming = io.BytesIO(request("tools/call", get))
    stdio.Conversation(server, incoming, outgoing).serve()
    (line,) = outgoing.getvalue().decode().splitlines()
    assert json.loads(line)["result"]["structuredContent"]["memory"]["content"] == text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=8,
)
METHODS = st.sampled_from([method for method, _ in REQUESTS] + ["ping", "initialize", "x"])
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["memory_search", "memory_get", "scratchpad"]) | JSON,
        "arguments": st.fixed_dictionaries(
            {}, optional={"query": JSON, "memory_id": JSON, "token_budget": JSON, "filters": JSON}
        )
        | JSON,
        "uri": st.text(max_size=30).map("memory://bob/".__add__) | JSON,
        "cursor": JSON,
        "protocolVersion": JSON,
        "_meta": st.just(ENVELOPE) | JSON,
    },
)
IDS = st.integers() | st.text(max_size=10)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": IDS, "method": METHODS, "params": PARAMS}
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(messages=st.lists(MESSAGES | JSON, max_size=6))
def test_whatever_comes_every_request_is_answered_once_and_nothing_fails_inside(
    server: MemoryServer, messages: list[Any]
) -> None:
    lines = [json.dumps(message).encode(errors="replace") + b"\n" for message in messages]
    answers = said(server, b"".join(lines))
    asked = [it["id"] for it in messages if isinstance(it, dict) and it.get("jsonrpc") == "2.0"]
    told = [it["id"] for it in answers if it["id"] is not None]
    assert sorted(map(repr, asked)) == sorted(map(repr, told))
    assert [it for it in answers if it.get("error", {}).get("code") == -32603] == []
    assert "INTERNAL_ERROR" not in json.dumps(answers)


# Many at once -------------------------------------------------------------------------------


class Slow(MemoryServer):
    """A server that answers when it is let, but lists at once."""

    def __init__(self, served: ServedMemory) -> None:
        super().__init__(served)
        self.begun = threading.Semaphore(0)
        self.may_answer = threading.Event()

    def answer(self, method: str, params: Params, client: Client = NOBODY) -> dict[str, Any]:
        if method == "tools/call":
            self.begun.release()
            assert self.may_answer.wait(20)
        return super().answer(method, params, client)


class Script(io.RawIOBase):
    """An input that does something before it gives its next line."""

    def __init__(self, *steps: Any) -> None:
        self._steps = list(steps)

    def readline(self, _: int | None = -1) -> bytes:
        while self._steps:
            step = self._steps.pop(0)
            if isinstance(step, bytes):
                return step
            step()
        return b""


def call(number: int) -> bytes:
    return request("tools/call", {"name": "memory_list_recent"}, id=number)


def cancel(number: int) -> bytes:
    note = {"method": "notifications/cancelled", "params": {"requestId": number}}
    return json.dumps({"jsonrpc": "2.0", **note}).encode() + b"\n"


def conversed(server: MemoryServer, *steps: Any) -> list[Any]:
    outgoing = io.BytesIO()
    stdio.Conversation(server, Script(*steps), outgoing).serve()  # type: ignore[arg-type]
    return [json.loads(line)["id"] for line in outgoing.getvalue().splitlines()]


def test_a_slow_call_keeps_no_other_waiting(root: Path) -> None:
    server = Slow(ServedMemory("bob", root=root))
    answers = conversed(
        server, call(1), server.begun.acquire, request("tools/list", id=2), request("ping", id=3),
        lambda: threading.Timer(0.2, server.may_answer.set).start(),
    )  # fmt: skip
    assert sorted(answers) == [1, 2, 3]
    assert answers[-1] == 1
    server.close()


def test_a_cancelled_call_is_not_answered_and_its_id_may_be_used_again(root: Path) -> None:
    server = Slow(ServedMemory("bob", root=root))
    outgoing = io.BytesIO()

    def let_them_answer() -> None:
        server.may_answer.set()
        until = time.monotonic() + 20
        while conversation._unanswered and time.monotonic() < until:
            time.sleep(0.01)

    script = Script(
        call(1), server.begun.acquire, call(2), server.begun.acquire, cancel(1), cancel(9),
        let_them_answer, call(9), call(1),
    )  # fmt: skip
    conversation = stdio.Conversation(server, script, outgoing)  # type: ignore[arg-type]
    conversation.serve()
    answered = [json.loads(line)["id"] for line in outgoing.getvalue().splitlines()]
    assert answered[0] == 2
    assert sorted(answered) == [1, 2, 9]
    server.close()


def test_a_client_that_goes_gets_all_that_it_asked_for(root: Path) -> None:
    with AgentMemory("bob", root=root):
        pass
    server = MemoryServer(ServedMemory("bob", root=root))
    stores = [
        request(
            "tools/call",
            {"name": "memory_store", "arguments": {"content": f"owl {number}"}},
            id=number,
        )
        for number in range(200)
    ]
    assert sorted(conversed(server, *stores)) == list(range(200))
    server.close()
    with AgentMemory("bob", root=root) as memory:
        assert memory.count() == 200


def test_nobody_reading_the_answers_ends_nothing(server: MemoryServer) -> None:
    class Gone(io.BytesIO):
        def write(self, _: Any) -> int:
            raise BrokenPipeError

    stdio.Conversation(server, io.BytesIO(call(1) + b"no JSON\n" + call(2)), Gone()).serve()


def test_an_interrupted_server_begins_nothing_more(root: Path) -> None:
    server = Slow(ServedMemory("bob", root=root))

    def interrupt() -> None:
        for _ in range(8):
            server.begun.acquire()
        threading.Timer(0.2, server.may_answer.set).start()
        raise KeyboardInterrupt

    outgoing = io.BytesIO()
    script = Script(*(call(number) for number in range(20)), interrupt)
    with pytest.raises(KeyboardInterrupt):
        stdio.Conversation(server, script, outgoing).serve()  # type: ignore[arg-type]
    assert len(outgoing.getvalue().splitlines()) == 8
    server.close()
