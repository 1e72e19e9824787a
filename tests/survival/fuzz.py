"""Fuzz: inputs that nobody would give, for whatever takes any.

Each kind of input has its target: what is asked, filters, what is stored, files that are imported,
settings, rows of other programs, agent ids and paths, crafted databases, commands. Whatever comes
in, the answer is a result or one of the library's own errors, within five seconds, and the store
stays as it was or is sound.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from .fuzz_commands import commanded
from .fuzz_contents import stored
from .fuzz_core import confine, workplace
from .fuzz_databases import crafted
from .fuzz_files import imported
from .fuzz_filters import compared, wild
from .fuzz_places import identified
from .fuzz_search import arguments, search_texts
from .fuzz_settings import configured, foreign_rows
from .fuzz_strategies import strategies
from .runner import run_parts
from .tally import Tally, total

Target = Callable[[int, str], Tally]

_TARGETS: Final[tuple[tuple[float, Target], ...]] = (
    (0.10, partial(search_texts, by_meaning=False)),
    (0.06, partial(search_texts, by_meaning=True)),
    (0.10, arguments),
    (0.11, wild),
    (0.10, compared),
    (0.15, stored),
    (0.15, imported),
    (0.06, configured),
    (0.04, foreign_rows),
    (0.05, identified),
    (0.03, crafted),
    (0.03, commanded),
    (0.02, strategies),
)
"""Each target, and its share of the cases: what takes longer has less."""
_MOST_EACH: Final = 2_000
"""Cases of one part, which is a process of its own."""
_TIMEOUT_SECONDS: Final = 900.0


def run(cases: int, seed: int) -> Tally:
    """Try at least so many inputs."""
    with workplace() as folder:  # what a part that crashes leaves behind goes with it
        parts = [
            partial(_part, target, number, f"{seed}/{place}", folder)
            for share, target in _TARGETS
            for place, number in enumerate(_pieces(round(cases * share) + 1))
        ]
        return total(run_parts(parts, timeout_seconds=_TIMEOUT_SECONDS))


def _part(target: Target, cases: int, seed: str, folder: Path) -> Tally:
    confine()
    tempfile.tempdir = str(folder)
    return target(cases, seed)


def _pieces(cases: int) -> list[int]:
    """Return the numbers of cases of the parts that do so many."""
    count = -(-cases // _MOST_EACH)
    return [cases // count + (place < cases % count) for place in range(count)]
