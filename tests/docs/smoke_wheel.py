"""A smoke test of the installed wheel, run outside the checkout by `.ci/run`."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import agent_memory
from agent_memory import AgentMemory
from agent_memory.cli.guide import TOPICS

package = Path(agent_memory.__file__).parent
assert "site-packages" in package.parts, f"not the installed package: {package}"
assert (package / "py.typed").is_file()
assert (package / "integrations" / "amplifier" / "bundle.md").is_file()
assert (package / "integrations" / "ui" / "page" / "index.html").is_file()
assert (package / "cli" / "style.css").is_file()
assert {path.suffix for path in (package / "migrations").rglob("*.*")} == {".sql"}
assert {path.stem for path in (package / "guides").iterdir()} == set(TOPICS)

with tempfile.TemporaryDirectory() as root:
    with AgentMemory("bob", root=root) as memory:
        memory.store("Prefer PostgreSQL for new projects", category="preference", tags=["database"])
        memory.add("I live in Oslo.", user_id="alice", graph=True)
        assert [it.target for it in memory.graph.relationships()] == ["Oslo"]
    program = Path(sys.executable).with_name("agent-memory")
    guide = subprocess.run([str(program), "guide", "search"], check=True, capture_output=True)
    assert guide.stdout == (package / "guides" / "search.md").read_bytes()
    words = ["--root", root, "--agent", "bob", "search", "which database do we use?", "--json"]
    found = subprocess.run([str(program), *words], check=True, capture_output=True)
    hit = json.loads(found.stdout)["data"]["results"][0]
    assert hit["memory"]["content"] == "Prefer PostgreSQL for new projects"
print("the wheel works")
