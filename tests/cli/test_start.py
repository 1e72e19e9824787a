"""What a command of its own process does before and after its work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "agent_memory.cli":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent ignores
sys.argv = ["agent-memory", "--agent", "bob", *sys.argv[1:]]
from agent_memory.__main__ import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("command", ["recent", "stats"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(command: str) -> None:
    words = [sys.executable, "-c", INTERRUPTED, command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "\ninterrupted: nothing was left half done\n"
