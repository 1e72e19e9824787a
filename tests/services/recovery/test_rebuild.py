"""A damaged file made anew from ``scratchpad.yaml.backup`` and from all that can still be read."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, MigrationError, RebuildReport, ValidationError
from agent_memory.errors import AgentMemoryError, StorageError

COUNT, LATER = 400, 60
PAGE = 8192

# One row at a time, as the one who looks for what is left: never beside APSW in one process.
_READS_ROWS = """
import sqlite3, sys
c = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
for seq in range(1, int(sys.argv[2]) + 1):
    try:
        row = c.execute("SELECT * FROM memories WHERE seq = ?", (seq,)).fetchone()
    except sqlite3.DatabaseError:
        continue
    if row is not None and isinstance(row[1], str) and row[1].startswith(("mem-", "late-")):
        print(row[1])
"""

Kept = dict[str, dict[str, Any]]


pytestmark = pytest.mark.file_only("who runs a database restores it")


def contents(memory: AgentMemory) -> Kept:
    """Return all that is known of every memory, by id."""
    found: Kept = {}
    for archived in (False, True):
        for one in memory.list_recent(10_000, filters={"archived": archived}):
            found[one.id] = one.model_dump()
    return found


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Kept]:
    """Make a moved memory with every kind of field; some memories came after the move."""
    root = tmp_path_factory.mktemp("original")
    with AgentMemory("bob", root=root, embedder="wordllama", session_id="s-1") as memory:
        memory.configure(categories=["recipe"])
        memory.store_many(
            [{"id": f"mem-{n}", "content": f"fact number{n} " + "x" * 300} for n in range(COUNT)]
        )
        memory.update(
            "mem-7",
            category="recipe",
            kind="core",
            importance="high",
            tags=["zebra", "apple", "mango"],
            metadata={"source": {"page": 3}, "emoji": "🦊"},
        )
        memory.store(
            "A task went well",
            id="mem-task",
            user_id="alice",
            run_id="run-5",
            session_id="s-2",
            memory_type="PROCEDURAL",
            timestamp=datetime(2025, 5, 1, 8, 30, 15, 123456, tzinfo=UTC),
            task_metadata={"status": "blocked", "blockers": ["b", "a"]},
        )
        for _ in range(4):
            assert memory.search("number12")[0].memory.id == "mem-12"
        memory.info()
        _archive(memory.path, "mem-20")
        memory.migrate()
        memory.store_many(
            [{"id": f"late-{n}", "content": f"came later {n} " + "y" * 300} for n in range(LATER)]
        )
        memory.info()
        kept = contents(memory)
    return root / "bob", kept


def _archive(path: Path, memory_id: str) -> None:
    sql = "UPDATE memories SET archived = 1 WHERE id = ?"
    code = (
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n"
        f"c.execute({sql!r}, (sys.argv[2],))\nc.commit()\nc.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path), memory_id], check=True, timeout=30)


@pytest.fixture
def place(original: tuple[Path, Kept], root: Path) -> Path:
    """Return a copy of the moved memory's file; its backup is beside it."""
    shutil.copytree(original[0], root / "bob")
    (root / "bob" / "memories.db").chmod(0o600)
    return root / "bob" / "memories.db"


@pytest.fixture
def kept(original: tuple[Path, Kept]) -> Kept:
    return original[1]


def backup_of(place: Path) -> Path:
    return place.with_name("scratchpad.yaml.backup")


def rebuild(place: Path) -> RebuildReport:
    return AgentMemory.rebuild(place, backup_of(place), agent_id="bob")


def files(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.parent.iterdir() if path.is_file()}


# What damages a file ------------------------------------------------------------------------------


def zero(start: float, end: float) -> Callable[[Path], None]:
    """Return what overwrites a share of the file, in whole pages, with zeros."""

    def damage(path: Path) -> None:
        pages = path.stat().st_size // PAGE
        first, last = int(pages * start), max(int(pages * end), 1)
        with path.open("r+b") as file:
            file.seek(first * PAGE)
            file.write(bytes((last - first) * PAGE))

    return damage


def truncate(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.truncate(int(path.stat().st_size * share))

    return damage


def scribble(path: Path) -> None:
    """Turn the file into text."""
    path.write_text("this is no database\n" * 500)


DAMAGES = {
    "first page": zero(0, 0),
    "second tenth": zero(0.1, 0.2),
    "second quarter": zero(0.25, 0.5),
    "third quarter": zero(0.5, 0.75),
    "last quarter": zero(0.75, 1),
    "all but the first page": lambda path: zero(1.01 * PAGE / path.stat().st_size, 1)(path),
    "half is gone": truncate(0.5),
    "a tenth is left": truncate(0.1),
    "nothing is left": truncate(0),
    "another content": scribble,
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_made_anew(
    place: Path, kept: Kept, damage: Callable[[Path], None]
) -> None:
    damage(place)
    readable = set(readable_ids(place))
    broken = place.read_bytes() if place.exists() else None
    report = rebuild(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    with AgentMemory("bob", root=place.parents[1], create=False, embedder=None) as memory:
        assert memory.check().problems == []
        found = contents(memory)
        assert memory.search("number33")[0].memory.id == "mem-33"
        assert memory.info().storage_backend == "file"
    early = {memory_id for memory_id in kept if memory_id.startswith("mem-")}
    assert found.keys() >= early
    assert found.keys() >= readable  # those that came after the backup too
    assert {memory_id: kept[memory_id] for memory_id in found} == found
    assert report.memory_count == len(found) == report.from_file + report.from_backup
    if broken is None:
        assert report.set_aside is None
    else:
        assert report.set_aside is not None
        assert Path(report.set_aside).read_bytes() == broken


def readable_ids(place: Path) -> list[str]:
    """Return the ids of the rows that any program can still read."""
    if not place.exists():
        return []
    read = subprocess.run(
        [sys.executable, "-c", _READS_ROWS, str(place), str(COUNT + LATER + 1)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    return read.stdout.split()


def test_every_field_comes_back_from_the_backup_alone(place: Path, kept: Kept) -> None:
    place.unlink()
    report = rebuild(place)
    assert (report.from_file, report.from_backup) == (0, COUNT + 1)
    with AgentMemory("bob", root=place.parents[1], create=False, embedder=None) as memory:
        found = contents(memory)
        changed, task = memory.get("mem-7"), memory.get("mem-task")
        accessed, archived = memory.get("mem-12"), memory.get("mem-20")
    assert changed is not None
    assert (changed.category, changed.kind, changed.importance) == (
        "recipe", "core", "high",
    )  # fmt: skip
    assert changed.tags == ["zebra", "apple", "mango"]
    assert changed.metadata == {"source": {"page": 3}, "emoji": "🦊"}
    assert changed.version == 2
    assert task is not None
    assert (task.user_id, task.run_id, task.created_by_session) == ("alice", "run-5", "s-2")
    assert task.timestamp == datetime(2025, 5, 1, 8, 30, 15, 123456, tzinfo=UTC)
    assert task.task_metadata is not None
    assert task.task_metadata.blockers == ["b", "a"]
    assert accessed is not None
    assert accessed.access_count == 4
    assert accessed.last_accessed is not None
    assert archived is not None
    assert archived.archived is True
    assert found == {name: one for name, one in kept.items() if name.startswith("mem-")}


@pytest.mark.parametrize("backup", ["a\0b", "\udfff", "", 5, None, b"x", []])
def test_what_is_no_path_of_a_backup_is_an_error_of_ours(place: Path, backup: Any) -> None:
    with pytest.raises(ValidationError, match="path"):
        AgentMemory.rebuild(place, backup)


@pytest.mark.parametrize("size", [10, 49, 100])
def test_the_backup_of_a_scratchpad_of_any_size_is_taken(root: Path, size: int) -> None:
    with AgentMemory("bob", root=root, embedder="wordllama") as memory:
        memory.configure(scratchpad_max_size=size)
        memory.store("Prefer PostgreSQL", id="db")
        memory.migrate()
    place = root / "bob" / "memories.db"
    assert f"max_size: {size}\n" in backup_of(place).read_text()
    place.write_bytes(b"no database" * 1000)
    assert rebuild(place).from_backup == 1
    with AgentMemory("bob", root=root) as memory:
        assert [stored.content for stored in memory.list_recent(2)] == ["Prefer PostgreSQL"]


def test_a_rebuilt_memory_can_be_used_and_moved_again(place: Path) -> None:
    zero(0, 0)(place)
    rebuild(place)
    with AgentMemory("bob", root=place.parents[1], embedder="wordllama") as memory:
        memory.update("mem-7", content="changed afterwards")
        memory.store("stored afterwards")
        assert memory.migrate().status == "completed"
        assert memory.search("changed afterwards")[0].memory.id == "mem-7"
        assert memory.check().problems == []


def test_the_file_says_whose_it_is_when_nobody_else_does(place: Path) -> None:
    place.unlink()
    AgentMemory.rebuild(place, backup_of(place))
    with AgentMemory("bob", root=place.parents[1], create=False) as memory:
        assert memory.agent_id == "bob"


# What is refused ----------------------------------------------------------------------------------


def test_a_sound_file_is_refused(place: Path) -> None:
    before = files(place)
    with pytest.raises(MigrationError, match="is intact"):
        rebuild(place)
    after = files(place)
    assert after["memories.db"] == before["memories.db"]
    assert set(after) - {"memories.db-wal", "memories.db-shm"} == set(before)


@pytest.mark.parametrize("why", ["newer schema", "held by a writer"])
def test_a_sound_file_that_cannot_be_opened_now_is_refused(place: Path, why: str) -> None:
    """It is not damaged: to go back to an old backup of it would lose what came since."""
    if why == "newer schema":
        _execute(place, "PRAGMA user_version = 9999")
        with pytest.raises(AgentMemoryError):
            rebuild(place)
    else:
        with subprocess.Popen(
            [sys.executable, "-c", _HOLDS, str(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "locked\n"
            with pytest.raises(AgentMemoryError):
                rebuild(place)
            holder.communicate("\n", timeout=30)
    assert not list(place.parent.glob("*damaged*"))
    assert not list(place.parent.glob(".*"))


_HOLDS = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("PRAGMA locking_mode = EXCLUSIVE")
c.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
c.execute("ROLLBACK")
"""


def _execute(path: Path, sql: str) -> None:
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1])\nc.execute(sys.argv[2])\nc.commit()\nc.close()\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path), sql], check=True, timeout=30)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "cut",
        "",
        "memories: [",
        "agent_id: bob\nmemories: 5\n",
        "agent_id: bob\nmemories:\n  - {id: a, content: x, timestamp: never}\n",
        "agent_id: bob\nmemories:\n  - {id: a, content: x}\n  - {id: a, content: y}\n",
    ],
    ids=[
        "missing",
        "cut in the middle",
        "empty",
        "no YAML",
        "no list",
        "wrong time",
        "an id twice",
    ],
)
def test_a_broken_backup_leaves_the_old_file_as_it_is(place: Path, text: str | None) -> None:
    zero(0, 0)(place)
    if text is None:
        backup_of(place).unlink()
    elif text == "cut":
        whole = backup_of(place).read_bytes()
        backup_of(place).write_bytes(whole[: len(whole) // 2])
    else:
        backup_of(place).write_text(text)
    before = files(place)
    with pytest.raises(AgentMemoryError):
        rebuild(place)
    assert files(place) == before


# Logs and failures --------------------------------------------------------------------------------


def leave_log(place: Path) -> None:
    """Leave a log with the memories that came last, as after a crash: they are not in the file."""
    with AgentMemory("bob", root=place.parents[1], embedder=None) as memory:
        memory.store("only in the log", id="in-log")
        log = place.with_name("memories.db-wal").read_bytes()
        assert log
        data = place.read_bytes()
    place.write_bytes(data)
    place.with_name("memories.db-wal").write_bytes(log)


def test_nothing_of_the_log_is_lost(place: Path) -> None:
    leave_log(place)
    zero(0.5, 0.6)(place)
    rebuild(place)
    (aside,) = place.parent.glob("memories.db.damaged-*[0-9]")
    with AgentMemory("bob", root=place.parents[1], create=False, embedder=None) as memory:
        assert memory.get("in-log") is not None
    # Its own file has it too: in the log beside it, or played into it.
    assert b"only in the log" in b"".join(
        path.read_bytes() for path in place.parent.glob(f"{aside.name}*")
    )


def test_a_log_without_its_file_is_not_played_into_the_new_one(place: Path, kept: Kept) -> None:
    leave_log(place)
    place.unlink()
    rebuild(place)
    with AgentMemory("bob", root=place.parents[1], create=False, embedder=None) as memory:
        assert memory.check().problems == []
        assert set(contents(memory)) == {name for name in kept if name.startswith("mem-")}


def test_a_failure_at_the_exchange_leaves_the_old_file_and_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_log(place)
    zero(0.5, 0.6)(place)
    before = set(files(place))

    def fail(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(self), None, str(target))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(StorageError):
            rebuild(place)
    # SQLite may have played the log into its file, and removed it.
    log = {"memories.db-wal", "memories.db-shm"}
    assert set(files(place)) - log == before - log
    assert b"only in the log" in b"".join(
        path.read_bytes() for path in place.parent.glob("memories.db*")
    )
    rebuild(place)
    with AgentMemory("bob", root=place.parents[1], create=False, embedder=None) as memory:
        assert memory.get("in-log") is not None


def test_a_full_disk_leaves_the_old_file_and_nothing_else(place: Path) -> None:
    """No file may grow beyond 50 KB, which the new one must: as where the space is used up."""
    zero(0, 0)(place)
    before = files(place)
    failed = subprocess.run(
        [sys.executable, "-c", _REBUILDS_WITHOUT_SPACE, str(place), str(backup_of(place))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert failed.stdout == "a storage error\n", failed.stderr
    assert files(place) == before


_REBUILDS_WITHOUT_SPACE = """
import resource, sys
from agent_memory import AgentMemory
from agent_memory.errors import StorageError
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    AgentMemory.rebuild(sys.argv[1], sys.argv[2], agent_id="bob")
except StorageError as error:
    print("a storage error")
"""


def test_a_directory_that_takes_no_file_leaves_the_old_one(place: Path) -> None:
    zero(0, 0)(place)
    before = files(place)
    place.parent.chmod(0o500)
    try:
        if os.access(place.parent, os.W_OK):
            pytest.skip("root may write anywhere")
        with pytest.raises(AgentMemoryError):
            rebuild(place)
    finally:
        place.parent.chmod(0o700)
    assert files(place) == before


def test_a_file_that_is_refused_for_being_empty_is_not_made_another_agents(place: Path) -> None:
    truncate(0)(place)
    backup_of(place).write_text("agent_id: bob\nmemories: []\n")
    with contextlib.suppress(MigrationError):
        rebuild(place)
    with AgentMemory("bob", root=place.parents[1], embedder=None) as memory:
        assert memory.count() == 0


def test_one_bad_row_stops_no_rebuild_and_categories_are_kept(root: Path, tmp_path: Path) -> None:
    backup = tmp_path / "scratchpad.yaml.backup"
    with AgentMemory("bob", root=root) as memory:
        memory.configure(categories=["incident", "recipe"])
        lost = memory.store("in the backup alone", category="recipe")
        memory.export(backup, format="backup")
        memory.delete(lost)
        memory.store("good", id="good", category="incident")
    with contextlib.closing(sqlite3.connect(memory.path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        connection.execute("INSERT INTO memories (id, content) VALUES ('odd', 'a' || char(0))")
        root_of = "SELECT rootpage FROM sqlite_schema WHERE name = 'history'"
        (page,) = connection.execute(root_of).fetchone()
    with memory.path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    report = AgentMemory.rebuild(memory.path, backup, agent_id="bob")
    assert (report.from_file, report.from_backup, report.skipped) == (2, 1, [])
    with AgentMemory("bob", root=root) as rebuilt:
        odd = rebuilt.get("odd")
        assert odd is not None
        assert odd.metadata == {"unreadable_content": "a<00>"}
        assert rebuilt.configure().categories == ["incident", "recipe"]
        assert rebuilt.check().problems == []
        with pytest.raises(ValidationError, match="the last operation, `rebuild`,"):
            rebuilt.undo()
        assert rebuilt.count() == 3


@pytest.mark.parametrize(
    ("field", "told", "kept"),
    [
        ("tags", [f"t{n}" for n in range(21)], [f"t{n}" for n in range(20)]),
        ("tags", ["t" * 300], ["t" * 50]),
        ("user_id", "u" * 300, None),
    ],
    ids=["21 tags", "a long tag", "a long user"],
)
def test_an_entry_of_a_backup_that_no_import_takes_is_mended(
    tmp_path: Path, field: str, told: object, kept: object
) -> None:
    backup = tmp_path / "scratchpad.yaml.backup"
    entry = f"  - id: a\n    content: x\n    {field}: {json.dumps(told)}\n"
    backup.write_text(f"agent_id: bob\nmemories:\n{entry}")
    place = tmp_path / "bob" / "memories.db"
    place.parent.mkdir()
    assert AgentMemory.rebuild(place, backup, agent_id="bob").skipped == []
    with AgentMemory("bob", root=tmp_path, create=False) as memory:
        mended = memory.get("a")
        assert mended is not None
        assert mended.metadata == {f"unreadable_{field}": told}
        assert kept is None or getattr(mended, field) == kept
        assert memory.check().problems == []


def test_the_size_of_the_scratchpad_comes_back(tmp_path: Path) -> None:
    with AgentMemory("bob", root=tmp_path, embedder="wordllama") as memory:
        memory.configure(scratchpad_max_size=20)
        memory.store_many([{"content": f"note {number}"} for number in range(30)])
        memory.migrate()
    file = tmp_path / "bob" / "memories.db"
    file.unlink()
    AgentMemory.rebuild(file, tmp_path / "bob" / "scratchpad.yaml.backup")
    with AgentMemory("bob", root=tmp_path) as memory:
        assert memory.configure().scratchpad_max_size == 20
        assert len(memory.scratchpad().memories) == 20
