"""The server over HTTP, by the package ``mcp``: streamable HTTP, at ``/mcp``."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import uvicorn
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import RequestParams
from starlette.applications import Starlette

from agent_memory.integrations.mcp.connections import BACKLOG, BoundedConnection
from agent_memory.integrations.mcp.errors import RequestFailed
from agent_memory.integrations.mcp.messages import HANDSHAKE_VERSIONS, complete
from agent_memory.integrations.mcp.server import MemoryServer

PATH: Final = "/mcp"
_THREADS: Final = 8
_LAST_WORDS: Final = 3
"""Seconds that open connections have when the server is stopped."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class _AnyParams(RequestParams, extra="allow"):
    """Parameters of a request, which ``MemoryServer`` reads itself."""


class _Announced(uvicorn.Server):
    """A server that calls a function when it has begun."""

    def __init__(self, config: uvicorn.Config, begun: Callable[[], None]) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer. By now signals end it cleanly."""
        await super().startup(sockets)
        self._begun()


def serve_http(
    server: MemoryServer,
    listening: socket.socket,
    *,
    begun: Callable[[], None],
    names: Sequence[str] = (),
) -> None:
    """Answer on a socket that listens, until SIGINT or SIGTERM.

    ``begun`` is called when it answers. ``names`` are those by which clients may call the server,
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
        result = await run_sync(server.answer, method, params, limiter=threads)
        return result if has_handshake else complete(method, result)
    except RequestFailed as failure:
        code = failure.code_in(has_handshake=has_handshake)
        raise MCPError(code=code, message=failure.message, data=failure.data) from failure


def _security(names: Sequence[str]) -> TransportSecuritySettings:
    """Refuse what was meant for another name: a web page that calls this machine by its own."""
    hosts = [*_LOOPBACK, *names]
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
