"""Files that are deleted, moved or replaced while they are open, and what is no file at all."""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from places import finished, line, started, tell

from agent_memory import AgentMemory, StorageError, StorageUnavailable

NAME = "m.db"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def stored(memory: AgentMemory, beginning: str, count: int = 30) -> list[str]:
    return [
        memory.store(f"{beginning} {n} saw the walnut", id=f"{beginning}-{n}") for n in range(count)
    ]


def beside(path: Path, *suffixes: str) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in suffixes]


def missing(path: Path, ids: list[str]) -> list[str]:
    with AgentMemory.open(path, create=False) as memory:
        assert memory.check().problems == []
        return [one for one in ids if memory.get(one) is None]


# The log is taken away ----------------------------------------------------------------------------


@pytest.mark.parametrize("gone", [("-wal",), ("-shm",), ("-wal", "-shm")])
@pytest.mark.parametrize("then", ["store", "close"])
def test_what_was_in_a_log_that_is_deleted_is_not_lost(
    path: Path, gone: tuple[str, ...], then: str
) -> None:
    with AgentMemory.open(path) as memory:
        ids = stored(memory, "before")
        for part in beside(path, *gone):
            part.unlink()
        assert memory.count() == 30
        if then == "store":
            ids += stored(memory, "after")
            assert memory.count() == 60
    assert missing(path, ids) == []


_STORES_WHEN_TOLD = """
import sys
from agent_memory import AgentMemory, StorageError
with AgentMemory.open(sys.argv[1], session_id=sys.argv[2]) as memory:
    for number, _ in enumerate(sys.stdin):
        try:
            print(memory.store(f"{sys.argv[2]} {number}", id=f"{sys.argv[2]}-{number}"), flush=True)
        except StorageError as error:
            print(type(error).__name__, error, flush=True)
"""


def ask(process: object) -> str:
    tell(process)  # type: ignore[arg-type]
    return line(process)  # type: ignore[arg-type]


def test_two_processes_lose_nothing_when_their_log_is_deleted(path: Path) -> None:
    ids = []
    with AgentMemory.open(path) as memory, started(_STORES_WHEN_TOLD, path, "other") as other:
        ids += [ask(other) for _ in range(10)] + stored(memory, "mine")
        for part in beside(path, "-wal", "-shm"):
            part.unlink()
        answers = [ask(other) for _ in range(3)]
        ids += [answer for answer in answers if answer.startswith("other")]
        ids += stored(memory, "later", 5)
        answers = [ask(other) for _ in range(3)]
        ids += [answer for answer in answers if answer.startswith("other")]
        assert ids[-1] == "other-15"
        other.communicate(timeout=30)
    assert missing(path, ids) == []


def test_what_cannot_be_brought_in_any_more_is_kept_beside_it_and_told(path: Path) -> None:
    """Another program has written without the log, and what was in that would undo its changes."""
    with AgentMemory.open(path) as memory:
        stored(memory, "first", 3)
    with AgentMemory.open(path) as memory:
        ids = stored(memory, "mine")
        for part in beside(path, "-wal", "-shm"):
            part.unlink()
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "c.execute(\"INSERT INTO memories (id, content) VALUES ('theirs', 'by hand')\")"
        )
        finished(code, path)
        with pytest.raises(StorageUnavailable, match="is kept in") as caught:
            memory.store("is not stored", id="refused")
        later = memory.store("is stored", id="later")
        assert memory.get("refused") is None
        (kept,) = path.parent.glob(f"{NAME}.cut-off-*")
        assert str(kept) in str(caught.value)
        assert kept.stat().st_mode & 0o777 == 0o600
        assert missing(kept, ids) == []
        memory.import_(kept)
    assert missing(path, [*ids, "first-0", "theirs", later]) == []


# The file is taken away, or another is put in its place -------------------------------------------


@pytest.mark.parametrize("how", ["deleted", "moved", "moved with its log"])
def test_a_file_that_is_gone_is_told_and_nothing_of_it_is_lost(
    path: Path, tmp_path: Path, how: str
) -> None:
    away = tmp_path / "away.db"
    with AgentMemory.open(path) as memory, started(_STORES_WHEN_TOLD, path, "other") as other:
        ids = [ask(other) for _ in range(5)] + stored(memory, "mine")
        if how == "deleted":
            os.link(path, away)  # or nobody could look
            path.unlink()
        else:
            path.rename(away)
            if how == "moved with its log":
                for old, new in zip(beside(path, "-wal"), beside(away, "-wal"), strict=True):
                    old.rename(new)
        for use in (memory.count, lambda: memory.store("nowhere")):
            with pytest.raises(StorageUnavailable, match="deleted or moved"):
                use()
        assert ask(other).startswith("StorageUnavailable")
        other.communicate(timeout=30)
    assert not path.exists()
    assert missing(away, ids) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_an_agent_whose_folder_is_taken_away_answers_no_more(
    tmp_path: Path, read_only: bool
) -> None:
    with AgentMemory("bob", root=tmp_path) as memory:
        stored(memory, "mine", 3)
    with AgentMemory("bob", root=tmp_path, read_only=read_only) as memory:
        assert len(memory.search("walnut")) == 3
        (tmp_path / "bob").rename(tmp_path / "away")
        for use in (memory.count, memory.list_recent, partial(memory.search, "walnut")):
            with pytest.raises(StorageUnavailable, match="deleted or moved while it was open"):
                use()
        (tmp_path / "away").rename(tmp_path / "bob")  # put back, as the error advises
        assert len(memory.search("walnut")) == 3


def test_what_was_stored_is_in_the_file_that_was_moved_when_another_takes_its_place(
    path: Path, tmp_path: Path
) -> None:
    away = tmp_path / "away.db"
    with AgentMemory.open(tmp_path / "new.db", agent_id="agent") as new:
        stored(new, "new")
    with AgentMemory.open(path) as memory, started(_STORES_WHEN_TOLD, path, "other") as other:
        ids = [ask(other) for _ in range(5)] + stored(memory, "mine")
        path.rename(away)
        (tmp_path / "new.db").rename(path)
        assert memory.get("new-3")
        added = [*stored(memory, "later", 3), ask(other), ask(other)]
        other.communicate(timeout=30)
    assert missing(path, added) == []
    assert missing(away, ids) == []


def test_a_memory_that_is_closed_leaves_the_log_of_the_new_file_alone(
    path: Path, tmp_path: Path
) -> None:
    """SQLite deletes by name the log that it closes: here it is another file's by now."""
    with AgentMemory.open(tmp_path / "new.db", agent_id="agent") as new:
        stored(new, "new", 3)
    memory = AgentMemory.open(path)
    stored(memory, "mine")
    (tmp_path / "new.db").replace(path)
    for part in beside(path, "-wal", "-shm"):
        part.unlink()
    with started(_STORES_WHEN_TOLD, path, "other") as other:
        ids = [ask(other) for _ in range(5)]
        memory.close()
        other.kill()  # it cannot mend anything
    assert missing(path, [*ids, "new-0"]) == []


def _an_older_backup(path: Path) -> None:
    backup = path.with_name("backup.db")
    shutil.copy(backup, path.with_name("copy.db"))
    path.with_name("copy.db").replace(path)


def _an_empty_file(path: Path) -> None:
    path.with_name("empty").touch(0o600)
    path.with_name("empty").replace(path)


def _a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("backup.db"))


def _a_text(path: Path) -> None:
    path.with_name("text").write_text("no memory at all " * 1000)
    path.with_name("text").replace(path)


@pytest.mark.parametrize(
    ("replace", "goes_on"),
    [
        (_an_older_backup, True),
        (_an_empty_file, False),
        (_a_directory, False),
        (_a_link, False),
        (_a_text, False),
    ],
)
@pytest.mark.parametrize("verb", ["read", "write"])
def test_another_thing_in_its_place_is_used_or_named(
    path: Path, replace: Callable[[Path], None], verb: str, goes_on: bool
) -> None:
    with AgentMemory.open(path) as memory:
        memory.store("in the backup", id="old")
        memory.backup(path.with_name("backup.db"))
        stored(memory, "mine")
        untouched = path.with_name("backup.db").read_bytes()
        replace(path)

        def use() -> object:
            return memory.store("added", id="new") if verb == "write" else memory.get("old")

        if goes_on:
            assert use()
        else:
            for _ in range(2):
                with pytest.raises(StorageError, match=NAME):
                    use()
    assert path.with_name("backup.db").read_bytes() == untouched
    if goes_on:
        assert missing(path, ["old", "new"][: 1 + (verb == "write")]) == []


_REPLACES = """
import random, shutil, sys, time
from pathlib import Path
path, other = Path(sys.argv[1]), Path(sys.argv[2])
chance = random.Random(3)
for turn in range(12):
    copy = path.with_name(f"copy-{turn}")
    shutil.copy(other, copy)
    copy.replace(path)
    time.sleep(chance.random() * 0.08)
"""


def test_writers_go_on_while_a_file_is_replaced_again_and_again(path: Path, tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "other.db", agent_id="agent") as other:
        stored(other, "other")
    chance = random.Random(1)
    typed = 0
    with AgentMemory.open(path) as memory, started(_REPLACES, path, tmp_path / "other.db") as one:
        number = 0
        while one.poll() is None:
            number += 1
            try:
                memory.store(f"number {number} " + "x" * chance.randint(1, 4000))
            except StorageError:
                typed += 1
        last = memory.store("the last", id="last")
    assert missing(path, [last, "other-3"]) == []
    assert typed < number


# What is no file ----------------------------------------------------------------------------------

_OPENS = """
import sys
from agent_memory import AgentMemory, StorageError
for options in ({}, {"create": False}, {"read_only": True}):
    try:
        with AgentMemory.open(sys.argv[1], **options) as memory:
            print("opened", memory.count())
    except StorageError as error:
        print(type(error).__name__)
"""


def answers(path: Path | str) -> list[str]:
    """Open it in a process that would be seen to hang."""
    return finished(_OPENS, path).splitlines()


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/tty"])
def test_a_device_is_refused(device: str) -> None:
    if not os.path.lexists(device):
        pytest.skip(f"there is no {device}")
    assert answers(device) == ["StorageUnavailable"] * 3


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("what", ["pipe", "directory", "link"])
def test_what_is_no_file_is_an_error_at_once(path: Path, suffix: str, what: str) -> None:
    victim = path.with_name("victim")
    victim.write_text("not to be touched")
    with AgentMemory.open(path) as memory:
        stored(memory, "mine", 2)
    (place,) = beside(path, suffix)
    place.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(place)
    elif what == "directory":
        place.mkdir()
    else:
        place.symlink_to(victim)
    found = answers(path)
    assert all(answer.startswith("Storage") or answer == "opened 2" for answer in found), found
    assert "StorageError" not in found
    if not suffix:
        assert set(found) == {"StorageUnavailable"}
    assert victim.read_text() == "not to be touched"


def test_an_empty_file_is_made_a_memory_unless_it_may_only_be_read(path: Path) -> None:
    path.touch(0o600)
    assert finished(_OPENS.replace("({}, ", "("), path).splitlines() == ["opened 0", "opened 0"]
    path.unlink()
    path.touch(0o600)
    with pytest.raises(StorageError, match="empty database"):
        AgentMemory.open(path, read_only=True)
    assert path.stat().st_size == 0


def test_a_root_may_be_a_link_and_an_agent_may_not(root: Path, tmp_path: Path) -> None:
    (tmp_path / "true").mkdir()
    root.symlink_to(tmp_path / "true")
    with AgentMemory("bob", root=root) as memory:
        memory.store("through the link")
    assert (tmp_path / "true" / "bob" / "memories.db").exists()
    (tmp_path / "true" / "eve").symlink_to("bob")
    with pytest.raises(StorageUnavailable, match="symbolic link"):
        AgentMemory("eve", root=root)


@pytest.mark.skipif(sys.platform == "win32", reason="no such links")
def test_a_file_with_two_names_is_told(path: Path, tmp_path: Path) -> None:
    with AgentMemory.open(path) as memory:
        stored(memory, "mine", 3)
        assert memory.check().notes == []
    os.link(path, tmp_path / "second.db")
    with AgentMemory.open(tmp_path / "second.db") as memory:
        assert memory.count() == 3
        assert "2 names" in (memory.info().warning or "")
        (note,) = memory.check().notes
        assert "cp" in note
