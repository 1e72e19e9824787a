"""Serving on this machine only: its names, a listening socket, and how to stop a server."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Final

from agent_memory import ConfigurationError

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine in a URL. A page that uses another name was sent here by that name's
owner (DNS rebinding)."""


class _Stopped(BaseException):
    """The process received SIGTERM."""


def listening_socket(host: str, port: int, *, advice: str) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises ``ConfigurationError``, with ``advice`` on what to give instead.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        message = f"cannot listen on {host}:{port}: {error}. Give {advice}"
        raise ConfigurationError(message) from error
    # asyncio turns off Nagle's algorithm (40 ms for each answer) only if TCP is named.
    return socket.socket(made.family, made.type, socket.IPPROTO_TCP, fileno=made.detach())


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """End the body at SIGTERM, as if it were done. A second SIGTERM ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
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
