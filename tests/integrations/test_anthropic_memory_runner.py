"""The memory tool with Anthropic's own client and tool runner, against a server with a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("anthropic.tools.memory")

from anthropic import Anthropic, AsyncAnthropic

from agent_memory import AgentMemory
from agent_memory.integrations.anthropic_memory import AgentMemoryTool, AsyncAgentMemoryTool

NOTES = "/memories/preferences.md"
CALLS: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": NOTES, "file_text": "- likes tea\n"},
    {"command": "create", "path": NOTES, "file_text": "again"},
    {"command": "str_replace", "path": NOTES, "old_str": "tea", "new_str": "green tea"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
    {"command": "fly", "path": NOTES},
    {"command": "view", "path": NOTES},
]


class Model(ThreadingHTTPServer):
    """Plays the model: calls the memory tool as the script says, then says that it is done."""

    daemon_threads = True

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        turn = len(self.requests)
        self.requests.append(request)
        is_done = turn >= len(CALLS)
        call = {} if is_done else CALLS[turn]
        used = {"type": "tool_use", "id": f"toolu_{turn}", "name": "memory", "input": call}
        return {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [{"type": "text", "text": "done"} if is_done else used],
            "stop_reason": "end_turn" if is_done else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps(self.server.answer(body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def check(model: Model, memory: AgentMemory) -> None:
    """Check what the model was told, and what is kept of it."""
    assert [tool["type"] for tool in model.requests[0]["tools"]] == ["memory_20250818"]
    results = [
        block
        for request in model.requests[1:]
        for block in request["messages"][-1]["content"]
        if block["type"] == "tool_result"
    ]
    told = [json.dumps(result["content"]) for result in results]
    failed = [bool(result.get("is_error")) for result in results]
    assert failed == [False, False, True, False, True, True, False]
    assert "0B\\t/memories" in told[0]
    assert f"File created successfully at: {NOTES}" in told[1]
    assert f"File {NOTES} already exists" in told[2]
    assert "would escape /memories directory" in told[4]
    assert "- likes green tea\\n     2\\t" in told[6]
    assert [hit.memory.content for hit in memory.search("which tea?")] == ["- likes green tea\n"]


def test_the_client_runs_the_tool(model: Model, memory: AgentMemory) -> None:
    with Anthropic(api_key="none", base_url=model.url, max_retries=0) as client:
        runner = client.beta.messages.tool_runner(
            model="claude-test",
            max_tokens=100,
            messages=[{"role": "user", "content": "Remember that I like tea"}],
            tools=[AgentMemoryTool(memory)],
        )
        assert runner.until_done().content[0].to_dict()["text"] == "done"
    check(model, memory)


def test_the_asynchronous_client_runs_the_asynchronous_tool(
    model: Model, memory: AgentMemory
) -> None:
    async def work() -> object:
        async with AsyncAnthropic(api_key="none", base_url=model.url, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(
                model="claude-test",
                max_tokens=100,
                messages=[{"role": "user", "content": "Remember that I like tea"}],
                tools=[AsyncAgentMemoryTool(memory)],
            )
            return (await runner.until_done()).content[0].to_dict()["text"]

    assert asyncio.run(work()) == "done"
    check(model, memory)
