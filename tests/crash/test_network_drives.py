"""Drives that other machines may reach: how they are told, and what is done without a log there."""

from __future__ import annotations

import logging
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Ran
from places import line, shared_drive, started
from survival.truth import audit, state_of
from survival.verbs import NAME, Verb, verbs

from agent_memory import (
    AgentMemory,
    ConfigurationError,
    StorageUnavailable,
)
from agent_memory.storage.sqlite.connection import Database, file_systems, journal_mode

VARIABLE = "AGENT_MEMORY_JOURNAL"
MOUNTS = rb"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
25 24 0:23 / /dev/shm rw,relatime - tmpfs tmpfs rw
51 27 0:45 / /home rw,relatime shared:12 - nfs4 server:/export/home rw,vers=4.2,local_lock=none
52 51 254:0 /ann /home/ann/local rw - ext4 /dev/vda rw
53 27 0:46 / /mnt/my\040drive rw shared:3 master:7 - cifs //server/share rw
54 27 0:47 / /mnt/c rw,noatime - 9p drvfs rw,dirsync,aname=drvfs;path=C:\134
55 27 0:48 / /work rw,relatime - virtiofs share rw
56 27 0:49 / /mnt/far rw - fuse.sshfs ann@far:/ rw,user_id=1000
57 27 0:50 / /mnt/packed rw - fuse.gocryptfs /home/packed rw
58 27 0:51 / /auto rw - autofs systemd-1 rw,fd=30
59 58 0:52 / /auto/team rw - nfs server:/team rw
60 27 0:53 /@home /srv rw - btrfs /dev/sdb rw
61 27 0:54 / /mnt/over rw - tmpfs tmpfs rw
62 61 0:55 / /mnt/over rw - smb3 //server/over rw
63 27 0:56 / /mnt/odd rw - fuse unheard-of rw
broken line
"""


@pytest.mark.parametrize(
    ("place", "device", "kind"),
    [
        ("/root/m.db", "254:0", None),
        ("/dev/shm/m.db", "0:23", None),
        ("/home/bob/m.db", "0:45", "nfs4"),
        ("/home/ann/local/m.db", "254:0", None),
        ("/homes/m.db", "254:0", None),
        ("/mnt/my drive/deep/m.db", "0:46", "cifs"),
        ("/mnt/my drives/m.db", "254:0", None),
        ("/mnt/c/Users/m.db", "0:47", "9p"),
        ("/work/m.db", "0:48", "virtiofs"),
        ("/mnt/far/m.db", "0:49", "fuse.sshfs"),
        ("/mnt/packed/m.db", "0:50", None),
        ("/auto/team/m.db", "0:52", "nfs"),
        ("/mnt/odd/m.db", "0:56", "fuse"),
        # The device is not in the table, as with btrfs: the longest name of a mount, the last.
        ("/srv/m.db", "0:99", None),
        ("/home/bob/m.db", "0:99", "nfs4"),
        ("/home/ann/local/m.db", "0:99", None),
        ("/mnt/over/m.db", "0:99", "smb3"),
        ("/mnt/my drive/m.db", "0:99", "cifs"),
    ],
)
def test_the_drive_is_told_by_the_table_of_mounts(
    place: str, device: str, kind: str | None
) -> None:
    assert file_systems.kind_in(MOUNTS, Path(place), device) == kind


@pytest.mark.parametrize(
    "kind",
    "nfs nfs4 cifs smb3 smbfs 9p virtiofs fuse.sshfs fuse.rclone fuse.s3fs afs ceph glusterfs"
    " lustre vboxsf prl_fs drvfs fuse.grpcfuse fuse.osxfs fakeowner".split(),
)
def test_a_type_that_others_may_reach_is_known(kind: str) -> None:
    assert file_systems.is_remote(kind)


@pytest.mark.parametrize(
    "kind",
    "ext4 xfs btrfs zfs tmpfs overlay apfs fuseblk fuse.fuse-overlayfs f2fs bcachefs".split(),
)
def test_a_type_of_this_machine_alone_is_known(kind: str) -> None:
    assert not file_systems.is_remote(kind)


def test_what_macos_says_of_a_drive_is_read() -> None:
    def answer(flags: int, kind: bytes) -> bytes:
        made = bytearray(2168)
        made[64:68] = flags.to_bytes(4, sys.byteorder)
        made[72 : 72 + len(kind)] = kind
        return bytes(made)

    assert file_systems.kind_in_statfs(answer(0x1000 | 0x80, b"apfs")) is None
    assert file_systems.kind_in_statfs(answer(0x80, b"smbfs")) == "smbfs"
    icloud = Path("/Users/ann/Library/Mobile Documents/com~apple~CloudDocs/m.db")
    assert file_systems.synced_by(icloud) == "iCloud Drive"
    assert file_systems.synced_by(Path("/Users/ann/Library/Notes/m.db")) is None


# On a drive that is mounted -----------------------------------------------------------------------


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "folder").mkdir()
    with shared_drive(tmp_path / "folder", tmp_path / "drive") as place:
        yield place


def files_of(path: Path) -> set[str]:
    return {one.name for one in path.parent.iterdir() if one.is_file()}


def test_there_is_no_log_on_a_shared_drive_and_it_is_told(
    drive: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for turn in range(2):
        with AgentMemory("bob", root=drive / "new") as memory:
            memory.store(f"the walnut {turn}", id=f"fact-{turn}")
            assert files_of(memory.path) == {"memories.db"}
            info = memory.info()
            assert (info.journal, memory.count()) == ("rollback", turn + 1)
            assert "fuse.sshfs" in (info.warning or "")
            report = memory.check()
            assert report.ok
            assert report.notes == [info.warning]
    warned = [one for one in caplog.records if one.name == "agent_memory"]
    assert [one.levelno for one in warned] == [logging.WARNING]  # once, not at each opening
    assert str(memory.path) in warned[0].getMessage()


def test_the_command_line_tells_it(
    cli: Callable[..., Ran], drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("--root", str(drive), "--agent", "bob")
    cli(*words, "store", "the walnut")
    assert cli(*words, "info", "--json").data["journal"] == "rollback"
    assert "fuse.sshfs" in cli(*words, "check").out
    monkeypatch.setenv(VARIABLE, "wal")
    told = cli(*words, "info", "--json").data
    assert told["journal"] == "wal"
    assert "damage" in told["warning"]


_STORES = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], session_id=sys.argv[2]) as memory:
    for number in range(int(sys.argv[3])):
        name = f"{sys.argv[2]}-{number}"
        memory.store(f"{name} was learned, and the walnut " + "x" * (number % 7 * 900), id=name)
        print(name, flush=True)
    sys.stdin.read()
"""


def test_a_file_that_comes_with_its_log_is_brought_in_whole_and_goes_back_to_one(
    drive: Path, tmp_path: Path
) -> None:
    local = tmp_path / NAME
    with started(_STORES, local, "one", 30) as process:
        acknowledged = {line(process) for _ in range(30)}
        process.kill()
    assert local.with_name(f"{NAME}-wal").stat().st_size
    for part in tmp_path.glob(f"{NAME}*"):
        shutil.move(part, drive / part.name)
    with AgentMemory.open(drive / NAME, read_only=True) as memory:
        assert {one.id for one in memory.list_recent(100)} == acknowledged
    with AgentMemory.open(drive / NAME) as memory:
        memory.store("stored on the drive", id="there")
        assert files_of(drive / NAME) == {NAME}
    shutil.move(drive / NAME, local)
    with AgentMemory.open(local) as memory:
        memory.store("stored at home", id="home")
        assert (memory.info().journal, memory.info().warning) == ("wal", None)
        assert local.with_name(f"{NAME}-wal").exists()
        assert {one.id for one in memory.list_recent(100)} == acknowledged | {"there", "home"}
        assert memory.check().problems == []


# Without a log ------------------------------------------------------------------------------------


@pytest.fixture
def rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "rollback")


def test_a_setting_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "walrus")
    with pytest.raises(ConfigurationError, match="auto or wal or rollback, not 'walrus'"):
        AgentMemory.open(tmp_path / NAME)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("rollback")
def test_commits_wait_for_the_directory_too(tmp_path: Path) -> None:
    database = Database(tmp_path / NAME)
    assert database.value("PRAGMA synchronous") == 3
    with database.write():
        assert database.value("PRAGMA synchronous") == 3
    with database.write(durable=False):
        assert database.value("PRAGMA synchronous") == 2
    assert database.value("PRAGMA synchronous") == 3
    database.close()
    relaxed = Database(tmp_path / NAME, synchronous="NORMAL")
    assert relaxed.value("PRAGMA synchronous") == 2
    relaxed.close()


_LEFT_ALONE = {"accesses"}
"""What a verb may count differently: a search that another timer wrote down."""


@pytest.mark.parametrize("verb", verbs(), ids=lambda verb: verb.name)
def test_every_verb_does_the_same_without_a_log(
    verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = []
    for mode in ("wal", "rollback"):
        folder = tmp_path / mode
        folder.mkdir()
        monkeypatch.setenv(VARIABLE, mode)
        verb.prepare(folder)
        verb.run(folder)
        with AgentMemory.open(folder / NAME, create=False) as memory:
            assert memory.info().journal == mode
            logs = {name for name in files_of(folder / NAME) if name.endswith(("-wal", "-shm"))}
            assert bool(logs) == (mode == "wal")
        states.append(state_of(folder / NAME))
        found = audit(folder / NAME, [states[-1]])
        assert found.is_sound, found
        assert not list(folder.rglob("*-journal"))
    with_log, without = states
    assert {name: rows for name, rows in without.items() if name not in _LEFT_ALONE} == {
        name: rows for name, rows in with_log.items() if name not in _LEFT_ALONE
    }


@pytest.mark.usefixtures("rollback")
def test_an_erased_word_is_in_no_file(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / NAME) as memory:
        memory.store_many([{"content": f"fact {number} " + "y" * 3000} for number in range(40)])
        secret = memory.store("the code word is xylophonist " + "z" * 5000)
        memory.backup()
        receipt = memory.erase([secret], backups=True)
        assert receipt.clean
        assert [one for one in tmp_path.rglob("*") if one.is_file()
                and b"xylophonist" in one.read_bytes().lower()] == []  # fmt: skip


@pytest.mark.usefixtures("rollback")
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    chance = random.Random(11)
    acknowledged: set[str] = set()
    left = 0
    for turn in range(60):
        if turn >= 6 and left:  # on a busy machine none of six was killed inside of a transaction
            break
        with started(_STORES, tmp_path / NAME, f"child-{turn}", 10_000) as child:
            acknowledged.update(line(child) for _ in range(chance.randint(1, 20)))
            time.sleep(chance.random() * 0.004)
            child.send_signal(signal.SIGKILL)
            out, _ = child.communicate(timeout=60)
        acknowledged.update(out.splitlines()[:-1])
        left += (tmp_path / f"{NAME}-journal").exists()
    with AgentMemory.open(tmp_path / NAME, create=False) as memory:
        assert [gone for gone in acknowledged if memory.get(gone) is None] == []
        assert memory.check().problems == []
        memory.store("after all that")
    assert left, "no child was killed inside of a transaction"
    assert not (tmp_path / f"{NAME}-journal").exists()


_READS = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1], read_only=True) as memory:
    most = 0
    for _ in range(60):
        found = memory.search("walnut", 100)
        assert memory.count() >= most
        most = memory.count()
"""


@pytest.mark.usefixtures("rollback")
def test_four_processes_and_a_reader_share_a_file(tmp_path: Path) -> None:
    AgentMemory.open(tmp_path / NAME).close()
    children = [started(_STORES, tmp_path / NAME, f"p{number}", 25) for number in range(4)]
    children.append(started(_READS, tmp_path / NAME))
    for child in children:
        _, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
    with AgentMemory.open(tmp_path / NAME) as memory:
        assert memory.count() == 100
        assert len(memory.history(limit=1000)) == 100
        assert memory.check().problems == []


@pytest.mark.usefixtures("rollback")
def test_a_restoring_loses_nothing_that_another_process_stores(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / NAME) as memory:
        memory.store("the first", id="first")
        backup = memory.backup(tmp_path / "kept.db")
    with started(_STORES, tmp_path / NAME, "other", 10_000) as child:
        seen = [line(child) for _ in range(5)]
        kept = [AgentMemory.restore(tmp_path / NAME, backup).replaced for _ in range(4)]
        child.kill()
        seen += (child.communicate(timeout=30)[0]).splitlines()[:-1]
    there: set[str] = set()
    for path in (tmp_path / NAME, *(Path(one) for one in kept if one)):
        with AgentMemory.open(path) as memory:
            there |= {one.id for one in memory.list_recent(20_000)}
            assert memory.check().problems == []
    assert [name for name in seen if name not in there] == []
    assert len([one for one in tmp_path.iterdir() if "replaced" in one.name]) == 4


# Those who do not agree ---------------------------------------------------------------------------


def test_a_log_that_somebody_has_open_is_not_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.storage.sqlite.connection.opening.BUSY_TIMEOUT_SECONDS", 0.2)
    with started(_STORES, tmp_path / NAME, "other", 3, **{VARIABLE: "wal"}) as other:
        names = {line(other) for _ in range(3)}
        monkeypatch.setenv(VARIABLE, "rollback")
        for read_only in (False, True):
            with pytest.raises(StorageUnavailable, match="open elsewhere with a write-ahead log"):
                AgentMemory.open(tmp_path / NAME, read_only=read_only)
        other.communicate(timeout=30)
    with AgentMemory.open(tmp_path / NAME) as memory:
        assert {one.id for one in memory.list_recent()} == names
        assert memory.info().journal == "rollback"


def test_a_log_that_somebody_brings_is_noticed_before_the_next_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the machine that has the disk opens what another one has mounted."""
    monkeypatch.setattr("agent_memory.storage.sqlite.connection.opening.BUSY_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setenv(VARIABLE, "rollback")
    with (
        AgentMemory.open(tmp_path / NAME) as memory,
        AgentMemory.open(tmp_path / NAME, read_only=True) as reader,
    ):
        memory.store("stored first", id="mine-1")
        with started(_STORES, tmp_path / NAME, "other", 3, **{VARIABLE: "wal"}) as other:
            names = {line(other) for _ in range(3)}
            shared = (tmp_path / f"{NAME}-shm").read_bytes()
            verbs_of_both: list[Callable[[], object]] = [
                lambda: memory.store("must not go into the log"),
                memory.count,
                reader.count,
            ]
            for verb in verbs_of_both:
                with pytest.raises(StorageUnavailable, match="open elsewhere"):
                    verb()
            assert (tmp_path / f"{NAME}-shm").read_bytes() == shared  # nor into its memory
            other.communicate(timeout=30)
        memory.store("stored last", id="mine-2")
        assert reader.count() == 5
        assert {one.id for one in memory.list_recent()} == names | {"mine-1", "mine-2"}
        assert files_of(tmp_path / NAME) == {NAME}


# What stands beside it ----------------------------------------------------------------------------

_DIES_IN_A_TRANSACTION = """
import os, sys
from agent_memory.storage.sqlite.connection import Database
database = Database(sys.argv[1] and __import__("pathlib").Path(sys.argv[1]), create=False)
with database.write():
    database.run("PRAGMA cache_size = 1")
    database.run("UPDATE memories SET content = content || ' and this was never committed'")
    print("inside", flush=True)
    sys.stdin.readline()
"""


def interrupted(path: Path, count: int = 60) -> None:
    """Leave a file half written, with the journal that takes it back."""
    with AgentMemory.open(path) as memory:
        memory.store_many([{"content": f"fact {n} " + "x" * 5000} for n in range(count)])
    with started(_DIES_IN_A_TRANSACTION, path) as child:
        assert line(child) == "inside"
        child.kill()
    assert path.with_name(f"{path.name}-journal").stat().st_size


@pytest.mark.usefixtures("rollback")
def test_a_file_that_was_left_half_written_is_taken_back(tmp_path: Path) -> None:
    interrupted(tmp_path / NAME)
    journal = tmp_path / f"{NAME}-journal"
    assert journal.stat().st_mode & 0o777 == 0o600
    journal.chmod(0o644)
    with AgentMemory.open(tmp_path / NAME) as memory:
        assert memory.count() == 60
        assert not any("never" in one.content for one in memory.list_recent(100))
        assert memory.check().problems == []


@pytest.mark.usefixtures("rollback")
def test_the_journal_of_a_replaced_file_does_not_write_into_the_new_one(tmp_path: Path) -> None:
    """One that was left of an unfinished restoring, and one of a store that cannot be opened."""
    with AgentMemory.open(tmp_path / "other.db", agent_id="agent") as other:
        other.store("the backup's own walnut", id="own")
        backup = other.backup(tmp_path / "kept.db")
    interrupted(tmp_path / NAME)
    left = (tmp_path / f"{NAME}-journal").read_bytes()
    (tmp_path / f".{NAME}.restoring-journal").write_bytes(left)
    (tmp_path / NAME).write_bytes(b"no database any more" * 1000)
    AgentMemory.restore(tmp_path / NAME, backup)
    with AgentMemory.open(tmp_path / NAME) as memory:
        assert [one.id for one in memory.list_recent()] == ["own"]
        assert memory.check().problems == []
    assert not (tmp_path / f"{NAME}-journal").exists()


@pytest.mark.usefixtures("rollback")
def test_a_file_that_others_write_is_opened_again_and_again(tmp_path: Path) -> None:
    """While a transaction is being written, the file alone can look damaged."""
    with started(_STORES, tmp_path / NAME, "other", 100_000) as child:
        line(child)
        for _ in range(60):
            Database(tmp_path / NAME, create=False, read_only=True).close()
        child.kill()


def test_where_memory_cannot_be_shared_the_error_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv(VARIABLE, "wal")
    with (
        shared_drive(tmp_path / "folder", tmp_path / "drive", "direct_io") as drive,
        pytest.raises(StorageUnavailable, match=f"{VARIABLE}=rollback"),
    ):
        AgentMemory.open(drive / NAME)


def test_a_choice_can_be_asked_without_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, " Rollback ")
    assert journal_mode.choose_journal(tmp_path / "no" / "such" / NAME).rollback
    monkeypatch.setenv(VARIABLE, "")
    assert not journal_mode.choose_journal(tmp_path / "no" / "such" / NAME).rollback
