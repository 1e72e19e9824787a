"""Files and folders that may only be read: reading works, writing is a typed error at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Ran
from places import NOBODY, finished, line, read_only_drive, started, tell
from survival.verbs import NAME, standard, verbs

from agent_memory import AgentMemory, StorageError, StorageReadOnly

MODES = ["auto", "rollback"]


@pytest.fixture(params=MODES)
def folder(
    request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An agent's folder on a drive that is read-only for all."""
    monkeypatch.setenv("AGENT_MEMORY_JOURNAL", request.param)
    (root / "bob").mkdir(parents=True)
    standard(root / "bob")
    with AgentMemory("bob", root=root) as memory:
        memory.backup()
    with read_only_drive(root):
        yield root / "bob"


def opened(folder: Path) -> AgentMemory:
    return AgentMemory.open(folder / NAME, read_only=True, embedder=None)


def test_all_can_be_read_on_a_read_only_drive(folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    with opened(folder) as memory:
        assert memory.search("compass orchard")
        assert memory.get("fact-5")
        assert len(memory.list_recent(100)) == memory.count() == memory.info().memory_count
        assert memory.history("fact-1")
        assert memory.context()
        assert memory.scratchpad().memories
        assert [one.memory_count for one in memory.backups()] == [11, 11]  # one of before the move
        report = memory.check()
        assert (report.problems, report.memory_count) == ([], 11)  # the archived one too
        assert "keyword index was not compared" in report.notes[-1]
        with pytest.raises(StorageReadOnly, match="open it without read_only"):
            memory.check(repair=True)
        assert memory.get("fact-2") is None
        assert memory.search("violet", as_of=memory.info().created_at)
        memory.export(tmp_path / "out.yaml")
        copy = memory.backup(tmp_path / "copy.db")
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    with AgentMemory.open(copy) as memory:
        assert memory.count() == 10
        memory.store("the copy can be written")
    assert [one.problem for one in AgentMemory.agents(folder.parent)] == [None]


@pytest.mark.parametrize("name", [verb.name for verb in verbs()][:22])
def test_each_verb_that_writes_says_that_it_cannot(name: str, root: Path) -> None:
    verb = next(one for one in verbs() if one.name == name)
    (root / "bob").mkdir(parents=True)
    standard(root / "bob")
    with read_only_drive(root), opened(root / "bob") as memory:
        if name in ("search", "context"):
            verb.act(memory, root / "bob")
            return
        with pytest.raises(StorageError) as caught:
            verb.act(memory, root / "bob")
    assert type(caught.value) is not StorageError, caught.value


def test_opening_it_for_writing_says_at_once_what_to_do(folder: Path) -> None:
    with pytest.raises(StorageReadOnly, match="in Python: read_only=True"):
        AgentMemory("bob", root=folder.parent)
    with pytest.raises(StorageReadOnly, match="eve"):
        AgentMemory("eve", root=folder.parent)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("store", "not to be"), "cannot be written"),
        (("forget", "fact-5", "--yes"), "cannot be written"),
        (("configure", "event_log", "brief"), "cannot be written"),
        (("backup",), "give a destination elsewhere"),
        (("check", "--repair"), "cannot be written"),
        (("restore", "latest", "--yes"), "memories.db cannot be restored: its drive is read-only."),
    ],
)
def test_the_command_line_says_so_too(
    cli: Callable[..., Ran], words: tuple[str, ...], told: str
) -> None:
    ran = cli("--agent", "bob", *words)
    assert ran.code == 5
    assert told in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        ("forget", "fact-5"),
        ("erase", "fact-5"),
        ("erase", "--category", "fact"),
        ("delete-all", "--user", "ann"),
        ("reset",),
        ("rollback",),
        ("migrate", "--embedder", "wordllama"),
    ],
)
def test_nobody_is_asked_about_what_cannot_be_done(
    cli: Callable[..., Ran], words: tuple[str, ...]
) -> None:
    ran = cli("--agent", "bob", *words)  # without a terminal, a question is wrong usage
    assert ran.code == 5, ran.err
    assert "cannot be written" in ran.err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        ("search", "compass", "orchard"),
        ("search", "compass", "orchard", "--json"),
        ("recent",),
        ("show", "fact-5"),
        ("history",),
        ("context",),
        ("info",),
        ("stats",),
        ("export",),
        ("configure",),
        ("check",),
    ],
)
def test_the_command_line_reads_there(cli: Callable[..., Ran], words: tuple[str, ...]) -> None:
    ran = cli("--agent", "bob", *words)
    assert ran.code == 0, ran.err
    assert ran.out


def test_a_log_that_lies_on_a_read_only_drive_is_not_passed_over(root: Path) -> None:
    """What it holds could not be seen: that must be an error, or it must be seen."""
    with started(_STORES_AND_WAITS, root / "bob" / NAME) as child:
        ids = [line(child) for _ in range(20)]
        child.kill()
    assert (root / "bob" / f"{NAME}-wal").stat().st_size
    with read_only_drive(root):
        try:
            with opened(root / "bob") as memory:
                assert [one for one in ids if memory.get(one) is None] == []
        except StorageError as error:
            assert isinstance(error, StorageReadOnly), error  # noqa: PT017
    with AgentMemory.open(root / "bob" / NAME) as memory:
        assert [one for one in ids if memory.get(one) is None] == []


_STORES_AND_WAITS = """
import sys
from agent_memory import AgentMemory
with AgentMemory.open(sys.argv[1]) as memory:
    for number in range(20):
        print(memory.store(f"fact {number}"), flush=True)
    sys.stdin.read()
"""

# A user to whom the folder is closed, and another one who writes ----------------------------------

_READS_AS_NOBODY = """
import os, sys
from pathlib import Path
from agent_memory import AgentMemory, StorageError
with AgentMemory("warm", root=sys.argv[2]) as memory:
    memory.store("loads what is loaded late: it may lie where only root can read")
    memory.search("late")
    memory.list_recent()
os.setgid(65534); os.setuid(65534)
with AgentMemory.open(sys.argv[1], read_only=True) as memory:
    for _ in sys.stdin:
        try:
            print(memory.count(), len(memory.search("walnut", 100)), flush=True)
        except StorageError as error:
            print(type(error).__name__, flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_a_reader_without_rights_notices_those_who_have_them(
    public_folder: Path, tmp_path: Path
) -> None:
    path = public_folder / NAME
    public_folder.chmod(0o755)
    with AgentMemory.open(path) as memory:
        memory.store("the first walnut")
    path.chmod(0o644)
    with started(_READS_AS_NOBODY, path, tmp_path) as reader:
        tell(reader)
        assert line(reader) == "1 1"
        with AgentMemory.open(path) as memory:  # which takes away the reader's rights
            memory.store_many([{"content": f"walnut {n} " + "x" * 3000} for n in range(40)])
            tell(reader)
            assert line(reader) == "StorageUnavailable"
        path.chmod(0o644)
        tell(reader)
        assert line(reader) == "41 41"
        reader.communicate(timeout=30)


_TRIES = """
import logging, os, sys
from agent_memory import AgentMemory, StorageError
with AgentMemory("warm", root=sys.argv[4]) as memory:
    memory.store("as above")
    memory.search("above")
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
path, what, mode = sys.argv[1], sys.argv[2], int(sys.argv[3], 8)
with AgentMemory.open(path) as memory:
    memory.store("kept", id="kept")
os.chmod(path if what == "file" else os.path.dirname(path), mode)
for read_only in (False, True):
    try:
        with AgentMemory.open(path, read_only=read_only) as memory:
            print("opened", memory.get("kept").content, len(memory.search("kept")))
    except StorageError as error:
        print(type(error).__name__)
os.chmod(*((path, 0o600) if what == "file" else (os.path.dirname(path), 0o700)))
with AgentMemory.open(path) as memory:
    print("stored", memory.store("once it may be written again", id="again"))
"""


@pytest.mark.parametrize("journal", MODES)
@pytest.mark.parametrize(
    ("what", "mode", "answers"),
    [
        ("file", "0400", ["StorageReadOnly", "opened kept 1"]),
        ("folder", "0500", ["StorageReadOnly", "opened kept 1"]),
        ("file", "0000", ["StorageUnavailable", "StorageUnavailable"]),
        ("folder", "0000", ["StorageUnavailable", "StorageUnavailable"]),
    ],
)
def test_what_rights_let_be_read_is_read_and_written_again_once_they_let(
    what: str, mode: str, answers: list[str], journal: str, public_folder: Path, tmp_path: Path
) -> None:
    folder = public_folder / "folder"
    folder.mkdir()
    if os.getuid() == 0:
        os.chown(public_folder, NOBODY, NOBODY)
        os.chown(folder, NOBODY, NOBODY)
    found = finished(_TRIES, folder / NAME, what, mode, tmp_path, AGENT_MEMORY_JOURNAL=journal)
    folder.chmod(0o700)
    if (what, mode, journal) == ("folder", "0500", "rollback"):
        answers = ["opened kept 1", "opened kept 1"]  # only a write needs more than the file
    assert found.splitlines() == [*answers, "stored again"]
