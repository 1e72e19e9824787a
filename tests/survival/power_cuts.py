"""Power cuts: what was acknowledged is there, and nothing is there by half, at whatever moment.

What every verb asks of the disk is recorded, files and names alike. For a moment in that record the
disk is made as a power cut may leave it: what was synced is there; of the rest each write may be
there, be missing, or be torn at a sector, and each name may be the old or the new one. The library
opens that disk. The control does the same without any sync, which must do harm.

The store must be in one of the states that it passed through, none older than what was
acknowledged. A backup or an export that was acknowledged must be there and whole; another one is
whole, or has not got its name yet.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agent_memory import AgentMemory, AgentMemoryError
from agent_memory.storage.sqlite.connection.journal_mode import JOURNAL_VARIABLE

from . import cut_scenarios
from .cells import small_cells, some_of
from .cut_disks import ROOT, Disk, Tree
from .cut_histories import (
    SHARED_MEMORY,
    History,
    Synchronous,
    folder_in,
    kept_files,
    state_in,
)
from .cut_histories import run as run_scenario
from .cut_scenarios import Scenario
from .runner import run_parts
from .tally import Tally, total
from .truth import Verdict, audit, disagreements, problems_of, state_of, unfound
from .verbs import AGENT, NOW, opened

_CASES_A_ROW: Final = 150
"""One row of verbs for so many cases, and four at least."""
_MOST_STATES: Final = 2
"""A verb takes the store from one state to another: there is none between."""
_SEVERAL: Final = ("new agent",)
"""These are two verbs: an opening that makes the file, and a storing."""
_RUN_AGAIN: Final = 0.3
"""How many of the cases in which a verb can be run again are."""
_SECONDS_A_CASE: Final = 2


def run(cases: int, seed: int) -> Tally:
    """Cut the power at ``cases`` moments at least."""
    return cut(_scenarios(cases, seed), cases, seed, "FULL")


def control(cases: int, seed: int) -> Tally:
    """Do the same where nothing waits for the disk: not SQLite, and not what Python writes."""
    chosen = ("store_many", "backup", "export", "export over a folder", "migrate", "restore")
    scenarios = [it for it in cut_scenarios.alone() if it.name in chosen]
    return cut([*scenarios, *cut_scenarios.in_rows(4, seed)], cases, seed, "OFF")


def cut(scenarios: Sequence[Scenario], cases: int, seed: int, synchronous: Synchronous) -> Tally:
    """Cut the power under some scenarios, as often under each."""
    count = -(-cases // len(scenarios))
    _import_all()
    parts = [partial(_part, scenario, count, seed, synchronous) for scenario in scenarios]
    return total(run_parts(parts, timeout_seconds=120 + count * _SECONDS_A_CASE))


def _import_all() -> None:
    """Import what the library imports when it is first used: once, not in each process."""
    by_name = {scenario.name: scenario for scenario in cut_scenarios.alone()}
    for name in ("search", "import", "erase with backups", "restore", "rebuild", "migrate"):
        run_scenario(by_name[name])


def _scenarios(cases: int, seed: int) -> list[Scenario]:
    rows = max(4, cases // _CASES_A_ROW // 4)
    alone = some_of(cut_scenarios.alone(), cases, seed)
    return [*alone, *cut_scenarios.in_rows(rows, seed)]


def _part(scenario: Scenario, count: int, seed: int, synchronous: Synchronous) -> Tally:
    """Record a scenario, and cut the power in it so many times. It has a process of its own."""
    os.environ[JOURNAL_VARIABLE] = scenario.journal
    with small_cells(are_small=scenario.in_cells):
        return _cut_in(scenario, count, seed, synchronous)


def _cut_in(scenario: Scenario, count: int, seed: int, synchronous: Synchronous) -> Tally:
    tally = Tally()
    history = run_scenario(scenario, synchronous)
    tally.count("verbs recorded", len(history.borders) // 2)
    tally.count("writes, syncs and renamings recorded", len(history.events))
    _note_states_between(history, tally)
    disk, taken = Disk(history.base), 0
    dice = random.Random(f"{seed}/{scenario.name}")
    positions = sorted(_position(history, dice) for _ in range(count))
    with TemporaryDirectory(dir=SHARED_MEMORY) as base:
        for number, position in enumerate(positions):
            for event in history.events[taken:position]:
                disk.take(event)
            taken = position
            own = random.Random(f"{seed}/{scenario.name}/{number}")
            name = f"{scenario.name}, seed {seed}, cut {number} after event {position}"
            Case(
                history, position, disk.after_cut(own), own, Path(base) / "cut", name, tally
            ).try_()
    return tally


def _position(history: History, dice: random.Random) -> int:
    """Choose a moment: any, near a sync or renaming, or when most was promised, after a verb."""
    sort = dice.random()
    if sort < 0.3:
        return dice.randint(1, len(history.events))
    if sort < 0.5:
        position = dice.choice(history.turns) + dice.choice([-1, 0, 0, 1])
    elif sort < 0.75:
        position = dice.choice(history.contests or history.turns)
    else:
        after = history.position_after(dice.randrange(len(history.borders)))
        position = after + dice.choice([0, 0, 1, 2, 5])
    return min(max(position, 1), len(history.events))


def _note_states_between(history: History, tally: Tally) -> None:
    """Count a verb that leaves the store in a state between, were it killed there."""
    steps = [step for session in history.scenario.sessions for step in session]
    for number, step in enumerate(steps):
        passed = history.passed_through(number)
        if passed > _MOST_STATES and step.name not in _SEVERAL:
            tally.half_written += 1
            tally.note(f"{history.scenario.name}: {step.name} passes through {passed} states")


@dataclass
class Case:
    """A disk after a cut, and what is wrong with it. Its files are made in ``folder``."""

    history: History
    position: int
    tree: Tree
    dice: random.Random
    folder: Path
    name: str
    tally: Tally
    wrong: list[str] = field(default_factory=list)

    def try_(self) -> None:
        """Make the files, open them, and count what is wrong."""
        tally, scenario = self.tally, self.history.scenario
        tally.cases += 1
        if scenario.in_cells:
            tally.count("in cells")
        self._look_for_erased()
        self._look_at_folder()
        self._look_at_files()
        try:
            self.tree.write_to(self.folder)
            self._leave_shared_memory()
            self._open()
            if scenario.again != "never" and self.dice.random() < _RUN_AGAIN:
                self._run_again()
        except (AgentMemoryError, OSError) as error:
            tally.errors += 1
            tally.note(f"{self.name}: {type(error).__name__}: {error}")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def is_done(self) -> bool:
        """Return whether the last verb was acknowledged."""
        return (
            self.history.acknowledged(self.position).position == self.history.borders[-1].position
        )

    # The store --------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._is_as_unreadable():
            self.tally.count("stores not there yet, or as damaged as before")
            return
        scenario = self.history.scenario
        path = self.folder / scenario.place
        verdict = self._audited(path)
        verdict.into(self.tally, self.name)
        if scenario.in_cells and verdict.is_sound and (self.is_done or not scenario.was_damaged):
            self._look_for_unfound(path)

    def _look_for_unfound(self, path: Path) -> None:
        if wrong := unfound(path):
            self.tally.mismatches += len(wrong)
            self.tally.note(f"{self.name}: {wrong[:3]}")

    def _audited(self, path: Path) -> Verdict:
        allowed = self.history.allowed(self.position)
        verdict = audit(path, allowed, agent_id=AGENT, embedder=None, clock=lambda: NOW)
        if self.history.scenario.was_damaged and not self.is_done:
            # What is to be mended was wrong before.
            return Verdict(verdict.acknowledged, verdict.lost, verdict.half_written)
        return verdict

    def _is_as_unreadable(self) -> bool:
        """Return whether there is no store yet, or an unreadable one, as there was before."""
        scenario, base = self.history.scenario, self.history.base
        if self.history.acknowledged(self.position).state >= 0:
            return False
        before, now = base.find(scenario.place), self.tree.find(scenario.place)
        if before is None or now is None:
            return before is now
        return base.contents[before] == self.tree.contents[now]

    def _leave_shared_memory(self) -> None:
        """Leave what was in the memory that processes share: it says nothing any more."""
        path = self.folder / self.history.scenario.place
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and self.dice.random() < 0.25:
            log.with_name(f"{path.name}-shm").write_bytes(self.dice.randbytes(32_768))

    def _look_for_erased(self) -> None:
        scenario = self.history.scenario
        if not self.is_done or not scenario.erased:
            return
        own = (scenario.place, scenario.place.with_name(f"{scenario.place.name}-wal"))
        others = ("kept.db", "other.yaml")  # made by hand, where no backup of the library's is
        for place, content in self.tree.files().items():
            if place in own or (scenario.erased_everywhere and place.name not in others):
                for text in scenario.erased:
                    if text in content:
                        self.tally.half_written += 1
                        self.tally.note(f"{self.name}: {place} still says {text!r}")

    # Backups and exports ----------------------------------------------------------------------

    def _look_at_files(self) -> None:
        """Compare the files that the library gave their final names with what they must be."""
        history, scenario = self.history, self.history.scenario
        before, coming = history.acknowledged(self.position), history.under_way(self.position)
        there = kept_files(self.tree, scenario.place)
        after = before if coming is None else coming
        for place in sorted({*there, *before.files, *after.files}):
            if scenario.folder is not None and place.parts[0] == scenario.folder:
                continue
            if self.tree.find(place) == (self.tree.find(scenario.place) or ROOT):
                continue  # about to be set aside, with its log, and still in its place
            self.tally.count("backups and exports looked at")
            whole = [before.files.get(place), after.files.get(place)]
            found = there.get(place)
            if found in whole:
                continue
            if found is None:
                self.tally.lost += 1
                self.tally.note(f"{self.name}: {place} is gone")
            elif not self._was_whole(place, found) and not self._is_store_of(place, whole):
                self.tally.half_written += 1
                self.tally.note(f"{self.name}: {place} is not whole")

    def _was_whole(self, place: Path, found: bytes) -> bool:
        """Return whether a file that should be deleted is there as it was."""
        border = self.history.acknowledged(self.position)
        if place in border.files:
            return False
        return any(it.files.get(place) == found for it in self.history.borders)

    def _is_store_of(self, place: Path, whole: Sequence[bytes | None]) -> bool:
        """Return whether a file is a store in one of the states that it may be in."""
        stores = self.history.stores
        allowed = [stores[it] for it in whole if it is not None and it in stores]
        state = state_in(self.tree, place, self.folder)
        return state is not None and state in allowed

    def _look_at_folder(self) -> None:
        """Compare what the library reads of an exported folder with what it must hold."""
        history, name = self.history, self.history.scenario.folder
        if name is None:
            return
        place, borders = Path(name), history.borders
        number = borders.index(history.acknowledged(self.position))
        allowed = [history.folders[number]]
        coming = history.under_way(self.position)
        if coming is not None:
            allowed.append(history.folders[borders.index(coming)])
        self.tally.count("exported folders read")
        found = folder_in(self.tree, place, self.folder)
        if found not in allowed:
            self.tally.half_written += 1
            self.tally.note(f"{self.name}: {name} holds neither what it held nor what it should")

    # Once more --------------------------------------------------------------------------------

    def _run_again(self) -> None:
        """Run the verb again: it must succeed, and end where it would have ended."""
        scenario, goal = self.history.scenario, self.history.states[-1][1]
        if self.is_done:
            return
        path = self.folder / scenario.place
        is_there = not self._is_as_unreadable() and path.exists() and state_of(path) == goal
        new = self.history.borders[-1].files.keys() - self.history.borders[0].files.keys()
        if scenario.again == "unless done" and (
            any((self.folder / place).exists() for place in new)
            or (is_there and len(self.history.states) > 1)
        ):
            return
        if scenario.again == "finish" and is_there:
            with opened(path) as memory:
                memory.finish_erasing()
        else:
            self._act(scenario)
        self.tally.count("verbs run again after the cut")
        problems = [*disagreements(path), *(["another state"] if state_of(path) != goal else [])]
        with AgentMemory.open(path, agent_id=AGENT, embedder=None, clock=lambda: NOW) as memory:
            problems += problems_of(memory)
        problems += unfound(path) if scenario.in_cells else []
        if problems:
            self.tally.mismatches += 1
            self.tally.note(f"{self.name}, run again: {problems[:3]}")

    def _act(self, scenario: Scenario) -> None:
        ((step,),) = scenario.sessions
        if scenario.opens:
            step.act(None, self.folder)
            return
        options = dict(scenario.options)
        with opened(self.folder / scenario.place, dimensions=scenario.dimensions, **options) as it:
            step.act(it, self.folder)
