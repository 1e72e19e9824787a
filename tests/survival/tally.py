"""What a campaign did and found, and the table of them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

_MOST_NOTES: Final = 20


@dataclass
class Tally:
    """Counts of one campaign, or of a part of it.

    ``cases`` is how many faults, cuts, kills, operations, files or inputs there were;
    ``acknowledged`` how many memories were looked for afterwards, because their storing had been
    acknowledged; ``lost`` how many of them were gone or changed; ``half_written`` how many
    states were neither that before a verb nor that after it; ``mismatches`` how often an index
    disagreed with the rows, or ``check`` found something that it could not mend.
    """

    cases: int = 0
    acknowledged: int = 0
    lost: int = 0
    half_written: int = 0
    mismatches: int = 0
    hangs: int = 0
    crashes: int = 0
    errors: int = 0
    """Exceptions that are none of the library's own."""
    seconds: float = 0.0
    details: dict[str, int] = field(default_factory=dict)
    """Further counts, by name."""
    notes: list[str] = field(default_factory=list)
    """What went wrong, each with what is needed to see it again; the first few."""

    def count(self, name: str, number: int = 1) -> None:
        """Add to a further count."""
        self.details[name] = self.details.get(name, 0) + number

    def note(self, text: str) -> None:
        """Keep what went wrong, unless there is enough of that."""
        if len(self.notes) < _MOST_NOTES:
            self.notes.append(text)

    def add(self, other: Tally) -> None:
        """Add the counts of another part."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.seconds = max(self.seconds, other.seconds)
        for name, number in other.details.items():
            self.count(name, number)
        for text in other.notes:
            self.note(text)

    @property
    def harm(self) -> int:
        """How much went wrong."""
        return sum(getattr(self, name) for name in HARMS)


COUNTS: Final = (
    "cases", "acknowledged", "lost", "half_written", "mismatches", "hangs", "crashes", "errors",
)  # fmt: skip
HARMS: Final = COUNTS[2:]


def total(parts: Iterable[Tally]) -> Tally:
    """Add parts up."""
    whole = Tally()
    for part in parts:
        whole.add(part)
    return whole


def table(campaigns: dict[str, Tally]) -> str:
    """Return the table of all campaigns, as Markdown."""
    heads = ("", "cases", "memories acknowledged", "lost", "half-written", "index mismatches",
             "hangs", "crashes", "untyped errors", "s")  # fmt: skip
    rows = [
        (name, *(f"{getattr(tally, count):,}" for count in COUNTS), f"{tally.seconds:,.0f}")
        for name, tally in campaigns.items()
    ]
    widths = [max(len(row[place]) for row in (heads, *rows)) for place in range(len(heads))]
    lines = [_line(heads, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)])


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"
