"""The server over stdin and stdout: a line, a message. Requests are answered side by side."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final

from agent_memory.integrations.mcp.errors import INTERNAL_ERROR, PARSE_ERROR, RequestFailed
from agent_memory.integrations.mcp.messages import (
    BadMessage,
    Request,
    RequestId,
    answer,
    failed,
    read_message,
    write_message,
)
from agent_memory.integrations.mcp.server import MemoryServer

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a message; a longer one is refused."""
_THREADS: Final = 8
_MOST_WAITING: Final = 64
"""Requests that are read ahead: with so many unanswered, no more lines are read."""


def serve_stdio(server: MemoryServer) -> None:
    """Answer on stdout what comes on stdin, until that ends.

    Until then whatever else is printed goes to stderr, and reads nothing.
    """
    with _claimed_streams() as (incoming, outgoing):
        Conversation(server, incoming, outgoing).serve()


class Conversation:
    """What one client says, and what it is answered."""

    def __init__(self, server: MemoryServer, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._server = server
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_WAITING)
        self._cancelled: set[RequestId] = set()
        self._unanswered: set[RequestId] = set()

    def serve(self) -> None:
        """Answer all that comes; when nothing more does, finish what was asked.

        When it is interrupted, it finishes what was begun.
        """
        pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="mcp")
        try:
            for line in self._lines():
                self._take(line, pool)
            pool.shutdown()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise

    def _lines(self) -> Iterator[bytes]:
        while line := self._incoming.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = self._incoming.readline(LONGEST_LINE)
                message = f"a message has {LONGEST_LINE:,} bytes at most"
                self._send(failed(None, RequestFailed(PARSE_ERROR, message)))
            elif line.strip():
                yield line

    def _take(self, line: bytes, pool: ThreadPoolExecutor) -> None:
        try:
            message = read_message(line)
        except BadMessage as error:
            self._send(failed(error.request_id, error))
            return
        if isinstance(message, Request):
            self._room.acquire()
            self._unanswered.add(message.id)
            pool.submit(self._answer, message)
        elif message is not None and message.method == "notifications/cancelled":
            named = message.params.get("requestId")
            if isinstance(named, str | int) and named in self._unanswered:
                self._cancelled.add(named)

    def _answer(self, request: Request) -> None:
        """Answer a request. One that was cancelled meanwhile has no answer."""
        try:
            if request.id not in self._cancelled:
                message = answer(self._server, request)
                if request.id not in self._cancelled:
                    self._send(message)
        finally:
            self._unanswered.discard(request.id)
            self._cancelled.discard(request.id)
            self._room.release()

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            line = write_message(message)
        except (ValueError, RecursionError) as error:
            failure = RequestFailed(INTERNAL_ERROR, f"the answer cannot be written: {error}")
            line = write_message(failed(message["id"], failure))
        with self._writing, contextlib.suppress(OSError):  # there is nobody to read it any more
            self._outgoing.write(line)
            self._outgoing.flush()


@contextlib.contextmanager
def _claimed_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Give the body stdin and stdout for itself, and everybody else nothing and stderr."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reader, writer = os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb")
    try:
        yield reader, writer
    finally:
        sys.stdout.flush()
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
        reader.close()
        with contextlib.suppress(OSError):
            writer.close()
