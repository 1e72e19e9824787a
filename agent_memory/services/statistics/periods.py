"""The periods of figures over time: few enough to be seen at a glance."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import MAXYEAR, date, timedelta
from itertools import islice
from typing import Final

from agent_memory.models.statistics import Breakdown, PeriodUnit, Series

_MOST: Final = 31
"""The maximum number of periods, unless even centuries are more: the days of a month."""
_YEARS: Final[dict[PeriodUnit, int]] = {"year": 1, "decade": 10, "century": 100}
_UNITS: Final[tuple[PeriodUnit, ...]] = ("day", "week", "month", "year", "decade", "century")


class Periods:
    """The periods from one day to another, both included, in the smallest unit that is enough."""

    def __init__(self, first: date, last: date) -> None:
        for unit in _UNITS:
            days = list(islice(_days(unit, first, last), None if unit == "century" else _MOST + 1))
            if len(days) <= _MOST:
                break
        self.unit = unit
        self.starts = [day.isoformat() for day in days]
        self._last = last.isoformat()

    def place_of(self, day: str) -> int | None:
        """Return the index of the period of a day; ``None`` if it is outside, or not a day.

        ISO 8601 sorts as the days do.
        """
        place = bisect_right(self.starts, day) - 1
        return place if place >= 0 and is_day(day) and day <= self._last else None

    def counts(self, days: Iterable[tuple[str, int]]) -> list[int]:
        """Add up numbers by period."""
        counts = [0] * len(self.starts)
        for day, number in days:
            place = self.place_of(day)
            if place is not None:
                counts[place] += number
        return counts

    def breakdown(self, rows: Iterable[tuple[str | None, str, int]], *, limit: int) -> Breakdown:
        """Break down memories by value, from the number of each value on each day."""
        totals: Counter[str | None] = Counter()
        days: dict[str | None, list[tuple[str, int]]] = {}
        for name, day, count in rows:
            totals[name] += count
            days.setdefault(name, []).append((day, count))
        ordered = sorted(totals, key=lambda name: (-totals[name], name is None, name or ""))
        return Breakdown(
            value_count=len(ordered),
            series=[
                Series(name=name, count=totals[name], counts=self.counts(days[name]))
                for name in ordered[:limit]
            ],
            others=self.counts(pair for name in ordered[limit:] for pair in days[name]),
        )


def is_day(text: str) -> bool:
    """Return whether a text is a day in the form in which times begin."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _days(unit: PeriodUnit, first: date, last: date) -> Iterator[date]:
    """Yield the first day of each period, starting with the one that contains ``first``."""
    day = _beginning(unit, first)
    while day <= last:
        yield day
        following = _following(unit, day)
        if following is None:
            return
        day = following


def _beginning(unit: PeriodUnit, day: date) -> date:
    if unit == "day":
        return day
    if unit == "week":
        return date.fromordinal(max(1, day.toordinal() - day.weekday()))
    if unit == "month":
        return day.replace(day=1)
    years = _YEARS[unit]
    return date(max(1, day.year - day.year % years), 1, 1)


def _following(unit: PeriodUnit, day: date) -> date | None:
    """Return the first day of the next period, ``None`` beyond the last year."""
    try:
        if unit == "day":
            return day + timedelta(days=1)
        if unit == "week":
            return day + timedelta(days=7)
        if unit == "month":
            return (day + timedelta(days=31)).replace(day=1)
    except OverflowError:
        return None
    year = day.year - day.year % _YEARS[unit] + _YEARS[unit]
    return None if year > MAXYEAR else date(year, 1, 1)
