"""A page that is served, and what asks it over plain HTTP: for the tests of the page."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_memory import AgentMemory
from agent_memory.integrations.ui.admission import KEY_HEADER
from agent_memory.integrations.ui.agents import AgentPlace
from agent_memory.integrations.ui.run import PageServer, page_server


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        assert self.status == 200, self.body
        return json.loads(self.body)["data"]

    @property
    def error(self) -> Any:
        return json.loads(self.body)["error"]


@dataclass
class PageClient:
    """A browser, as far as the server sees it; ``headers`` let it in once it has been ``begun``."""

    port: int
    token: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> PageClient:
        """Exchange the token, as the page does at first."""
        answer = self.post("session", {"token": self.token})
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        self.headers = {"Cookie": cookie, KEY_HEADER: answer.data["key"]}
        return self

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self.ask("GET", path, headers=headers)

    def read(self, name: str) -> Any:
        return self.get(f"/api/{name}").data

    def post(self, name: str, body: object, headers: Mapping[str, str] | None = None) -> Answer:
        sent = {"Content-Type": "application/json", "Origin": self.origin, **(headers or {})}
        return self.ask("POST", f"/api/{name}", headers=sent, body=json.dumps(body).encode())

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send a request; a header that is empty is left out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            sent = {**self.headers, **(headers or {})}
            connection.putrequest(method, path, skip_host="Host" in sent)
            if body is not None and "Content-Length" not in sent:
                sent["Content-Length"] = str(len(body))
            for name, value in sent.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, dict(response.headers), response.read())
        finally:
            connection.close()


@contextlib.contextmanager
def served(place: Path | AgentPlace, **options: Any) -> Iterator[PageClient]:
    """Serve the page of a memory in a thread, and let nobody in yet."""
    with page_server(place, **options) as server, _running(server):
        yield PageClient(server.server_address[1], server.admission.token)


@contextlib.contextmanager
def _running(server: PageServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def in_question(memory: AgentMemory, content: str) -> None:
    """Put a memory in question, as a conversation does."""
    from conftest import database_of  # a process of its own serves a page, and has no tests

    memory_id = memory.store(content)
    other = memory.store(f"Not so: {content}")
    database_of(memory).run(
        "INSERT INTO reviews (seq, version, replaced_by, proposed_at)"
        " SELECT seq, version, ?, timestamp FROM memories WHERE id = ?",
        (other, memory_id),
    )
