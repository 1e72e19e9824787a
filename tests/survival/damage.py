"""Damaged files: each is opened, looked at, used, mended and restored, in a process of its own.

What must hold: nothing but the library's own errors, no crash and no hang; ``check`` says truly
whether the file is what it was; mending drops nothing that could be read; a good backup brings
everything back; a file is never deleted, nor made anew where there was one.

Some damage cannot be seen without a checksum of each page, which SQLite has not: a bit within a
value that stands in the file once. That is counted as unseen, by table, and is no harm. A value
that the file has twice (memories and their history, the keyword index, tags, the vectors of texts)
is compared, so ``memories`` may never be among them.
"""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw

from agent_memory import AgentMemory, AgentMemoryError, CheckReport, Memory, ValidationError

from .damage_files import Base, Damage, make_bases, plan
from .runner import run_parts
from .tally import Tally, total
from .truth import State, disagreements, state_of
from .verbs import NAME, opened

_SECONDS: Final = 60.0
"""After which a case hangs: one takes a fifth of a second."""
_RESTORED: Final = ("memories", "history", "scratchpad", "accesses", "settings")
_SAID_TWICE: Final = ("memories",)
"""The parts of a state that the file has a second time, so that check can see every change."""


def run(cases: int, seed: int) -> Tally:
    """Damage so many files and see what becomes of each."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if place.is_dir() else None) as folder:
        bases = make_bases(Path(folder))
        damages = plan(bases, cases, seed)
        known = [state for base in bases for state in base.states]
        parts = [
            partial(_case, damage, Path(folder) / f"case-{number}", known)
            for number, damage in enumerate(damages)
        ]
        found = run_parts(parts, timeout_seconds=_SECONDS)
        for tally in found:  # a crash or a hang knows but the number
            tally.cases = 1
            tally.notes = [_named(note, damages) for note in tally.notes]
    return total(found)


def _named(note: str, damages: Sequence[Damage]) -> str:
    return re.sub(r"^part (\d+)", lambda match: str(damages[int(match[1])]), note)


def _case(damage: Damage, folder: Path, known: Sequence[State]) -> Tally:
    logging.getLogger("agent_memory").setLevel(logging.CRITICAL)
    case = _Case(damage, Tally(acknowledged=len(damage.base.whole["memories"])), known)
    case.tally.count(damage.kind)
    try:
        for number, look in enumerate((_check, _mend, _use)):
            copy = folder / str(number)
            shutil.copytree(damage.base.folder, copy)
            damage.do(copy)
            had_bytes = (copy / NAME).stat().st_size > 0
            look(case, copy)
            if had_bytes and not ((copy / NAME).exists() and (copy / NAME).stat().st_size):
                case.harm("lost", "the file is gone")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return case.tally


@dataclass(frozen=True)
class _Case:
    """A damaged file, what is found of it, and the states that sound files are in."""

    damage: Damage
    tally: Tally
    known: Sequence[State]

    @property
    def base(self) -> Base:
        return self.damage.base

    def harm(self, what: str, text: str) -> None:
        setattr(self.tally, what, getattr(self.tally, what) + 1)
        self.tally.note(f"{self.damage}: {text}")

    def attempt(self, what: str, act: Callable[[], Any]) -> Any:
        """Do something that may fail with an error of the library, and with no other."""
        try:
            return act()
        except AgentMemoryError as error:
            return error
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            self.harm("errors", f"{what}: {error!r}")
            return error


# Does check say the truth? ----------------------------------------------------------------------


def _checked(folder: Path) -> CheckReport:
    with opened(folder / NAME, create=False) as memory:
        return memory.check()


def _check(case: _Case, folder: Path) -> None:
    report = case.attempt("check", lambda: _checked(folder))
    if not isinstance(report, CheckReport):
        case.tally.count("could not be opened")
    elif not report.ok:
        case.tally.count("told by check")
    else:
        _compare(case, folder)


def _compare(case: _Case, folder: Path) -> None:
    """See whether a file in which a check sees nothing is what it was."""
    try:
        state, wrong = state_of(folder / NAME), disagreements(folder / NAME)
    except (apsw.Error, UnicodeDecodeError) as error:
        state, wrong = {}, [repr(error)]
    if wrong:
        case.harm("mismatches", f"check sees nothing, but there is {wrong[:3]}")
    elif state == case.base.whole:
        case.tally.count("without effect")
    elif state in case.known or case.damage.kind == "foreign log":
        case.tally.count("unseen: a log lost or foreign, which leads to a sound state")
    elif case.damage.is_empty and not state["memories"]:
        case.tally.count("nothing left of the file: taken for a new one")
    else:
        parts = [part for part, rows in state.items() if rows != case.base.whole[part]]
        for part in parts:
            case.tally.count(f"unseen in {part}")
        if any(part in _SAID_TWICE for part in parts):
            case.harm("mismatches", f"check sees nothing, but changed are {parts}")


# Does mending keep everything? ------------------------------------------------------------------


def _mend(case: _Case, folder: Path) -> None:
    memory = case.attempt("opening", lambda: opened(folder / NAME, create=False))
    if not isinstance(memory, AgentMemory):
        return
    with _closing(case, memory):
        ids = [row[0] for row in case.base.whole["memories"]]
        before = {it: case.attempt("get", partial(memory.get, it)) for it in ids}
        report = case.attempt("repair", lambda: memory.check(repair=True))
        if not isinstance(report, CheckReport):
            case.tally.count("repair refused")
            return
        for memory_id, was in before.items():
            if isinstance(was, Memory):
                now = case.attempt("get", partial(memory.get, memory_id))
                if not _is_kept(was, now) and not _is_told(memory_id, report, mended=True):
                    case.harm("lost", f"repair took {memory_id}: {now!r:.200}")
    if report.ok and report.problems:
        case.tally.count("mended")
        _judge_mended(case, folder, report)


def _is_kept(was: Memory, now: object) -> bool:
    names = ("content", "category", "tags", "kind", "importance", "timestamp", "metadata")
    return isinstance(now, Memory) and all(getattr(was, it) == getattr(now, it) for it in names)


def _is_told(memory_id: str, report: CheckReport, *, mended: bool = False) -> bool:
    """Return whether a report says that a memory is not what it was."""
    named = [problem for problem in report.problems if memory_id in problem.detail]
    return bool(named) or (not mended and any(it.kind == "damaged_file" for it in report.problems))


def _judge_mended(case: _Case, folder: Path, report: CheckReport) -> None:
    """See whether a file that is said to be sound again is, and all of it there or told of."""
    try:
        state, wrong = state_of(folder / NAME), disagreements(folder / NAME)
    except UnicodeDecodeError:  # a text that was spoilt is kept as it is
        case.tally.count("mended, with bytes that are no text")
        state, wrong = case.base.whole, []
    except apsw.Error as error:
        state, wrong = {"memories": ()}, [repr(error)]
    again = case.attempt("check", lambda: _checked(folder))
    if wrong or not isinstance(again, CheckReport) or again.problems:
        case.harm("mismatches", f"mended, but there is {wrong[:3]} {again!r:.300}")
    there = {row[0]: row for row in state["memories"]}
    states = [state for state in case.known if state["memories"] == tuple(there.values())]
    for row in case.base.whole["memories"]:
        kept = there.get(row[0], ())[:-1] == row[:-1]  # without the version
        if not states and not kept and not _is_told(row[0], report):
            case.harm("lost", f"{row[0]} is not what it was, and nobody says so: {report!r:.300}")


# Can it be used, and restored? ------------------------------------------------------------------

_USES: Final[dict[str, Callable[[AgentMemory, Path], object]]] = {
    "search": lambda memory, _: memory.search("compass orchard"),
    "list_recent": lambda memory, _: memory.list_recent(500),
    "info": lambda memory, _: memory.info(),
    "store": lambda memory, _: memory.store("A new fact about the walnut", id="new-1"),
    "update": lambda memory, _: memory.update("fact-4", content="Changed wholly"),
    "delete": lambda memory, _: memory.delete("fact-6"),
    "export": lambda memory, folder: memory.export(folder / "out.yaml"),
    "backup": lambda memory, folder: memory.backup(folder / "second.db"),
    "scratchpad": lambda memory, _: memory.scratchpad(),
    "history": lambda memory, _: memory.history("fact-1"),
}


def _use(case: _Case, folder: Path) -> None:
    memory = case.attempt("opening", lambda: opened(folder / NAME, create=False))
    if isinstance(memory, AgentMemory):
        with _closing(case, memory):
            for name, use in _USES.items():
                case.attempt(name, partial(use, memory, folder))
    restored = case.attempt(
        "restore", lambda: AgentMemory.restore(folder / NAME, folder / "kept.db")
    )
    if isinstance(restored, ValidationError) and "of agent" in str(restored):
        case.tally.count("says that it is another agent's: not restored over")
    elif isinstance(restored, Exception):
        case.harm("lost", f"a good backup is not restored: {restored!r}")
    else:
        _judge_restored(case, folder)


def _judge_restored(case: _Case, folder: Path) -> None:
    report = case.attempt("check", lambda: _checked(folder))
    if not isinstance(report, CheckReport) or report.problems:
        case.harm("mismatches", f"restored, but there is {report!r:.300}")
        return
    state, wrong = state_of(folder / NAME), disagreements(folder / NAME)
    differing = [part for part in _RESTORED if state[part] != case.base.backup[part]]
    if differing or wrong:
        case.harm("mismatches", f"restored, but not what the backup is: {differing} {wrong[:3]}")


@contextlib.contextmanager
def _closing(case: _Case, memory: AgentMemory) -> Iterator[None]:
    try:
        yield
    finally:
        case.attempt("close", memory.close)
