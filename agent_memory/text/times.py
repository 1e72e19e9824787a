"""The times of day that a question mentions, and their other spellings: "2:30 pm", "14:30".

Pure. Words are in lower case, as in an index; the words of one form stand side by side.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

MOST_TIMES: Final = 4
"""Of a text that is full of times, such as a log, only this many are read."""
_MOST_CHARACTERS: Final = 10_000
_WORDS: Final = re.compile(r"[^\W_]+")
_HINT: Final = re.compile(r"\d\s?(?:[:.h]|[ap]\.?m|uhr)", re.IGNORECASE)
"""A quick test that every text with a time passes, and most texts do not."""


class TimeOfDay(NamedTuple):
    """A time of day: its words, and other spellings, "14 30" and "14h30" for "2:30 pm"."""

    words: tuple[str, ...]
    others: tuple[str, ...]


def times_in(text: str) -> list[TimeOfDay]:
    """Return the first times in a text. With an hour up to 12 it may be in the afternoon."""
    text = text[:_MOST_CHARACTERS]
    return list(islice(_times(text), MOST_TIMES)) if _HINT.search(text) else []


def _times(text: str) -> Iterator[TimeOfDay]:
    for match in _pattern().finditer(text):
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        after, sign = (match["after"] or "").lower(), (match["sign"] or "").lower()
        half = after[:1] if after[-1:] in ("m", ".") else ""
        # "14.30" alone may be anything, and "8 h" is a duration.
        if hour > (12 if half else 23) or not (after or sign in (":", "h")):
            continue
        if half:
            hour = hour % 12 + 12 * (half == "p")
        is_ambiguous = 1 <= hour <= 11 and match["hour"] == str(hour)  # not "07:30"
        hours = (hour, hour + 12) if is_ambiguous and not half else (hour,)
        words = tuple(word.lower() for word in _WORDS.findall(match[0]))
        forms = {form for each in hours for form in _forms(each, minute)} - {" ".join(words)}
        yield TimeOfDay(words, tuple(sorted(forms)))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(
        r"(?<![\w:.,])(?P<hour>\d{1,2})(?:(?P<sign>[:.h])(?P<minute>[0-5]\d))?"
        r"(?:\s?(?P<after>[ap]\.?m\b\.?|uhr\b))?(?![\w:]|[.,]\d)",
        re.IGNORECASE,
    )


def _forms(hour: int, minute: int) -> Iterator[str]:
    """Yield how a time is written, but for what stands between its words."""
    half, of_half = "pm" if hour >= 12 else "am", (hour - 1) % 12 + 1
    yield from (f"{hour} {minute:02}", f"{hour:02} {minute:02}", f"{hour}h{minute:02}")
    yield from (f"{of_half} {minute:02} {half}", f"{of_half} {minute:02}{half}")
    yield f"{of_half} {minute:02} {half[0]} m"
    if minute == 0:
        yield from (f"{of_half} {half}", f"{of_half}{half}", f"{of_half} {half[0]} m")
        yield from (f"{hour} uhr", f"{hour}h", f"{hour} h") if hour > 12 else (f"{hour} uhr",)
