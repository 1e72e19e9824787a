"""The dates that a question mentions: "on 7 May 2023", "last week", "two months ago".

Pure, and English only, as the stop words are. Anything that is not a date is ignored. A misread
date does little harm, since it only adds to the evidence for the memories of that time.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Final, NamedTuple

_FADE_DAYS: Final = 7.0
"""This many days after its span, a memory counts a third of one within: people report late."""
_FADED_DAYS: Final = 21
_EARLY: Final = 2.0
"""A day before the span counts as two after it: few people report things beforehand."""

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
_ORDINALS: Final = ("first", "second", "third", "fourth", "last")
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each, north of the equator; a season lasts three."""
_UNIT_DAYS: Final = {"day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
_MOST_DAYS: Final = 365 * 200
"""How far back a date may be; much further back, `date` ends."""

# In Unicode a long s is an s in another case: "august" with one was an unknown month.
_FLAGS: Final = re.IGNORECASE | re.ASCII
_WORDS: Final = re.compile(r"\w+")
_LEAP_YEARS: Final = 9
"""Years to look through for the last 29 February: early in 1904 it was that of 1896."""
MOST_SPANS: Final = 8
"""Of a text that is full of dates, such as a log, only this many are read."""
_MOST_CHARACTERS: Final = 10_000

_HINT: Final = re.compile(
    r"\d|ago\b|day\b|night\b|morning\b|week|month|year|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov"
    r"|dec|spring|summer|autumn|fall|winter|fortnight",
    _FLAGS,
)
"""A quick test that every text with a date passes: the patterns take 8 ms to compile, and most
texts have no date.
"""


class Span(NamedTuple):
    """The days from one to another, both included; ``phrase`` is how the text refers to them.

    ``is_relative`` is true if the phrase says how long ago it is rather than naming a day: "last
    week". Spans with the same days are equal.
    """

    first: date
    last: date
    phrase: str = ""
    is_relative: bool = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self[:2] == other[:2]

    def __hash__(self) -> int:
        return hash(self[:2])

    def nearness(self, day: date) -> float:
        """Return 1 for a day within the span, falling towards 0 with the distance from it."""
        if day > self.last:
            days = float((day - self.last).days)
        else:
            days = max(0, (self.first - day).days) * _EARLY
        return math.exp(-days / _FADE_DAYS) if days <= _FADED_DAYS else 0.0


def date_spans(text: str, today: date) -> list[Span]:
    """Return the different spans of days that a text mentions, relative to ``today``.

    At most ``MOST_SPANS`` are returned, from the first 10,000 characters.
    """
    text = text[:_MOST_CHARACTERS]
    if not _HINT.search(text):
        return []
    spans: dict[Span, Span] = {}
    for pattern, read in _rules():
        matches = list(pattern.finditer(text))
        for match in matches:
            try:
                span = read(match, today)
            except OverflowError:  # before the first possible day
                continue
            if span is not None:
                is_relative = read in (_ago, _past, _of_unit, _near, _weekends_ago)
                spans.setdefault(span, span._replace(phrase=match[0], is_relative=is_relative))
            if len(spans) == MOST_SPANS:
                return list(spans.values())
        if matches:
            text = pattern.sub(" ; ", text)  # "7 May 2023" is not "May 2023" as well
    return list(spans.values())


def other_forms(span: Span) -> dict[str, list[str]]:
    """Return, for each word of a date, the other ways in which it is written.

    "October", "5th" and "2026" give "oct", "5" and "2026 10 05"; the last stands for each of the
    three. Words are in lower case. A date without a year is taken to be in that of its span, or the
    next.
    """
    words = [word.lower() for word in _WORDS.findall(span.phrase)]
    names = [word for word in words if word in _MONTHS]
    is_iso = bool(words) and all(map(str.isdecimal, words))
    if span.is_relative or not (names or is_iso):
        return {}
    first, is_day = span.first, span.first == span.last
    has_year = any(len(word) == len("2026") and word.isdecimal() for word in words)
    years = [first.year] if has_year else [first.year, first.year + 1]
    whole = [form for year in years for form in _in_digits(first, year, is_day=is_day)]
    if is_iso:
        months = [name for name, number in _MONTHS.items() if number == first.month]
        days = _days(first.day)
        whole += [f"{day} {name}" for name in months for day in days]
        whole += [f"{name} {day}" for name in months for day in days]
    elif not (is_day or has_year):
        whole = []  # "in October" may be in any year
    forms: dict[str, list[str]] = {}
    for word in words:
        own: list[str] = []
        if word in names:
            own = [name for name, number in _MONTHS.items() if number == _MONTHS[word]]
        elif not is_iso and is_day and word in (days := _days(first.day)):
            own = days
        forms[word] = [form for form in (*own, *whole) if form != word]
    return forms


def _days(day: int) -> list[str]:
    """Return how the day of a month is written: 5, 05, 5th."""
    endings = {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if day in (11, 12, 13) else endings.get(day % 10, "th")
    return list(dict.fromkeys([f"{day}", f"{day:02}", f"{day}{ending}"]))


def _in_digits(first: date, year: int, *, is_day: bool) -> list[str]:
    """Return how a day is written in digits alone, or a month."""
    if not is_day:
        return [f"{year} {first.month:02}"]
    day, month = first.day, first.month
    forms = [f"{year} {month:02} {day:02}"]
    for former, latter in ((day, month), (month, day)):
        forms += [f"{former:02} {latter:02} {year}", f"{former} {latter} {year}"]
    return list(dict.fromkeys(forms))


Reader = Callable[[re.Match[str], date], Span | None]


@cache
def _rules() -> Sequence[tuple[re.Pattern[str], Reader]]:
    """Return the patterns and what reads them; what says more comes first."""
    month = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
    plain = "(?P<month>" + "|".join(name for name in _MONTHS if len(name) > 5) + "|april|june|july)"
    day = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
    no_verb = r"(?!\s+(?:be|have|not|also|need|still|well)\b)"  # not as in "option 3 may be better"
    before_month = r"(?:in|last|this(?!\s+may)|since|during|early|late|of|until|by)"
    count = rf"(?P<count>\d{{1,4}}|{'|'.join(_NUMBERS)})"
    unit = "(?P<unit>day|week|fortnight|month|year)"
    any_month = month.replace("<month>", "<other>")
    in_year = r"(?:(?:,|\s+of|\s+in)?\s+(?P<year>(?:19|20)\d\d))?"
    season = rf"(?P<season>{'|'.join(_SEASONS)})"
    rules: tuple[tuple[str, Reader], ...] = (
        (rf"(?:between|from)\s+{any_month}\s+(?:and|to|until)\s+{month}{in_year}", _of_months),
        (
            rf"(?P<ordinal>{'|'.join(_ORDINALS)})\s+week\s+(?:of|in)\s+{month}{in_year}",
            _of_week_of_month,
        ),
        (rf"{season}(?:\s+of|\s+in)?\s+(?P<year>(?:19|20)\d\d)", _of_season),
        (rf"(?P<which>this|last|past|previous)\s+{season}", _of_season),
        (rf"{count}\s+weekends?\s+ago", _weekends_ago),
        (r"(?:over|at|on|during)\s+the\s+weekend", _weekends_ago),
        (r"(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)(?:T[\d:.]+Z?)?", _of_day),
        (rf"{day}\s+(?:of\s+)?{month}{no_verb}(?:,?\s+(?P<year>\d{{4}}))?", _of_day),
        # In Spanish "mar 3 de mayo" is a Tuesday in May.
        (rf"{month}\s+{day}(?![\d:]|\s+de\s)(?:,?\s+(?P<year>\d{{4}}))?", _of_day),
        (rf"{month},?\s+(?P<year>\d{{4}})", _of_month),
        (
            rf"{before_month}\s+{month}{no_verb}",
            _of_month,
        ),
        (rf"{count}(?:\s+of)?\s+{unit}s?\s+ago", _ago),
        (rf"(?:last|past|previous)\s+{count}\s+{unit}s?", _past),
        (
            r"(?P<which>this|last|past|previous)\s+(?P<unit>weekend|week|fortnight|month|year)",
            _of_unit,
        ),
        (rf"(?:on|last|this|past)\s+(?P<weekday>{'|'.join(_WEEKDAYS)})", _of_weekday),
        (r"(?P<word>day before yesterday|yesterday|last night|today|tonight|this morning)", _near),
        (r"(?:in|of|during|since)\s+(?P<year>(?:19|20)\d\d)", _of_year),
        # On their own, "may" and "march" are verbs.
        (plain, _of_month),
    )
    return [(re.compile(rf"\b(?:{pattern})\b", _FLAGS), read) for pattern, read in rules]


def _last_day(year: int, month: int) -> date:
    """Return the last day of a month. The module ``calendar`` takes 1 ms to import."""
    following = date(year + month // 12, month % 12 + 1, 1) if (year, month) < (9999, 12) else None
    return date.max if following is None else following - timedelta(days=1)


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
    return Span(date(number, month, 1), _last_day(number, month))


def _of_months(match: re.Match[str], today: date) -> Span | None:
    """Read "between May and June": without a year, the last that began."""
    first, last = _month_number(match["other"]), _month_number(match["month"])
    year = int(match["year"]) if match["year"] else today.year - (first > today.month)
    if match["year"] and first > last:  # "between November and February 2023"
        year -= 1
    return _months(year, first, (last - first) % 12 + 1)


def _of_week_of_month(match: re.Match[str], today: date) -> Span | None:
    """Read "the first week of May" as its first seven days, "the last week" as its last."""
    month = _of_month(match, today)
    if month is None:
        return None
    week = _ORDINALS.index(match["ordinal"].lower())
    if week == len(_ORDINALS) - 1:
        return Span(month.last - timedelta(days=6), month.last)
    first = month.first + timedelta(days=7 * week)
    return Span(first, first + timedelta(days=6))


def _of_season(match: re.Match[str], today: date) -> Span | None:
    """Read "summer 2022" and "last summer"; a winter is that which begins in the year."""
    month = _SEASONS[match["season"].lower()]
    groups = match.groupdict()
    if groups.get("year"):
        span = _months(int(match["year"]), month, 3)
        is_ahead = span is not None and span.first > today
        return _months(int(match["year"]) - 1, month, 3) if is_ahead and month == 12 else span
    span = _months(today.year, month, 3)
    is_this = match["which"].lower() == "this"
    if span is None or span.first > today or (span.last >= today and not is_this):
        return _months(today.year - 1, month, 3)
    return span


def _months(year: int, month: int, count: int) -> Span | None:
    """Return the span of some months from one of a year on."""
    last_year, last = year + (month + count - 2) // 12, (month + count - 2) % 12 + 1
    if year < 1 or last_year > 9999:
        return None
    return Span(date(year, month, 1), _last_day(last_year, last))


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
        return _weekend(today, 0 if today.weekday() >= 5 and is_this else 1)
    days = _UNIT_DAYS[unit]
    if is_this:
        return Span(monday - timedelta(days=days - 7), today)
    return Span(monday - timedelta(days=days), monday - timedelta(days=1))


def _weekends_ago(match: re.Match[str], today: date) -> Span | None:
    """Read "two weekends ago"; "over the weekend" is the last that began."""
    count = match.groupdict().get("count")
    ago = _number(count) if count else int(today.weekday() < 5)
    return _weekend(today, ago) if ago * 7 <= _MOST_DAYS else None


def _weekend(today: date, ago: int) -> Span:
    """Return the Saturday and Sunday of this week, or of one so many weeks ago."""
    saturday = today - timedelta(days=today.weekday() - 5 + 7 * ago)
    return Span(saturday, saturday + timedelta(days=1))


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
