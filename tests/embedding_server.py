"""A server on 127.0.0.1 that speaks OpenAI's embeddings API, and misbehaves when it is told to.

Texts that share words have vectors that are near each other, so that searches can be tested with
it. As a process of its own: ``python tests/embedding_server.py --port 8000 --log texts.jsonl``.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import socket
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

from local_server import LocalServer, OwnedServer

DIMENSIONS: Final = 64
Change = Callable[[dict[str, Any]], None]


@lru_cache(maxsize=100_000)
def _word_vector(word: str, dimensions: int) -> tuple[float, ...]:
    numbers = random.Random(word)
    return tuple(numbers.gauss(0, 1) for _ in range(dimensions))


def text_vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a vector of length 1: the sum of those of the text's words."""
    words = re.findall(r"\w+", text.lower()) or [text]
    columns = zip(*(_word_vector(word, dimensions) for word in words), strict=True)
    total = [sum(column) for column in columns]
    length = sum(value * value for value in total) ** 0.5
    return [value / length for value in total]


@dataclass
class WordEmbedder:
    """Embeds here, without a server: gives each text the vector of its words.

    A word of another language has the vector of the ``english`` one. ``asked`` has all texts.
    """

    model: str = "words"
    dimensions: int = DIMENSIONS
    english: Mapping[str, str] = field(default_factory=dict)
    batch_size: int | None = None
    similarity_floor: float | None = None
    asked: list[str] = field(default_factory=list)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [text_vector(self._in_english(text), self.dimensions) for text in texts]

    def _in_english(self, text: str) -> str:
        return " ".join(self.english.get(word, word) for word in text.split())


@dataclass
class Request:
    """One request as it came in; the names of its headers in small letters."""

    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Behaviour:
    """How the server answers. All of it may be changed between two requests."""

    delay_seconds: float = 0.0
    drip_seconds: float = 0.0
    """Before each byte of the body."""
    status: int = 200
    """With a status other than 200 the answer is an error."""
    headers: dict[str, str] = field(default_factory=dict)
    error_message: str = "as the test wishes"
    failures: int | None = None
    """How many requests ``status``, ``raw_body`` and ``hang_up`` are for; None: all."""
    raw_body: bytes | None = None
    """Sent in place of JSON."""
    content_type: str = "application/json"
    truncate_bytes: int = 0
    """Taken off the end of the body."""
    hang_up: bool = False
    """Close the connection without an answer."""
    refused_word: str | None = None
    """Texts with this word are answered with 400."""
    dimensions: int = DIMENSIONS
    with_usage: bool = True
    change: Change | None = None
    """Changes the answer's JSON before it is sent: see ``reorder`` and those after it."""


def reorder(answer: dict[str, Any]) -> None:
    """Send the vectors last to first, each with its right index."""
    answer["data"].reverse()


def drop_last(answer: dict[str, Any]) -> None:
    """Leave out the last vector."""
    answer["data"].pop()


def add_one(answer: dict[str, Any]) -> None:
    """Send one vector too many."""
    answer["data"].append({**answer["data"][-1], "index": len(answer["data"])})


def repeat_index(answer: dict[str, Any]) -> None:
    """Give the last vector the first one's index."""
    answer["data"][-1]["index"] = answer["data"][0]["index"]


def fill_first(value: float) -> Change:
    """Return a change that fills the first vector with one value, such as NaN or 0."""

    def change(answer: dict[str, Any]) -> None:
        answer["data"][0]["embedding"] = [value] * DIMENSIONS

    return change


class EmbeddingServer(LocalServer):
    """A running server; ``with EmbeddingServer() as server`` starts and stops it.

    ``texts`` lists every text that was answered with a vector, in order; ``requests`` every
    request, with those that failed; ``behaviour`` says how to answer.
    """

    def __init__(self, port: int = 0, *, log: Path | None = None) -> None:
        super().__init__(_Handler, port)
        self.behaviour = Behaviour()
        self.texts: list[str] = []
        self.requests: list[Request] = []
        self._log = log

    @property
    def variables(self) -> dict[str, str]:
        """The variables by which a program takes this server for OpenAI's."""
        return {
            "OPENAI_BASE_URL": self.url,
            "OPENAI_API_KEY": "k",
            "AGENT_MEMORY_EMBEDDING_DIMENSIONS": str(DIMENSIONS),
        }

    def take(self, request: Request) -> Behaviour:
        """Note a request; return how to answer this one."""
        with self._lock:
            self.requests.append(request)
            behaviour = self.behaviour
            if behaviour.failures is None:
                return behaviour
            if behaviour.failures > 0:
                behaviour.failures -= 1
                return behaviour
            return Behaviour(
                delay_seconds=behaviour.delay_seconds,
                dimensions=behaviour.dimensions,
                refused_word=behaviour.refused_word,
            )

    def note_answered(self, texts: list[str]) -> None:
        """Note texts whose vectors were sent."""
        with self._lock:
            self.texts += texts
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(text) + "\n" for text in texts)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head and the body leave in two packets; the second must not wait for the first one's ack.
    disable_nagle_algorithm = True
    server: OwnedServer[EmbeddingServer]

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        behaviour = self.server.owner.take(Request(body, headers))
        time.sleep(behaviour.delay_seconds)
        if behaviour.hang_up:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if self.path != "/v1/embeddings":
            self._send_error(404, f"there is no {self.path}", behaviour)
        elif behaviour.status != 200:
            self._send_error(behaviour.status, behaviour.error_message, behaviour)
        elif behaviour.raw_body is not None:
            self._send(200, behaviour.raw_body, behaviour)
        else:
            self._send_embeddings(body, behaviour)

    def _send_embeddings(self, body: dict[str, Any], behaviour: Behaviour) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        word = behaviour.refused_word
        if "" in texts or any(word is not None and word in text for text in texts):
            self._send_error(400, "a text is not accepted", behaviour)
            return
        answer = _answer(body, texts, behaviour)
        # Noted first: the client may look at the log as soon as it has its answer.
        self.server.owner.note_answered(texts)
        self._send(200, json.dumps(answer).encode(), behaviour)

    def _send_error(self, status: int, message: str, behaviour: Behaviour) -> None:
        error = {"error": {"message": message, "type": "test", "code": None}}
        self._send(status, json.dumps(error).encode(), behaviour)

    def _send(self, status: int, data: bytes, behaviour: Behaviour) -> None:
        data = data[: len(data) - behaviour.truncate_bytes]
        self.send_response(status)
        self.send_header("Content-Type", behaviour.content_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in behaviour.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for part in (bytes([byte]) for byte in data) if behaviour.drip_seconds else [data]:
            time.sleep(behaviour.drip_seconds)
            self.wfile.write(part)


def _answer(body: dict[str, Any], texts: list[str], behaviour: Behaviour) -> dict[str, Any]:
    dimensions = body.get("dimensions", behaviour.dimensions)
    answer: dict[str, Any] = {
        "object": "list",
        "model": body["model"],
        "data": [
            {"object": "embedding", "index": n, "embedding": text_vector(text, dimensions)}
            for n, text in enumerate(texts)
        ],
    }
    if behaviour.with_usage:
        tokens = sum(len(text.split()) for text in texts)
        answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    if behaviour.change is not None:
        behaviour.change(answer)
    if body.get("encoding_format") == "base64":
        for item in answer["data"]:
            item["embedding"] = base64.b64encode(array("f", item["embedding"]).tobytes()).decode()
    return answer


def main() -> None:
    """Serve until the process is stopped; print the base_url."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--dimensions", type=int, default=DIMENSIONS)
    words = parser.parse_args()
    with EmbeddingServer(words.port, log=words.log) as server:
        server.behaviour.delay_seconds = words.delay
        server.behaviour.dimensions = words.dimensions
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
