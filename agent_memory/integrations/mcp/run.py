"""Runs the server: over which transport, where, and until when."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from agent_memory import ConfigurationError
from agent_memory.integrations.loopback import is_loopback, listening_socket, stopped_by_sigterm
from agent_memory.integrations.mcp.memory_handle import ServedMemory
from agent_memory.integrations.mcp.project_server import ProjectServer
from agent_memory.integrations.mcp.server import MemoryServer
from agent_memory.integrations.registry import missing_package


def run(
    served: ServedMemory | ProjectServer,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    remote_names: Sequence[str] = (),
) -> None:
    """Serve a memory until the client disconnects, Ctrl-C or SIGTERM, and close it.

    It is served over stdin and stdout, or with a ``port`` over HTTP (0 takes a free one; the
    address is printed on stderr). There is no password: a ``host`` that other machines can reach is
    refused unless ``remote_names`` lists the names by which they call it, and only those are
    answered. A ``ProjectServer`` has one client, over stdin and stdout.

    Raises ``ConfigurationError`` if the package ``mcp`` is needed and missing, or the address
    cannot be used.
    """
    server = MemoryServer(served) if isinstance(served, ServedMemory) else served
    with contextlib.closing(server), stopped_by_sigterm():
        if port is None or isinstance(server, ProjectServer):
            from agent_memory.integrations.mcp.stdio import serve_stdio  # noqa: PLC0415 - or HTTP

            serve_stdio(server)
        else:
            _serve_http(server, host, port, remote_names)


def _serve_http(server: MemoryServer, host: str, port: int, names: Sequence[str]) -> None:
    if not names and not is_loopback(host):
        raise ConfigurationError(
            f"{host} can be reached from other machines, and there is no password: anyone who"
            " reaches it could read and change the memories. Name the hosts by which clients"
            " may call it (--allow-remote NAME), and keep everybody else out"
        )
    try:
        from agent_memory.integrations.mcp.http import PATH, serve_http  # noqa: PLC0415 - slow
    except ModuleNotFoundError as error:
        raise missing_package("mcp", error) from error
    with listening_socket(host, port, advice="another --http PORT or --host") as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}{PATH}"

        def announce() -> None:
            print(f"serving at {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)  # noqa: T201

        serve_http(server, listening, begun=announce, names=names)
