"""A container whose disk is read only, but for the volume with the memories."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

READ_ONLY = """
mount --bind "$1" /mnt || exit 77
for folder in /tmp /var/tmp; do
    mount --bind $folder $folder && mount -o remount,ro,bind $folder || exit 77
done
cd /tmp && exec env -u TMPDIR -u SQLITE_TMPDIR HOME=/mnt "$2" -c "$3"
"""
"""Makes the folders of temporary files read only for one program, which has the volume at /mnt."""


def run(volume: Path, code: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    words = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", str(volume), sys.executable, code]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip(f"no folder can be made read only: {done.stderr}")
    return done


def test_memories_are_kept_and_found(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
from agent_memory import AgentMemory
with AgentMemory("bob") as memory:
    ids = memory.store_many([{"content": f"fact {n} of topic{n % 7}"} for n in range(2000)])
    memory.update(ids[0], content="changed")
    memory.delete_many(ids[1:1000])
    memory.export("/mnt/x.jsonl")
    assert memory.import_("/mnt/x.jsonl").same == 1001
    memory.backup()
    memory.erase(ids[1500])
    assert memory.check().problems == []
    assert len(memory.search("topic3", limit=100)) == 100
""",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".amplifier", "x.jsonl"]


def test_what_needs_such_a_folder_says_so(tmp_path: Path) -> None:
    code = "from agent_memory import AgentMemory; AgentMemory.opened_copy('/mnt/x.db').__enter__()"
    (tmp_path / "x.db").touch()
    done = run(tmp_path, code)
    assert done.stderr.endswith("is writable: name one with TMPDIR\n")
