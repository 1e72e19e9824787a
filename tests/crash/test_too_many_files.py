"""A process that has as many files open as it may: what fails leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
import os, resource, sys
from agent_memory import AgentMemory, AgentMemoryError
verbs = {
    "store": lambda memory, path: memory.store("the kettle is blue"),
    "search": lambda memory, path: memory.search("kettle"),
    "backup": lambda memory, path: memory.backup(path),
    "export": lambda memory, path: memory.export(path + ".jsonl"),
}
count, most = 0, resource.getrlimit(resource.RLIMIT_NOFILE)
with AgentMemory("bob") as memory:
    for name, verb in verbs.items():
        verb(memory, f"{name}-warm")  # imports need handles too
        opened = len(os.listdir("/proc/self/fd"))
        for spare in range(6):
            resource.setrlimit(resource.RLIMIT_NOFILE, (opened - 1 + spare, most[1]))
            try:
                verb(memory, f"{name}-{spare}")
                count += name == "store"
            except AgentMemoryError as error:
                assert "too many" in str(error).lower(), error
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, most)
            assert len(os.listdir("/proc/self/fd")) == opened, (name, spare)
    assert memory.check().problems == []
    assert len(memory.list_recent(50)) == count + 1
"""


def test_what_fails_leaves_no_file_and_no_handle(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"AGENT_MEMORY_ROOT": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.stdout, done.stderr) == ("", "")
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert left == []
