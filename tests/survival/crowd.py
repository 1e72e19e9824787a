"""Eight processes at work on one file: nothing lost, nothing half there, nobody told to come back.

In rounds, each on a fresh file. Each process knows what it was told, and the audit compares the
file with all of it; while they work each looks at what it reads.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from .crowd_round import KINDS, LONGEST, Round
from .kills import in_memory
from .runner import run_parts
from .tally import Tally, total

_A_ROUND: Final = 16_000
"""Operations on one file: so many that the file stays of a size that is soon read."""


def run(cases: int, seed: int) -> Tally:
    """Run rounds of all kinds, as many as it takes for so many operations."""
    _warm_up()
    times = max(1, -(-cases // (_A_ROUND * len(KINDS))))
    operations = -(-cases // (times * len(KINDS)))
    parts = [
        partial(_round, kind, operations, f"{seed}-{number}-{kind}", on_disk=number % 4 == 3)
        for number in range(times)
        for kind in KINDS
    ]
    # One at a time: its eight processes have the machine for themselves.
    found = run_parts(parts, timeout_seconds=120 + operations * 0.04, workers=1)
    tally = total(found)
    tally.details[LONGEST] = max((it.details.get(LONGEST, 0) for it in found), default=0)
    return tally


def _warm_up() -> None:
    """Import what operations import when they are first used: each process would do so anew."""
    with tempfile.TemporaryDirectory(dir=in_memory()) as folder:
        Round("migration", Path(folder), 0, "").warm_up()


def _round(kind: str, operations: int, seed: str, *, on_disk: bool) -> Tally:
    with tempfile.TemporaryDirectory(dir=None if on_disk else in_memory()) as folder:
        return Round(kind, Path(folder), operations, seed).run()
