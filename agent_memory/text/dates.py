"""The dates that a question speaks of: "on 7 May 2023", "last week", "two months ago".

Pure, and English only, as the stop words are. What says no date is passed over. A date that is
read wrongly costs little, since it only adds to the evidence for the memories of that time.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cache
from typing import Final

_FADE_DAYS: Final = 7.0
"""So many days after its span, a memory counts a third of one within: people tell of it later."""
_FADED_DAYS: Final = 21
_EARLY: Final = 2.0
"""A day before the span counts as two after it: few tell of things beforehand."""

_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sept sep", "october oct", "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_WEEKDAYS: Final = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_NUMBERS: Final = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
}  # fmt: skip
_UNIT_DAYS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_MOST_DAYS: Final = 365 * 200
"""How far back a date is looked for: before that, `date` ends."""

# In Unicode a long s is an s in another case: "august" with one was a month that nobody knew.
_FLAGS: Final = re.IGNORECASE | re.ASCII
_LEAP_YEARS: Final = 9
"""How far back the last 29 February may be: that of 1904, in 1903."""
MOST_SPANS: Final = 8
"""Of a text that is full of dates, such as a log, only so many are read."""
_MOST_CHARACTERS: Final = 10_000

_HINT: Final = re.compile(
    r"\d|ago\b|day\b|night\b|morning\b|week|month|year|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov"
    r"|dec",
    _FLAGS,
)
"""What every text has that says a date: the patterns take 8 ms to compile, and most have none."""


@dataclass(frozen=True, slots=True)
class Span:
    """From one day to another, both included; ``said`` is how a text speaks of it."""

    first: date
    last: date
    said: str = field(default="", compare=False)

    def nearness(self, day: date) -> float:
        """Return 1 for a day of the span, less the farther from it, towards 0."""
        if day > self.last:
            days = float((day - self.last).days)
        else:
            days = max(0, (self.first - day).days) * _EARLY
        return math.exp(-days / _FADE_DAYS) if days <= _FADED_DAYS else 0.0


def spans(text: str, today: date) -> list[Span]:
    """Return the different spans of days that a text speaks of, as seen from ``today``.

    They are ``MOST_SPANS`` at most, and from the first 10,000 characters.
    """
    text = text[:_MOST_CHARACTERS]
    if not _HINT.search(text):
        return []
    found: dict[Span, Span] = {}
    for pattern, read in _rules():
        for match in pattern.finditer(text):
            try:
                span = read(match, today)
            except OverflowError:  # before the first day that there is
                continue
            if span is not None:
                found.setdefault(span, replace(span, said=match[0]))
            if len(found) == MOST_SPANS:
                return list(found.values())
        text = pattern.sub(" ; ", text)  # "7 May 2023" is not "May 2023" as well
    return list(found.values())


Reader = Callable[[re.Match[str], date], Span | None]


@cache
def _rules() -> Sequence[tuple[re.Pattern[str], Reader]]:
    """Return the patterns and what reads them; what says more comes first."""
    month = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
    plain = "(?P<month>" + "|".join(name for name in _MONTHS if len(name) > 5) + "|april|june|july)"
    day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    no_verb = r"(?!\s+(?:be|have|not|also|need|still|well)\b)"  # as in "option 3 may be better"
    before_month = r"(?:in|last|this(?!\s+may)|since|during|early|late|of|until|by)"
    count = rf"(?P<count>\d{{1,4}}|{'|'.join(_NUMBERS)})"
    unit = "(?P<unit>day|week|month|year)"
    rules: tuple[tuple[str, Reader], ...] = (
        (r"(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?:T[\d:.]+Z?)?", _of_day),
        (rf"{day}\s+(?:of\s+)?{month}{no_verb}(?:,?\s+(?P<year>\d{{4}}))?", _of_day),
        (rf"{month}\s+{day}(?![\d:])(?:,?\s+(?P<year>\d{{4}}))?", _of_day),
        (rf"{month},?\s+(?P<year>\d{{4}})", _of_month),
        (
            rf"{before_month}\s+{month}{no_verb}",
            _of_month,
        ),
        (rf"{count}(?:\s+of)?\s+{unit}s?\s+ago", _ago),
        (rf"(?:last|past|previous)\s+{count}\s+{unit}s?", _past),
        (r"(?P<which>this|last|past|previous)\s+(?P<unit>weekend|week|month|year)", _of_unit),
        (rf"(?:on|last|this|past)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})", _of_weekday),
        (r"(?P<word>day before yesterday|yesterday|last night|today|tonight|this morning)", _near),
        (r"(?:in|of|during|since)\s+(?P<year>(?:19|20)\d\d)", _of_year),
        # Without more than its name, "may" and "march" are verbs.
        (plain, _of_month),
    )
    return [(re.compile(rf"\b(?:{pattern})\b", _FLAGS), read) for pattern, read in rules]


def _of_day(match: re.Match[str], today: date) -> Span | None:
    """Read a day of a month; without a year, the last that was."""
    month = _month_number(match["month"])
    year = match["year"]
    years = [int(year)] if year else range(today.year, today.year - _LEAP_YEARS, -1)
    for year_number in years:
        try:
            day = date(year_number, month, int(match["day"]))
        except ValueError:
            continue
        if year or day <= today:
            return Span(day, day)
    return None


def _of_month(match: re.Match[str], today: date) -> Span | None:
    month = _month_number(match["month"])
    year = match.groupdict().get("year")
    number = int(year) if year else today.year - (month > today.month)
    if not 1 <= number <= 9999:
        return None
    return Span(date(number, month, 1), date(number, month, monthrange(number, month)[1]))


def _of_year(match: re.Match[str], today: date) -> Span | None:
    del today
    year = int(match["year"])
    return Span(date(year, 1, 1), date(year, 12, 31))


def _ago(match: re.Match[str], today: date) -> Span | None:
    """Read "two weeks ago": the day, give or take half of the unit."""
    unit = _UNIT_DAYS[match["unit"].lower()]
    slack = unit // 2
    return _back(today, _number(match["count"]) * unit + slack, slack * 2)


def _past(match: re.Match[str], today: date) -> Span | None:
    days = _number(match["count"]) * _UNIT_DAYS[match["unit"].lower()]
    return _back(today, days, days)


def _of_unit(match: re.Match[str], today: date) -> Span | None:
    """Read "this week" as far as it has gone, "last month" as the one before this."""
    unit, is_this = match["unit"].lower(), match["which"].lower() == "this"
    if unit == "year":
        year = today.year - (not is_this)
        return Span(date(year, 1, 1), date(year, 12, 31)) if year else None
    if unit == "month":
        first = today.replace(day=1)
        last = today if is_this else first - timedelta(days=1)
        return Span(last.replace(day=1), last)
    monday = today - timedelta(days=today.weekday())
    if unit == "weekend":
        saturday = monday + timedelta(days=5 if today.weekday() >= 5 and is_this else -2)
        return Span(saturday, saturday + timedelta(days=1))
    if is_this:
        return Span(monday, today)
    return Span(monday - timedelta(days=7), monday - timedelta(days=1))


def _of_weekday(match: re.Match[str], today: date) -> Span | None:
    """Read "on Monday": the last one before today."""
    days = (today.weekday() - _WEEKDAYS.index(match["weekday"].lower()) - 1) % 7 + 1
    return _back(today, days, 0)


def _near(match: re.Match[str], today: date) -> Span | None:
    word = match["word"].lower()
    days = {"day before yesterday": 2, "yesterday": 1, "last night": 1}.get(word, 0)
    return _back(today, days, 0)


def _back(today: date, days: int, length: int) -> Span | None:
    """Return the span that begins so many days ago and lasts ``length`` days more, if not yet."""
    if days > _MOST_DAYS:
        return None
    first = today - timedelta(days=days)
    return Span(first, min(today, first + timedelta(days=length)))


def _month_number(name: str) -> int:
    return _MONTHS[name.lower()] if name.lower() in _MONTHS else int(name)


def _number(word: str) -> int:
    return _NUMBERS[word.lower()] if word.lower() in _NUMBERS else int(word)
