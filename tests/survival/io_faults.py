"""Faults of the disk: whatever a verb asks of it fails, once or for good, at each place in turn.

Each verb is first watched on a sound disk. Then it is run again for each thing that it asked, and
each way in which that can fail. It must raise an error of the library's own, or do its work; the
memory must go on working when the disk is mended, without being opened again; and the file must
hold what it held before or what it must hold afterwards.
"""

from __future__ import annotations

import logging
import os
import pickle
import random
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Final, TypeVar

from .cells import some_of
from .fault_calls import replace_calls
from .fault_case import Case, Lasting, Trial
from .fault_scene import Scene, all_verbs, surveyed
from .fault_vfs import KINDS, Fault, break_disk
from .runner import run_parts
from .tally import Tally, total

Thing = TypeVar("Thing")

_NOW: Final = "now"
"""The file that names the case that a process is at."""
_PIECE: Final = 30
"""Cases of one verb that are tried one after the other."""
_PART: Final = 300
"""Cases in a process: few, so that one that ends in the middle costs few."""
_FEWEST_PARTS: Final = 2 * (os.cpu_count() or 1)
"""Processes: each needs a while to import what it uses."""
_HANGS_AFTER_SECONDS: Final = 900


def run(cases: int, seed: int) -> Tally:
    """Inject at least so many faults.

    First each place of each verb once, then faults that last and logs that are written back at
    once; if that is not enough, the same on larger stores. Fewer are a sample, spread over all
    verbs.
    """
    whole = Tally()
    for number in count():
        with tempfile.TemporaryDirectory(dir=_memory_disk()) as folder:
            chance = random.Random(f"{seed}-{number}")
            found = _round(cases - whole.cases, chance, Path(folder), is_first=not number)
            whole.add(found)
        if whole.cases >= cases or not found.cases:
            return whole
    raise AssertionError


def _memory_disk() -> str | None:
    """Return a place where a sync costs nothing: whether it was asked for is what counts here."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _round(wanted: int, chance: random.Random, folder: Path, *, is_first: bool) -> Tally:
    more = 0 if is_first else chance.randrange(20, 200)
    names = [verb.name for verb in some_of(all_verbs(), wanted, chance.random())]
    parts = [partial(_survey, hand, folder, more) for hand in _dealt(names, _FEWEST_PARTS)]
    whole = total(run_parts(parts, timeout_seconds=_HANGS_AFTER_SECONDS))
    scenes = [pickle.loads(path.read_bytes()) for path in sorted(folder.glob("*/scene"))]
    if whole.harm:
        return whole
    chosen = _chosen(scenes, wanted, chance)
    _tell_reach(whole, scenes, chosen)
    pieces = [
        (scene, cases[start : start + _PIECE])
        for scene, cases in zip(scenes, chosen, strict=True)
        for start in range(0, len(cases), _PIECE)
    ]
    hands = _dealt(pieces, max(_FEWEST_PARTS, len(pieces) * _PIECE // _PART))
    tries = [partial(_try, hand, folder) for hand in hands]
    whole.add(total(run_parts(tries, timeout_seconds=_HANGS_AFTER_SECONDS)))
    for left in folder.glob(f"*/{_NOW}"):
        whole.note(f"ended in the middle of {left.read_text()}")
    return whole


def _tell_reach(tally: Tally, scenes: list[Scene], chosen: list[list[Case]]) -> None:
    """Say how much is asked of the disk, and how many of the places are tried."""
    for scene, cases in zip(scenes, chosen, strict=True):
        tally.count("places where the disk is asked", len(scene.asked[False]))
        plain = {case.fault.nth for case in cases if not case.checkpoints}
        tally.count("of these tried", len(plain))


def _chosen(scenes: list[Scene], wanted: int, chance: random.Random) -> list[list[Case]]:
    """Choose cases of each verb: all of the first sort if there are enough, then of the others."""
    wanted += wanted // 50 + 5  # some faults are not reached
    first = [list(cases_of(scene, {Lasting.ONCE}, checkpoints=False)) for scene in scenes]
    others = [
        [
            *cases_of(scene, {Lasting.UNTIL_MENDED, Lasting.TO_THE_END}, checkpoints=False),
            *cases_of(scene, set(Lasting), checkpoints=True),
        ]
        for scene in scenes
    ]
    size = sum(map(len, first))
    most = size if wanted >= size * 5 // 4 else wanted * 2 // 3
    once = _spread(first, most, chance)
    rest = _spread(others, wanted - sum(map(len, once)), chance)
    return [one + other for one, other in zip(once, rest, strict=True)]


def _spread(lists: list[list[Case]], wanted: int, chance: random.Random) -> list[list[Case]]:
    """Take so many at random, as many of each list as there are."""
    shuffled = [chance.sample(cases, len(cases)) for cases in lists]
    longest = max(map(len, shuffled))
    turns = ((place, turn) for turn in range(longest) for place in range(len(lists)))
    taken = islice(((p, t) for p, t in turns if t < len(shuffled[p])), max(0, wanted))
    chosen: list[list[Case]] = [[] for _ in lists]
    for place, turn in taken:
        chosen[place].append(shuffled[place][turn])
    return chosen


def cases_of(scene: Scene, lastings: set[Lasting], *, checkpoints: bool) -> Iterator[Case]:
    for nth, what in enumerate(scene.asked.get(checkpoints, []), 1):
        for lasting in Lasting:
            if (
                lasting not in lastings
                or (lasting is Lasting.UNTIL_MENDED and nth > scene.acting[checkpoints])
                or (lasting is Lasting.UNTIL_MENDED and scene.verb.opens)
            ):
                continue
            for kind in KINDS[what]:
                fault = Fault(nth, kind, lasts=lasting is not Lasting.ONCE)
                yield Case(fault, lasting, checkpoints)


# In processes of their own --------------------------------------------------------------------


def _dealt(things: Sequence[Thing], hands: int) -> list[list[Thing]]:
    return [list(things[hand::hands]) for hand in range(min(hands, len(things)))]


def _survey(names: list[str], folder: Path, more: int) -> Tally:
    break_here()
    for verb in [verb for verb in all_verbs() if verb.name in names]:
        place = folder / verb.name
        place.mkdir()
        scene = surveyed(verb, place, more=more)
        (place / "scene").write_bytes(pickle.dumps(scene))
    return Tally()


def _try(pieces: list[tuple[Scene, list[Case]]], folder: Path) -> Tally:
    break_here()
    tally = Tally()
    with tempfile.TemporaryDirectory(dir=folder) as own:
        now, place = Path(own) / _NOW, Path(own) / "case"
        for scene, case in ((scene, case) for scene, cases in pieces for case in cases):
            now.write_text(f"{scene.name}: {case}")
            Trial(scene, case, place, tally).run()
            shutil.rmtree(place)
    return tally


def break_here() -> None:
    """Let the disk fail in this process, when it is told to, from now on and for good."""
    logging.disable()
    break_disk()
    replace_calls()
