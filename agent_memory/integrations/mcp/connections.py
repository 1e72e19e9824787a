"""Connections of the server over HTTP: so many at most, and each with a deadline for its requests.

uvicorn waits for ever for the headers of a request, and accepts connections until there are no
descriptors left; then asyncio logs a traceback for each that it cannot accept, and nobody is
answered. uvicorn's own ``limit_concurrency`` refuses requests, not connections.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS: Final = 64
"""Open at once. Clients are few: each keeps one or two, and opens another where one was closed."""
BACKLOG: Final = 64
"""Accepted in one turn of the loop, before ``MOST_CONNECTIONS`` can be seen to be passed: both
together, with what a memory needs, are within the 256 descriptors that macOS gives a process."""
REQUEST_SECONDS: Final = 15.0
"""From when a connection may send a request until that must have come, whole."""


class BoundedConnection(H11Protocol):
    """A connection that ends where its request does not come in time, or others need its room."""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and close the connection that has waited longest where there are too many."""
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > MOST_CONNECTIONS:
            others = [cast("BoundedConnection", other) for other in self.connections]
            # With nobody waiting or not reading, all are being answered: this one has to go.
            idle = [other for other in others if other.is_idle()] or [self]
            min(idle, key=BoundedConnection.deadline_time).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came. That more of a request comes does not put its deadline off."""
        super().data_received(data)
        if self._has_whole_request():
            self._stop_waiting()
        else:
            self._await_request()

    def on_response_complete(self) -> None:
        """Go on to the next request, which may be there already."""
        super().on_response_complete()
        if not self._has_whole_request():
            self._await_request()

    def is_idle(self) -> bool:
        """Return whether no answer is being made, or nobody reads the one that is."""
        return not self._has_whole_request() or self.flow.write_paused

    def deadline_time(self) -> float:
        """Return when the wait for a request ends; where there is none, it is before all others."""
        return 0.0 if self.deadline is None else self.deadline.when()

    def abort(self) -> None:
        """Close the connection at once, and count it no more."""
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
