"""What the servers on 127.0.0.1 that tests talk to have in common: starting, stopping, quiet."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

Owner = TypeVar("Owner")


class LocalServer:
    """A running server; ``with`` starts and stops it. Its handler knows it as ``server.owner``."""

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        self._lock = threading.Lock()
        self._server = OwnedServer(("127.0.0.1", port), handler, self)
        # A short poll, for closing waits for it.
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def root(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        """The base_url for clients of OpenAI's API."""
        return f"{self.root}/v1"


class OwnedServer(ThreadingHTTPServer, Generic[Owner]):
    """The server itself, which knows whose it is."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], owner: Owner
    ) -> None:
        super().__init__(address, handler)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that go away, which is what tests of time-outs do."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
