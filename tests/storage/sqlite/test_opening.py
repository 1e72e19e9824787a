"""Opening a file: what is refused, what is recovered, who may read it, what a name may be."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import places
import pytest
from conftest import Cli
from places import NOBODY, finished, started
from reads import contents

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    MemoryReader,
    MigrationError,
    NewerSchema,
    NotAMemoryFile,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageLocked,
    StorageReadOnly,
    StorageUnavailable,
)


def sql(path: Path, *statements: str) -> str:
    """Run SQL with Python's own sqlite3, elsewhere: never beside the library in one process."""
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for s in sys.argv[2:]: [print(*row) for row in c.execute(s)]\n"
        "c.close()"
    )
    return finished(code, path, *statements)


def filled(path: Path, memories: int = 40) -> Path:
    """Make a store with some memories and close it."""
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store_many([{"content": f"memory number {n} " + "x" * 300} for n in range(memories)])
    return path


def seen(directory: Path) -> dict[str, tuple[object, ...]]:
    """Describe every file: a -shm only by its being there, as SQLite makes it anew at will."""
    return {
        path.name: ()
        if path.name.endswith("-shm")
        else (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in directory.iterdir()
    }


# Files that are something else, or damaged ------------------------------------------------------


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(
    ("make", "error"),
    [
        pytest.param(lambda _: b"Dear diary,\n" * 99, NotAMemoryFile, id="a text"),
        pytest.param(lambda _: b"hi", NotAMemoryFile, id="two bytes"),
        pytest.param(lambda _: random.Random(1).randbytes(9000), NotAMemoryFile, id="random bytes"),
        pytest.param(lambda s: bytes(100) + s[100:], NotAMemoryFile, id="header zeroed"),
        pytest.param(lambda s: s[:18] + b"\3\3" + s[20:], NotAMemoryFile, id="unknown file format"),
        pytest.param(lambda s: s[: len(s) // 2], StorageCorrupt, id="second half gone"),
    ],
)
def test_a_file_that_is_no_sound_store_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[bytes], bytes], error: type[Exception], create: bool
) -> None:
    path = filled(tmp_path / "s.db")
    path.write_bytes(make(path.read_bytes()))
    before = seen(tmp_path)
    with pytest.raises(error, match=r"s\.db"):
        AgentMemory.open(path, create=create)
    assert seen(tmp_path) == before


def test_a_page_overwritten_in_the_middle_is_reported_by_check(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db")
    content = path.read_bytes()
    # The page of a memory's text, not the first one: the file still opens.
    page = content.index(b"memory number 20") // 8192 * 8192
    path.write_bytes(content[:page] + b"\xff" * 8192 + content[page + 8192 :])
    with AgentMemory.open(path) as memory:
        report = memory.check()
    assert not report.ok
    assert "damaged_file" in {problem.kind for problem in report.problems}


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch(0o600)
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store("Prefer PostgreSQL")
        assert memory.agent_id == "bob"
    assert sql(path, "SELECT content FROM memories") == "Prefer PostgreSQL"


@pytest.mark.parametrize("name", ["directory", "file/s.db", "pipe", "missing/s.db", "missing.db"])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StorageError, match=name):
        AgentMemory.open(tmp_path / name, create=False)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("target", ["elsewhere.db", "nowhere.db"])
def test_a_link_instead_of_a_file_is_refused(tmp_path: Path, target: str) -> None:
    before = filled(tmp_path / "elsewhere.db").read_bytes()
    (tmp_path / "link.db").symlink_to(tmp_path / target)
    with pytest.raises(StorageUnavailable, match="symbolic link"):
        AgentMemory.open(tmp_path / "link.db")
    assert (tmp_path / "elsewhere.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere.db", "link.db"]


def test_an_agent_directory_that_is_a_link_is_refused_and_not_listed(root: Path) -> None:
    AgentMemory("bob", root=root).close()
    (root / "eve").symlink_to(root / "bob")
    with pytest.raises(StorageUnavailable, match="symbolic link"):
        AgentMemory("eve", root=root)
    assert [agent.agent_id for agent in AgentMemory.agents(root)] == ["bob"]


def test_a_renamed_folder_is_refused_with_ways_that_lead_to_its_memories(
    tmp_path: Path, cli: Cli
) -> None:
    """The advice was to use the former agent id, which made a second, empty memory."""
    root = tmp_path / "bob's own"  # the advice did not run
    with AgentMemory("mm", root=root) as memory:
        memory.store("Prefer tea")
    path = (root / "mm").rename(root / "nn") / "memories.db"
    (listed,) = AgentMemory.agents(root)
    assert listed.problem is not None
    assert "of agent 'mm', not of 'nn'" in listed.problem
    for refuse in (AgentMemory, MemoryReader.open):
        with pytest.raises(ConfigurationError, match=r"name it 'mm' again") as refused:
            refuse("nn", root=root)
        assert f"AgentMemory.open({str(path)!r})" in str(refused.value)
        assert f"`--db {shlex.quote(str(path))}`" in str(refused.value)
    for command in ("recent", "store more", "check", "info"):
        ran = cli("--root", str(root), "--agent", "nn", *command.split())
        assert (ran.code, f"`--db {shlex.quote(str(path))}`" in ran.err) == (4, True), ran.err
    assert "do what that says" in cli("--root", str(root), "--agent", "nn", "doctor").out
    assert "Prefer tea" in cli("--db", str(path), "recent").out
    assert [it.name for it in root.iterdir() if it.is_dir()] == ["nn"]


FOREIGN = """
import os, sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[3:]:
    c.execute(statement)
os._exit(0) if sys.argv[2] == "leave" else c.close()  # leaves the log behind
"""


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("leave", "statements"),
    [
        pytest.param("", ["CREATE TABLE notes (x)"], id="without log"),
        pytest.param("", ["PRAGMA journal_mode = WAL", "CREATE TABLE notes (x)"], id="log closed"),
        pytest.param(
            "leave", ["PRAGMA journal_mode = WAL", "CREATE TABLE notes (x)"], id="log left behind"
        ),
        pytest.param("", ["PRAGMA user_version = 3"], id="no table yet, its version"),
        pytest.param("", ["PRAGMA application_id = 7"], id="no table yet, its mark"),
    ],
)
def test_a_database_of_another_program_is_refused_and_not_touched(
    tmp_path: Path, leave: str, statements: list[str], read_only: bool
) -> None:
    path = tmp_path / "other.db"
    finished(FOREIGN, path, leave, *statements)
    before = seen(tmp_path)
    assert ("other.db-wal" in before) == bool(leave)
    with pytest.raises(NotAMemoryFile, match="another program"):
        AgentMemory.open(path, read_only=read_only)
    assert seen(tmp_path) == before


def test_the_rights_on_a_database_of_another_program_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    finished(FOREIGN, path, "", "CREATE TABLE notes (x)")
    path.chmod(0o664)
    with pytest.raises(NotAMemoryFile):
        AgentMemory.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def copied_as_sql(path: Path, way: str, *, before: bytes = b"") -> Path:
    """Copy a file with the real sqlite3, by SQL: what marks a file as ours is lost."""
    copy = path.with_name(f"copy by {way}.db")
    if way == "dump":
        dumped = subprocess.run(["sqlite3", path, ".dump"], capture_output=True, check=True)
        script = before + dumped.stdout
        subprocess.run(["sqlite3", copy], input=script, capture_output=True, check=True)
    else:
        subprocess.run(["sqlite3", path, f'.clone "{copy}"'], capture_output=True, check=False)
    assert sql(copy, "PRAGMA application_id", "PRAGMA user_version").split() == ["0", "0"]
    return copy


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
@pytest.mark.parametrize("read_only", [False, True], ids=["to write", "to read"])
@pytest.mark.filterwarnings("ignore:.*others may read it")
def test_a_copy_in_utf_16_is_refused_with_the_way_back(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "s.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store("Zoë likes crème brûlée")
    wide = copied_as_sql(path, "dump", before=b"PRAGMA encoding = 'UTF-16';")
    wide = wide.rename(tmp_path / "wide.db")
    before = wide.read_bytes()
    with pytest.raises(NotAMemoryFile, match=r"UTF-16le, .*`sqlite3 OLD\.db \.dump \| sqlite3 NEW"):
        AgentMemory.open(wide, agent_id="bob", read_only=read_only)
    assert wide.read_bytes() == before
    with AgentMemory.open(copied_as_sql(wide, "dump"), agent_id="bob") as memory:
        assert contents(memory.search("creme brulee")) == ["Zoë likes crème brûlée"]
        assert memory.check().problems == []


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
@pytest.mark.parametrize("has_vectors", [False, True], ids=["by keyword", "by meaning"])
@pytest.mark.parametrize("way", ["dump", "clone"])
@pytest.mark.filterwarnings("ignore:.*others may read it")
def test_a_copy_by_way_of_sql_is_a_memory(tmp_path: Path, way: str, has_vectors: bool) -> None:
    path = tmp_path / "s.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store("the kestrel nests in the tower", tags=["birds"])
        if has_vectors:
            memory.migrate(embedder="wordllama")
        before = memory.list_recent(), memory.history()
    copy = copied_as_sql(path, way)
    with pytest.raises(StorageReadOnly, match="is a copy without its header"):
        AgentMemory.open(copy, read_only=True)
    with AgentMemory.open(copy) as memory:
        assert memory.agent_id == "bob"
        assert [hit.memory.content for hit in memory.search("kestrel", count_accesses=False)] == [
            "the kestrel nests in the tower"
        ]
        assert memory.check().problems == []
        assert (memory.list_recent(), memory.history()) == before
        memory.store("and on")
        assert len(memory.search("and on")) == 1
    assert sql(copy, "PRAGMA application_id", "PRAGMA user_version") == sql(
        path, "PRAGMA application_id", "PRAGMA user_version"
    )
    with AgentMemory.open(copy, read_only=True) as memory:
        assert len(memory.list_recent()) == 2


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
@pytest.mark.parametrize("way", ["dump", "clone"])
@pytest.mark.filterwarnings("ignore:.*others may read it")
def test_a_copy_of_rows_with_a_gap_finds_them_at_once(tmp_path: Path, way: str) -> None:
    """Only the first opening of a `.clone` said that it did not, and it was a line of a log."""
    path = tmp_path / "s.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.store("the kestrel nests in the tower")
        memory.delete(memory.store("a mistake"))
        memory.store("the heron fishes in the pond")
        memory.store("and nobody knows where the owl sleeps")
        memory.delete(memory.list_recent()[1].id)
    copy = copied_as_sql(path, way)
    with AgentMemory.open(copy) as memory:
        assert memory.check().problems == []
        for word in ("owl", "kestrel"):
            assert [word in hit.memory.content for hit in memory.search(word)] == [True]
    with AgentMemory.open(copy, read_only=True) as memory:
        assert "owl" in memory.search("owl")[0].memory.content


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
@pytest.mark.filterwarnings("ignore:.*others may read it")
def test_the_index_of_a_clone_is_not_rebuilt_from_a_strangers_view(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "s.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        memory.delete(memory.store("a mistake"))
        memory.store("the kestrel nests in the tower")
    copy = copied_as_sql(path, "clone")
    columns = "0 AS seq, 'planted' AS content, '' AS tags, '' AS dates, '' AS pairs"
    sql(copy, "DROP VIEW memory_text", f"CREATE VIEW memory_text AS SELECT {columns}")
    with AgentMemory.open(copy) as memory:
        assert "`agent-memory check --repair` rebuilds it" in caplog.text
        assert "planted" not in sql(copy, "SELECT term FROM memory_words")
        memory.check(repair=True)
        assert memory.check().problems == []
        assert len(memory.search("kestrel")) == 1


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
@pytest.mark.parametrize("erased", [False, True], ids=["vacuumed", "erased"])
@pytest.mark.filterwarnings("ignore:.*others may read it")
def test_a_clone_of_a_compacted_file_is_repaired(tmp_path: Path, erased: bool) -> None:
    """The clone has the tables of each index without the index: `check --repair` mended nothing."""
    path = tmp_path / "s.db"
    with AgentMemory.open(path, agent_id="bob") as memory:
        gone = memory.store("a mistake")
        memory.store("the kestrel nests in the tower")
        memory.migrate(embedder="wordllama")
        if erased:
            memory.erase([gone])
    sql(path, "VACUUM")
    copy = copied_as_sql(path, "clone")
    names = sql(copy, "SELECT name FROM sqlite_schema").split()
    assert "memory_index_data" in names
    assert not {"memory_index", "embedding_index_1"} & set(names)
    # FTS5 keeps no texts here, so a table of this name is a user's: the repair dropped it.
    sql(copy, "CREATE TABLE memory_index_content AS SELECT 'mine' AS a")
    # A view in the place of one of FTS5's tables made the repair fail.
    sql(copy, "DROP TABLE memory_index_idx", "CREATE VIEW memory_index_idx AS SELECT 1")
    with AgentMemory.open(copy) as memory:
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        assert [hit.memory.content for hit in memory.search("kestrel")] == [
            "the kestrel nests in the tower"
        ]
        memory.store("and on")
        assert len(memory.search("and on")) >= 1
    names = sql(copy, "SELECT name FROM sqlite_schema").split()
    assert {"memory_index", "memory_words", "embedding_index_1"} <= set(names)
    assert sql(copy, "SELECT a FROM memory_index_content") == "mine"


@pytest.mark.skipif(not shutil.which("sqlite3"), reason="no sqlite3 here")
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("INSERT INTO schema_migrations VALUES (99, '0099_x.sql', 'x', 'now')", NotAMemoryFile),
        ("UPDATE schema_migrations SET name = 'create_notes' WHERE number = 1", NotAMemoryFile),
        ("DELETE FROM schema_migrations", NotAMemoryFile),
        ("DROP TABLE schema_migrations", NotAMemoryFile),
        ("PRAGMA user_version = 3", NotAMemoryFile),
        ("PRAGMA application_id = 7", NotAMemoryFile),
        (
            """WITH RECURSIVE n (i) AS (SELECT (SELECT max(number) FROM schema_migrations) + 1
            UNION ALL SELECT i + 1 FROM n WHERE i < 99)
            INSERT INTO schema_migrations SELECT i, 'later', 'x', 'now' FROM n""",
            NewerSchema,
        ),
    ],
)
def test_what_only_looks_like_a_copy_is_refused_untouched(
    tmp_path: Path, statement: str, error: type[Exception]
) -> None:
    copy = copied_as_sql(filled(tmp_path / "s.db"), "dump")
    sql(copy, statement)
    before = seen(tmp_path)
    with pytest.raises(error):
        AgentMemory.open(copy)
    assert seen(tmp_path) == before


OTHER_HASH = "UPDATE schema_migrations SET sha256 = 'x' WHERE number = 3"


@pytest.mark.parametrize(
    ("statement", "error", "advice"),
    [
        ("PRAGMA user_version = 99", NewerSchema, "install a newer version of it"),
        (f"DROP TRIGGER history_of_new;;{OTHER_HASH}", MigrationError, "0003_"),
    ],
)
def test_a_schema_that_this_version_does_not_know_is_refused_untouched(
    tmp_path: Path, statement: str, error: type[Exception], advice: str
) -> None:
    path = filled(tmp_path / "s.db")
    sql(path, *statement.split(";;"))
    before = seen(tmp_path)
    with pytest.raises(error, match=advice):
        AgentMemory.open(path)
    assert seen(tmp_path) == before


# Crashes, locks, full disks, files that move ----------------------------------------------------

STORE_AND_WAIT = """
import sys
from agent_memory import AgentMemory
memory = AgentMemory.open(sys.argv[1])
for n in range(30):
    print(memory.store(f"memory number {n}"), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("shm", ["as it is", "garbage", "missing"])
def test_a_log_left_by_a_killed_process_is_recovered(tmp_path: Path, shm: str) -> None:
    path = tmp_path / "s.db"
    with started(STORE_AND_WAIT, path) as process:
        assert process.stdout is not None
        ids = [process.stdout.readline().strip() for _ in range(30)]
        process.send_signal(signal.SIGKILL)
    assert "" not in ids
    assert path.with_name("s.db-wal").stat().st_size > 0
    index = path.with_name("s.db-shm")
    if shm == "garbage":
        index.write_bytes(random.Random(2).randbytes(index.stat().st_size))
    elif shm == "missing":
        index.unlink()
    with AgentMemory.open(path, create=False) as memory:
        assert [memory_id for memory_id in ids if memory.get(memory_id) is None] == []
        assert memory.check().problems == []


HOLD = """
import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute(sys.argv[2])
print("held", flush=True); sys.stdin.read()
c.execute("ROLLBACK")
"""


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_file_that_another_process_holds_is_reported_locked_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    monkeypatch.setattr("agent_memory.storage.sqlite.connection.opening.BUSY_TIMEOUT_SECONDS", 0.2)
    path = tmp_path / "s.db"
    with AgentMemory.open(path) as memory:
        first = memory.store("the first walnut")
        with started(HOLD, path, begin) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StorageLocked, match="try again"):
                memory.store("the second walnut")
            assert [hit.memory.id for hit in memory.search("walnut")] == [first]
            holder.communicate(timeout=60)
        memory.store("the third walnut")
        assert memory.count() == 2
        found = memory.get(first)
        assert found is not None
        assert found.access_count == 1  # the search's count waited for the lock


def test_who_is_seldom_let_run_waits_until_it_has_looked_often_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside many busy processes a writer was told "locked" that had looked a few times."""
    monkeypatch.setattr("agent_memory.storage.sqlite.connection.opening.BUSY_TIMEOUT_SECONDS", 0.3)
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: sleep(seconds * 20))
    path = tmp_path / "s.db"
    with AgentMemory.open(path) as memory, started(HOLD, path, "BEGIN IMMEDIATE") as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        threading.Timer(0.9, holder.stdin.close).start()
        assert memory.store("the second walnut")
        assert holder.wait(timeout=60) == 0


def test_opening_a_new_file_that_another_process_holds_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.sqlite.connection.opening.BUSY_TIMEOUT_SECONDS", 0.2)
    with started(HOLD, tmp_path / "s.db", "BEGIN EXCLUSIVE") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StorageLocked, match=r"s\.db"):
            AgentMemory.open(tmp_path / "s.db")
        holder.communicate(timeout=60)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 2 MB."""
    with places.small_disk(tmp_path / "disk", 2048) as disk:
        yield disk


def fill_the_disk(filler: Path) -> None:
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_loses_nothing_and_writing_goes_on_after_space_is_freed(
    small_disk: Path,
) -> None:
    with AgentMemory.open(small_disk / "s.db") as memory:
        stored = [memory.store("the first walnut")]
        filler = small_disk / "filler"
        fill_the_disk(filler)
        with pytest.raises(StorageFull, match="is full"):
            stored.extend(memory.store(f"memory {n} " + "x" * 9000) for n in range(1000))
        assert memory.search("walnut", count_accesses=False)[0].memory.id == stored[0]
        filler.unlink()
        stored.append(memory.store("after the walnut"))
        assert memory.count() == len(stored)
        assert [one for one in stored if memory.get(one) is None] == []
        assert memory.check().problems == []


def test_a_deleted_file_is_noticed_at_the_next_write(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "s.db") as memory:
        memory.store("the first")
        (tmp_path / "s.db").unlink()
        with pytest.raises(StorageUnavailable, match="deleted or moved"):
            memory.store("the second")
    assert not (tmp_path / "s.db").exists()  # closing makes no new one either


def test_a_file_that_was_moved_away_and_back_is_written_again(tmp_path: Path) -> None:
    path, away = tmp_path / "s.db", tmp_path / "away.db"
    with AgentMemory.open(path) as memory:
        memory.store("the first")
        path.rename(away)
        with pytest.raises(StorageUnavailable):
            memory.store("lost")
        away.rename(path)
        memory.store("the second")
        assert memory.count() == 2
        assert memory.check().problems == []


def test_after_the_file_was_replaced_writes_go_to_the_new_one(tmp_path: Path) -> None:
    path, other = tmp_path / "s.db", filled(tmp_path / "restored.db", 30)
    with AgentMemory.open(path, agent_id="bob") as memory:
        for n in range(20):
            memory.store(f"old {n}")
        other.replace(path)  # as a user restores a backup
        added = memory.store("stored after the restoring")
    with AgentMemory.open(path) as memory:
        contents = {one.content for one in memory.list_recent(100)}
        assert memory.get(added) is not None
        # The log of the old file must not be played into the new one.
        assert sum(content.startswith("memory number") for content in contents) == 30
        assert memory.count() == 31
        assert memory.check().problems == []


VERBS: dict[str, Callable[[AgentMemory], object]] = {
    "search": lambda memory: memory.search("number"),
    "list_recent": lambda memory: memory.list_recent(),
    "count": lambda memory: memory.count(),
    "context": lambda memory: memory.context(),
    "history": lambda memory: memory.history(),
    "info": lambda memory: memory.info(),
    "statistics": lambda memory: memory.statistics(),
    "export": lambda memory: memory.export(memory.path.with_name("export.yaml")),
    "backup": lambda memory: memory.backup(memory.path.with_name("backup.db")),
    "as_of": lambda memory: memory.list_recent(as_of="2026-01-01"),
    "backups": lambda memory: memory.backups(),
    "events": lambda memory: next(memory.events(), None),
    "follow_events": lambda memory: next(memory.follow_events(until=lambda: True), None),
    "store": lambda memory: memory.store("for bob alone"),
    "check": lambda memory: memory.check(),
    "archive": lambda memory: memory.archive("mem-1"),
    "tidy": lambda memory: memory.tidy(),
    "undo": lambda memory: memory.undo(),
    "erase": lambda memory: memory.erase("mem-1"),
}
READING = [*VERBS][: [*VERBS].index("store")]


@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "read_only"])
def test_the_file_of_another_agent_in_its_place_is_neither_read_nor_written(
    tmp_path: Path, read_only: bool
) -> None:
    path, mine = filled(tmp_path / "s.db", 1), tmp_path / "mine.db"
    with AgentMemory.open(tmp_path / "eve.db", agent_id="eve") as eve:
        eve.store("a secret of Eve, number 1", id="mem-1")
    before = seen(tmp_path)["eve.db"]
    with AgentMemory.open(path, read_only=read_only) as memory:
        assert len(memory.search("number")) == 1  # the count of which is not written yet
        path.rename(mine)
        eve.path.rename(path)
        with pytest.raises(ConfigurationError) as refusal:
            AgentMemory.open(path, agent_id="bob")
        for name in READING if read_only else VERBS:
            with pytest.raises(ConfigurationError) as refused:
                VERBS[name](memory)
            assert (name, str(refused.value)) == (name, str(refusal.value))
        path.rename(tmp_path / "eve.db")
        mine.rename(path)
        assert memory.list_recent()[0].content.startswith("memory number 0")
        path.rename(mine)
        (tmp_path / "eve.db").rename(path)
    assert seen(tmp_path)["s.db"] == before
    assert {it.name for it in tmp_path.iterdir()} == {"s.db", "mine.db"}


def test_who_only_reads_goes_on_with_a_backup_in_its_place(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db", 1)
    with AgentMemory.open(path) as memory:
        backup = memory.backup()
        memory.store("stored since")
    with AgentMemory.open(path, read_only=True) as memory:
        assert memory.count() == 2
        backup.replace(path)
        assert (memory.count(), len(memory.search("number"))) == (1, 1)


# Who may read it --------------------------------------------------------------------------------

STORE_UNDER_UMASK = """
import os, sys
os.umask(int(sys.argv[2], 8))
from agent_memory import AgentMemory
with AgentMemory("bob", root=sys.argv[1]) as memory:
    memory.store_many([{"content": f"memory {n} " + "x" * 2000} for n in range(200)])
    memory.backup()
"""


@pytest.mark.parametrize("umask", ["000", "022"])
def test_nobody_else_can_read_any_file_at_any_moment(root: Path, umask: str) -> None:
    modes: dict[str, set[int]] = {}
    with started(STORE_UNDER_UMASK, root, umask) as process:
        ended = False
        while not ended:
            ended = process.poll() is not None  # one look after the end, too
            for path in (root, *root.rglob("*")):
                try:
                    mode = path.lstat().st_mode
                except FileNotFoundError:
                    continue
                wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
                modes.setdefault(path.name, set()).add(stat.S_IMODE(mode) ^ wanted)
        assert process.returncode == 0
    assert {"root", "bob", "memories.db", "memories.db-wal", "backups"} <= modes.keys()
    assert {name: wrong for name, wrong in modes.items() if wrong != {0}} == {}


def test_a_file_that_others_could_read_is_tightened_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with started(STORE_AND_WAIT, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    for part in tmp_path.iterdir():
        part.chmod(0o644)
    with AgentMemory.open(path) as memory:
        memory.store("a secret")
        modes = {part.name: stat.S_IMODE(part.stat().st_mode) for part in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["s.db", "s.db-wal", "s.db-shm"], 0o600)


AS_NOBODY = """
import os, sys
from pathlib import Path
from agent_memory import AgentMemory, StorageError
with AgentMemory("warm", root=sys.argv[4]) as memory:
    memory.store("loads what is loaded late: it may lie where only root can read")
os.setgid(65534); os.setuid(65534)
path, mode, on = Path(sys.argv[1]), int(sys.argv[2], 8), sys.argv[3]
if on != "empty directory":
    with AgentMemory.open(path) as memory:
        memory.store("kept")
(path if on == "file" else path.parent).chmod(mode)
try:
    with AgentMemory.open(path) as memory:
        memory.store("more")
    print("stored")
except StorageError as error:
    print(type(error).__name__, str(path) in str(error))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
@pytest.mark.parametrize(
    ("mode", "on", "errors"),
    [
        ("0400", "file", {"StorageReadOnly"}),
        ("0000", "file", {"StorageUnavailable"}),
        ("0500", "directory", {"StorageReadOnly", "StorageUnavailable"}),
        ("0500", "empty directory", {"StorageUnavailable"}),
        ("0000", "directory", {"StorageUnavailable"}),
    ],
)
def test_missing_permissions_are_a_typed_error(
    public_folder: Path, root: Path, mode: str, on: str, errors: set[str]
) -> None:
    os.chown(public_folder, NOBODY, NOBODY)
    kind, names_the_path = finished(AS_NOBODY, public_folder / "s.db", mode, on, root).split()
    assert kind in errors
    assert names_the_path == "True"
