"""An embedder as a service on 127.0.0.1 that speaks OpenAI's embeddings API.

Stores that accept no embedder object get the same model as the others through it. It keeps the
vector of every text it has embedded: a repeated request waits only for the loopback.
"""

from __future__ import annotations

import base64
import json
import threading
from array import array
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.embeddings.registry import create_embedder
from agent_memory.embeddings.settings import EmbedderSettings

BATCH: Final = 64


class EmbeddingService:
    """A running service; ``with EmbeddingService("minilm") as service`` starts and stops it."""

    def __init__(self, name: str) -> None:
        embedder = create_embedder(name, EmbedderSettings())
        assert embedder is not None, f"{name} is no embedder"
        self._embedder = CheckedEmbedder(embedder)
        self._vectors: dict[str, array[float]] = {}
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

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

    @property
    def url(self) -> str:
        """The base_url for clients of OpenAI's API."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._embedder.model

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        return self._embedder.dimensions

    def vectors(self, texts: Sequence[str]) -> list[array[float]]:
        """Return a vector for each text."""
        # Some clients remove line breaks: their text must still be the same.
        plain = [text.replace("\n", " ") for text in texts]
        with self._lock:
            new = [text for text in dict.fromkeys(plain) if text not in self._vectors]
            for start in range(0, len(new), BATCH):
                part = new[start : start + BATCH]
                made = (array("f", vector) for vector in self._embedder.embed(part))
                self._vectors.update(zip(part, made, strict=True))
            return [self._vectors[text] for text in plain]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head and the body leave in two packets; the second must not wait for the first one's ack.
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the inherited name
        """Keep the output free for the figures."""

    def do_POST(self) -> None:
        """Answer a request for vectors."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        as_bytes = body.get("encoding_format") == "base64"
        answer = {
            "object": "list",
            "model": body["model"],
            "data": [
                {"object": "embedding", "index": place, "embedding": _written(vector, as_bytes)}
                for place, vector in enumerate(self.server.service.vectors(texts))
            ],
            "usage": {"prompt_tokens": 0, "total_tokens": 0},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _written(vector: array[float], as_bytes: bool) -> Any:  # noqa: ANN401, FBT001 - text or numbers
    return base64.b64encode(vector.tobytes()).decode() if as_bytes else vector.tolist()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, service: EmbeddingService) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = service

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - theirs
        """Say nothing about clients that were killed."""
