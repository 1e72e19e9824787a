"""What a program bundled by PyInstaller is tried with, run outside the checkout by `.ci/run`.

Without words it tries the library, with words it is the command line.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agent_memory import AgentMemory, __version__
from agent_memory.__main__ import main


class Lengths:
    """An embedder that needs no model."""

    name = model = "lengths"
    dimensions = 2

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float(len(text))] for text in texts]


def run(*words: str, given: str = "") -> str:
    """Run the command line of this program, which is its own Python."""
    done = subprocess.run(
        [sys.executable, *words], check=True, capture_output=True, text=True, input=given
    )
    return done.stdout


def try_all(root: str) -> None:
    """Try what is found by name, by folder and as a file: modules, sqlite-vec, guides, stems."""
    with AgentMemory("bob", root=root, embedder=Lengths()) as memory:
        memory.add("I live in Oslo.")
        memory.store("Die Datenbanken werden in der Nacht gesichert")
        memory.migrate()
        assert memory.search("Oslo")[0].memory.content == "I live in Oslo."
        assert memory.search("Datenbank")
        assert memory.check().notes == [], memory.check()
        memory.export(Path(root, "notes"), format="markdown")
    assert __version__ in run("--version")
    assert run("guide", "search").startswith("# ")
    assert importlib.util.find_spec("PyInstaller") is None
    home = Path(root, "home")
    home.mkdir()
    prompt = {"hook_event_name": "UserPromptSubmit", "cwd": str(home), "session_id": "s"}
    prompt |= {"transcript_path": str(home / "none.jsonl"), "prompt": "Remember: tabs, not spaces."}
    words = ["--agent", "coder", "--root", root]
    run("hook", "claude-code", "UserPromptSubmit", *words, given=json.dumps(prompt))
    assert "tabs" in run("--root", root, "--agent", "coder", "search", "tabs")


if len(sys.argv) > 1:
    main()
else:
    with tempfile.TemporaryDirectory() as folder:
        try_all(folder)
    print("the bundled program works")
