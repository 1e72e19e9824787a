"""A store of ``bench.peer_stores`` in its own process and environment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final, Self

from bench.embedding_service import EmbeddingService

STORES: Final = Path(__file__).with_name("peer_stores.py")
PATIENCE: Final = 900.0
"""Seconds that a peer has for one command."""
ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)
CERTIFICATES: Final = {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}
"""Nothing here needs them, and some peers would read them for every request."""


class PeerFailed(Exception):
    """A peer's failure, in its own words."""


class Process:
    """A peer's store in its own process; ``with`` opens and closes it."""

    def __init__(
        self,
        service: EmbeddingService,
        environments: Path,
        name: str,
        folder: Path,
        *,
        server: str = "",
    ) -> None:
        place = {
            "name": name,
            "folder": str(folder),
            "url": service.url,
            "model": service.model,
            "dimensions": service.dimensions,
            "server": server,
        }
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [str(python_of(environments, name)), str(STORES), json.dumps(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(folder),
            cwd=folder,
        )

    def __enter__(self) -> Self:
        try:
            self.about = self.answer()
        except PeerFailed:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            self._process.communicate(timeout=60)
        self.kill()
        self._errors.close()

    def ask(self, do: str, **words: Any) -> None:  # noqa: ANN401 - what JSON takes
        """Send a command."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **words}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise PeerFailed(self._last_words()) from None

    def answer(self) -> dict[str, Any]:
        """Return the next answer; raise ``PeerFailed`` if it is an error or missing."""
        assert self._process.stdout is not None
        clock = threading.Timer(PATIENCE, self._process.kill)
        clock.start()
        line = self._process.stdout.readline()
        clock.cancel()
        if not line.endswith(b"\n"):
            raise PeerFailed(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise PeerFailed(answer["error"])
        return answer

    def call(self, do: str, **words: Any) -> dict[str, Any]:  # noqa: ANN401 - as above
        """Send a command that has one answer, and return it."""
        self.ask(do, **words)
        return self.answer()

    def kill(self) -> list[dict[str, Any]]:
        """End it at once; return the answers that were still on their way."""
        assert self._process.stdout is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout.closed:
            return []
        lines = self._process.stdout.read().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith(b"\n")]

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return f"ended without an answer: {lines[-1][:300] if lines else 'and said nothing'}"


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in CERTIFICATES}
    return kept | ONE_THREAD | {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


def python_of(environments: Path, name: str) -> Path:
    """Return the Python of a peer's environment."""
    return environments / name.partition(" ")[0] / "bin" / "python"
