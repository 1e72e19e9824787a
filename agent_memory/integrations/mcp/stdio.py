"""The server over stdin and stdout: one message per line. Requests are answered concurrently."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, BinaryIO, Final

import agent_memory
from agent_memory.integrations.mcp.asking import ROOTS, AnswersNeeded, Client, mapping_of
from agent_memory.integrations.mcp.errors import INTERNAL_ERROR, PARSE_ERROR, RequestFailed
from agent_memory.integrations.mcp.messages import (
    Answer,
    BadMessage,
    Request,
    RequestId,
    answer,
    failed,
    read_message,
    write_message,
)
from agent_memory.integrations.mcp.project_server import AnyServer

LONGEST_LINE: Final = 16 * 1024 * 1024
"""The most bytes of a message; a longer one is refused."""
_THREADS: Final = 8
_MOST_WAITING: Final = 64
"""Requests that are read ahead: with this many unanswered, no more lines are read."""
_ROOTS_SECONDS: Final = 10
_QUESTION_SECONDS: Final = 600
"""How long a client, and the user whom it asks, have to answer."""
_MOST_QUESTIONS: Final = 4
"""Questions to the user that may be open: each keeps a thread waiting."""


def serve_stdio(server: AnyServer) -> None:
    """Answer on stdout what arrives on stdin, until that ends.

    Meanwhile anything else that is printed goes to stderr, and other readers of stdin get nothing.
    """
    with _claimed_streams() as (incoming, outgoing):
        Conversation(server, incoming, outgoing).serve()


_Question = Future[Mapping[str, Any]]


class Conversation:
    """The messages of one client, and the answers to them."""

    def __init__(self, server: AnyServer, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._server = server
        self._incoming = incoming
        self._outgoing = outgoing
        self._writing = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_WAITING)
        self._cancelled: set[RequestId] = set()
        self._unanswered: set[RequestId] = set()
        self._client = Client()
        self._questions: dict[RequestId, _Question] = {}
        """By their own number; and in ``_question_of`` by the request that waits for the answer."""
        self._question_of: dict[RequestId, _Question] = {}
        self._room_to_ask = threading.BoundedSemaphore(_MOST_QUESTIONS)
        self._has_ended = False
        self._numbers = count(1)

    def serve(self) -> None:
        """Answer everything that arrives, and at the end of input finish what was asked.

        If interrupted, finish what was started.
        """
        pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="mcp")
        try:
            for line in self._lines():
                self._take(line, pool)
            self._expect_no_answers()
            pool.shutdown()
        except BaseException:  # Ctrl-C and SIGTERM
            self._expect_no_answers()
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
        if isinstance(message, Answer):
            question = self._questions.pop(message.id, None)
            if question is not None and not question.cancelled():
                question.set_result(message.result or {})
        elif isinstance(message, Request) and message.method == "ping":
            self._send(answer(self._server, message))  # whatever keeps the threads busy
        elif isinstance(message, Request):
            if message.method == "initialize":
                self._client = Client(mapping_of(message.params.get("capabilities")))
            self._room.acquire()
            self._unanswered.add(message.id)
            pool.submit(self._answer, message)
        elif message is not None and message.method == "notifications/initialized":
            pool.submit(getattr, agent_memory, "AgentMemory")  # imported early: it takes 0.2 s
        elif message is not None and message.method == "notifications/cancelled":
            self._cancel(message.params.get("requestId"))

    def _cancel(self, request_id: object) -> None:
        if isinstance(request_id, str | int) and request_id in self._unanswered:
            self._cancelled.add(request_id)
            if (question := self._question_of.get(request_id)) is not None:
                question.cancel()

    def _answer(self, request: Request) -> None:
        """Answer a request, unless it was cancelled meanwhile."""
        try:
            if request.id not in self._cancelled:
                message = self._answered(request)
                if request.id not in self._cancelled:
                    self._send(message)
        finally:
            self._unanswered.discard(request.id)
            self._cancelled.discard(request.id)
            self._room.release()

    def _answered(self, request: Request) -> Mapping[str, Any]:
        """Return the answer to a request, asking the client for what it needs."""
        client = self._client
        while True:
            try:
                return answer(self._server, request, client)
            except AnswersNeeded as needed:
                ((key, asked),) = needed.requests.items()
                if key == ROOTS:
                    reply = self._ask(request.id, asked, seconds=_ROOTS_SECONDS)
                elif self._room_to_ask.acquire(blocking=False):
                    try:
                        reply = self._ask(request.id, asked, seconds=_QUESTION_SECONDS)
                    finally:
                        self._room_to_ask.release()
                else:
                    reply = {}  # none: a model's answer must not stand for the user's
                client = replace(client, answers={**client.answers, key: reply})

    def _ask(
        self, request_id: RequestId, asked: Mapping[str, Any], *, seconds: float
    ) -> Mapping[str, Any]:
        """Return the client's answer; empty if there is none, none in time, or no more need."""
        number = f"agent-memory-{next(self._numbers)}"
        question = self._questions[number] = self._question_of[request_id] = _Question()
        try:
            if self._has_ended or request_id in self._cancelled:  # before it could be woken
                return {}
            self._send({"jsonrpc": "2.0", "id": number, **asked})
            return question.result(seconds)
        except (TimeoutError, CancelledError):
            return {}
        finally:
            self._question_of.pop(request_id, None)
            self._questions.pop(number, None)

    def _expect_no_answers(self) -> None:
        """Stop waiting for answers from a client that is gone, and ask it nothing more."""
        self._has_ended = True
        for question in list(self._questions.values()):
            question.cancel()

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            line = write_message(message)
        except (ValueError, RecursionError) as error:
            failure = RequestFailed(INTERNAL_ERROR, f"the answer cannot be written: {error}")
            line = write_message(failed(message["id"], failure))
        with self._writing, contextlib.suppress(OSError):  # the reader is gone
            self._outgoing.write(line)
            self._outgoing.flush()


@contextlib.contextmanager
def _claimed_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Give the body exclusive use of stdin and stdout; others get an empty stdin, and stderr."""
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
