"""Going back to a backup: all of it or nothing, while others use the file, and nothing is lost."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from conftest import NOW, database_of

from agent_memory import (
    AgentMemory,
    NewerSchema,
    NotAMemoryFile,
    StorageCorrupt,
    StorageLocked,
    StorageUnavailable,
    StorageUntrusted,
    ValidationError,
)
from agent_memory.models.reports import RestoreReport
from agent_memory.services.recovery import restore
from agent_memory.storage.sqlite import schema
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.maintenance.backup import back_up_before
from agent_memory.storage.sqlite.tables.rejections import RejectionTable

pytestmark = pytest.mark.file_only("who runs a database restores it")

PAGE = 8192


def contents(path: Path, *, agent_id: str | None = None) -> set[str]:
    """Open a file as a memory of its own, which must be sound, and return what it holds.

    What a killed process left beside it is named, and is no damage of it.
    """
    with AgentMemory.open(path, create=False, agent_id=agent_id) as memory:
        problems = memory.check().problems
        assert [problem for problem in problems if problem.kind != "leftover"] == []
        return {one.content for one in memory.list_recent(10_000)}


def files(memory: AgentMemory) -> dict[str, bytes]:
    """Return what lies beside a memory that nobody has open."""
    return {path.name: path.read_bytes() for path in memory.path.parent.iterdir() if path.is_file()}


def names(memory: AgentMemory) -> set[str]:
    return {path.name for path in memory.path.parent.iterdir()}


def replaced(report: RestoreReport) -> Path:
    assert report.replaced is not None
    return Path(report.replaced)


@pytest.fixture
def memory(root: Path, clock: Callable[[], datetime]) -> Iterator[AgentMemory]:
    """Open a memory of agent bob, which a test may close."""
    with AgentMemory("bob", root=root, clock=clock, session_id="session-1") as opened:
        yield opened


@pytest.fixture
def backup(memory: AgentMemory) -> Path:
    """Back a memory up, which then goes on; it stays open."""
    memory.store_many([{"content": f"early {n}", "id": f"early-{n}"} for n in range(20)])
    made = memory.backup()
    memory.store("late", id="late")
    memory.delete("early-3")
    memory.update("early-4", content="changed")
    return made


EARLY = {f"early {n}" for n in range(20)}
LATER = EARLY - {"early 3", "early 4"} | {"late", "changed"}


# The state that comes back ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["path", "text", "name", "latest"])
def test_the_state_of_the_backup_comes_back_and_the_other_is_kept(
    memory: AgentMemory, backup: Path, how: str
) -> None:
    named = {"text": str(backup), "name": backup.name, "latest": "latest"}
    report = restore(memory.path, named.get(how, backup))
    assert {one.content for one in memory.list_recent(100)} == EARLY  # it was open all the while
    assert {hit.memory.content for hit in memory.search("changed early")} <= EARLY
    assert report == RestoreReport(
        path=str(memory.path), backup=str(backup), memory_count=20, replaced=report.replaced
    )
    assert replaced(report).name.startswith("memories.db.replaced-2")
    assert stat.S_IMODE(replaced(report).stat().st_mode) == 0o600
    assert contents(replaced(report)) == LATER
    assert contents(backup) == EARLY
    memory.store("and on")
    assert contents(memory.path) == EARLY | {"and on"}


def test_everything_in_the_file_comes_back(memory: AgentMemory) -> None:
    memory.configure(categories=["recipe"], scratchpad_max_size=10)
    first = memory.store("Prefer walnut", category="recipe", tags=["b", "a"], metadata={"x": [1]})
    memory.update(first, importance="high")
    memory.promote(first)
    memory.migrate(embedder="wordllama")
    path = memory.backup()
    before = (memory.get(first), memory.history(), memory.context(), memory.info().config)
    memory.demote(first)
    memory.rollback()
    memory.delete(first)
    memory.configure(categories=[], scratchpad_max_size=20)
    restore(memory.path, path)
    assert (memory.get(first), memory.history(), memory.context(), memory.info().config) == before
    assert memory.info().storage_backend == "vector"
    assert memory.check().problems == []


@pytest.mark.usefixtures("backup")
def test_the_latest_is_the_newest_of_both_kinds(memory: AgentMemory) -> None:
    automatic = back_up_before(memory.path, "tidy", now=NOW + timedelta(seconds=1), keep=5)
    memory.delete("late")
    report = restore(memory.path, "latest")
    assert report.backup == str(automatic)
    assert contents(memory.path) == LATER


def test_a_name_in_the_list_goes_before_a_file_here(
    memory: AgentMemory, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.backup(tmp_path / backup.name)
    monkeypatch.chdir(tmp_path)
    assert restore(memory.path, f"./{backup.name}").backup == str(tmp_path / backup.name)
    assert contents(memory.path) == LATER
    assert restore(memory.path, backup.name).backup == str(backup)
    assert contents(memory.path) == EARLY


def test_a_restoring_can_be_taken_back(memory: AgentMemory, backup: Path) -> None:
    first = restore(memory.path, backup)
    restore(memory.path, replaced(first))
    assert contents(memory.path) == LATER


def test_what_is_replaced_need_not_be_kept(memory: AgentMemory, backup: Path) -> None:
    report = restore(memory.path, backup, keep_replaced=False)
    assert report.replaced is None
    assert contents(memory.path) == EARLY
    assert not list(memory.path.parent.glob("*replaced*"))


def test_nothing_but_the_replaced_file_is_left_beside_it(memory: AgentMemory, backup: Path) -> None:
    before = names(memory)
    report = restore(memory.path, backup)
    assert names(memory) == before | {replaced(report).name}
    assert {path.name for path in backup.parent.iterdir()} == {backup.name}


def test_what_must_not_come_back_is_still_refused(memory: AgentMemory, backup: Path) -> None:
    database = database_of(memory)
    early, late = hashlib.sha256(b"early").digest(), hashlib.sha256(b"late value").digest()
    with database.write():
        RejectionTable(database).add(early, 1, None, NOW)
    second = memory.backup(backup.with_name("second.db"))
    with database.write():
        RejectionTable(database).add(early, 1, "a secret", NOW)
        RejectionTable(database).add(late, 2, "another", NOW)
    was = [one.model_dump(exclude={"rejection_id"}) for one in RejectionTable(database).all()]
    for chosen in (backup, second):  # one that knows of neither, and one that knows of the first
        assert restore(memory.path, chosen).rejections_kept is True
        found = RejectionTable(database).all()
        assert [one.model_dump(exclude={"rejection_id"}) for one in found] == was
    assert memory.check().problems == []


def test_a_backup_with_other_pages_is_restored(
    memory: AgentMemory, backup: Path, visitor: Callable[[Path, str], str]
) -> None:
    visitor(backup, "PRAGMA page_size = 4096;;VACUUM")
    assert visitor(backup, "PRAGMA page_size") == "4096"
    restore(memory.path, backup)
    assert memory.count() == 20
    memory.close()
    assert visitor(memory.path, "PRAGMA page_size") == "8192"
    assert contents(memory.path) == EARLY
    visitor(memory.path, "PRAGMA journal_mode = DELETE;;PRAGMA page_size = 4096;;VACUUM")
    restore(memory.path, backup)
    assert visitor(memory.path, "PRAGMA page_size") == "4096"
    assert contents(memory.path) == EARLY


def test_a_backup_that_has_a_log_is_restored_with_it(memory: AgentMemory, backup: Path) -> None:
    with AgentMemory.open(backup, create=False) as opened:
        opened.store("only in the log")
        restore(memory.path, backup)
        opened.store("too late")
    assert contents(memory.path) == EARLY | {"only in the log"}


@pytest.fixture(params=[6, 9])
def old_backup(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, int]:
    """Make a backup as a version of the library with fewer migrations did."""
    shipped, version = schema.migrations(), request.param
    path = tmp_path / "old.db"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "migrations", lambda: shipped[:version])
        database = Database(path)
        schema.upgrade(database, now="2026-01-28T12:00:00.000000Z", before_upgrade=pytest.fail)
        database.run("INSERT INTO memories (id, content) VALUES ('mem-1', 'old')")
        database.run(
            "INSERT INTO agent (only_row, agent_id, created_at, last_accessed)"
            " VALUES (1, 'bob', '2026-01-28T12:00:00.000000Z', '2026-01-28T12:00:00.000000Z')"
        )
        database.close()
    return path, version


def test_an_older_backup_is_upgraded_and_stays_as_it_is_itself(
    memory: AgentMemory, backup: Path, old_backup: tuple[Path, int]
) -> None:
    old, version = old_backup
    before = old.read_bytes()
    report = restore(memory.path, old)
    assert (report.upgraded_from, report.memory_count) == (version, 1)
    assert memory.info().schema_version == schema.latest_version()
    assert contents(memory.path) == {"old"}
    assert old.read_bytes() == before
    assert {path.name for path in backup.parent.iterdir()} == {backup.name}  # none of the copy


def test_a_file_of_a_newer_version_can_go_back_to_a_backup(
    memory: AgentMemory, backup: Path, visitor: Callable[[Path, str], str]
) -> None:
    memory.close()
    visitor(memory.path, "PRAGMA user_version = 9999")
    report = restore(memory.path, backup)
    assert contents(memory.path) == EARLY
    assert visitor(replaced(report), "PRAGMA user_version") == "9999"


# What is refused ----------------------------------------------------------------------------------


def refused(
    memory: AgentMemory, chosen: Path | str, kind: type[Exception], words: str, **options: str
) -> None:
    """Nothing that lies there may change when a backup is refused."""
    memory.close()
    before = files(memory)
    with pytest.raises(kind, match=words):
        restore(memory.path, chosen, **options)  # type: ignore[arg-type]
    assert files(memory) == before


def test_a_backup_of_another_agent_is_refused(
    memory: AgentMemory, backup: Path, tmp_path: Path
) -> None:
    with AgentMemory("alice", root=tmp_path / "other") as other:
        other.store("private")
        theirs = other.backup()
    refused(memory, theirs, ValidationError, "belongs to agent 'alice', not to 'bob'")
    refused(memory, backup, ValidationError, "of agent 'bob', not of 'alice'", agent_id="alice")
    memory.path.unlink()
    refused(memory, theirs, ValidationError, "belongs to agent 'alice'", agent_id="bob")


def test_what_is_no_backup_is_refused(
    memory: AgentMemory, backup: Path, tmp_path: Path, visitor: Callable[[Path, str], str]
) -> None:
    text, empty, newer = tmp_path / "text.db", tmp_path / "empty.db", tmp_path / "newer.db"
    text.write_text("this is no database\n" * 500)
    empty.touch()
    link = tmp_path / "link.db"
    link.symlink_to(backup)
    shutil.copy(backup, newer)
    visitor(newer, "PRAGMA user_version = 9999")
    visitor(tmp_path / "b.db", "CREATE TABLE t(x)")
    refused(memory, text, NotAMemoryFile, "text.db is not a database")
    refused(memory, empty, NotAMemoryFile, "empty.db has no memories")
    refused(memory, tmp_path / "b.db", NotAMemoryFile, "another program")
    refused(memory, newer, NewerSchema, "newer agent-memory")
    refused(memory, link, StorageUnavailable, "symbolic link")
    refused(memory, tmp_path, StorageUnavailable, "is not a file")
    none = tmp_path / "none.db"
    refused(memory, none, ValidationError, f"'{none}' is neither .* `backups` lists")
    refused(memory, text / "none.db", ValidationError, "none.db' is neither")
    refused(memory, "", ValidationError, "path")


def test_the_memory_itself_is_no_backup(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store("kept")
    (tmp_path / "hard.db").hardlink_to(memory.path)
    (tmp_path / "link").symlink_to(memory.path.parent)
    for path in (memory.path, tmp_path / "hard.db", tmp_path / "link" / "memories.db"):
        refused(memory, path, ValidationError, "is the memory itself")
    refused(memory, "latest", ValidationError, "there is no backup beside")


@pytest.mark.parametrize("version", ["this one", "an older one"])
def test_a_backup_without_a_table_is_refused_by_its_name(
    memory: AgentMemory,
    backup: Path,
    old_backup: tuple[Path, int],
    visitor: Callable[[Path, str], str],
    version: str,
) -> None:
    chosen = backup if version == "this one" else old_backup[0]
    visitor(chosen, "DROP TABLE scratchpad")
    with pytest.raises(StorageUntrusted, match="the table scratchpad is missing") as raised:
        restore(memory.path, chosen)
    fate = "can be read" if version == "this one" else ("has an older schema, and was not upgraded")
    assert str(raised.value).startswith(f"nothing was restored: {chosen} {fate}")
    assert contents(memory.path) == LATER


@pytest.mark.parametrize("fault", ["a page", "the end", "the keyword index"])
def test_a_backup_that_is_not_sound_is_refused_with_its_problems(
    memory: AgentMemory, backup: Path, visitor: Callable[[Path, str], str], fault: str
) -> None:
    memory.store_many([{"content": f"more {n} " + "x" * 2000} for n in range(50)])
    chosen = memory.backup(backup.with_name("unsound.db"))
    words = r"damaged"
    if fault == "a page":
        with chosen.open("r+b") as file:
            file.seek(12 * PAGE)
            file.write(b"\xff" * PAGE)
    elif fault == "the end":
        os.truncate(chosen, chosen.stat().st_size - 5 * PAGE)
    else:
        visitor(chosen, "DELETE FROM memory_index_docsize WHERE id < 5")
        words = r"unsound\.db is damaged, so nothing was restored: .*index"
    refused(memory, chosen, StorageCorrupt, words)


def test_no_place_of_a_memory_is_made_of_another_thing(memory: AgentMemory, backup: Path) -> None:
    directory, link = memory.path.with_name("a directory"), memory.path.with_name("link.db")
    directory.mkdir()
    link.symlink_to(memory.path)
    for place in (directory, link):
        with pytest.raises(StorageUnavailable):
            restore(place, backup)
    assert directory.is_dir()
    assert link.is_symlink()
    assert contents(memory.path) == LATER


# Where the file is damaged or gone ----------------------------------------------------------------


def overwrite(start: int, data: bytes) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(start)
            file.write(data)

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "first page": overwrite(0, bytes(PAGE)),
    "root of the tables": overwrite(100, b"\xff" * 2000),
    "middle": overwrite(4 * PAGE, b"\xff" * PAGE * 6),
    "half is gone": lambda path: os.truncate(path, path.stat().st_size // 2),
    "nothing is left": lambda path: os.truncate(path, 0),
    "another content": overwrite(0, b"this is no database\n" * 5000),
}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_file_is_restored_and_kept(
    memory: AgentMemory, backup: Path, damage: Callable[[Path], None], keep: bool
) -> None:
    memory.close()
    damage(memory.path)
    broken = memory.path.read_bytes()
    report = restore(memory.path, backup, keep_replaced=keep)
    assert contents(memory.path) == EARLY
    if report.replaced is None:
        assert not keep  # it could be opened still, and was not to be kept
    else:
        kept = replaced(report).read_bytes()
        # SQLite counts a change in the first page, and writes there that there is a log.
        assert kept[PAGE:] == broken[PAGE:] or not broken
        assert stat.S_IMODE(replaced(report).stat().st_mode) == 0o600
    assert not [name for name in names(memory) if name.startswith(".")]


def test_rejections_that_cannot_be_read_are_said_to_be_lost(
    memory: AgentMemory, backup: Path
) -> None:
    memory.close()
    overwrite(0, b"no database")(memory.path)
    assert restore(memory.path, backup).rejections_kept is False


@pytest.mark.parametrize("gone", ["the file", "the file but not its log", "the directory"])
def test_a_file_that_is_gone_is_restored(
    memory: AgentMemory, backup: Path, tmp_path: Path, gone: str
) -> None:
    safe = shutil.copy(backup, tmp_path / "safe.db")
    log = memory.path.with_name("memories.db-wal").read_bytes()
    assert log
    memory.close()
    if gone == "the directory":
        shutil.rmtree(memory.path.parents[1])
    else:
        memory.path.unlink()
    if gone == "the file but not its log":
        memory.path.with_name("memories.db-wal").write_bytes(log)
    report = restore(memory.path, safe, agent_id="bob")
    assert report.rejections_kept is True or gone == "the file but not its log"
    assert contents(memory.path, agent_id="bob") == EARLY
    assert stat.S_IMODE(memory.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(memory.path.parent.stat().st_mode) == 0o700
    if gone == "the file but not its log":
        kept = Path(f"{report.replaced}-wal")
        assert kept.read_bytes() == log
    else:
        assert report.replaced is None


# Others who use the file --------------------------------------------------------------------------

_STORES = """
import itertools, sys
from pathlib import Path
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory:
    for number in itertools.count():
        memory.store(f"stored {number} " + "x" * 300, id=f"stored-{number}")
        print(number, flush=True)
        if Path(sys.argv[2]).exists():
            break
"""


def python(code: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def move_over(backup: Path, place: Path) -> None:
    """Restore a backup as users do who know nothing better."""
    shutil.copy(backup, place.with_name("copy.db"))
    place.with_name("copy.db").replace(place)


def acknowledged(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline()


def stored_numbers(path: Path) -> list[int]:
    return sorted(
        int(content.split()[1]) for content in contents(path) if content.startswith("stored ")
    )


def test_nothing_that_another_process_stores_falls_between(
    memory: AgentMemory, backup: Path, tmp_path: Path
) -> None:
    acknowledgements: list[str] = []
    kept: list[Path] = []
    with python(_STORES, memory.path, tmp_path / "stop") as writer:
        assert writer.stdout is not None
        reading = threading.Thread(target=acknowledgements.extend, args=[writer.stdout])
        reading.start()
        for _ in range(4):
            before = memory.count()
            wait_for_count(memory, before + 20)
            kept.append(replaced(restore(memory.path, backup)))
        wait_for_count(memory, 21)
        (tmp_path / "stop").touch()
        reading.join(timeout=60)
    assert writer.returncode == 0
    # Each state has what was stored since the one before it, and all together have all, in order.
    numbers = [stored_numbers(path) for path in (*kept, memory.path)]
    assert [number for state in numbers for number in state] == list(range(len(acknowledgements)))
    assert all(numbers)


def wait_for_count(memory: AgentMemory, count: int) -> None:
    deadline = time.monotonic() + 60
    while memory.count() < count:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_threads_of_one_process_go_on_with_the_restored_state(
    memory: AgentMemory, backup: Path
) -> None:
    failures: list[BaseException] = []

    def store(thread: int) -> None:
        try:
            for number in range(100):
                memory.store(f"thread {thread} number {number}", id=f"{thread}-{number}")
                memory.search("early")
        except BaseException as error:  # noqa: BLE001 - a thread's error is shown by the test
            failures.append(error)

    threads = [threading.Thread(target=store, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    kept = [replaced(restore(memory.path, backup)) for _ in range(3)]
    for thread in threads:
        thread.join()
    assert failures == []
    states = [
        {one for one in contents(path) if one.startswith("thread")} for path in (*kept, memory.path)
    ]
    assert sum(len(state) for state in states) == len(set[str]().union(*states)) == 300


_WATCHES = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False, read_only=sys.argv[2] == "yes") as memory:
    print(memory.count(), flush=True)
    for line in sys.stdin:
        found = [hit.memory.content for hit in memory.search("changed")]
        print(memory.count(), "changed" in found, memory.get("late") is None, flush=True)
"""


def ask(process: subprocess.Popen[str]) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.parametrize("how", ["restored", "moved over it", "damaged, then restored"])
@pytest.mark.parametrize("read_only", ["yes", "no"])
def test_those_who_only_read_see_the_restored_state(
    memory: AgentMemory, backup: Path, how: str, read_only: str
) -> None:
    memory.close()
    with (
        python(_WATCHES, memory.path, read_only) as one,
        python(_WATCHES, memory.path, "no") as two,
    ):
        for process in (one, two):
            acknowledged(process, 1)
            assert ask(process) == "20 True False"
        if how == "moved over it":
            move_over(backup, memory.path)
        else:
            if how.startswith("damaged"):
                overwrite(0, bytes(PAGE))(memory.path)
            restore(memory.path, backup)
        for process in (one, two, one):
            assert ask(process) == "20 False True"
        with AgentMemory.open(memory.path, create=False) as opened:
            opened.store("stored afterwards")
            for process in (one, two):
                assert ask(process) == "21 False True"
    assert contents(memory.path) == EARLY | {"stored afterwards"}


def test_after_a_file_was_moved_over_it_several_writers_go_on(
    memory: AgentMemory, backup: Path
) -> None:
    """The shared memory that the old file leaves behind speaks of its pages, not the new one's."""
    memory.store_many([{"content": f"more {n} " + "x" * 2000} for n in range(100)])
    with (
        python(_STORES_WHEN_TOLD, memory.path) as one,
        python(_STORES_WHEN_TOLD, memory.path) as two,
    ):
        assert ask(one) == ask(two) == "stored"
        move_over(backup, memory.path)
        assert memory.count() == 20
        assert [ask(process) for process in (one, two, one)] == ["stored"] * 3
        assert memory.count() == 23
        memory.store("stored here")
    assert len(contents(memory.path)) == 24


_STORES_WHEN_TOLD = """
import os, sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory:
    for number, line in enumerate(sys.stdin):
        memory.store(f"told {os.getpid()} {number}")
        print("stored", flush=True)
"""


def test_a_program_that_knows_only_sql_sees_the_restored_state(
    memory: AgentMemory, backup: Path
) -> None:
    memory.close()
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for line in sys.stdin:\n"
        "    rows = c.execute('SELECT count(*) FROM memories WHERE id = ?', ('late',))\n"
        "    print(rows.fetchone()[0], flush=True)\n"
    )
    with python(code, memory.path) as visitor:
        assert ask(visitor) == "1"
        restore(memory.path, backup)
        assert ask(visitor) == "0"


def test_one_who_is_reading_keeps_what_they_read(memory: AgentMemory, backup: Path) -> None:
    with AgentMemory.open(memory.path, read_only=True) as reader:
        database = database_of(reader)
        with database.read():
            before = database.rows("SELECT id, content FROM memories")
            restore(memory.path, backup)
            assert memory.count() == 20
            assert database.rows("SELECT id, content FROM memories") == before
        assert {one.content for one in reader.list_recent(100)} == EARLY


@pytest.fixture
def writer(memory: AgentMemory) -> Iterator[subprocess.Popen[str]]:
    """Run a program that holds the lock of writers until it is told to let go."""
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE')\n"
        "print('locked', flush=True)\n"
        "sys.stdin.readline()\n"
        "c.execute(\"INSERT INTO memories (content) VALUES ('written by another')\")\n"
        "c.execute('COMMIT')\n"
    )
    with python(code, memory.path) as process:
        acknowledged(process, 1)
        yield process


def test_it_waits_for_one_who_writes(
    memory: AgentMemory, backup: Path, writer: subprocess.Popen[str]
) -> None:
    release = threading.Timer(0.5, writer.communicate, ["\n"])
    release.start()
    report = restore(memory.path, backup)
    release.join()
    assert contents(memory.path) == EARLY
    assert contents(replaced(report)) == LATER | {"written by another"}


def test_one_who_writes_for_too_long_keeps_all_as_it_is(
    memory: AgentMemory, backup: Path, writer: subprocess.Popen[str]
) -> None:
    before = names(memory)
    with pytest.raises(StorageLocked, match="held by another process"):
        restore(memory.path, backup)
    writer.communicate("\n", timeout=30)
    assert names(memory) == before
    assert contents(memory.path) == LATER | {"written by another"}


_RESTORES = """
import itertools, sys, time
from agent_memory.errors import StorageLocked
from agent_memory.services.recovery import restore
print("ready", flush=True)
for turn in itertools.count() if sys.argv[2] == "always" else range(int(sys.argv[2])):
    backup = sys.argv[3 + turn % (len(sys.argv) - 3)]
    while True:
        try:
            restore(sys.argv[1], backup, keep_replaced=False)
            break
        except StorageLocked as error:
            assert "is already being restored" in str(error), error
            time.sleep(0.003)
    print("restored", flush=True)
"""


def test_two_who_restore_at_once_do_not_disturb_each_other(
    memory: AgentMemory, backup: Path
) -> None:
    before = names(memory)
    other = memory.backup(backup.with_name("other.db"))
    with (
        python(_RESTORES, memory.path, 12, backup) as one,
        python(_RESTORES, memory.path, 12, other) as two,
    ):
        outs = [process.communicate(timeout=60)[0] for process in (one, two)]
    assert [one.returncode, two.returncode] == [0, 0]
    assert [len(out.split()) for out in outs] == [13, 13]
    assert contents(memory.path) in (EARLY, LATER)
    assert names(memory) == before


# Kills and full disks -----------------------------------------------------------------------------


def test_whenever_it_is_killed_the_file_has_the_old_or_the_new_state(
    memory: AgentMemory, backup: Path
) -> None:
    chance = random.Random(5)
    memory.store_many([{"content": f"more {n} " + "x" * 1000} for n in range(300)])
    other = memory.backup(backup.with_name("other.db"))
    states = [contents(path) for path in (backup, other)]
    memory.close()
    seen = set()
    under_way = 0
    for _ in range(12):
        with python(_RESTORES, memory.path, "always", other, backup) as process:
            acknowledged(process, 1 + chance.randrange(3))
            time.sleep(chance.random() * 0.12)
            process.kill()
        under_way += any(name.startswith(".") for name in names(memory))
        found = contents(memory.path)
        assert found in states
        seen.add(len(found))
    assert len(seen) == 2
    assert under_way >= 3  # not only between two of them
    restore(memory.path, backup)
    assert not [name for name in names(memory) if name.startswith(".")]


_RESTORES_WITHOUT_SPACE = """
import resource, signal, sys
from agent_memory.errors import StorageFull
from agent_memory.services.recovery import restore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    restore(sys.argv[1], sys.argv[2])
except StorageFull as error:
    print("full:", error)
"""


@pytest.mark.parametrize("what", ["the copy of the backup", "what is kept", "the commit"])
def test_without_space_nothing_is_changed(
    memory: AgentMemory, backup: Path, tmp_path: Path, what: str
) -> None:
    """No file may grow beyond a limit: as where the space is used up."""
    with AgentMemory("bob", root=tmp_path / "other") as other:
        other.store_many([{"content": f"more {n} " + "x" * 5000} for n in range(300)])
        chosen = other.backup()
    if what == "what is kept":
        memory, chosen = other, backup
    state = contents(memory.path)
    memory.close()
    limit = {
        "the copy of the backup": 50_000,
        "what is kept": memory.path.stat().st_size - PAGE,
        "the commit": chosen.stat().st_size + 2000,
    }[what]
    before = files(memory)
    words = [_RESTORES_WITHOUT_SPACE, str(memory.path), str(chosen), str(limit)]
    code = [sys.executable, "-c", *words]
    ran = subprocess.run(code, capture_output=True, text=True, timeout=60)
    assert ran.stdout.startswith("full: "), ran.stderr
    assert f"full: {memory.path} cannot be written: its disk" in ran.stdout
    assert files(memory).keys() == before.keys()
    assert contents(memory.path) == state
