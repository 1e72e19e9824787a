"""Hooks of an agent whose memories are in a database."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from host_inputs import PROGRAM, event
from postgres_server import Schemas

from agent_memory import AgentMemory

SUFFIX = " (agent bob)"


def test_an_answer_names_the_database(schemas: Schemas, tmp_path: Path) -> None:
    url = schemas.url("hooks")
    with AgentMemory("bob", root=url, embedder="none") as memory:
        memory.store("Billing is deployed with Helm.")
        place = memory.location
    asked = event("claude-code", "prompt", tmp_path, "how is billing deployed?")
    done = subprocess.run(
        [PROGRAM, "hook", "claude-code", asked["hook_event_name"], "--agent", "bob"],
        input=json.dumps(asked).encode(),
        capture_output=True,
        check=True,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "AGENT_MEMORY_ROOT": url,
            "AGENT_MEMORY_HOOK_SECONDS": "60",
        },
    )
    output = json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]
    assert output.startswith(f"Memory of agent bob ({place.removesuffix(SUFFIX)}):")
    assert "Billing is deployed with Helm." in output
    assert not list(tmp_path.rglob("memories.db"))
