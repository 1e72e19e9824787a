"""The disk that power is cut from: what it keeps; every order in which names may get to it."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from agent_memory import AgentMemory

from . import cut_scenarios
from .cut_disks import (
    ROOT,
    Disk,
    Mark,
    Names,
    Sync,
    SyncFolder,
    Tree,
    Truncate,
    Write,
    some_names,
)
from .cut_histories import run
from .power_cuts import Case, cut
from .recording_vfs import recording
from .runner import run_parts
from .tally import Tally
from .verbs import NAME, standard

_BY_NAME = {scenario.name: scenario for scenario in cut_scenarios.alone()}


def _trees(disk: Disk) -> list[dict[str, bytes]]:
    """Return what may be on a disk, as far as 200 throws of the dice tell."""
    trees = (disk.after_cut(random.Random(seed)).files() for seed in range(200))
    return [{str(place): bytes(content) for place, content in it.items()} for it in trees]


def _made(*events: object) -> Disk:
    disk = Disk(Tree())
    for event in events:
        disk.take(event)  # type: ignore[arg-type]
    return disk


def test_what_was_synced_stays() -> None:
    disk = _made(
        Names(((ROOT, "a", 1),)), Write(1, 0, b"x" * 2000), Sync(1), SyncFolder(ROOT)
    )  # fmt: skip
    assert all(tree == {"a": b"x" * 2000} for tree in _trees(disk))


def test_a_file_without_a_synced_name_may_be_gone() -> None:
    disk = _made(Names(((ROOT, "a", 1),)), Write(1, 0, b"x" * 2000), Sync(1))
    trees = _trees(disk)
    assert {} in trees
    assert {"a": b"x" * 2000} in trees
    assert all(tree in ({}, {"a": b"x" * 2000}) for tree in trees)


def test_a_renamed_file_may_be_empty_or_torn() -> None:
    disk = _made(
        Names(((ROOT, "new", 1),)),
        Write(1, 0, b"x" * 2000),
        Names(((ROOT, "a", 1), (ROOT, "new", None))),
        SyncFolder(ROOT),
    )
    sizes = {len(tree["a"]) for tree in _trees(disk)}
    assert {0, 512, 2000} <= sizes


def test_a_deleted_file_may_come_back_and_a_shortened_one_be_long() -> None:
    base = Tree()
    for event in (Names(((ROOT, "a", 1), (ROOT, "b", 2))), Write(1, 0, b"a"), Write(2, 0, b"long")):
        base.change(event)
    disk = Disk(base)
    disk.take(Names(((ROOT, "a", None),)))
    disk.take(Truncate(2, 1))
    trees = _trees(disk)
    for found in ({"a": b"a", "b": b"long"}, {"b": b"l"}, {"b": b"long"}, {"a": b"a", "b": b"l"}):
        assert found in trees


def test_the_record_has_all_that_python_does(tmp_path: Path) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "old").write_bytes(b"as it was")
    with recording(folder) as record:
        (folder / "sub").mkdir()
        with (folder / "sub" / "new").open("wb") as file:
            file.write(b"1234")
            file.flush()
            os.fsync(file.fileno())
            file.write(b"5678")
        os.replace(folder / "sub" / "new", folder / "old")  # noqa: PTH105 - what is recorded
        os.link(folder / "old", folder / "twin")
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
        (folder / "twin").unlink()
        record.done(0)
    kinds = [type(event) for event in record.events]
    expected = [Names, Names, Write, Sync, Write, Names, Names, SyncFolder, Names, Mark]
    assert kinds == expected
    assert {str(place): bytes(it) for place, it in record.now.files().items()} == {
        "old": b"12345678"
    }


@pytest.mark.parametrize(
    "name",
    ["first backup", "export over another", "export of a folder", "new agent", "restore",
     "restore over damage", "rebuild", "tidy"],
)  # fmt: skip
def test_names_get_to_the_disk_in_any_order(name: str, tmp_path: Path) -> None:
    """At each moment at which names change: those up to one are there, or all but one, or one."""
    tally, history = Tally(), run(_BY_NAME[name])
    disk, dice, seen = Disk(history.base), random.Random(1), set()
    for position, event in enumerate(history.events, 1):
        disk.take(event)
        if not isinstance(event, (Names, Mark)):
            continue
        done = history.acknowledged(position).position
        for kept in some_names(len(disk.names)):
            tree = disk.with_names(kept)
            files = frozenset((place, bytes(content)) for place, content in tree.files().items())
            if (done, files) not in seen:
                seen.add((done, files))
                case = f"{name}, event {position}, names {sorted(kept)}"
                Case(history, position, tree, dice, tmp_path / "cut", case, tally).try_()
    assert tally.cases > 5
    assert tally.harm == 0, tally


@pytest.mark.parametrize("name", ["store_many", "export", "backup", "export over a folder"])
def test_without_syncs_it_does_harm(name: str) -> None:
    """The control, verb by verb: it must lose what SQLite writes, and what Python writes.

    Not even then may the library hang, or the interpreter crash.
    """
    found = cut([_BY_NAME[name]], 30, 1, "OFF")
    assert found.lost + found.half_written + found.mismatches > 0
    assert (found.hangs, found.crashes) == (0, 0)


def test_rows_out_of_order_are_told_and_do_not_hang(tmp_path: Path) -> None:
    """A cut without syncs left a file of which reading by the page never came to an end."""
    standard(tmp_path)
    path = tmp_path / NAME
    connection = apsw.Connection(str(path))
    sql = "SELECT pgoffset FROM dbstat WHERE name = 'memories' AND pagetype = 'leaf'"
    offset: Any = connection.execute(f"{sql} ORDER BY path DESC LIMIT 1").get
    connection.close()
    content = bytearray(path.read_bytes())
    count = int.from_bytes(content[offset + 3 : offset + 5])
    first, last = (slice(it, it + 2) for it in (offset + 8, offset + 6 + 2 * count))
    content[first], content[last] = content[last], content[first]
    path.write_bytes(content)

    def look() -> Tally:
        with AgentMemory.open(path, embedder=None) as memory:
            kinds = {problem.kind for problem in memory.check().problems}
        return Tally(cases=int("damaged_file" in kinds))

    (found,) = run_parts([look], timeout_seconds=30)
    assert found.cases == 1
    assert found.harm == 0


def test_normal_may_lose_the_last_but_stays_sound() -> None:
    found = cut(cut_scenarios.in_rows(1, 1), 60, 1, "NORMAL")
    assert found.lost > 0
    assert found.mismatches == 0
