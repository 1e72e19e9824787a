"""Running the server: over which transport, where, and how it ends."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence

from agent_memory import ConfigurationError
from agent_memory.integrations.mcp.memory_handle import ServedMemory
from agent_memory.integrations.mcp.server import MemoryServer
from agent_memory.integrations.registry import missing_package


class _Stopped(BaseException):
    """The process was asked to end (SIGTERM)."""


def run(
    served: ServedMemory,
    *,
    port: int | None = None,
    host: str = "127.0.0.1",
    remote_names: Sequence[str] = (),
) -> None:
    """Serve a memory until the client goes, Ctrl-C or SIGTERM, and close it.

    Over stdin and stdout, or with a ``port`` over HTTP (0 takes a free one; the address is told on
    stderr). There is no password: a ``host`` that others can reach is refused unless
    ``remote_names`` says by which names they call it, and only those are answered.

    Raises ``ConfigurationError`` where the package ``mcp`` is needed and missing, or the address
    cannot be had.
    """
    server = MemoryServer(served)
    with contextlib.closing(server), _stopped_by_sigterm():
        if port is None:
            from agent_memory.integrations.mcp.stdio import serve_stdio  # noqa: PLC0415 - or HTTP

            serve_stdio(server)
        else:
            _serve_http(server, host, port, remote_names)


def _serve_http(server: MemoryServer, host: str, port: int, names: Sequence[str]) -> None:
    if not names and not _is_loopback(host):
        raise ConfigurationError(
            f"{host} can be reached from other machines, and there is no password: whoever reaches"
            " it could read and change the memories. Name the hosts that clients may call it by"
            " (--allow-remote NAME), and let nobody else in there"
        )
    try:
        from agent_memory.integrations.mcp.http import PATH, serve_http  # noqa: PLC0415 - slow
    except ModuleNotFoundError as error:
        raise missing_package("mcp", error) from error
    with _listening(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}{PATH}"

        def announce() -> None:
            print(f"serving at {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)  # noqa: T201

        serve_http(server, listening, begun=announce, names=names)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        message = (
            f"{host}:{port} cannot be listened on: {error}. Give another --http PORT or --host"
        )
        raise ConfigurationError(message) from error
    # asyncio turns off Nagle's algorithm, which makes each answer wait 40 ms, where TCP is named.
    return socket.socket(made.family, made.type, socket.IPPROTO_TCP, fileno=made.detach())


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """End the body at SIGTERM, as if it were done. A second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise _Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        with contextlib.suppress(_Stopped):
            yield
    finally:
        signal.signal(signal.SIGTERM, before)
