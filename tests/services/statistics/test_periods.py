"""Periods are few, follow each other without a gap, and hold each day once."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from agent_memory.services.statistics.periods import Periods


@pytest.mark.parametrize(
    ("first", "last", "unit", "count"),
    [
        ("2026-01-30", "2026-01-30", "day", 1),
        ("2026-01-01", "2026-01-31", "day", 31),
        ("2026-01-01", "2026-02-01", "week", 5),  # from Monday, 2025-12-29
        ("2024-02-29", "2026-08-01", "month", 31),
        ("1996-12-31", "2026-01-01", "year", 31),
        ("1900-01-01", "2026-01-01", "decade", 13),
        ("0001-01-01", "9999-12-31", "century", 100),
        ("9999-12-01", "9999-12-31", "day", 31),
        ("9990-12-01", "9999-12-31", "year", 10),
        ("0001-01-01", "0001-03-01", "week", 9),
    ],
)
def test_the_smallest_unit_that_is_enough(first: str, last: str, unit: str, count: int) -> None:
    periods = Periods(date.fromisoformat(first), date.fromisoformat(last))
    assert (periods.unit, len(periods.starts)) == (unit, count)
    assert periods.starts == sorted(set(periods.starts))
    assert periods.starts[0] <= first
    assert periods.starts[-1] <= last
    assert periods.counts([(first, 2), (last, 3)])[0] >= 2
    assert sum(periods.counts([(first, 2), (last, 3)])) == 5


def test_each_day_is_in_one_period_and_no_other_text_is() -> None:
    first = date(2025, 11, 20)
    periods = Periods(first, date(2026, 2, 3))
    days = [(first + timedelta(days=number)).isoformat() for number in range(76)]
    counts = periods.counts((day, 1) for day in days)
    assert counts == [4, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2]
    for odd in ("2026-02-04", "2025-11-16", "2026-01-5", "2026-13-01", "", "zebra", "2026-01-1x"):
        assert periods.counts([(odd, 1)]) == [0] * 12
