"""What a command of its own process does before and after its work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agent_memory import AgentMemory

PROGRAM = """
import atexit, gc, sys
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 9_999))
sys.argv = ["agent-memory", "--root", sys.argv[1], "--agent", "bob", "recent", "--kind", "learning"]
from agent_memory.__main__ import main
main()
"""


def test_garbage_is_collected_but_not_looked_for_in_what_was_imported(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("the lighthouse is red")
    words = [sys.executable, "-c", PROGRAM, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert "the lighthouse is red" in done.stdout
    assert done.stdout.endswith("\nTrue True\n")
