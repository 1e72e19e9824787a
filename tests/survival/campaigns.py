"""The campaigns: what each is called, how much of it is run, and where it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from .tally import Tally


@dataclass(frozen=True)
class Campaign:
    """One sort of harm.

    Its module has ``run(cases, seed)``, which does at least so many cases and returns a ``Tally``.
    A ``control`` is a campaign against something that is known to fail: it must do harm, or the
    campaign that it controls proves nothing.
    """

    name: str
    module: str
    short: int
    full: int
    control: bool = False

    def run(self, cases: int, seed: int) -> Tally:
        """Run it."""
        function: Callable[[int, int], Tally] = getattr(
            import_module(f".{self.module}", __package__), "control" if self.control else "run"
        )
        started = time.monotonic()
        tally = function(cases, seed)
        tally.seconds = time.monotonic() - started
        return tally

    def passed(self, tally: Tally) -> bool:
        """Return whether it ended as it must."""
        return bool(tally.cases) and bool(tally.harm) == self.control


CAMPAIGNS: Final = (
    Campaign("I/O faults", "io_faults", 100, 20_000),
    Campaign("power cuts", "power_cuts", 120, 20_000),
    Campaign("power cuts, synchronous=OFF (control)", "power_cuts", 60, 1_000, control=True),
    Campaign("kill -9", "kills", 20, 1_000),
    Campaign("operations by 8 processes", "crowd", 1_000, 1_000_000),
    Campaign("damaged files", "damage", 40, 5_000),
    Campaign("fuzz", "fuzz", 500, 100_000),
)
