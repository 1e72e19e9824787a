"""A server on 127.0.0.1 that speaks the chat APIs of OpenAI and Anthropic, and says what it should.

Each request takes the next of ``script``; the last one stays. What is not scripted is right.
"""

from __future__ import annotations

import json
import socket
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from local_server import LocalServer, OwnedServer


@dataclass
class Said:
    """How one request is answered: with a text, or with what goes wrong."""

    text: str = "{}"
    status: int = 200
    """With a status other than 200 the answer is an error, with ``text`` as its message."""
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    drip_seconds: float = 0.0
    """Before each byte of the body."""
    hang_up: bool = False
    raw_body: bytes | None = None
    """Sent in place of JSON."""
    stop_reason: str | None = None
    refusal: str | None = None
    as_text: bool = False
    """Of Anthropic's: answer with a text, not by calling the tool."""


@dataclass
class Request:
    """One request as it came in; the names of its headers in small letters."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


class ChatServer(LocalServer):
    """A running server; ``with ChatServer(Said("…")) as server`` starts and stops it."""

    def __init__(self, *script: Said) -> None:
        super().__init__(_Handler)
        self.script = list(script)
        self.requests: list[Request] = []

    def take(self, request: Request) -> Said:
        """Note a request; return what to say to it."""
        with self._lock:
            self.requests.append(request)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: OwnedServer[ChatServer]

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        said = self.server.owner.take(Request(self.path, body, headers))
        time.sleep(said.delay_seconds)
        if said.hang_up:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif said.raw_body is not None:
            is_json = said.raw_body.startswith(b"{")
            self._send(200, said.raw_body, said, "application/json" if is_json else "text/html")
        elif said.status != 200:
            error = {"type": "error", "error": {"message": said.text, "type": "test"}}
            self._send(said.status, json.dumps(error).encode(), said)
        else:
            form = _openai if self.path == "/v1/chat/completions" else _anthropic
            self._send(200, json.dumps(form(body, said)).encode(), said)

    def _send(
        self, status: int, data: bytes, said: Said, content_type: str = "application/json"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in said.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for part in (bytes([byte]) for byte in data) if said.drip_seconds else [data]:
            time.sleep(said.drip_seconds)
            self.wfile.write(part)


def _openai(body: dict[str, Any], said: Said) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.text, "refusal": None}
    if said.refusal is not None:
        message = {"role": "assistant", "content": None, "refusal": said.refusal}
    choice = {"index": 0, "message": message, "finish_reason": said.stop_reason or "stop"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _anthropic(body: dict[str, Any], said: Said) -> dict[str, Any]:
    calls_tool = "tools" in body and not said.as_text
    block: dict[str, Any] = {"type": "text", "text": said.text}
    if calls_tool:
        name = body["tools"][0]["name"]
        block = {"type": "tool_use", "id": "t1", "name": name, "input": json.loads(said.text)}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": said.stop_reason or ("tool_use" if calls_tool else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
