"""One connection: admits or refuses requests, and answers files and data with the same headers.

A GET changes nothing: it is answered from a memory that is opened read-only. A change is a POST
with the cookie, the key and the page's own origin.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from io import BufferedIOBase, BufferedReader
from operator import methodcaller
from typing import Any, Final, cast
from urllib.parse import SplitResult, urlsplit

from agent_memory import (
    AgentMemory,
    AgentMemoryError,
    AgentNotFound,
    ConfigurationError,
    MemoryNotFound,
    MissingAgentIdentity,
    PermissionDenied,
    StorageReadOnly,
    ValidationError,
)
from agent_memory.errors import with_notes
from agent_memory.integrations.ui.admission import Admission
from agent_memory.integrations.ui.agents import PageAgents
from agent_memory.integrations.ui.page_files import PageFile
from agent_memory.integrations.ui.queries import Query, parse_body
from agent_memory.integrations.ui.server import BoundedServer

MOST_BODY_BYTES: Final = 256_000
"""The most bytes of a body: a memory of 10,000 characters, each escaped, and its metadata."""
MOST_HEAD_BYTES: Final = 32_000
_API: Final = "/api/"
_of_model: Final = methodcaller("model_dump", mode="json")
_SECURITY: Final = {
    "Content-Security-Policy": "default-src 'self'; object-src 'none'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATUSES: Final[tuple[tuple[type[AgentMemoryError], int], ...]] = (
    (MemoryNotFound, 404),
    (AgentNotFound, 404),
    (PermissionDenied, 403),
    (StorageReadOnly, 403),
    (ValidationError, 400),
    (ConfigurationError, 400),
    (MissingAgentIdentity, 400),
    (AgentMemoryError, 503),
)

AGENT_HEADER: Final = "X-Agent-Memory-Agent"
"""The id of the agent that a request is about; the default is the page's own agent."""

Read = Callable[[AgentMemory, Query], object]
Write = Callable[[AgentMemory, Mapping[str, Any]], object]


class Refused(AgentMemoryError):
    """A refused request, with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HeadReader:
    """Reads a request with a limit on the size of its head."""

    def __init__(self, stream: BufferedIOBase) -> None:
        self._stream = stream
        self.left = MOST_HEAD_BYTES

    def readline(self, size: int = -1) -> bytes:
        """Read a line of the head. Raises ``ConnectionAbortedError`` past the limit."""
        line = self._stream.readline(min(size, self.left + 1) if size >= 0 else self.left + 1)
        self.left -= len(line)
        if self.left < 0:
            raise ConnectionAbortedError("the head of the request is too long")
        return line

    def read(self, size: int) -> bytes:
        """Read a body."""
        return self._stream.read(size)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    @property
    def closed(self) -> bool:
        """Whether the stream is closed."""
        return self._stream.closed


class PageHandler(BaseHTTPRequestHandler):
    """Answers the requests of one connection. Subclasses define what is served."""

    protocol_version = "HTTP/1.1"
    server_version = "agent-memory"
    sys_version = ""
    admission: Admission
    agents: PageAgents
    files: Mapping[str, PageFile]
    reads: Mapping[str, Read]
    writes: Mapping[str, Write]

    def setup(self) -> None:
        """Start: no read from the socket and no write to it may exceed a request's time limit."""
        super().setup()
        self.connection.settimeout(self._bounded.request_seconds)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rfile = cast("BufferedReader", HeadReader(self.rfile))

    def handle_one_request(self) -> None:
        """Answer one request, within its time."""
        self._bounded.await_request(self.request)
        cast("HeadReader", self.rfile).left = MOST_HEAD_BYTES
        super().handle_one_request()

    def do_GET(self) -> None:
        """Answer a read: a file of the page, or data."""
        self._answer(self._get)

    do_HEAD = do_GET  # noqa: N815 - its name there; it is answered without the body

    def do_POST(self) -> None:
        """Answer a write."""
        self._answer(self._post)

    def _answer(self, respond: Callable[[str], None]) -> None:
        is_write = self.command == "POST"
        try:
            self._refuse_strangers(is_write=is_write)
            respond(self._address().path)
        except Refused as error:
            self.close_connection = True  # the unread rest of it must not be taken for a request
            self._send_error(error.status, error)
        except AgentMemoryError as error:
            status = next(status for kind, status in _STATUSES if isinstance(error, kind))
            self._send_error(status, error)

    def _get(self, path: str) -> None:
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            raise Refused(400, f"a {self.command} has no body")
        self._bounded.begin_answer(self.request)
        if not path.startswith(_API):
            self._send_file(path)
            return
        self._require_admission()
        read = self.reads.get(path.removeprefix(_API))
        if read is None:
            raise Refused(404, "there is nothing at this address")
        query = Query(self._address().query)
        with self.agents.reading(self._agent_id()) as memory:
            self._send_json(200, {"data": read(memory, query)})

    def _post(self, path: str) -> None:
        body = parse_body(self._body())
        self._bounded.begin_answer(self.request)
        if path == f"{_API}session":
            self._begin_session(body)
            return
        self._require_admission()
        write = self.writes.get(path.removeprefix(_API)) if path.startswith(_API) else None
        if write is None:
            raise Refused(404, "there is nothing at this address")
        with self.agents.writing(self._agent_id()) as memory:
            self._send_json(200, {"data": write(memory, body)})

    def _address(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError as error:  # "http://[x"
            raise Refused(400, "invalid address") from error

    def _agent_id(self) -> str | None:
        ids = self.headers.get_all(AGENT_HEADER, [])
        if len(ids) > 1:
            raise Refused(400, "a request must be about one agent")
        return ids[0] if ids else None

    def _begin_session(self, body: Mapping[str, Any]) -> None:
        """Exchange the token of the address for this browser's credentials."""
        issued = self.admission.exchange(str(body.get("token")))
        if issued is None:
            raise Refused(403, "this address was used already: run `agent-memory ui` again")
        cookie = self.admission.set_cookie(issued.cookie)
        self._send_json(200, {"data": {"key": issued.key}}, {"Set-Cookie": cookie})

    def _refuse_strangers(self, *, is_write: bool) -> None:
        if refusal := self.admission.refusal_of(self.headers, is_write=is_write):
            raise Refused(403, refusal)

    def _require_admission(self) -> None:
        if not self.admission.admits(self.headers):
            raise Refused(401, "this browser is not authorized: run `agent-memory ui` again")

    def _body(self) -> bytes:
        lengths = self.headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            raise Refused(411, "a POST must have a Content-Length")
        if "Transfer-Encoding" in self.headers:
            raise Refused(400, "a body must be sent whole, not in chunks")
        if self.headers.get_content_type() != "application/json":
            raise Refused(415, "a body must be JSON")
        length = int(lengths[0][:12])
        if length > MOST_BODY_BYTES:
            raise Refused(
                413, f"a request may have at most {MOST_BODY_BYTES:,} bytes, not {length:,}"
            )
        body = self.rfile.read(length)
        if len(body) < length:
            raise ConnectionAbortedError("the request ended early")
        return body

    # Sending ----------------------------------------------------------------------------------

    def _send_file(self, path: str) -> None:
        file = self.files.get(path)
        if file is None:
            raise Refused(404, "there is nothing at this address")
        self._send(200, file.content, file.media_type, {})

    def _send_json(
        self, status: int, data: object, headers: Mapping[str, str] | None = None
    ) -> None:
        # In ASCII: a lone surrogate of a damaged text can be escaped, but not encoded.
        text = json.dumps(data, separators=(",", ":"), default=_of_model)
        self._send(status, text.encode(), "application/json", headers or {})

    def _send_error(self, status: int, error: AgentMemoryError) -> None:
        code = "REFUSED" if isinstance(error, Refused) else error.code
        self._send_json(status, {"error": {"code": code, "message": with_notes(error)}})

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,  # noqa: ARG002
    ) -> None:
        """Answer a request that ``http.server`` rejects in the same form as all others."""
        self.close_connection = True
        self._send_error(code, Refused(code, message or "invalid request"))

    def _send(
        self, status: int, content: bytes, media_type: str, headers: Mapping[str, str]
    ) -> None:
        self.send_response(status)
        more = {"Connection": "close"} if self.close_connection else {}
        for name, value in {
            "Content-Type": f"{media_type}; charset=utf-8",
            "Content-Length": str(len(content)),
            **_SECURITY,
            **headers,
            **more,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    @property
    def _bounded(self) -> BoundedServer:
        return cast("BoundedServer", self.server)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Log no requests."""
