"""Loading sqlite-vec into a connection, and commits that do not wait for the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from agent_memory import (
    AgentMemoryError,
    StorageClosed,
    StorageError,
    StorageLocked,
    StorageReadOnly,
)
from agent_memory.storage.sqlite.connection import APPLICATION_ID, Database


def made(path: Path, *contents: str, synchronous: str = "FULL") -> Database:
    """Make a file of ours with one table, and open it."""
    database = Database(path)
    with database.write():
        database.run(f"PRAGMA application_id = {APPLICATION_ID}")
        database.run("CREATE TABLE IF NOT EXISTS texts (content TEXT)")
        database.run_many("INSERT INTO texts VALUES (?)", [(text,) for text in contents])
    database.close()
    return Database(path, synchronous=synchronous)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    opened = made(path, "the first")
    yield opened
    opened.close()


def vectors_answer(database: Database) -> bool:
    """Make a table of vectors, find the nearest in it, drop it."""
    database.run("CREATE VIRTUAL TABLE temp.nearby USING vec0(v bit[8])")
    database.run_many(
        "INSERT INTO temp.nearby (rowid, v) VALUES (?, vec_bit(?))", [(1, b"\0"), (2, b"\7")]
    )
    found = database.value(
        "SELECT rowid FROM temp.nearby WHERE v MATCH vec_bit(?) AND k = 1", (b"\3",)
    )
    database.run("DROP TABLE temp.nearby")
    return bool(found == 2)


# Loading ----------------------------------------------------------------------------------------


def test_before_loading_there_are_no_vector_functions(database: Database) -> None:
    with pytest.raises(StorageError, match="vec_version"):
        database.value("SELECT vec_version()")
    assert database.vectors_problem() is None


def test_after_loading_vectors_can_be_searched(database: Database) -> None:
    assert database.load_vectors() is True
    assert database.load_vectors() is True
    assert database.vectors_problem() is None
    assert database.value("SELECT vec_version()").startswith("v0.")
    assert vectors_answer(database)


def test_a_table_of_vectors_is_stored_in_the_file(database: Database, path: Path) -> None:
    database.load_vectors()
    with database.write():
        database.run("CREATE VIRTUAL TABLE signs USING vec0(v bit[8])")
        database.run("INSERT INTO signs (rowid, v) VALUES (7, vec_bit(?))", (b"\1",))
    other = Database(path)
    assert other.load_vectors()
    assert other.rows("SELECT rowid, v FROM signs") == [(7, b"\1")]
    other.close()


@pytest.mark.parametrize("begin", ["write", "read"])
def test_loading_inside_a_transaction_leaves_it_open(database: Database, begin: str) -> None:
    with getattr(database, begin)():
        assert database.load_vectors()
        assert database.value("SELECT vec_version()")
        assert vectors_answer(database)
        assert database.value("SELECT count(*) FROM texts") == 1


def test_a_file_opened_to_be_read_only_can_use_vectors_and_stays_read_only(path: Path) -> None:
    made(path).close()
    reader = Database(path, read_only=True)
    assert reader.load_vectors()
    assert reader.value("SELECT vec_distance_hamming(vec_bit(?), vec_bit(?))", (b"\1", b"\0")) == 1
    with pytest.raises(StorageReadOnly):
        reader.run("DELETE FROM texts")
    reader.close()


def test_many_threads_load_at_once(database: Database) -> None:
    loaded: list[bool] = []
    start = threading.Barrier(8)

    def load() -> None:
        start.wait()
        loaded.append(database.load_vectors() and bool(database.value("SELECT vec_version()")))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == [True] * 8


def test_loading_into_one_database_leaves_another_without(
    database: Database, tmp_path: Path
) -> None:
    other = made(tmp_path / "other.db")
    assert database.load_vectors()
    with pytest.raises(StorageError, match="vec_version"):
        other.value("SELECT vec_version()")
    assert other.load_vectors()
    assert vectors_answer(other)
    assert vectors_answer(database)
    other.close()


def test_a_closed_database_loads_nothing(database: Database) -> None:
    database.load_vectors()
    database.close()
    with pytest.raises(StorageClosed):
        database.load_vectors()


@pytest.mark.parametrize("loads_first", [False, True])
def test_sql_can_load_no_library(database: Database, loads_first: bool) -> None:
    if loads_first:
        assert database.load_vectors()
    with pytest.raises(StorageError, match="not authorized"):
        database.value("SELECT load_extension(?)", ("vec0",))


# Reconnecting -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_vectors_too(database: Database) -> None:
    assert database.load_vectors()
    child = os.fork()
    if not child:
        works = False
        try:
            works = bool(database.value("SELECT vec_version()")) and database.load_vectors()
            works = works and vectors_answer(database)
        finally:
            os._exit(0 if works else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert vectors_answer(database)


def test_after_the_file_was_replaced_vectors_are_still_there(
    database: Database, path: Path, tmp_path: Path
) -> None:
    assert database.load_vectors()
    made(tmp_path / "restored.db", "restored").close()
    (tmp_path / "restored.db").replace(path)
    with database.write():
        assert database.value("SELECT content FROM texts") == "restored"
        assert database.value("SELECT vec_version()")
    assert database.load_vectors()
    with pytest.raises(StorageError, match="not authorized"):
        database.value("SELECT load_extension(?)", ("vec0",))


# Where it cannot be loaded ----------------------------------------------------------------------

WITHOUT = """
import sys
from pathlib import Path
path, place = map(Path, sys.argv[1:])
{hide}
from agent_memory.storage.sqlite.connection import Database
database = Database(path)
answers = [database.load_vectors(), database.load_vectors()]
problem = database.vectors_problem()
try:
    database.value("SELECT load_extension('x')")
except Exception as error:
    refused = "not authorized" in str(error)
with database.write():
    texts = database.value("SELECT count(*) FROM texts")
print(answers, refused, texts, problem)
"""
HIDDEN = "sys.modules['sqlite_vec'] = None"
HALF_MADE = "import types; sys.modules['sqlite_vec'] = types.ModuleType('sqlite_vec')"
BLOCKED = """
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "sqlite_vec":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocker())
"""
A_PACKAGE = "(place / 'sqlite_vec').mkdir(); sys.path.insert(0, str(place))\n"
EMPTY = A_PACKAGE + "(place / 'sqlite_vec/__init__.py').touch()"
ONE_MODULE = "(place / 'sqlite_vec.py').touch(); sys.path.insert(0, str(place))"
OF_ANOTHER_PLATFORM = (
    EMPTY
    + "\nfor end in ('so', 'dylib', 'dll'):\n"
    + ("    (place / f'sqlite_vec/vec0.{end}').write_bytes(b'MZ' * 500)")
)
WITH_ANOTHER_SUFFIX = EMPTY + "\n(place / 'sqlite_vec/vec0.other').touch()"


@pytest.mark.parametrize(
    ("hide", "reason"),
    [
        pytest.param(HIDDEN, "pip install sqlite-vec", id="not there"),
        pytest.param(HALF_MADE, "pip install sqlite-vec", id="half made"),
        pytest.param(BLOCKED, "pip install sqlite-vec", id="import blocked"),
        pytest.param(EMPTY, "pip install sqlite-vec", id="without the library"),
        pytest.param(ONE_MODULE, "pip install sqlite-vec", id="another module of that name"),
        pytest.param(OF_ANOTHER_PLATFORM, "another platform", id="of another platform"),
        pytest.param(WITH_ANOTHER_SUFFIX, "another platform", id="with another suffix"),
    ],
)
def test_without_a_library_that_fits_the_answer_is_no_and_why(
    path: Path, tmp_path: Path, hide: str, reason: str
) -> None:
    made(path, "the first").close()
    place = tmp_path / "packages"
    place.mkdir()
    code = WITHOUT.replace("{hide}", hide)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(place)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[False, False] True 1 sqlite-vec")
    assert reason in done.stdout


def test_loading_does_not_import_the_package(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from agent_memory.storage.sqlite.connection import Database\n"
        "assert Database(Path(sys.argv[1])).load_vectors()\n"
        "print(sorted({'sqlite_vec', 'numpy', 'sqlite3'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


# Commits that do not wait for the disk ----------------------------------------------------------

NORMAL, FULL = 1, 2


def setting(database: Database) -> int:
    return int(database.value("PRAGMA synchronous"))


@pytest.mark.parametrize(
    ("synchronous", "durable", "during", "after"),
    [
        ("FULL", True, FULL, FULL),
        ("FULL", False, NORMAL, FULL),
        ("NORMAL", True, NORMAL, NORMAL),
        ("NORMAL", False, NORMAL, NORMAL),
    ],
)
def test_only_a_commit_that_need_not_last_does_not_wait(
    path: Path, synchronous: str, durable: bool, during: int, after: int
) -> None:
    database = made(path, synchronous=synchronous)
    with database.write(durable=durable):
        database.run("INSERT INTO texts VALUES ('quick')")
        assert setting(database) == during
    assert setting(database) == after
    assert database.rows("SELECT content FROM texts") == [("quick",)]
    database.close()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_a_failure_commits_wait_again_and_nothing_was_written(
    database: Database, error: type[BaseException]
) -> None:
    def fail() -> None:
        with database.write(durable=False):
            database.run("INSERT INTO texts VALUES ('lost')")
            raise error

    with pytest.raises(error):
        fail()
    assert setting(database) == FULL
    assert database.value("SELECT count(*) FROM texts") == 1


@pytest.mark.parametrize("outer", [True, False])
def test_a_refused_inner_transaction_changes_nothing_of_the_outer_one(
    database: Database, outer: bool
) -> None:
    with database.write(durable=outer):
        database.run("INSERT INTO texts VALUES ('kept')")
        inner = database.write(durable=not outer)
        with pytest.raises(AgentMemoryError, match="inside a transaction"):
            inner.__enter__()
        assert setting(database) == (FULL if outer else NORMAL)
    assert setting(database) == FULL
    assert database.value("SELECT count(*) FROM texts") == 2


def test_a_write_that_could_not_begin_leaves_the_setting_as_it_was(
    database: Database, path: Path
) -> None:
    holder = Database(path)
    with holder.write(), database.nowait():
        with pytest.raises(StorageLocked):
            database.write(durable=False).__enter__()
        assert setting(database) == FULL
    holder.close()


class SyncCounter(apsw.VFS):
    """Counts how often a file is brought to the disk."""

    def __init__(self) -> None:
        self.count = 0
        self.base = apsw.vfs_names()[0]
        super().__init__("counting", self.base)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        counter = self

        class File(apsw.VFSFile):
            def xSync(self, flags: int) -> None:
                counter.count += 1
                super().xSync(flags)

        return File(self.base, name, flags)


def test_the_disk_is_waited_for_by_durable_commits_only(path: Path) -> None:
    before, counter = apsw.vfs_names()[0], SyncCounter()
    apsw.set_default_vfs("counting")
    try:
        database = made(path, "the first")
        with database.write():
            database.run("INSERT INTO texts VALUES ('begins the log')")
        syncs = []
        for durable in (False, False, True, False, True):
            seen = counter.count
            with database.write(durable=durable):
                database.run("INSERT INTO texts VALUES ('more')")
            syncs.append(counter.count > seen)
        database.close()
    finally:
        apsw.set_default_vfs(before)
        counter.unregister()
    assert syncs == [False, False, True, False, True]


EXCHANGE = """
import sys
with open(sys.argv[1], "r+b") as file, open(sys.argv[2], "r+b") as other:
    content, others = file.read(), other.read()
    file.seek(0), other.seek(0)
    file.write(others), other.write(content)
"""


def transfer(path: Path, other: Path) -> None:
    """Exchange what two files hold, elsewhere: opening ours here would drop its locks."""
    subprocess.run([sys.executable, "-c", EXCHANGE, str(path), str(other)], check=True)


def test_a_setting_that_cannot_be_restored_goes_with_its_connection(
    database: Database, path: Path, tmp_path: Path
) -> None:
    zeros = tmp_path / "zeros"
    zeros.write_bytes(bytes(path.stat().st_size))

    def fail() -> None:
        with database.write(durable=False):
            database.run("CREATE TABLE more (x)")  # undone, so the schema is read again
            transfer(path, zeros)
            raise ValueError

    with pytest.raises(StorageError, match="not a database"):
        fail()
    transfer(path, zeros)
    assert setting(database) == FULL
    assert database.rows("SELECT content FROM texts") == [("the first",)]
