"""The server: a limited number of connections, each with a thread and a deadline for its request.

``http.server`` waits for ever for the headers of a request, accepts any number of connections, and
reads any number of bytes of headers. A browser needs six connections.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

MOST_CONNECTIONS: Final = 32
REQUEST_SECONDS: Final = 15.0
"""The time in which a request must arrive completely, once its connection may send it; an answer
must be taken within the same time."""


@dataclass(slots=True, eq=False)
class Connection:
    """An open connection, and its deadline for a request; ``None`` while one is answered."""

    socket: socket.socket
    deadline: float | None

    def abort(self) -> None:
        """Shut the socket down. Its thread, which reads, sees the end of input."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)


class BoundedServer(ThreadingHTTPServer):
    """Answers on a socket that is already listening, until ``shutdown``."""

    daemon_threads = True

    def __init__(
        self,
        listening: socket.socket,
        handler: Callable[[Any, Any, BoundedServer], BaseHTTPRequestHandler],
        *,
        request_seconds: float,
    ) -> None:
        super().__init__(listening.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.request_seconds = request_seconds
        self._connections: dict[Any, Connection] = {}
        self._lock = threading.RLock()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - a socket
        """Start a connection; if there are too many, end the one that has waited longest."""
        with self._lock:
            if len(self._connections) >= MOST_CONNECTIONS:
                waiting = [key for key, each in self._connections.items() if each.deadline]
                if not waiting:  # all are being answered: drop this one
                    self.shutdown_request(request)
                    return
                oldest = min(waiting, key=lambda key: self._connections[key].deadline or 0.0)
                self._connections.pop(oldest).abort()
            self._connections[request] = Connection(request, self._next_deadline())
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - a socket
        """End a connection, and no longer count it."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def await_request(self, request: Any) -> None:  # noqa: ANN401 - a socket
        """Give a connection its time for the next request."""
        if connection := self._connections.get(request):
            connection.deadline = self._next_deadline()

    def begin_answer(self, request: Any) -> None:  # noqa: ANN401 - a socket
        """Record that a whole request has arrived: its answer has no deadline."""
        if connection := self._connections.get(request):
            connection.deadline = None

    def service_actions(self) -> None:
        """End the connections past their deadline. This is called twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [each for each in self._connections.values() if (each.deadline or now) < now]
        for connection in late:
            connection.abort()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - a socket
        """Ignore browsers that disconnect; anything else is a bug, and is printed."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    def _next_deadline(self) -> float:
        return time.monotonic() + self.request_seconds
