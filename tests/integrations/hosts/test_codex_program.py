"""The real Codex, with the hooks that `install` writes, and a model of ours on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import PROGRAM

from agent_memory import AgentMemory
from agent_memory.integrations.hosts.journal import Journal

CODEX = shutil.which("codex")
ANSWER = "We decided to use port 8443."
MODEL = """
model = "any"
model_provider = "here"
[model_providers.here]
name = "here"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
requires_openai_auth = false
"""


class Model(BaseHTTPRequestHandler):
    """A model that answers one thing, in the form of OpenAI's Responses API."""

    asked: list[str]

    def do_POST(self) -> None:
        self.asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        text = {"type": "output_text", "text": ANSWER, "annotations": []}
        item = {"type": "message", "role": "assistant", "id": "m", "content": [text]}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        done = {"id": "r", "status": "completed", "output": [item], "usage": usage}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
        body = "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def model() -> Iterator[tuple[int, list[str]]]:
    """Run a model; give its port, and what it was asked."""
    asked: list[str] = []
    handler = type("Handler", (Model,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port, asked
        server.shutdown()


@pytest.mark.skipif(CODEX is None, reason="codex is not installed")
def test_codex_recalls_and_captures_by_the_server_that_it_runs(
    root: Path, tmp_path: Path, model: tuple[int, list[str]]
) -> None:
    assert CODEX is not None
    port, asked = model
    with AgentMemory("bob", root=root) as memory:
        memory.store("The billing service is deployed with Nomad")
    project, home = tmp_path / "shop", tmp_path / "codex"
    (project / ".git").mkdir(parents=True)
    home.mkdir()
    (home / "config.toml").write_text(MODEL.format(port=port))
    environment = {**os.environ, "CODEX_HOME": str(home), "HOME": str(tmp_path)}
    install = [PROGRAM, "--root", str(root), "install", "codex", "--agent", "bob"]
    subprocess.run(install, check=True, capture_output=True, env=environment)
    words = [CODEX, "exec", "--dangerously-bypass-hook-trust", "--skip-git-repo-check"]
    done = subprocess.run(
        [*words, "how is billing deployed?"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert ANSWER in done.stdout
    assert "deployed with Nomad" in asked[0]
    entries = list(Journal(str(root / "bob")).entries())
    assert {entry["event"] for entry in entries} == {"SessionStart", "UserPromptSubmit", "Stop"}
    assert sum(entry.get("recalled", 0) for entry in entries) == 1
    assert [entry["event"] for entry in entries if entry.get("captured")] == ["Stop"]
    with AgentMemory("bob", root=root) as memory:
        assert ANSWER in {each.content for each in memory.list_recent()}
