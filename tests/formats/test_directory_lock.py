"""Document E's lock between real processes, and exports that are killed half-way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_directory_export import files, lines, made, write

from agent_memory import StorageLocked, StorageUnavailable, ValidationError
from agent_memory.formats.directory import CODEC, lock
from agent_memory.models.portable import Section

HERE = str(Path(__file__).parent)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "folder", made(content="old"), made(1, kind="core"))
    return tmp_path / "folder"


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a lock less long than others would."""
    monkeypatch.setattr(lock, "_WAIT_SECONDS", 0.3)


def contents(folder: Path) -> list[str]:
    # An entry of another section tells of a backup that was not read.
    entries = [entry for entry in CODEC.read(folder) if entry.section is Section.MEMORY]
    return sorted(entry.fields["content"] for entry in entries)


# E's code for Unix, which writes no PID; with one, as E says that there is.
HOLD = """
import fcntl, os, sys, time
fd = open(sys.argv[1], 'w')
if sys.argv[2] == 'flock':
    fcntl.flock(fd, fcntl.LOCK_EX)
if sys.argv[3]:
    fd.write(sys.argv[3].format(pid=os.getpid()))
    fd.flush()
print('held', flush=True)
sys.stdin.readline()
fcntl.flock(fd, fcntl.LOCK_UN)
fd.close()
os.remove(sys.argv[1])
print('gone', flush=True)
"""


@contextmanager
def held_elsewhere(folder: Path, way: str, text: str) -> Iterator[subprocess.Popen[str]]:
    """Hold the lock in a process of its own, until it is sent a line."""
    code = [sys.executable, "-c", HOLD, str(folder / ".lock"), way, text]
    with subprocess.Popen(
        code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("way", ["flock", "file"])
@pytest.mark.parametrize(
    "text",
    ["{pid}\n2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z {pid}", '{{"at": 1767, "pid": {pid}}}'],
)
def test_nobody_reads_or_writes_while_another_process_holds_the_lock(
    folder: Path, way: str, text: str
) -> None:
    before = files(folder)
    with held_elsewhere(folder, way, text) as process:
        message = f"is held by process {process.pid}:"
        with pytest.raises(StorageLocked, match=message):
            list(CODEC.read(folder))
        with pytest.raises(StorageLocked, match=message):
            write(folder, made(content="new"))
        assert (folder / ".lock").exists()
    (folder / ".lock").unlink()
    assert files(folder) == before


@pytest.mark.usefixtures("hurry")
def test_a_lock_that_is_held_does_not_become_stale(folder: Path) -> None:
    with held_elsewhere(folder, "flock", "{pid}") as process:
        os.utime(folder / ".lock", (0, 0))
        with pytest.raises(StorageLocked, match=f"process {process.pid}:"):
            write(folder, made(content="new"))


@pytest.mark.usefixtures("hurry")
def test_a_lock_without_a_pid_is_a_lock(folder: Path) -> None:
    with (
        held_elsewhere(folder, "flock", ""),
        pytest.raises(StorageLocked, match="is held by another process"),
    ):
        write(folder, made(content="new"))


def test_the_lock_is_waited_for(folder: Path) -> None:
    with held_elsewhere(folder, "flock", "{pid}") as process:
        assert process.stdin is not None
        stdin = process.stdin

        def let_go() -> None:
            stdin.write("\n")
            stdin.flush()

        timer = threading.Timer(0.3, let_go)
        timer.start()
        write(folder, made(content="new"))
        timer.join()
        process.wait(timeout=10)
    assert contents(folder) == ["new"]
    assert not (folder / ".lock").exists()


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("way", ["flock", "file"])
def test_the_lock_of_a_process_that_was_killed_is_passed_over(folder: Path, way: str) -> None:
    with held_elsewhere(folder, way, "{pid}") as process:
        process.kill()
        process.wait()
    assert (folder / ".lock").exists()
    assert contents(folder) == ["memory 1", "old"]
    assert not (folder / ".lock").exists()


@pytest.mark.usefixtures("hurry")
def test_a_lock_file_of_a_living_process_is_stale_after_30_seconds(folder: Path) -> None:
    path = folder / ".lock"
    path.write_text(f"{os.getppid()}\n")
    with pytest.raises(StorageLocked):
        write(folder, made(content="new"))
    os.utime(path, (time.time() - 31,) * 2)
    write(folder, made(content="new"))
    assert contents(folder) == ["new"]


def test_the_lock_says_whose_it_is_while_a_folder_is_read(folder: Path) -> None:
    reading = CODEC.read(folder)
    next(reading)
    pid, moment = (folder / ".lock").read_text().splitlines()
    assert (pid, moment[-1]) == (str(os.getpid()), "Z")
    code = (
        f"import fcntl; fcntl.flock(open({str(folder / '.lock')!r}), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "BlockingIOError" in done.stderr
    assert len(list(reading)) == 1
    assert not (folder / ".lock").exists()


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Let nothing be made in a folder: root, who may do anything, needs a mount for that."""
    if os.geteuid():
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    if subprocess.run(["mount", "--bind", folder, folder], capture_output=True).returncode:
        pytest.skip("mounts are not allowed")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("has_file", [False, True])
def test_where_nothing_can_be_made_the_lock_is_only_looked_at(folder: Path, has_file: bool) -> None:
    if has_file:
        (folder / ".lock").touch()
    with unwritable(folder):
        assert contents(folder) == ["memory 1", "old"]
        with pytest.raises(StorageUnavailable, match=r"\.lock cannot be locked"):
            write(folder, made(content="new"))
    assert (folder / ".lock").exists() == has_file


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("way", ["flock", "file"])
def test_a_lock_that_is_only_looked_at_is_waited_for(folder: Path, way: str) -> None:
    with (
        held_elsewhere(folder, way, "{pid}") as process,
        unwritable(folder),
        pytest.raises(StorageLocked, match=f"process {process.pid}"),
    ):
        contents(folder)


# Killed half-way ----------------------------------------------------------------------------

WRITE_TURN_BY_TURN = """
import sys
from pathlib import Path
from typing import Any
sys.path[:0] = [sys.argv[2], str(Path(sys.argv[2]).parent)]
from test_directory_export import made, write
for turn in range(1, 10_000):
    write(Path(sys.argv[1]), *(
        made(n, content=f"{turn}", kind=("core", "learning", "task")[(n + turn) % 3],
             archived=n % 4 == turn % 4, user_id=f"{turn}") for n in range(60)
    ))
    print(turn, flush=True)
"""


def test_a_folder_whose_export_was_killed_is_of_one_state(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder)
    half = 0
    for turn in range(12):
        code = [sys.executable, "-c", WRITE_TURN_BY_TURN, str(folder), HERE]
        with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            done = int(writer.stdout.readline())
            time.sleep(0.0037 * turn)
            writer.kill()
            rest = writer.stdout.read().split()
        done = int(rest[-1]) if rest else done
        half += any((folder / name).exists() for name in (".exporting", ".exported"))
        entries = list(CODEC.read(folder))
        assert [entry.error for entry in entries] == [None] * 60
        states = {(entry.fields["content"], entry.fields["user_id"]) for entry in entries}
        assert states in ({(f"{done}", f"{done}")}, {(f"{done + 1}", f"{done + 1}")})
        assert not (folder / ".exported").exists()
    assert half > 0  # some were killed in the middle
    write(folder, made(content="last"))
    assert contents(folder) == ["last"]
    assert not (folder / ".exporting").exists()


class Stopped(Exception):
    """Stands for the end of a process."""


CHANGES = ("replace", "rename", "link", "unlink", "mkdir", "rmdir")


def stop_before(step: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this many changes of the file system happen after all is ready, and none after that."""
    left = [step]

    def counted(change: Callable[..., None]) -> Callable[..., None]:
        def run(*args: Any, **options: Any) -> None:
            if left[0] != step or (folder / ".exported").exists():
                if left[0] == 0:
                    raise Stopped
                left[0] -= 1
            change(*args, **options)

        return run

    for name in CHANGES:
        monkeypatch.setattr(os, name, counted(getattr(os, name)))


def test_an_export_that_stops_at_any_step_is_completed_by_the_next_reader(tmp_path: Path) -> None:
    new = made(content="new"), made(1, archived=True), made(2, content="x" * 6000)
    for step in range(100):
        folder = tmp_path / f"{step}"
        write(folder, made(content="old"), made(1, kind="core", metadata={"old": 1}))
        with pytest.MonkeyPatch.context() as monkeypatch:
            stop_before(step, folder, monkeypatch)
            try:
                write(folder, *new)
            except Stopped:
                stopped = True
            else:
                stopped = False
        assert contents(folder) == ["memory 1", "new", "x" * 6000], step
        assert set(files(folder)) - {".exporting/files.txt"} == {
            "agent_memory.jsonl", "beyond_limits.jsonl", "index.json", "core_memories.jsonl",
            "learnings.jsonl", "tasks.jsonl", "archive/2026/learnings_2026_Q1.jsonl",
        }, step  # fmt: skip
        saved = {path.name.partition(".")[0]: path for path in (folder / ".backup").iterdir()}
        assert set(saved) == {"learnings", "core_memories", "agent_memory"}, step
        assert [one["content"] for one in lines(saved["learnings"])] == ["old"]
        if not stopped:
            break
    assert 15 < step < 50


@pytest.mark.parametrize(
    "name", ["../victim", "learnings.jsonl/../../victim", "/etc/victim", ".lock", "archive/2026/x"]
)
def test_a_list_of_new_files_does_not_lead_out_of_the_folder(folder: Path, name: str) -> None:
    victim = folder.parent / "victim"
    victim.write_text("precious")
    ready = folder / ".exported"
    ready.mkdir()
    (ready / "files.txt").write_text(f"learnings.jsonl\n{name}\n")
    (ready / "learnings.jsonl").write_text("")
    with pytest.raises(ValidationError, match="which no export writes"):
        list(CODEC.read(folder))
    assert victim.read_text() == "precious"
    assert lines(folder / "learnings.jsonl")[0]["content"] == "old"


@pytest.mark.parametrize("link", ["archive", "archive/2026", ".backup", ".exported/archive"])
def test_new_files_are_not_put_through_links(folder: Path, link: str) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    name = "archive/2026/tasks_2026_Q1.jsonl"
    ready = folder / ".exported"
    (ready / "archive" / "2026").mkdir(parents=True)
    (ready / name).write_text("{}")
    (ready / "files.txt").write_text(f"learnings.jsonl\n{name}\n")
    if link == ".exported/archive":
        shutil.rmtree(ready / "archive")
    (folder / link).parent.mkdir(exist_ok=True)
    (folder / link).symlink_to(elsewhere)
    with pytest.raises(ValidationError, match="symbolic link"):
        list(CODEC.read(folder))
    assert list(elsewhere.iterdir()) == []


def test_what_a_power_cut_left_of_new_files_without_their_list_keeps_nothing_out(
    folder: Path,
) -> None:
    """A deletion may be on the disk while the new name of what it was deleted from is not."""
    for left in (".exported", ".exporting"):
        (folder / left / "archive").mkdir(parents=True)
        (folder / left / "archive" / "rest").write_text("rest")
    assert contents(folder) == ["memory 1", "old"]
    write(folder, made(content="new"))
    assert contents(folder) == ["new"]
    assert not {".exported", ".exporting"} & {path.name for path in folder.iterdir()}
