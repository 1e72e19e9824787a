"""Disks that are full, files that may not grow: a typed error, reading goes on, nothing is lost."""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path

import apsw
import pytest
from places import small_disk
from survival.truth import State, audit, state_of
from survival.verbs import NAME, Verb, opened, verbs

from agent_memory import AgentMemory, StorageError, StorageFull
from agent_memory.storage.sqlite.connection.error_translation import translated

DISK = 4_000
"""Kilobytes: four times what the largest of the verbs needs."""
VERBS = {verb.name: verb for verb in verbs()}
SMALL = set("promote demote configure reject lift export search context".split())
"""Those that write less than what a memory needs to be read at all."""
Limit = Callable[[], AbstractContextManager[object]]


class Templates:
    """The files that verbs are tried on, made once, and their states before and after."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._made: dict[object, Path] = {}

    def of(self, verb: Verb) -> Path:
        """Return the folder that a verb starts from."""
        if verb.prepare not in self._made:
            folder = self._place / str(len(self._made))
            folder.mkdir()
            verb.prepare(folder)
            self._made[verb.prepare] = folder
        return self._made[verb.prepare]

    def states(self, verb: Verb, place: Path) -> tuple[State, State]:
        """Return the state that a verb finds, and that which it leaves when it runs clean."""
        before = _of(self.of(verb))
        shutil.copytree(self.of(verb), place)
        verb.run(place)
        after = state_of(place / NAME)
        shutil.rmtree(place)
        return before, after


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(tmp_path_factory.mktemp("templates"))


@contextmanager
def _filled(disk: Path, spare: int) -> Iterator[None]:
    """Fill a disk up to some kilobytes."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    if spare:
        os.truncate(filler, max(0, filler.stat().st_size - spare * 1024))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def _not_growing(spare: int) -> Iterator[None]:
    """Let no file of this process be longer than some kilobytes: the system says EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (spare * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _try(verb: Verb, folder: Path, limit: Limit, states: tuple[State, State]) -> bool:
    """Try a verb without space and then with it; return whether the space was missed."""
    before, after = states
    told, was_full = "is full", False
    with opening(verb, folder) as memory:
        with limit():
            try:
                verb.act(memory, folder)
            except StorageFull as error:
                told, was_full = str(error).lower(), True
            if memory is not None:  # reading goes on
                assert {one.id for one in memory.list_recent(500)} in _ids(before, after)
                memory.search("compass orchard", count_accesses=False)
        assert "is full" in told
        if was_full and (not (folder / NAME).exists() or _of(folder) != after):
            verb.act(memory, folder)  # and writing, with the same handle, once there is space
        if memory is not None:
            assert memory.count() == len([row for row in after["memories"] if not row[11]])
    found = audit(folder / NAME, [after])
    assert found.is_sound, found
    return was_full


def opening(verb: Verb, folder: Path) -> AbstractContextManager[AgentMemory | None]:
    return nullcontext() if verb.opens else verb.memory(folder)


def _of(folder: Path) -> State:
    try:
        return state_of(folder / NAME)
    except (apsw.SQLError, apsw.CantOpenError):  # no file yet, or one without all of the tables
        return {}


def _ids(*states: State) -> list[set[str]]:
    return [{row[0] for row in state["memories"] if not row[11]} for state in states]


@pytest.mark.parametrize("name", VERBS)
def test_a_full_disk(name: str, templates: Templates, tmp_path: Path) -> None:
    verb = VERBS[name]
    states = templates.states(verb, tmp_path / "clean")
    with small_disk(tmp_path / "disk", DISK) as disk:
        missed = 0
        for spare in (0, 12, 48, 160):
            folder = disk / str(spare)
            shutil.copytree(templates.of(verb), folder)
            missed += _try(verb, folder, partial(_filled, disk, spare), states)
            shutil.rmtree(folder)
    assert missed or name in {"search", "context"}  # which count later, if need be


@pytest.mark.parametrize("name", VERBS)
def test_a_file_that_may_not_grow(name: str, templates: Templates, tmp_path: Path) -> None:
    """As with a quota: to SQLite that is an error of the disk like any other."""
    verb = VERBS[name]
    states = templates.states(verb, tmp_path / "clean")
    missed = 0
    for spare in (33, 60, 150):  # from what is needed to read it at all
        folder = tmp_path / str(spare)
        shutil.copytree(templates.of(verb), folder)
        missed += _try(verb, folder, partial(_not_growing, spare), states)
    assert missed or name in SMALL


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("kind", [apsw.IOError, apsw.CantOpenError])
def test_what_the_system_says_of_space_is_told(kind: type[apsw.Error], number: int) -> None:
    error = kind("disk I/O error")
    error.system_errno = number  # type: ignore[attr-defined]
    with (
        pytest.raises(StorageFull, match=r"m\.db cannot be written: its disk"),
        translated(Path("/m.db")),
    ):
        raise error
    with pytest.raises(StorageFull), translated(Path("/m.db")):
        raise OSError(number, os.strerror(number))


def _store_on_and_on(memory: AgentMemory, acknowledged: list[str]) -> None:
    for number in range(10_000):
        content = f"fact {number} of the walnut " + "x" * (number % 9 * 800)
        acknowledged.append(memory.store(content, id=f"fact-{number}"))


def test_acknowledged_memories_stay_while_a_disk_runs_full(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    with small_disk(tmp_path / "disk", 3_000) as disk:
        with opened(disk / NAME) as memory:
            with pytest.raises(StorageFull):
                _store_on_and_on(memory, acknowledged)
            assert memory.count() == len(acknowledged) > 10
            assert memory.search("walnut", count_accesses=False)
            with pytest.raises(StorageFull):
                memory.backup()
            names = {one.name for one in (disk / "backups").iterdir()}
            assert names == set()  # no half of one
        with suppress(StorageError), opened(disk / NAME) as memory:  # may be too full to be opened
            assert memory.count() == len(acknowledged)
        shutil.copytree(disk, tmp_path / "larger")
    with AgentMemory.open(tmp_path / "larger" / NAME) as memory:
        assert [one for one in acknowledged if memory.get(one) is None] == []
        assert memory.check().problems == []


def test_a_disk_of_temporary_files_that_is_full_is_not_taken_for_the_memory_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite keeps there what it may have to undo of one statement that writes much."""
    many = [{"content": f"fact {number} of the walnut " + "x" * 3000} for number in range(300)]
    with small_disk(tmp_path / "disk", 64) as disk, opened(tmp_path / NAME) as memory:
        monkeypatch.setenv("TMPDIR", str(disk))
        with _filled(disk, 0), pytest.raises(StorageFull, match="TMPDIR"):
            memory.store_many(many)
        assert memory.count() == 0
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        assert len(memory.store_many(many)) == 300


def test_what_does_not_fit_is_called_by_its_own_name(tmp_path: Path) -> None:
    """And not by that of the unfinished file beside it, which is gone again."""
    with small_disk(tmp_path / "disk", 64) as disk, opened(tmp_path / NAME) as memory:
        memory.store("a fact of the walnut")
        with pytest.raises(StorageFull) as backup:
            memory.backup(disk / "copy.db")
        with pytest.raises(StorageFull) as export:
            memory.export(disk / "out.db", format="sqlite")
        assert str(backup.value).startswith(f"{disk / 'copy.db'} cannot be written: its disk")
        assert str(export.value).startswith(f"{disk / 'out.db'} cannot be written: its disk")
        assert list(disk.iterdir()) == []


def test_a_file_on_a_full_disk_is_exported_elsewhere_as_it_is(tmp_path: Path) -> None:
    """One connection kept the other out, which took it for another process."""
    with small_disk(tmp_path / "disk", DISK) as disk:
        with opened(disk / NAME) as memory:
            kept = memory.store("a fact of the walnut")
        with _filled(disk, 0), opened(disk / NAME) as memory:
            assert memory.export(tmp_path / "out.db", format="sqlite").memory_count == 1
    with opened(tmp_path / "out.db") as copy:
        assert copy.get(kept) is not None


def test_a_file_that_is_opened_where_none_may_grow_says_so_at_an_erasure(tmp_path: Path) -> None:
    """Its connection is closed after each use, and with it went what the system had said."""
    with opened(tmp_path / NAME) as memory:
        erased = memory.store("a fact of the walnut")
    with (
        _not_growing(8),
        AgentMemory.open(tmp_path / NAME) as memory,
        pytest.raises(StorageFull, match="is full"),
    ):
        memory.erase(erased)
    with opened(tmp_path / NAME) as memory:
        assert memory.get(erased) is not None
