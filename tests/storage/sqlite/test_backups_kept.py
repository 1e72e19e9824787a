"""Backups before something destructive: the newest are kept, nothing else is deleted; the list."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import NOW
from reads import contents_of

from agent_memory import AgentMemory, StorageUnavailable, ValidationError
from agent_memory.models.times import NEWEST_TIME
from agent_memory.storage.sqlite.maintenance.backup import back_up_before, list_backups


def folder_of(memory: AgentMemory) -> Path:
    return memory.path.parent / "backups"


def names(memory: AgentMemory) -> list[str]:
    return sorted(path.name for path in folder_of(memory).iterdir())


def made(memory: AgentMemory, seconds: float = 0, *, reason: str = "tidy", keep: int = 5) -> Path:
    """Back up at a number of seconds after four o'clock."""
    path = back_up_before(memory.path, reason, now=NOW + timedelta(seconds=seconds), keep=keep)
    assert path is not None
    return path


# Making and keeping -------------------------------------------------------------------------------


def test_a_link_that_leads_to_nothing_is_not_followed(memory: AgentMemory, tmp_path: Path) -> None:
    away = tmp_path / "elsewhere" / "backups"
    folder_of(memory).symlink_to(away)
    with pytest.raises(StorageUnavailable, match=r"is a link to .*elsewhere"):
        made(memory)
    assert not away.parent.exists()
    away.mkdir(parents=True)
    assert made(memory).resolve().parent == away.resolve()


def test_a_backup_before_something_says_before_what(memory: AgentMemory) -> None:
    memory.store("a secret")
    path = made(memory, reason="import-yaml")
    assert path == folder_of(memory) / "memories-20260130T160000000000Z.before-import-yaml.db"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert names(memory) == [path.name]
    assert contents_of(path) == ["a secret"]


def test_the_newest_are_kept_whatever_they_were_made_before(memory: AgentMemory) -> None:
    paths = [made(memory, n, reason=["tidy", "erase", "upgrade"][n % 3], keep=3) for n in range(7)]
    assert names(memory) == sorted(path.name for path in paths[-3:])
    made(memory, 9, keep=1)
    assert names(memory) == ["memories-20260130T160009000000Z.before-tidy.db"]


def test_those_made_by_hand_are_never_deleted(memory: AgentMemory) -> None:
    by_hand = memory.backup()
    placed = memory.backup(folder_of(memory) / "before-the-holidays.db")
    for n in range(4):
        made(memory, n, keep=1)
    assert {by_hand.name, placed.name} < set(names(memory))
    assert len(names(memory)) == 3


def test_none_is_made_where_none_is_to_be_kept(memory: AgentMemory) -> None:
    assert back_up_before(memory.path, "tidy", now=NOW, keep=0) is None
    assert not folder_of(memory).exists()
    kept = made(memory)
    assert back_up_before(memory.path, "tidy", now=NOW, keep=0) is None
    assert names(memory) == [kept.name]


def test_what_only_looks_like_a_backup_is_left_alone(memory: AgentMemory, tmp_path: Path) -> None:
    first = made(memory)
    stamp = "memories-20200101T000000000000Z"
    others = [
        f"other-{stamp}.before-tidy.db",
        "other-20200101T000000000000Z.before-tidy.db",
        f"{stamp}.before-Tidy.db",
        f"{stamp}.before-.db",
        f"{stamp}.before-tidy.db.old",
        f"{stamp}.before-tidy.yaml",
        f"{stamp}.before-tidy.db\n",
        f"{stamp}xbefore-tidy.db",
        "memories-20201301T000000000000Z.before-tidy.db",  # there is no 13th month
        "memories-2020.before-tidy.db",
        "memories-" + "\u0662" * 8 + "T000000000000Z.before-tidy.db",
    ]
    for name in others:
        (folder_of(memory) / name).write_text("precious")
    (tmp_path / "elsewhere.db").write_text("precious")
    link = folder_of(memory) / f"{stamp}.before-link.db"
    link.symlink_to(tmp_path / "elsewhere.db")
    directory = folder_of(memory) / f"{stamp}.before-directory.db"
    directory.mkdir()
    last = made(memory, 1, keep=1)
    assert not first.exists()
    assert set(names(memory)) == {*others, link.name, directory.name, last.name}
    assert (tmp_path / "elsewhere.db").read_text() == "precious"


def test_one_that_is_in_use_is_left_until_it_is_not(memory: AgentMemory) -> None:
    memory.store("old")
    used = made(memory)
    with AgentMemory.open(used, create=False) as opened:
        opened.store("only in the backup")
        second = made(memory, 1, keep=1)
        assert contents_of(used) == ["old", "only in the backup"]
    third = made(memory, 2, keep=1)
    assert names(memory) == [third.name]
    assert not second.exists()


def test_what_a_kill_left_goes_when_nobody_can_be_at_work_on_it(memory: AgentMemory) -> None:
    kept = made(memory)
    unfinished = [".memories.before-tidy.db.0a1b2c3d", f".{memory.backup().name}.0a1b2c3d"]
    others = [".memories.before-tidy.db.zzzzzzzz", ".other.before-tidy.db.0a1b2c3d"]
    for name in unfinished + others:
        shutil.copy(kept, folder_of(memory) / name)
    before = names(memory)
    with contextlib.ExitStack() as stack:
        for name in unfinished:
            file = stack.enter_context((folder_of(memory) / name).open())
            fcntl.flock(file, fcntl.LOCK_EX)
        last = made(memory, 1)
        assert names(memory) == sorted([*before, last.name])
    newest = made(memory, 2)
    assert set(names(memory)) == {*before, last.name, newest.name} - set(unfinished)


def test_nothing_is_deleted_in_a_folder_elsewhere(memory: AgentMemory, tmp_path: Path) -> None:
    """Two agents may have linked theirs to one place, where the names are the same."""
    (tmp_path / "shared").mkdir()
    folder_of(memory).symlink_to(tmp_path / "shared")
    for n in range(3):
        made(memory, n, keep=1)
    memory.backup()
    assert [one.memory_count for one in list_backups(memory.path)] == [0] * 4
    assert len(list((tmp_path / "shared").iterdir())) == 4


def test_a_folder_that_leads_to_itself_is_an_error_of_its_own(memory: AgentMemory) -> None:
    folder_of(memory).symlink_to(folder_of(memory))
    with pytest.raises(StorageUnavailable, match="cannot be resolved"):
        made(memory)
    with pytest.raises(StorageUnavailable, match="cannot be resolved"):
        list_backups(memory.path)


@pytest.mark.parametrize("reason", ["", "Tidy", "a b", "../x", "1st", "é", "tidy\n", "x" * 41])
def test_a_reason_that_is_no_part_of_a_name_is_refused(memory: AgentMemory, reason: str) -> None:
    with pytest.raises(ValidationError, match="reason: must be like tidy"):
        made(memory, reason=reason)
    assert not folder_of(memory).exists()


# Names and clocks ---------------------------------------------------------------------------------


def test_two_of_one_moment_have_two_names(memory: AgentMemory) -> None:
    made(memory)
    made(memory)
    made(memory, reason="erase")
    assert names(memory) == [
        "memories-20260130T160000000000Z.before-tidy.db",
        "memories-20260130T160000000001Z.before-tidy.db",
        "memories-20260130T160000000002Z.before-erase.db",
    ]


def test_a_clock_that_was_put_back_does_not_make_the_newest_the_oldest(memory: AgentMemory) -> None:
    for n in range(3):
        memory.store(f"state {n}")
        made(memory, -3600.0 * n, keep=2)
    newest, older = list_backups(memory.path)
    assert contents_of(Path(newest.path)) == ["state 0", "state 1", "state 2"]
    assert contents_of(Path(older.path)) == ["state 0", "state 1"]
    assert newest.made_at > older.made_at > NOW


def test_where_no_later_name_is_free_it_says_so(memory: AgentMemory) -> None:
    folder_of(memory).mkdir()
    last = folder_of(memory) / "memories-99991230T000000000000Z.before-tidy.db"
    last.write_text("precious")
    with pytest.raises(StorageUnavailable, match="no later name is free"):
        back_up_before(memory.path, "tidy", now=NEWEST_TIME, keep=1)
    assert names(memory) == [last.name]


@pytest.mark.parametrize("reason", ["", ".before-tidy"])
def test_a_time_far_ahead_in_a_name_stops_no_backup(memory: AgentMemory, reason: str) -> None:
    folder_of(memory).mkdir()
    stray = folder_of(memory) / f"memories-99991231T235959999999Z{reason}.db"
    stray.write_text("precious")
    by_hand, first, second = memory.backup(), made(memory, 1, keep=1), made(memory, 2, keep=1)
    assert not first.exists()
    assert names(memory) == sorted([by_hand.name, second.name, stray.name])


_BACKS_UP = """
import sys
from datetime import datetime
from pathlib import Path
from agent_memory.storage.sqlite.maintenance.backup import back_up_before
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    now = datetime.fromisoformat(sys.argv[2])
    print(back_up_before(Path(sys.argv[1]), "tidy", now=now, keep=int(sys.argv[4])), flush=True)
"""


def started(memory: AgentMemory, times: int, keep: int) -> subprocess.Popen[str]:
    """Start a process that backs up many times, always at the same moment, when it is told to."""
    words = [str(memory.path), NOW.isoformat(), str(times), str(keep)]
    process = subprocess.Popen(
        [sys.executable, "-c", _BACKS_UP, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_processes_that_back_up_at_one_moment_take_no_name_from_each_other(
    memory: AgentMemory,
) -> None:
    memory.store("kept")
    processes = [started(memory, times=15, keep=1000) for _ in range(3)]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=60)[0].split() for process in processes]
    paths = [Path(path) for one in printed for path in one]
    assert len(set(paths)) == 45
    assert {path.name for path in paths} == set(names(memory))
    assert all(contents_of(path) == ["kept"] for path in paths[::9])


# Failing ------------------------------------------------------------------------------------------


def files(memory: AgentMemory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder_of(memory).iterdir()}


_BACKS_UP_WITHOUT_SPACE = """
import resource, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from agent_memory.storage.sqlite.maintenance.backup import back_up_before
from agent_memory.errors import StorageFull
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))
try:
    back_up_before(Path(sys.argv[1]), "tidy", now=datetime.now(UTC), keep=1)
except StorageFull as error:
    print(error)
"""


def test_without_space_the_old_ones_stay(memory: AgentMemory) -> None:
    made(memory)
    made(memory, 1)
    before = files(memory)
    words = [sys.executable, "-c", _BACKS_UP_WITHOUT_SPACE, str(memory.path)]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "is full" in ran.stdout, ran.stderr
    assert files(memory) == before


def test_a_memory_that_is_gone_is_not_backed_up_and_the_old_ones_stay(root: Path) -> None:
    with AgentMemory("bob", root=root) as memory:
        made(memory)
        made(memory, 1)
        before = files(memory)
        memory.path.unlink()
        with pytest.raises(StorageUnavailable):
            made(memory, 2, keep=1)
        assert files(memory) == before


def test_a_folder_that_cannot_be_made_is_an_error_of_its_own(memory: AgentMemory) -> None:
    folder_of(memory).write_text("in the way")
    with pytest.raises(StorageUnavailable, match="backups"):
        made(memory)


def test_whenever_it_is_killed_the_kept_ones_are_whole(memory: AgentMemory) -> None:
    memory.store_many([{"content": f"memory {n} " + "x" * 1000} for n in range(300)])
    before = turn = 0
    while turn < 6 or (before < 3 and turn < 60):  # a busy machine comes to few in a turn
        turn += 1
        process = started(memory, times=1000, keep=3)
        process.stdin.write("\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        time.sleep(0.003 + 0.017 * turn)
        process.kill()
        process.communicate(timeout=30)
        listed = list_backups(memory.path)
        assert [one.memory_count for one in listed] == [300] * len(listed)
        # One more, where it was killed between making one and deleting another.
        assert min(before, 3) <= len(listed) <= 4
        before = len(listed)
    assert before >= 3
    assert contents_of(Path(listed[0].path))[0].startswith("memory 0 ")


# The list -----------------------------------------------------------------------------------------


def test_the_list_has_what_can_be_known_of_each_newest_first(memory: AgentMemory) -> None:
    assert list_backups(memory.path) == []
    memory.store("the first")
    early = memory.backup()
    memory.store_many([{"content": "the second"}, {"content": "the third"}])
    later = made(memory, 60, reason="erase")
    placed = memory.backup(folder_of(memory) / "mine.db")
    os.utime(placed, (NOW.timestamp() + 30, NOW.timestamp() + 30))
    listed = list_backups(memory.path)
    assert [(one.path, one.reason, one.memory_count) for one in listed] == [
        (str(later), "erase", 3),
        (str(placed), None, 3),
        (str(early), None, 1),
    ]
    assert [one.made_at for one in listed] == [NOW + timedelta(seconds=n) for n in (60, 30, 0)]
    assert [one.size_bytes for one in listed] == [
        path.stat().st_size for path in (later, placed, early)
    ]
    assert {one.problem for one in listed} == {None}


def test_looking_at_backups_changes_nothing(
    memory: AgentMemory, visitor: Callable[[Path, str], str]
) -> None:
    memory.store("kept")
    older, raw = made(memory), made(memory, 1)
    visitor(older, "PRAGMA user_version = 9")  # as of an older version of the library
    visitor(raw, "PRAGMA journal_mode = WAL")  # as a copy of the file itself has
    before = files(memory)
    assert [one.memory_count for one in list_backups(memory.path)] == [1, 1]
    assert files(memory) == before


def test_one_that_is_in_use_is_listed_as_it_is_now(memory: AgentMemory) -> None:
    memory.store("kept")
    with AgentMemory.open(made(memory)) as opened:
        opened.store("only in the backup")
        assert [one.memory_count for one in list_backups(memory.path)] == [2]
        opened.store("and this")
        assert opened.count() == 3


def test_what_cannot_be_read_is_listed_with_the_reason(memory: AgentMemory) -> None:
    memory.store("kept")
    made(memory)
    whole = made(memory, 1).read_bytes()
    folder = folder_of(memory)
    for n, content in enumerate([b"", b"this is no database\n" * 500, whole[: len(whole) // 2]]):
        (folder / f"memories-2026020{n + 1}T000000000000Z.db").write_bytes(content)
    listed = list_backups(memory.path)
    assert [one.memory_count for one in listed] == [None, None, None, 1, 1]
    assert [one.problem is None for one in listed] == [False, False, False, True, True]
    assert listed[0].problem is not None
    assert "20260203" in listed[0].problem
    assert "damaged" in listed[0].problem


def test_the_list_leaves_out_what_is_no_backup_of_this_store(
    memory: AgentMemory, tmp_path: Path
) -> None:
    kept = made(memory)
    for name in (
        "notes.txt",
        ".memories-20260130T160000000000Z.db.0a1b2c3d",
        ".hidden.db",
        "other-20260130T160000000000Z.db",
        "memories-more-20260130T160000000000Z.before-tidy.db",
    ):
        shutil.copy(kept, folder_of(memory) / name)
    (folder_of(memory) / "link.db").symlink_to(memory.path)
    (folder_of(memory) / "directory.db").mkdir()
    assert [one.path for one in list_backups(memory.path)] == [str(kept)]
    assert list_backups(tmp_path / "nowhere" / "memories.db") == []


def test_a_time_in_a_name_that_is_none_is_not_believed(memory: AgentMemory) -> None:
    path = folder_of(memory) / "memories-20261301T000000000000Z.db"
    made(memory).rename(path)
    os.utime(path, (1e9, 1e9))
    assert [one.made_at for one in list_backups(memory.path)] == [
        datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    ]
