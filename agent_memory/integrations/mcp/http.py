"""The server over HTTP, by the package ``mcp``: streamable HTTP, at ``/mcp``.

The number of connections is limited, and each has a deadline for its requests. uvicorn waits for
ever for the headers of a request, and accepts connections until there are no descriptors left; then
asyncio logs a traceback for each that it cannot accept, and nobody is answered. uvicorn's own
``limit_concurrency`` refuses requests, not connections.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

import uvicorn
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from agent_memory.integrations.loopback import LOOPBACK_NAMES
from agent_memory.integrations.mcp.errors import RequestFailed
from agent_memory.integrations.mcp.messages import HANDSHAKE_VERSIONS, answer_without_handshake
from agent_memory.integrations.mcp.server import MemoryServer

PATH: Final = "/mcp"
_THREADS: Final = 8
_LAST_WORDS: Final = 3
"""Seconds that open connections have when the server is stopped."""


class _AnyParams(RequestParams, extra="allow"):
    """Parameters of a request, which ``MemoryServer`` parses itself."""


class _Announced(uvicorn.Server):
    """A server that calls a function once it has started."""

    def __init__(self, config: uvicorn.Config, begun: Callable[[], None]) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start answering. From here on, signals end it cleanly."""
        await super().startup(sockets)
        self._begun()


def serve_http(
    server: MemoryServer,
    listening: socket.socket,
    *,
    begun: Callable[[], None],
    names: Sequence[str] = (),
) -> None:
    """Serve on a listening socket until SIGINT or SIGTERM.

    ``begun`` is called once it answers. ``names`` are those by which clients may call the server,
    besides those of this machine.
    """
    config = uvicorn.Config(
        application(server, names),
        http=BoundedConnection,
        backlog=BACKLOG,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=_LAST_WORDS,
    )
    _Announced(config, begun).run(sockets=[listening])


def application(server: MemoryServer, names: Sequence[str] = ()) -> Starlette:
    """Return the server as an ASGI application. It keeps no state of its clients."""
    info = server.info
    protocol = Server[Any](
        info["name"],
        version=info["version"],
        title=info["title"],
        instructions=server.instructions,
    )
    answer = partial(_answer, server, CapacityLimiter(_THREADS))
    for method in server.methods:
        protocol.add_request_handler(method, _AnyParams, answer)
    return protocol.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=_security(names),
    )


async def _answer(
    server: MemoryServer,
    threads: CapacityLimiter,
    context: ServerRequestContext[Any],
    _: RequestParams,
) -> dict[str, Any]:
    """Answer one request in another thread."""
    method, params = context.method, context.params or {}
    has_handshake = context.protocol_version in HANDSHAKE_VERSIONS
    try:
        if has_handshake:  # there is no open connection to ask its client on
            return await run_sync(server.answer, method, params, limiter=threads)
        answer = answer_without_handshake
        return await run_sync(answer, server, method, params, limiter=threads)
    except RequestFailed as failure:
        code = failure.code_in(has_handshake=has_handshake)
        raise MCPError(code=code, message=failure.message, data=failure.data) from failure


def _security(names: Sequence[str]) -> TransportSecuritySettings:
    """Refuse requests for another name: a web page may point its own name at this machine."""
    hosts = [*LOOPBACK_NAMES, *names]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[form for name in hosts for form in (name, f"{name}:*")],
        allowed_origins=[
            form
            for name in hosts
            for scheme in ("http", "https")
            for form in (f"{scheme}://{name}", f"{scheme}://{name}:*")
        ],
    )


MOST_CONNECTIONS: Final = 64
"""The most open connections. Clients are few: each keeps one or two, and reopens one that was
closed."""
BACKLOG: Final = 64
"""Connections accepted in one turn of the loop, before ``MOST_CONNECTIONS`` can be checked: both
together, with what a memory needs, are within the 256 descriptors that macOS gives a process."""
REQUEST_SECONDS: Final = 15.0
"""The time in which a request must arrive completely, once its connection may send it."""


class BoundedConnection(H11Protocol):
    """A connection that is closed if its request is late, or others need its room."""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start, and close the connection that has waited longest if there are too many."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > MOST_CONNECTIONS:
            others = [cast("BoundedConnection", other) for other in self.connections]
            # If none waits or has stopped reading, all are being answered: drop this one.
            idle = [other for other in others if other.is_idle()] or [self]
            min(idle, key=BoundedConnection.deadline_time).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the deadline."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Handle received data. Further parts of a request do not extend its deadline."""
        super().data_received(data)
        if self._has_whole_request():
            self._stop_waiting()
        else:
            self._await_request()

    def on_response_complete(self) -> None:
        """Continue with the next request, which may already be there."""
        super().on_response_complete()
        if not self._has_whole_request():
            self._await_request()

    def is_idle(self) -> bool:
        """Return whether no response is being made, or the client is not reading it."""
        return not self._has_whole_request() or self.flow.write_paused

    def deadline_time(self) -> float:
        """Return the deadline of the awaited request; without one, the connection sorts first."""
        return 0.0 if self.deadline is None else self.deadline.when()

    def abort(self) -> None:
        """Close the connection at once, and no longer count it."""
        self.connections.discard(self)
        self.transport.abort()

    def _has_whole_request(self) -> bool:
        request = self.cycle
        return request is not None and not request.response_complete and not request.more_body

    def _await_request(self) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(REQUEST_SECONDS, self.abort)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
