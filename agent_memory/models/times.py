"""Times: always aware and in UTC, written as fixed-width text whose order is their order.

A naive time that is given means UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_OLDEST = datetime(1, 1, 2, tzinfo=UTC)
NEWEST_TIME = datetime(9999, 12, 30, tzinfo=UTC)
"""The latest time that anything is moved on to: spans can still be added to what comes before."""

_TIME: Final = re.compile(r"[\dW-]{7,10}(?:[Tt ][\d:.,]+ ?(?:[Zz]|[+-][\d:.]+)?)?")
"""A date, and a time behind a T or a blank. Python takes any letter there: 20 digits are a time."""
_AGO: Final = re.compile(r"(\d{1,6})\s*([hdw])")
_UNITS: Final = {"h": "hours", "d": "days", "w": "weeks"}


def now_utc() -> datetime:
    """Return the time, aware, in UTC. The default clock of a store."""
    return datetime.now(UTC)


def to_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC; a naive time is taken to be UTC already.

    Raises ``ValueError`` for a time whose UTC lies outside the years 1 to 9999
    (``0001-01-01T00:00+05:30`` parses, and then cannot be converted).
    """
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"the time {moment.isoformat()} has no counterpart in UTC") from error


def format_time(moment: datetime) -> str:
    """Write a time as ``YYYY-MM-DDTHH:MM:SS.ffffffZ``, 27 characters."""
    # strftime("%Y") does not pad years below 1000 on Linux.
    return f"{to_utc(moment).isoformat('T', 'microseconds')[:-6]}Z"  # for +00:00


def format_briefly(moment: datetime) -> str:
    """Write a time as ``format_time`` does, with microseconds only where there are any."""
    return format_time(moment).replace(".000000Z", "Z")


def parse_time(text: str) -> datetime:
    """Read an ISO 8601 time or date; one without an offset is UTC.

    Digits past the microsecond are dropped. Raises ``ValueError`` that names the text.
    """
    stripped = text.strip()
    try:
        return to_utc(datetime.fromisoformat(stripped if _TIME.fullmatch(stripped) else ""))
    except ValueError as error:
        raise ValueError(
            f"{text[:60]!r} is not a time: write it like 2026-01-28 or 2026-01-28T12:00:00Z"
        ) from error


def parse_end(text: str) -> datetime:
    """Read the end of a span as ``parse_time`` does; a date alone ends with its day."""
    moment = parse_time(text)
    is_date = len(text.strip()) <= len("2026-01-28")
    return shifted(moment, timedelta(days=1, microseconds=-1)) if is_date else moment


def time_ago(text: str) -> datetime | None:
    """Return the time that was so long ago, ``12h``, ``7d`` or ``2w``; ``None`` of another text."""
    match = _AGO.fullmatch(text.strip())
    if match is None:
        return None
    return shifted(now_utc(), -timedelta(**{_UNITS[match[2]]: int(match[1])}))


def read_stored_time(text: str) -> datetime:
    """Read a time as ``format_time`` wrote it.

    A time that a foreign program damaged past reading comes back as the oldest one rather than
    as an error: the memory beside it must stay readable. ``check`` reports it.
    """
    try:
        return to_utc(datetime.fromisoformat(text))
    except (ValueError, TypeError):  # of a damaged page, it need not be a text
        return _OLDEST


def age_in_days(moment: datetime, now: datetime) -> int:
    """Count whole days from ``moment`` to ``now``, never below 0 (A)."""
    return max(0, (to_utc(now) - to_utc(moment)).days)


def from_epoch(seconds: float) -> datetime:
    """Return the time that a file has, in seconds since 1970, within the years that one can have.

    A file system takes any number, and what unpacks an archive may set it.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return NEWEST_TIME if seconds > 0 else _OLDEST


def shifted(moment: datetime, span: timedelta) -> datetime:
    """Add a span, staying within the years that a time can have."""
    try:
        return min(max(moment + span, _OLDEST), NEWEST_TIME)
    except OverflowError:
        return NEWEST_TIME if span > timedelta(0) else _OLDEST
