"""Times: always aware and in UTC, written as fixed-width text that sorts chronologically.

A naive time on input means UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_OLDEST = datetime(1, 1, 2, tzinfo=UTC)
NEWEST_TIME = datetime(9999, 12, 30, tzinfo=UTC)
"""The latest time that is ever computed: a span can be added to any time before it."""

_TIME: Final = re.compile(r"[\dW-]{7,10}(?:[Tt ][\d:.,]+ ?(?:[Zz]|[+-][\d:.]+)?)?")
"""A date, optionally with a time after a T or a space. Python accepts any separator, so that it
takes 20 digits for a time."""
_AGO: Final = re.compile(r"(\d{1,6})\s*(?:([hdw])|(hour|day|week)s?)(?:\s+ago)?")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}
_DAYS: Final = {"today": 0, "yesterday": 1}


def now_utc() -> datetime:
    """Return the current time, aware and in UTC. The default clock of a store."""
    return datetime.now(UTC)


def to_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC; a naive time is assumed to be UTC already.

    Raises ``ValueError`` for a time that in UTC lies outside the years 1 to 9999
    (``0001-01-01T00:00+05:30`` can be parsed, but not converted).
    """
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"the time {moment.isoformat()} cannot be converted to UTC") from error


def format_time(moment: datetime) -> str:
    """Format a time as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``, 27 characters."""
    # strftime("%Y") does not pad years below 1000 on Linux.
    return f"{to_utc(moment).isoformat('T', 'microseconds')[:-6]}Z"  # instead of +00:00


def format_briefly(moment: datetime) -> str:
    """Format a time as ``format_time`` does, but without microseconds if they are zero."""
    return format_time(moment).replace(".000000Z", "Z")


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time or date; one without an offset is UTC.

    Digits beyond microseconds are dropped. Raises a ``ValueError`` that quotes the text.
    """
    stripped = text.strip()
    try:
        return to_utc(datetime.fromisoformat(stripped if _TIME.fullmatch(stripped) else ""))
    except ValueError as error:
        raise ValueError(
            f"{text[:60]!r} is not a time: write it like 2026-01-28 or 2026-01-28T12:00:00Z"
        ) from error


def is_time(value: object) -> bool:
    """Return whether ``parse_time`` accepts a value as text."""
    try:
        parse_time(str(value))
    except ValueError:
        return False
    return True


def parse_end(text: str) -> datetime:
    """Parse the end of a range as ``parse_time`` does; a date alone ends with its day."""
    moment = parse_time(text)
    is_date = len(text.strip()) <= len("2026-01-28")
    return shifted(moment, timedelta(days=1, microseconds=-1)) if is_date else moment


def parse_point(text: str, *, ends: bool = False, now: datetime | None = None) -> datetime:
    """Parse a time as people write it: ISO 8601, ``12h``, ``7d``, ``2w ago``, ``yesterday``.

    A unit may be written out, as in ``3 days ago``, and "ago" left out. ``today`` and ``yesterday``
    are days in UTC. A day is its first moment, or its last if the time ``ends`` a range. Raises a
    ``ValueError`` that quotes the text.
    """
    now = now or now_utc()
    word = text.strip().lower()
    if match := _AGO.fullmatch(word):
        unit = _UNITS[match[2] or match[3][0]]
        return shifted(now, -timedelta(**{unit: int(match[1])}))
    if word in _DAYS:
        text = str(shifted(now, -timedelta(days=_DAYS[word])).date())
    try:
        return parse_end(text) if ends else parse_time(text)
    except ValueError as error:
        raise ValueError(f"{error}, or 12h, 7d, 2w ago, today, yesterday") from error


def read_stored_time(text: str) -> datetime:
    """Parse a time that ``format_time`` wrote.

    A time that another program damaged beyond recognition is read as the oldest one rather than
    raising an error: the memory must stay readable. ``check`` reports it.
    """
    try:
        return to_utc(datetime.fromisoformat(text))
    except (ValueError, TypeError):  # on a damaged page it may not even be a text
        return _OLDEST


def age_in_days(moment: datetime, now: datetime) -> int:
    """Return the whole days from ``moment`` to ``now``, never less than 0 (A)."""
    return max(0, (to_utc(now) - to_utc(moment)).days)


def from_epoch(seconds: float) -> datetime:
    """Return a file's time, given in seconds since 1970, limited to the supported years.

    A file system accepts any number, and so may a program that unpacks an archive.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return NEWEST_TIME if seconds > 0 else _OLDEST


def shifted(moment: datetime, span: timedelta) -> datetime:
    """Add a span, staying within the supported years."""
    try:
        return min(max(moment + span, _OLDEST), NEWEST_TIME)
    except OverflowError:
        return NEWEST_TIME if span > timedelta(0) else _OLDEST
