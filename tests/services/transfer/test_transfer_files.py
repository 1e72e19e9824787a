"""The files of exports and imports: recognised, private, in place; others at work, kills."""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from conftest import Clock, Open, database_of
from exchange import (
    OF_FILES,
    OF_MEMORIES,
    contents,
    data,
    everything,
    exported,
    fault_of,
    filled,
    lines,
    names,
    run,
    saved,
)

from agent_memory import AgentMemory, AgentMemoryError, StorageUnavailable, ValidationError
from agent_memory.formats import registry as codecs

pytestmark = pytest.mark.usefixtures("temporary")


@pytest.fixture
def full(memory: AgentMemory, clock: Clock) -> AgentMemory:
    return filled(memory, clock)


# Recognising ----------------------------------------------------------------------------------


def test_a_format_that_is_named_is_not_guessed(memory: AgentMemory, tmp_path: Path) -> None:
    path = saved(tmp_path, lines({"content": "one"}, {"content": "two"}))
    assert memory.import_(path, dry_run=True).format == "jsonl"
    assert memory.import_(path, format="json").format == "json"
    for name in ("store", "scratchpad", "sqlite", "metadata"):
        with pytest.raises(AgentMemoryError, match=re.escape(str(path))):
            memory.import_(path, format=name)
    with pytest.raises(ValidationError, match="'csv' is not a format: use one of store, "):
        memory.import_(path, format="csv")
    assert memory.count() == 2


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"id,content\n1,x\n", b"\x89PNG\r\n\x1a\n", b"# Notes\n\nprose"]
)
def test_a_file_of_no_known_format_is_refused_with_those_that_are(
    memory: AgentMemory, tmp_path: Path, content: bytes
) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(ValidationError, match=r"name its format with --format") as caught:
        memory.import_(path)
    assert str(path) in str(caught.value)
    assert memory.count() == 0


@pytest.mark.parametrize("place", ["missing", "missing/in", "folder", "pipe", "loop"])
def test_what_cannot_be_read_is_refused_at_once(
    memory: AgentMemory, tmp_path: Path, place: str
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises((ValidationError, StorageUnavailable)):
        memory.import_(tmp_path / place)


def locks_on(path: Path) -> list[str]:
    """Return the system's locks on a file."""
    mark = f":{path.stat().st_ino} "
    return [line for line in Path("/proc/locks").read_text().splitlines() if mark in line]


# Found once: the file is opened to be recognised, and closing it drops every lock of the process.
@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="locks are listed on Linux alone")
@pytest.mark.parametrize("format", [None, "sqlite"])
def test_a_memory_does_not_lose_its_locks_by_taking_itself_in(
    memory: AgentMemory, format: str | None
) -> None:
    memory.store("kept", id="a")
    assert memory.search("kept")[0].memory.id == "a"
    assert locks_on(memory.path) != []
    fault = fault_of(lambda: memory.import_(memory.path, format=format, on_conflict="replace"))
    assert fault is None or str(memory.path) in fault
    assert locks_on(memory.path) != []
    assert contents(memory) == {"a": "kept"}


# Progress -------------------------------------------------------------------------------------


def test_progress_counts_what_is_read_and_then_what_is_taken_in(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = saved(tmp_path, lines(*({"content": f"memory {n}"} for n in range(1_700))))
    calls: list[tuple[int, int]] = []
    memory.import_(path, progress=lambda done, of: calls.append((done, of)))
    reading = [done for done, of in calls if of == 0]
    taking = [done for done, of in calls if of]
    assert calls == [(done, 0) for done in reading] + [(done, 1_700) for done in taking]
    assert len(reading) >= 3
    assert reading == sorted(reading)
    assert taking == sorted(taking)
    assert (reading[-1], taking[-1]) == (1_700, 1_700)


def test_an_error_of_the_progress_callback_takes_nothing_in(
    memory: AgentMemory, tmp_path: Path
) -> None:
    path = saved(tmp_path, lines(*({"content": f"memory {n}"} for n in range(1_700))))

    def stop(done: int, of: int) -> None:
        if of and done >= 1_000:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        memory.import_(path, progress=stop)
    assert memory.count() == 0
    assert memory.import_(path).new == 1_700


@pytest.mark.file_only("APSW compiles")
def test_the_statement_that_takes_in_most_memories_stays_compiled(
    memory: AgentMemory, tmp_path: Path
) -> None:
    """While another is compiled, the thread that computes fingerprints takes Python's lock."""
    connection = database_of(memory)._connection
    assert connection is not None
    memory.import_(saved(tmp_path, lines(*({"content": f"memory {n}"} for n in range(1_700)))))
    assert connection.cache_stats()["too_big"] == 0


# Files ----------------------------------------------------------------------------------------


@OF_FILES
@pytest.mark.parametrize("format", codecs.names())
@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_what_is_written_is_private_and_nothing_else_is_left(
    full: AgentMemory, tmp_path: Path, format: str, umask: int
) -> None:
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / "it"
    before = os.umask(umask)
    try:
        report = full.export(path, format=format)
    finally:
        os.umask(before)
    assert (report.path, report.format) == (str(path), format)
    assert names(tmp_path / "out") == {"it"}
    for file in (path, *path.rglob("*")):
        wanted = 0o700 if file.is_dir() else 0o600
        assert stat.S_IMODE(file.lstat().st_mode) == wanted, file


FOLDERS = [name for name in codecs.names() if codecs.codec(name).is_folder]
FILES = [name for name in codecs.names() if name not in FOLDERS]


@OF_FILES
@pytest.mark.parametrize("format", FILES)
@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_is_replaced_and_never_followed(
    full: AgentMemory, tmp_path: Path, format: str, target: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "victim").write_text("precious")
    link = out / "link"
    link.symlink_to(out / target)
    with pytest.raises(ValidationError, match="exists"):
        full.export(link, format=format)
    assert link.is_symlink()
    full.export(link, format=format, overwrite=True)
    assert not link.is_symlink()
    assert (out / "victim").read_text() == "precious"
    assert names(out) == {"victim", "link"}


@pytest.mark.parametrize("format", FOLDERS)
def test_a_folder_that_is_a_link_is_refused(full: AgentMemory, tmp_path: Path, format: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ValidationError):
        full.export(tmp_path / "link", format=format, overwrite=True)
    assert names(tmp_path / "real") == set()


@pytest.mark.parametrize("format", codecs.names())
def test_what_is_there_is_kept_unless_it_may_go(
    full: AgentMemory, tmp_path: Path, format: str
) -> None:
    path = exported(full, tmp_path / "out", format)
    before = data(path)
    full.store("later")
    full.configure(migration_threshold=1_234)
    with pytest.raises(ValidationError, match="exists: choose another path, or overwrite it"):
        full.export(path, format=format)
    assert data(path) == before
    full.export(path, format=format, overwrite=True)
    assert data(path) != before


@OF_FILES
@pytest.mark.parametrize("format", codecs.names())
def test_a_place_that_cannot_hold_it_is_refused(
    full: AgentMemory, tmp_path: Path, format: str
) -> None:
    out = tmp_path / "out"
    (out / "folder").mkdir(parents=True)
    (out / "folder" / "mine").write_text("precious")
    (out / "file").write_text("precious")
    wrong = ["missing/it", "file/it", "folder"] + (["file"] if format in FOLDERS else [])
    for place in wrong:
        with pytest.raises((ValidationError, StorageUnavailable)):
            full.export(out / place, format=format, overwrite=True)
    assert names(out) == {"folder", "file"}
    assert names(out / "folder") == {"mine"}


def test_a_memory_is_not_written_over_itself(full: AgentMemory, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(full.path.parent)
    for place in (
        full.path,
        full.path.with_name("memories.db-wal"),
        full.path.with_name("memories.db-shm"),
        full.path.parent / ".." / "bob" / "memories.db",
        tmp_path / "link" / "memories.db",
    ):
        for name in ("store", "sqlite", "jsonl"):
            with pytest.raises(ValidationError, match="is the memory itself"):
                full.export(place, format=name, overwrite=True)
    assert len(everything(full)) == 13


EXCHANGE_WITH_LITTLE_ROOM = """
import resource, signal, sys
from agent_memory import AgentMemory, AgentMemoryError
verb, root, path, format = sys.argv[1:]
with AgentMemory("bob", root=root, embedder=None) as memory:
    memory.count()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
    try:
        if verb == "export":
            memory.export(path, format=format, overwrite=True)
        else:
            memory.import_(path, format=format)
    except AgentMemoryError as error:
        print(type(error).__name__)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert memory.check().problems == []
    print(memory.count())
"""


@OF_FILES
@pytest.mark.parametrize("format", [*OF_MEMORIES, "sqlite"])
def test_an_export_that_does_not_fit_leaves_the_old_one(
    memory: AgentMemory, root: Path, tmp_path: Path, format: str
) -> None:
    memory.store("small")
    path = exported(memory, tmp_path / "out", format)
    before, there = data(path), names(tmp_path / "out")
    memory.store_many([{"content": f"memory {n} " + "x" * 900} for n in range(300)])
    printed = run(EXCHANGE_WITH_LITTLE_ROOM, "export", root, path, format)
    assert printed[0] in ("StorageUnavailable", "StorageFull")
    assert printed[1:] == ["301"]
    assert data(path) == before
    assert names(tmp_path / "out") == there


# Found once: what cannot be put aside ends with OSError.
@OF_FILES
@pytest.mark.parametrize("format", ["store", "jsonl", "directory", "sqlite"])
def test_an_import_that_does_not_fit_takes_nothing_in(
    memory: AgentMemory, other: Open, tmp_path: Path, format: str
) -> None:
    memory.store_many([{"content": f"memory {n} " + "x" * 900} for n in range(300)])
    path = exported(memory, tmp_path / "out", format)
    with other() as copy:
        copy.store("small")
    printed = run(EXCHANGE_WITH_LITTLE_ROOM, "import", tmp_path / "other", path, format)
    assert printed[0] in ("StorageUnavailable", "StorageFull")
    assert printed[1:] == ["1"]


# While others are at work ---------------------------------------------------------------------

STORE_PAIRS_UNTIL_KILLED = """
import itertools, sys
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1], create=False) as memory:
    for n in itertools.count():
        memory.store_many([{"content": f"{side} {n} " + "x" * 200} for side in ("left", "right")])
        print(n, flush=True)
"""


@pytest.fixture
def writer(memory: AgentMemory, root: Path) -> Iterator[subprocess.Popen[str]]:
    """Let another process store pairs of memories in the store, one pair in each transaction."""
    memory.store_many([{"content": f"memory {n}"} for n in range(500)])
    code = [sys.executable, "-c", STORE_PAIRS_UNTIL_KILLED, str(root)]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        yield process
        process.kill()
        process.communicate()


@pytest.mark.parametrize("format", [*OF_MEMORIES, "sqlite"])
def test_an_export_is_of_one_moment_while_another_process_writes(
    memory: AgentMemory,
    writer: subprocess.Popen[str],
    other: Open,
    tmp_path: Path,
    format: str,
) -> None:
    path = exported(memory, tmp_path / "out", format)
    with other() as copy:
        copy.import_(path)
        texts = [it.content for it in everything(copy).values()]
        left, right = (
            {text.split()[1] for text in texts if text.startswith(side)}
            for side in ("left", "right")
        )
        assert left == right == {str(n) for n in range(len(left))}
        assert len(texts) == 500 + 2 * len(left)
        assert copy.check().problems == []
    assert writer.poll() is None


def test_an_import_loses_nothing_that_others_store_meanwhile(
    memory: AgentMemory, writer: subprocess.Popen[str], tmp_path: Path
) -> None:
    path = saved(tmp_path, lines(*({"content": f"new {n}", "id": f"n{n}"} for n in range(4_000))))
    assert memory.import_(path).new == 4_000
    assert writer.stdout is not None
    last = int(writer.stdout.readline())
    writer.kill()
    rest = writer.stdout.read().split("\n")
    last = max([last, *(int(line) for line in rest[:-1] if line)])
    stored = set(contents(memory).values())
    assert {f"new {n}" for n in range(4_000)} <= stored
    wanted = {f"{side} {n} " + "x" * 200 for n in range(last + 1) for side in ("left", "right")}
    assert wanted - stored == set()


IMPORT = """
import sys
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1], create=False) as memory:
    print("open", flush=True)
    memory.import_(sys.argv[2], on_conflict="replace",
                   progress=lambda done, of: print(done, of, flush=True))
    print("done", flush=True)
"""


def test_an_import_that_is_killed_took_all_in_or_nothing(
    memory: AgentMemory, root: Path, tmp_path: Path, temporary: Path
) -> None:
    memory.store("here", id="n0")
    items = [{"content": f"new {n} " + "y" * 200, "id": f"n{n}"} for n in range(3_000)]
    path = saved(tmp_path, lines(*items))
    chance = random.Random(5)
    outcomes: set[str] = set()
    for turn in range(0, 12, 2):
        code = [sys.executable, "-c", IMPORT, str(root), str(path)]
        with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(1 + turn):  # further on each time: opening, reading, taking in
                process.stdout.readline()
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.communicate()
        found = contents(memory)
        # The backup before it may have been killed in the middle: that is named, and made good.
        assert {problem.kind for problem in memory.check(repair=True).problems} <= {"leftover"}
        assert memory.check().problems == []
        outcomes.add("all" if len(found) == 3_000 else "nothing")
        assert found == (
            {it["id"]: it["content"] for it in items} if len(found) > 1 else {"n0": "here"}
        )
        if len(found) > 1:
            memory.undo()
            assert contents(memory) == {"n0": "here"}
    assert "nothing" in outcomes
    assert list(temporary.iterdir()) == []
    assert memory.import_(path, on_conflict="replace").new == 2_999


def test_threads_export_and_import_at_once(
    memory: AgentMemory, other: Open, tmp_path: Path
) -> None:
    import concurrent.futures

    memory.store_many([{"content": f"memory {n}", "id": f"m{n}"} for n in range(200)])
    paths = [
        saved(tmp_path, lines(*({"content": f"{file} {n}"} for n in range(200))), f"in-{file}")
        for file in range(4)
    ]

    def work(number: int) -> Literal["exported", "imported"]:
        if number % 2:
            memory.export(tmp_path / f"out-{number}")
            return "exported"
        memory.import_(paths[number // 2])
        return "imported"

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(work, range(8))) == ["exported"] * 4 + ["imported"] * 4
    assert memory.count() == 1_000
    for number in (1, 3, 5, 7):
        with other(f"copy-{number}") as copy:
            assert copy.import_(tmp_path / f"out-{number}").new % 200 == 0
