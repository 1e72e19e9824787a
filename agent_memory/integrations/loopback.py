"""Serving on this machine: its names, a socket that listens, and how a server is ended."""

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
"""How this machine calls itself in a URL. A page that calls it by another name was sent here by
that name's owner (DNS rebinding)."""


class _Stopped(BaseException):
    """The process was asked to end (SIGTERM)."""


def listening_socket(host: str, port: int, *, advice: str) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one.

    Raises ``ConfigurationError``, with ``advice`` on what to give instead.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        message = f"{host}:{port} cannot be listened on: {error}. Give {advice}"
        raise ConfigurationError(message) from error
    # asyncio turns off Nagle's algorithm, which makes each answer wait 40 ms, where TCP is named.
    return socket.socket(made.family, made.type, socket.IPPROTO_TCP, fileno=made.detach())


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
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
