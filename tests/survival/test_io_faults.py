"""Faults of the disk that once did harm; and that the harness sees harm where it is done."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent_memory import AgentMemory, StorageError

from . import fault_scene, io_faults
from .fault_case import Lasting, Trial
from .fault_scene import surveyed
from .runner import run_parts
from .tally import Tally, total
from .verbs import Verb, keyword_only, sentences


def _tried(name: str, asked: set[str], lastings: set[Lasting], folder: Path, last: int) -> Tally:
    """Try the faults of the last places at which a verb asks for something before the closing."""
    io_faults.break_here()
    (verb,) = (verb for verb in fault_scene.all_verbs() if verb.name == name)
    scene = surveyed(verb, folder)
    tally = Tally()
    acting = scene.asked[False][: scene.acting[False]]
    places = [nth for nth, what in enumerate(acting, 1) if what in asked]
    for number, case in enumerate(io_faults.cases_of(scene, lastings, checkpoints=False)):
        if case.fault.nth in places[-last:]:
            Trial(scene, case, folder / f"case-{number}", tally).run()
    return tally


def harm_of(name: str, asked: set[str], lastings: set[Lasting], *, last: int = 10_000) -> Tally:
    """Return what faults of a verb do, in a process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        part = partial(_tried, name, asked, lastings, Path(folder), last)
        tally = total(run_parts([part], timeout_seconds=120))
    assert tally.cases
    return tally


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        pytest.param("rollback", {"delete", "look"}, id="a lock file that cannot be deleted"),
        pytest.param("tidy", {"list", "look"}, id="backups that cannot be listed"),
        pytest.param("backup", {"look", "create", "rename"}, id="a destination that fails"),
        pytest.param("erase with backups", {"delete", "list"}, id="copies that cannot be listed"),
        pytest.param(
            "export of the past", {"create", "mkdir", "delete", "look"}, id="temporary files"
        ),
        pytest.param("export", {"look", "sync", "rename", "create"}, id="an export"),
        pytest.param("import", {"look", "open"}, id="a source that cannot be looked at"),
    ],
)
def test_one_fault_of_a_file_is_survived(name: str, asked: set[str]) -> None:
    tally = harm_of(name, asked, {Lasting.ONCE})
    assert not tally.harm, tally


def test_an_index_that_could_not_be_dropped_can_be_dropped_later() -> None:
    tally = harm_of("switch of model", {"read"}, {Lasting.ONCE, Lasting.UNTIL_MENDED}, last=50)
    assert not tally.harm, tally


def test_without_temporary_files_nothing_is_imported() -> None:
    tally = harm_of("import", {"look"}, {Lasting.UNTIL_MENDED}, last=20)
    assert not tally.harm, tally


def test_a_broken_disk_is_told_at_closing_as_well() -> None:
    tally = harm_of("migrate", {"sync"}, {Lasting.TO_THE_END})
    assert not tally.harm, tally


# The harness bites ----------------------------------------------------------------------------


def _in_two_steps(memory: AgentMemory | None, _folder: Path) -> None:
    assert memory is not None
    memory.store("The first half", id="half-1")
    memory.store("The second half", id="half-2")


def _in_silence(memory: AgentMemory | None, _folder: Path) -> None:
    assert memory is not None
    try:
        memory.store_many(sentences(3, start=200))
    except StorageError:
        return


def _in_place(_memory: AgentMemory | None, folder: Path) -> None:
    with (folder / "out.yaml").open("w") as file:
        file.write("format: agent-memory store\n" * 500)


@pytest.mark.parametrize(
    ("act", "harm"),
    [(_in_two_steps, "half_written"), (_in_silence, "lost"), (_in_place, "errors")],
)
def test_careless_verbs_are_seen(
    act: Callable[[AgentMemory | None, Path], object],
    harm: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    careless = Verb("careless", act, keyword_only)
    monkeypatch.setattr(fault_scene, "all_verbs", lambda: [careless])
    tally = harm_of("careless", {"sync", "write"}, {Lasting.ONCE}, last=12)
    assert getattr(tally, harm), tally


@pytest.mark.parametrize("lasting", [Lasting.ONCE, Lasting.UNTIL_MENDED])
def test_accesses_are_counted_once_whenever_the_disk_fails(lasting: Lasting) -> None:
    """What a commit had written whose sync failed was there later, and was counted again."""
    assert harm_of("search", {"sync", "write"}, {lasting}).notes == []
