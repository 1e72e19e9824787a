"""What a killed process leaves beside a store: named by `check`, and removed when it is asked to.

It is all memories in plain text, or as good as that: nobody may keep it without knowing.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_memory import AgentMemory

SWEEPS = """
from agent_memory.runtime.private_folders import private_folder
for _ in range(2_000):
    with private_folder() as folder:
        (folder / "copy").write_text("memories")
"""
# Ends by kill -9, or waits for one, where a file gets its name: what is written is unfinished then.
DIES = """
import os, signal, sys, time
from pathlib import Path
from agent_memory import AgentMemory

path, verb, end, words = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]

def stop(event, arguments):
    if event in ("os.rename", "os.link") and any(word in str(arguments[1]) for word in words):
        if end == "wait":
            print("ready", flush=True)
            time.sleep(60)
        os.kill(os.getpid(), signal.SIGKILL)

def run():
    if verb == "restore":
        return AgentMemory.restore(path, "latest")
    with AgentMemory.open(path, agent_id="bob", embedder="wordllama") as memory:
        if verb == "erase":
            return memory.erase("gone", backups=True)
        if verb == "tidy":
            return memory._store.lifecycle.back_up_before("tidy")
        if verb == "export":
            return memory.export(path.parent / "out", format="directory")
        if verb == "migrate":
            memory.rollback()
        return getattr(memory, verb)()

sys.addaudithook(stop)
run()
"""
KILLS = {
    "a backup": ("backup", "backups/memories-"),
    "a backup before something": ("tidy", ".before-tidy"),
    "the rollback file of a migration": ("migrate", "scratchpad.yaml.backup"),
    "the event log while something is erased": ("erase", "events.jsonl"),
    "a rollback file while something is erased": ("erase", "scratchpad.yaml.backup.kept"),
    "what an erased rollback file is replaced by": ("erase", "scratchpad.yaml.backup"),
    "a restore": ("restore", ".replaced-"),
    "half a folder of an export": ("export", ".exported"),
}


@contextmanager
def dying(path: Path, kill: str, end: str) -> Iterator[subprocess.Popen[str]]:
    verb, *words = KILLS[kill]
    words = [word.replace("memories-", f"{path.stem}-") for word in words]
    process = subprocess.Popen(
        [sys.executable, "-c", DIES, str(path), verb, end, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def kill(path: Path, name: str) -> None:
    with dying(path, name, "die") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -9, errors


@pytest.fixture(params=["memories.db", "work.db"])
def path(root: Path, request: pytest.FixtureRequest) -> Path:
    """A store with one of everything that lies beside it, of either kind of name."""
    path: Path = root / "bob" / request.param
    path.parent.mkdir(parents=True)
    with AgentMemory.open(path, agent_id="bob", embedder="wordllama") as memory:
        memory.configure(event_log="full")
        memory.store_many(
            [{"id": "gone", "content": "the door code is Z4711"}, {"content": "plain tea"}]
        )
        memory.migrate()
        memory.backup()
    return path


def state_of(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
@pytest.mark.parametrize("name", KILLS)
def test_what_a_killed_process_left_is_named_and_removed(path: Path, name: str) -> None:
    if name == "half a folder of an export" and path.name != "memories.db":
        pytest.skip("the folder is not the agent's: it may hold anything")
    before = state_of(path.parent)
    kill(path, name)
    left = {each for each in state_of(path.parent) - before if ".lock" not in each}
    left -= {each for each in left if each.endswith(("-wal", "-shm", "-lock", "-migration", "out"))}
    assert left
    with AgentMemory.open(path, embedder=None) as memory:
        problems = [each for each in memory.check().problems if each.kind == "leftover"]
        assert problems != []
        for each in left:
            place = path.parent / each
            parents = [problem for problem in problems if f"{path.parent}/" in problem.detail]
            is_named = any(str(place).startswith(p.detail.split(" may hold")[0]) for p in parents)
            assert is_named or ".before-" in each, (each, problems)
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        assert not any((path.parent / each).exists() for each in left if ".before-" not in each)


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
@pytest.mark.parametrize("name", ["a backup", "the rollback file of a migration"])
def test_it_is_erased_with_the_backups(path: Path, name: str) -> None:
    kill(path, name)
    with AgentMemory.open(path, embedder=None) as memory:
        receipt = memory.erase("gone", backups=True)
        assert receipt.clean, receipt
    for each in path.parent.rglob("*"):
        assert not each.is_file() or b"Z4711" not in each.read_bytes(), each


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
@pytest.mark.parametrize(
    "name",
    ["a backup", "the rollback file of a migration", "half a folder of an export"],
)
def test_what_somebody_is_at_work_on_is_no_leftover(path: Path, name: str) -> None:
    with dying(path, name, "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        here = state_of(path.parent)
        with AgentMemory.open(path, embedder=None) as memory:
            assert memory.check(repair=True).problems == []
        assert {each for each in here if "-" not in each} <= state_of(path.parent)


def test_the_next_of_its_kind_removes_it(path: Path) -> None:
    if os.name != "posix":
        pytest.skip("kill -9")
    kill(path, "a backup before something")
    (left,) = (path.parent / "backups").glob(".*")
    with AgentMemory.open(path, embedder=None) as memory:
        memory.erase("gone")  # which makes a backup before
        assert not left.exists()
        out = path.parent / "all.yaml"
        unfinished = out.with_name(".all.yaml.0123abcd")
        unfinished.write_text("half of an export")
        with unfinished.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            memory.export(out)
            assert unfinished.exists()
        memory.export(out, overwrite=True)
        assert not unfinished.exists()


def test_files_of_others_stay(path: Path) -> None:
    names = (".notes.0123abcd", ".memories.db.0123ABCD", f".{path.name}.restored", "all.yaml")
    for name in names:
        (path.parent / name).write_text("mine")
    with AgentMemory.open(path, embedder=None) as memory:
        assert memory.check(repair=True).problems == []
        memory.erase("gone", backups=True)
    assert all((path.parent / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize(
    "words",
    ["export --format jsonl --output -", "import --format jsonl -"],
)
def test_what_a_killed_command_kept_for_its_streams_is_swept(
    path: Path, tmp_path: Path, words: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    program = [sys.executable, "-m", "agent_memory", "--db", str(path)]
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store_many([{"content": f"fact {n} " + "walnut " * 500} for n in range(100)])
        gone = memory.store("what shall be gone")
    with subprocess.Popen(
        [*program, *words.split()],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if words.startswith("export"):
            process.stdout.read(1)  # it waits for the rest to be read
        else:
            process.stdin.write(b'{"content": "what shall be gone"}\n' * 10_000)
            process.stdin.flush()  # it waits for more
        process.kill()
    assert any(temporary.iterdir())
    erased = subprocess.run([*program, "erase", gone, "--yes"], env=environment, check=False)
    assert erased.returncode == 0
    assert list(temporary.iterdir()) == []


def test_processes_that_make_and_sweep_folders_leave_each_others_alone(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", SWEEPS]
    both = [subprocess.Popen(words, env=environment) for _ in range(2)]
    assert [process.wait(timeout=120) for process in both] == [0, 0]
    assert not list(tmp_path.iterdir())
