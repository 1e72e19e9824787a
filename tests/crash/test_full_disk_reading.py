"""A disk without any space left: what is stored is read, by all who wish, and nobody is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from places import disk_image, empty, fill, finished, line, small_disk, started, tell
from survival.verbs import NAME

from agent_memory import AgentMemory, StorageFull
from agent_memory.integrations.hosts.doctor import Examination
from agent_memory.storage.sqlite.connection import file_systems

STORE = """
import os, sys
from agent_memory import AgentMemory
memory = AgentMemory.open(sys.argv[1], agent_id="bob")
for number in range(30):
    memory.store(f"walnut {number} " + "y" * number * 100, id=f"mem-{number}")
if sys.argv[2] == "killed":
    os._exit(0)
memory.close()
"""
READ = """
import sys
from agent_memory import AgentMemory
for read_only in (False, True):
    with AgentMemory.open(sys.argv[1], read_only=read_only) as memory:
        assert len(memory.search("walnut", 30)) == memory.count() == 30
        assert len(memory.list_recent(30)) == 30
        assert read_only or memory.check().problems == []
        assert memory.info().memory_count == 30
        memory.context()
        memory.export(sys.argv[2], format="store", overwrite=True)
print("read")
"""
WRITE = """
import sys
from agent_memory import AgentMemory, StorageFull
from agent_memory.integrations.hosts.doctor import Examination
from agent_memory.storage.sqlite.connection import file_systems
full = 0
with AgentMemory.open(sys.argv[1]) as memory:
    for number in range(5):
        try:
            memory.store("x" * 9000 + str(number))
        except StorageFull:
            full += 1
        assert memory.search("walnut")
print("full" if full else "fits")
"""
KINDS = {
    "tmpfs": (14, ""),
    "ext4": (24, "mkfs.ext4 -q -b 4096"),
    "ext4-1k": (24, "mkfs.ext4 -q -b 1024"),
    "btrfs": (130, "mkfs.btrfs -q -f"),
    "xfs": (320, "mkfs.xfs -q -f"),
}
"""Megabytes, and what makes the file system."""


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Mount a small disk of each kind of file system that this machine can make."""
    megabytes, mkfs = KINDS[request.param]
    place = tmp_path / "disk"
    mounted = disk_image(place, megabytes, mkfs) if mkfs else small_disk(place, megabytes * 1000)
    with mounted as disk:
        yield disk


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_what_is_stored_is_read_on_a_full_disk(disk: Path, end: str, tmp_path: Path) -> None:
    """A log that a killed process left may not fit into the file: it is read where it is."""
    path = disk / NAME
    finished(STORE, path, end)
    fill(disk)
    exported = tmp_path / "exported.yaml"
    assert finished(READ, path, exported) == "read"
    assert finished(WRITE, path) == "full"
    fill(disk)
    assert finished(READ, path, exported) == "read"
    empty(disk)
    with AgentMemory.open(path) as memory:
        memory.store("and goes on")
        assert memory.check().problems == []
    with AgentMemory.open(tmp_path / "other.db", agent_id="bob") as memory:
        memory.import_(exported, format="store")
        assert memory.count() == 30


def test_an_open_memory_reads_on_after_a_write_that_failed(disk: Path) -> None:
    path = disk / NAME
    finished(STORE, path, "closed")
    with AgentMemory.open(path) as memory, AgentMemory.open(path) as other:
        assert other.count() == 30
        fill(disk)
        with pytest.raises(StorageFull, match="is full"):
            memory.store_many([{"content": "x" * 9000 + str(number)} for number in range(100)])
        fill(disk)
        assert memory.search("walnut", count_accesses=False)
        assert other.search("walnut", count_accesses=False)
        empty(disk)
        memory.store("and goes on")
        other.store("with both")
        assert memory.count() == other.count()


STORE_AND_SEARCH = """
import os, sys
from agent_memory import AgentMemory, StorageFull
from agent_memory.integrations.hosts.doctor import Examination
full = 0
with AgentMemory.open(sys.argv[1]) as memory:
    memory.store("a walnut")
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(400):
        try:
            memory.store("x" * 9000 + str(number))
        except StorageFull:
            full += 1
        assert memory.search("walnut")
        if number % 20 == 0:
            os.sync()  # else the system writes changed pages of memory out after half a minute
        if full > 15:
            break
    print(full)
"""


@pytest.mark.parametrize("spare", [0, 3000])
def test_no_process_is_killed_while_its_disk_runs_full(disk: Path, spare: int) -> None:
    with started(STORE_AND_SEARCH, disk / NAME) as process:
        assert line(process) == "open"
        fill(disk, spare)
        out, err = process.communicate("\n", timeout=120)
    assert (process.returncode, out.strip()) == (0, "16"), err


# File systems on which memory is not shared -------------------------------------------------------


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let the system's table of mounts tell a type of the file system for the test's folder."""

    def say(name: str) -> None:
        table = tmp_path / "mountinfo"
        table.write_text(f"36 35 0:99 / {tmp_path} rw - {name} /dev/sda1 rw\n")
        monkeypatch.setattr(file_systems, "_MOUNTS", table)

    return say


@pytest.mark.parametrize(
    ("name", "journal"),
    [("btrfs", "rollback"), ("bcachefs", "rollback"), ("nilfs2", "rollback"),
     ("ext4", "wal"), ("xfs", "wal"), ("tmpfs", "wal"), ("zfs", "wal")],
)  # fmt: skip
def test_a_file_system_that_copies_on_write_gets_a_rollback_journal(
    kind: Callable[[str], None], name: str, journal: str, tmp_path: Path
) -> None:
    AgentMemory.open(tmp_path / NAME).close()  # with a log, as before
    kind(name)
    with AgentMemory.open(tmp_path / NAME) as memory:
        memory.store("a walnut")
        info = memory.info()
        assert (info.journal, info.warning) == (journal, None)
        assert (tmp_path / f"{NAME}-shm").exists() == (journal == "wal")


def test_blocks_shorter_than_a_shared_page_get_a_rollback_journal(tmp_path: Path) -> None:
    with disk_image(tmp_path / "disk", 24, "mkfs.ext4 -q -b 1024") as disk:
        assert file_systems.has_short_blocks(disk / "new" / NAME)
    assert not file_systems.has_short_blocks(tmp_path / NAME)


HOLD = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1]) as memory:
    memory.store("held")
    print(memory.info().journal, flush=True)
    sys.stdin.readline()
"""


def test_a_log_that_others_use_there_is_joined(kind: Callable[[str], None], tmp_path: Path) -> None:
    """A program of an earlier version may still run."""
    path = tmp_path / NAME
    with started(HOLD, path, AGENT_MEMORY_JOURNAL="wal") as holder:
        assert line(holder) == "wal"
        kind("btrfs")
        with AgentMemory.open(path) as memory:
            assert memory.info().journal == "wal"
            memory.store("joined")
        tell(holder)
        assert holder.wait(30) == 0
    with AgentMemory.open(path) as memory:
        assert (memory.count(), memory.info().journal) == (2, "rollback")


def test_a_hook_recalls_on_a_full_disk_and_doctor_tells_that_it_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", 14_000) as disk:
        with AgentMemory("bob", root=disk) as memory:
            memory.store("The walnut is in the shed")
        fill(disk)
        options = ["--agent", "bob", "--root", str(disk)]
        said = {"session_id": "s", "cwd": str(tmp_path), "source": "startup"}
        for prompt in ("which walnut?", "IMPORTANT: which walnut is it now?"):
            for event in ("SessionStart", "UserPromptSubmit"):
                answer = subprocess.run(
                    [sys.executable, "-m", "agent_memory", "hook", "claude-code", event, *options],
                    input=json.dumps({**said, "prompt": prompt, "source": "user"}),
                    capture_output=True,
                    text=True,
                    check=True,
                )
                assert "The walnut is in the shed" in answer.stdout
                assert "No space left" in answer.stderr
        monkeypatch.setenv("HOME", str(tmp_path))
        problems = Examination("bob", str(disk), str(tmp_path)).report()["problems"]
        assert any("hooks cannot store anything" in problem["problem"] for problem in problems)
        empty(disk)
        problems = Examination("bob", str(disk), str(tmp_path)).report()["problems"]
        assert not any("hooks cannot store anything" in problem["problem"] for problem in problems)
        with AgentMemory("bob", root=disk) as memory:
            assert memory.count() == 1
