"""Backups: whole while others write, private, never over something, never half."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Clock
from reads import contents_of

from agent_memory import (
    AgentMemory,
    StorageFull,
    StorageUnavailable,
    ValidationError,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


STORE_UNTIL_KILLED = """
import itertools, sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], create=False) as memory:
    for n in itertools.count():
        print(memory.store(f"memory number {n} " + "x" * 500), flush=True)
"""


def test_a_copy_made_while_another_process_writes_is_whole(
    memory: AgentMemory, tmp_path: Path
) -> None:
    code = [sys.executable, "-c", STORE_UNTIL_KILLED, str(memory.path)]
    stored: list[str] = []
    copies: list[tuple[Path, list[str]]] = []
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for turn in range(4):
            stored += [writer.stdout.readline().strip() for _ in range(25)]
            copies.append((memory.backup(tmp_path / f"copy-{turn}.db"), list(stored)))
        stored.append(writer.stdout.readline().strip())  # it went on writing all the while
        writer.kill()
    assert "" not in stored
    for path, before in copies:
        with AgentMemory.open(path, create=False) as copy:
            assert copy.check().problems == []
            assert [one for one in before if copy.get(one) is None] == []
            assert copy.agent_id == "bob"


def test_a_backup_is_a_memory_of_the_same_agent_that_can_be_used(
    memory: AgentMemory, tmp_path: Path
) -> None:
    kept = memory.store("Prefer PostgreSQL", tags=["database"], metadata={"sure": 0.9})
    gone = memory.store("a mistake")
    memory.delete(gone)
    memory.promote(kept)
    with AgentMemory.open(memory.backup(tmp_path / "copy.db")) as copy:
        assert copy.agent_id == "bob"
        assert copy.get(kept) == memory.get(kept)
        assert copy.history() == memory.history()
        assert copy.context() == memory.context()
        added = copy.store("only in the copy")
        assert [hit.memory.id for hit in copy.search("postgresql database")] == [kept]
    assert memory.get(added) is None


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_backup_without_a_place_goes_beside_the_file_and_is_private(
    memory: AgentMemory, umask: int
) -> None:
    memory.store("a secret")
    before = os.umask(umask)
    try:
        path = memory.backup()
    finally:
        os.umask(before)
    assert path.parent == memory.path.parent / "backups"
    assert path.name == "memories-20260130T160000000000Z.db"
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    assert names(path.parent) == {path.name}


def test_the_backups_of_two_moments_stand_side_by_side(
    root: Path, memory: AgentMemory, clock: Callable[[], object]
) -> None:
    first = memory.backup()
    clock.forward(seconds=1)  # type: ignore[attr-defined]
    memory.store("later")
    second = memory.backup()
    assert contents_of(first) == []
    assert contents_of(second) == ["later"]
    assert [agent.agent_id for agent in AgentMemory.agents(root)] == ["bob"]


def test_the_backups_of_one_moment_stand_side_by_side_too(root: Path, clock: Clock) -> None:
    with AgentMemory("bob", root=root, clock=clock) as memory:
        made = []
        for content in ("one", "two", "three"):
            memory.store(content)
            made.append(memory.backup())
        assert [one.path for one in memory.backups()] == [str(path) for path in reversed(made)]
        assert [one.memory_count for one in memory.backups()] == [3, 2, 1]


def test_after_a_clock_that_was_ahead_the_latest_is_the_one_made_last(
    root: Path, clock: Clock
) -> None:
    with AgentMemory("bob", root=root, clock=clock) as memory:
        clock.forward(days=900)
        memory.backup()
        clock.forward(days=-900)
        memory.store("since")
        made = memory.backup()
        assert [one.memory_count for one in memory.backups()] == [1, 0]
        assert memory.backups()[0].path == str(made)


def test_a_relative_or_home_destination_means_what_it_means_elsewhere(
    memory: AgentMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path.home().mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert memory.backup("copy.db") == tmp_path / "copy.db"
    assert memory.backup("~/copy.db") == Path.home() / "copy.db"


def test_a_destination_that_exists_is_kept(memory: AgentMemory, tmp_path: Path) -> None:
    precious = tmp_path / "copy.db"
    precious.write_text("precious")
    with pytest.raises(ValidationError, match="exists"):
        memory.backup(precious)
    assert precious.read_text() == "precious"
    assert names(tmp_path) == {"root", "copy.db"}


def test_overwriting_replaces_the_file_in_one_step(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store("newer")
    old = tmp_path / "copy.db"
    old.write_text("the old copy")
    old.chmod(0o644)
    with old.open() as reader:
        memory.backup(old, overwrite=True)
        assert reader.read() == "the old copy"  # it was not written over in place
    assert contents_of(old) == ["newer"]
    assert mode(old) == 0o600
    assert names(tmp_path) == {"root", "copy.db"}


def test_a_memory_is_not_backed_up_onto_itself(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store("kept")
    (tmp_path / "link").symlink_to(memory.path.parent)
    (tmp_path / "hard.db").hardlink_to(memory.path)
    for place in (
        memory.path,
        memory.path.with_name("memories.db-wal"),
        memory.path.with_name("memories.db-shm"),
        memory.path.parent / ".." / "bob" / "memories.db",
        tmp_path / "link" / "memories.db",
        tmp_path / "hard.db",
    ):
        with pytest.raises(ValidationError, match="the memory itself"):
            memory.backup(place, overwrite=True)
    assert [one.content for one in memory.list_recent()] == ["kept"]


@pytest.mark.parametrize(
    ("place", "reason"),
    [("root", "is a directory"), ("missing/copy.db", "missing' does not exist")],
)
def test_a_place_that_cannot_hold_a_file_is_refused(
    memory: AgentMemory, tmp_path: Path, place: str, reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        memory.backup(tmp_path / place, overwrite=True)
    assert names(tmp_path) == {"root"}


@pytest.mark.parametrize("target", ["victim", "nowhere"])
def test_a_link_at_the_destination_is_replaced_and_never_followed(
    memory: AgentMemory, tmp_path: Path, target: str
) -> None:
    memory.store("kept")
    (tmp_path / "victim").write_text("precious")
    link = tmp_path / "copy.db"
    link.symlink_to(tmp_path / target)
    with pytest.raises(ValidationError, match="exists"):
        memory.backup(link)
    assert link.is_symlink()
    memory.backup(link, overwrite=True)
    assert not link.is_symlink()
    assert contents_of(link) == ["kept"]
    assert (tmp_path / "victim").read_text() == "precious"
    assert names(tmp_path) == {"root", "victim", "copy.db"}


def test_a_backup_that_fails_leaves_the_old_one_and_nothing_half_done(
    memory: AgentMemory, tiny_disk: Path
) -> None:
    memory.store_many([{"content": f"memory {n} " + "x" * 5000} for n in range(50)])
    old = tiny_disk / "copy.db"
    old.write_text("the old copy")
    with pytest.raises(StorageFull, match=rf"{tiny_disk}.*is full"):
        memory.backup(old, overwrite=True)
    assert old.read_text() == "the old copy"
    assert names(tiny_disk) == {"copy.db"}
    memory.store("and the memory goes on")


def test_a_read_only_memory_can_be_backed_up(memory: AgentMemory, tmp_path: Path) -> None:
    memory.store("kept")
    with AgentMemory.open(memory.path, read_only=True) as reader:
        path = reader.backup(tmp_path / "copy.db")
    assert contents_of(path) == ["kept"]


def test_a_file_that_is_gone_cannot_be_backed_up(root: Path, tmp_path: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        memory.store("lost")
        memory.path.unlink()
        with pytest.raises(StorageUnavailable, match=r"memories\.db"):
            memory.backup(tmp_path / "copy.db")
    assert names(tmp_path) == {"root"}


def test_threads_back_up_while_others_store(memory: AgentMemory, tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def back_up(turn: int) -> None:
        try:
            memory.backup(tmp_path / f"copy-{turn}.db")
        except BaseException as error:  # noqa: BLE001 - a thread's error is shown by the test
            failures.append(error)

    first = memory.store("before them all")
    threads = [threading.Thread(target=back_up, args=(turn,)) for turn in range(3)]
    for thread in threads:
        thread.start()
    stored = [memory.store(f"meanwhile {n}") for n in range(50)]
    for thread in threads:
        thread.join()
    assert failures == []
    assert memory.count() == 51
    for turn in range(3):
        held = contents_of(tmp_path / f"copy-{turn}.db")
        assert "before them all" in held
        # What the copy holds is what was stored first: a moment, not a mixture.
        assert set(held) == {"before them all", *(f"meanwhile {n}" for n in range(len(held) - 1))}
    assert len({first, *stored}) == 51
