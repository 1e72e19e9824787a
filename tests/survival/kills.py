"""kill -9: a child that changes a file is killed at a random moment, again and again.

The child tells before and after each step. What was acknowledged must be there, and the step under
way wholly or not at all: the file must equal the campaign's own model of it, before that step or
after. Then another child goes on with the same file, in which the recoveries pile up.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import apsw

from agent_memory import AgentMemoryError

from .cells import are_small, small_cells
from .kill_child import ELSEWHERE, EXPORTED, KEPT, SMALL_CELLS, Child, work
from .kill_model import Model, Step, advanced, observed
from .kill_plan import TARGETS, Planner
from .runner import run_parts
from .tally import Tally, total
from .truth import Verdict, disagreements, is_sorted, problems_of, unfound
from .verbs import NAME, older, opened

_A_PART: Final = 30
"""Kills in one process of the campaign."""
_A_FILE: Final = 15
"""Kills of children that use one file."""
_EXECUTED: Final = 20
"""One child in so many is started as a program; the others are forked."""
_ON_DISK: Final = 4
"""One file in so many is on the disk, where a commit takes longer; the others are in memory."""
_IN_CELLS: Final = 3
"""The vectors of one file in so many are in small cells."""
_PATIENCE_SECONDS: Final = 30.0
_USUAL_SECONDS: Final = 0.004
_OLDER: Final = (None, None, 6, None, 7, 9)
"""The schemas that files begin with, in turn."""


def run(cases: int, seed: int) -> Tally:
    """Kill at least so many children."""
    _warm_up()
    parts = [partial(_part, seed, number) for number in range(-(-cases // _A_PART))]
    return total(run_parts(parts, timeout_seconds=300))


def _warm_up() -> None:
    """Import what verbs import when they are first used: each child would do so anew."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as name:
        folder = Path(name)
        (folder / ELSEWHERE).mkdir()
        planner, child = Planner(random.Random(1), folder, Model()), Child(folder)
        for verb in TARGETS:
            for step in planner.plan(verb, before=0, after=0)[0]:
                child.do(step)
        child.close()


def _part(seed: int, number: int) -> Tally:
    tally, done = Tally(), 0
    while done < _A_PART:
        place = number * 2 + done // _A_FILE
        on_disk, in_cells = place % _ON_DISK == 0, place % _IN_CELLS == 1
        with (
            small_cells(are_small=in_cells),
            tempfile.TemporaryDirectory(dir=None if on_disk else in_memory()) as folder,
        ):
            rng = random.Random(f"{seed}-{number}-{done}")
            file = _File(rng, Path(folder), tally, f"seed {seed}, part {number}, file {done}")
            file.begin(_OLDER[place % len(_OLDER)])
            for case in range(_A_FILE):
                target = TARGETS[(number * _A_PART + done + case) % len(TARGETS)]
                if not file.survives(
                    target, executed=(done + case) % _EXECUTED == seed % _EXECUTED
                ):
                    break
            done += _A_FILE
    return tally


def in_memory() -> str | None:
    """Return a folder in memory, if there is one: a kill takes nothing from the system's cache."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class _Report:
    """What a child told: the steps that ended, and what they gave back, and the one under way."""

    ended: list[list[str]] = field(default_factory=list)
    under_way: bool = False
    failed: str = ""
    rest: bytes = b""

    def take(self, data: bytes) -> None:
        """Read lines."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            what, _, ids = json.loads(line)
            self.under_way = what == "begin"
            if what == "end":
                self.ended.append(ids)
            if what == "error":
                self.failed = ids[0]

    @property
    def begun(self) -> int:
        """How many steps were begun."""
        return len(self.ended) + self.under_way


@dataclass
class _File:
    """One file and what it must hold, through all the children that are killed on it."""

    rng: random.Random
    folder: Path
    tally: Tally
    name: str
    model: Model = field(default_factory=Model)
    kills: int = 0
    made: int = 0
    exported: frozenset[str] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """What a step takes, about."""

    def begin(self, version: int | None) -> None:
        """Make the file as an older version of the library did, or leave it to the first child."""
        (self.folder / ELSEWHERE).mkdir()
        if version is None:
            return
        older(version)(self.folder)
        copy = self.folder / "copy"
        copy.mkdir()
        (copy / NAME).write_bytes((self.folder / NAME).read_bytes())
        opened(copy / NAME, agent_id=None).close()
        self.model = observed(copy / NAME)

    def survives(self, target: str, *, executed: bool) -> bool:
        """Kill one child at its ``target`` step or thereabouts; return whether all was well."""
        planner = Planner(self.rng, self.folder, self.model, self.made)
        plan, place = planner.plan(target, before=self.rng.choice((0, 1, 2, 4, 8)), after=3)
        self.made = planner.made
        case = f"{self.name}, kill {self.kills} at {place} of {_in_short(plan)}"
        self.kills += 1
        report = self._killed(plan, place, executed=executed)
        if report is None:
            self.tally.hangs += 1
            self.tally.note(f"{case}: hung")
            return False
        self.tally.cases += 1
        if report.failed:
            self.tally.errors += 1
            self.tally.note(f"{case}: {report.failed}")
            return False
        return self._is_as_told(plan, report, case)

    # Killing -------------------------------------------------------------------------------------

    def _killed(self, plan: Sequence[Step], place: int, *, executed: bool) -> _Report | None:
        """Run a child, kill it at a random moment of a step, and return what it told."""
        start = self._executed if executed else self._forked
        report = _Report()
        with start(plan) as (pid, told):
            if not self._follow(report, told, plan, place):
                os.kill(pid, signal.SIGKILL)
                return None
            usual = self.seconds.get(plan[place]["verb"], _USUAL_SECONDS)
            time.sleep(usual * self.rng.random() * 1.2)
            os.kill(pid, signal.SIGKILL)
            while data := os.read(told, 1 << 16):  # what it told before it died
                report.take(data)
        self.tally.count("children started anew" if executed else "children forked")
        return report

    def _follow(self, report: _Report, told: int, plan: Sequence[Step], place: int) -> bool:
        """Read what a child tells until it begins a step; return whether it did so in time."""
        began = time.monotonic()
        while report.begun <= place and not report.failed:
            if not select.select([told], [], [], _PATIENCE_SECONDS)[0]:
                return False
            before = len(report.ended)
            data = os.read(told, 1 << 16)
            if not data:
                report.failed = "it ended by itself"
            report.take(data)
            now = time.monotonic()
            if len(report.ended) == before + 1:
                verb = plan[before]["verb"]
                usual = self.seconds.get(verb, now - began)
                self.seconds[verb] = (usual + now - began) / 2
            began = now
        return True

    @contextlib.contextmanager
    def _forked(self, plan: Sequence[Step]) -> Iterator[tuple[int, int]]:
        told, tell = os.pipe()
        lifeline, held = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(held)
            os.close(told)
            work(self.folder, plan, tell=tell, lifeline=lifeline)
        os.close(tell)
        os.close(lifeline)
        try:
            yield pid, told
        finally:
            os.close(told)
            os.close(held)
            os.waitpid(pid, 0)

    @contextlib.contextmanager
    def _executed(self, plan: Sequence[Step]) -> Iterator[tuple[int, int]]:
        words = [sys.executable, "-m", f"{__package__}.kill_child", str(self.folder)]
        words += [SMALL_CELLS] if are_small() else []
        # The tests know this package as another than a command does.
        root = Path(__file__).parents[str(__package__).count(".") + 1]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        assert child.stdin is not None
        assert child.stdout is not None
        with child:
            child.stdin.write(json.dumps(plan).encode() + b"\n")
            child.stdin.flush()
            yield child.pid, child.stdout.fileno()

    # Judging -------------------------------------------------------------------------------------

    def _is_as_told(self, plan: Sequence[Step], report: _Report, case: str) -> bool:
        """Compare the file with the model before and after the step that was under way."""
        for step, told in zip(plan, report.ended, strict=False):
            self._advance(step, told)
        under_way = plan[len(report.ended)] if report.under_way else None
        before = self.model
        after = before if under_way is None else advanced(before, under_way)
        verdict = self._verdict(before, after, under_way, is_damaged=_is_damaged(plan, report))
        verdict.into(self.tally, case)
        if under_way is not None:
            self.tally.count("killed in a step")
            whole = after != before and self.model == after
            self.tally.count("steps that were done but not acknowledged", int(whole))
        return verdict.is_sound

    def _advance(self, step: Step, told: Sequence[str]) -> None:
        if step["verb"] == "export":
            self.exported = frozenset(self.model.facts)
        self.model = advanced(self.model, step, told)

    def _verdict(
        self, before: Model, after: Model, step: Step | None, *, is_damaged: bool
    ) -> Verdict:
        path = self.folder / NAME
        try:
            with opened(path, dimensions=before.dimensions or 32) as memory:
                if is_damaged:
                    memory.check(repair=True)
                if step is not None and step["verb"] == "erase":
                    memory.finish_erasing()
                wrong = [f"check: {detail}" for detail in problems_of(memory)]
            found = observed(path)
            wrong += disagreements(path)
            if are_small() and not wrong:
                wrong += unfound(path)
                if is_sorted(path):
                    self.tally.count("in cells")
        except (AgentMemoryError, apsw.Error) as error:
            problem = f"cannot be opened: {type(error).__name__}: {error}"
            return Verdict(len(before.facts), tuple(before.facts), (), (problem,))
        if step is not None and step["verb"] == "search":
            after = _counted(before, found)
        lost = _lost(found, before, after)
        chosen = after if found == after else before
        half = [] if lost or found == chosen else [_difference(found, before, after)]
        wrong += self._remains(chosen)
        kept, half_copies = self._copies(before, None if step is None else step["verb"])
        half += half_copies
        self.model = replace(chosen, kept=kept)
        return Verdict(len(before.facts), tuple(lost), tuple(half), tuple(wrong))

    def _remains(self, model: Model) -> list[str]:
        """Return the texts that were erased and are there all the same."""
        parts = [self.folder / NAME, self.folder / f"{NAME}-wal"]
        data = b"".join(part.read_bytes() for part in parts if part.exists())
        return [f"erased, but there: {text:.80}" for text in model.erased if text.encode() in data]

    def _copies(self, before: Model, verb: str | None) -> tuple[Model | None, list[str]]:
        """Look at the backup and the export: each is what it was, or what the verb makes it.

        Returns what the backup holds, and which of them is neither.
        """
        half, kept = [], before.kept
        if (backup := self.folder / KEPT).exists():
            found, new = observed(backup), replace(before, kept=None)
            if verb == "backup" and found == new:
                kept = new
            elif found != kept:
                half.append("the backup is neither the old one nor the new one")
        if (export := self.folder / EXPORTED).exists():
            there = frozenset(json.loads(line)["id"] for line in export.read_text().splitlines())
            if there != self.exported and not (verb == "export" and there == set(before.facts)):
                half.append("the export is neither the old one nor the new one")
            self.exported = there
        return kept, half


def _in_short(plan: Sequence[Step]) -> str:
    """Return a plan without its texts."""
    return "; ".join(
        " ".join([step["verb"], *(_ids(step) or [str(step.get("dimensions", ""))])]).strip()
        for step in plan
    )


def _ids(step: Step) -> list[str]:
    named = [item["id"] for item in step.get("items", ())] or step.get("ids") or []
    return [*named, step["id"]] if "id" in step else named


def _is_damaged(plan: Sequence[Step], report: _Report) -> bool:
    """Return whether the plan's damage was done, and its repair not acknowledged."""
    verbs = [step["verb"] for step in plan]
    if "damage" not in verbs[: report.begun]:
        return False
    last = max(place for place, verb in enumerate(verbs[: report.begun]) if verb == "damage")
    return "repair" not in verbs[last : len(report.ended)]


def _counted(before: Model, found: Model) -> Model:
    """Return a model in which some memories were found once more, as a search may have done."""
    more = [
        it
        for it, fact in before.facts.items()
        if it in found.facts and found.facts[it].accesses == fact.accesses + 1
    ]
    return advanced(before, {"verb": "search"}, more)


def _lost(found: Model, *allowed: Model) -> list[str]:
    """Return the memories that must be there and are not, or are as they never were."""
    common = set.intersection(*(set(model.facts) for model in allowed))
    return [
        it
        for it in sorted(common)
        if found.facts.get(it) not in [model.facts[it] for model in allowed]
    ]


def _difference(found: Model, *allowed: Model) -> str:
    differing = min((found.differing(model) for model in allowed), key=len)
    return f"neither before nor after: {', '.join(differing)}"
