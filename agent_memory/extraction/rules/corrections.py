"""Corrections that name only a value: "No, I meant May 6", after "The launch is on May 5"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agent_memory.extraction.rules.values import DATE, TIME, value_of
from agent_memory.text.sentences import sentences

_NAME: Final = r"[A-Z][\w'\u2019-]*(?: [A-Z][\w'\u2019-]*){0,3}"
_MEANT: Final = re.compile(
    r"(?!.{100})\W*(?:(?:no|nope|sorry|oops|wait|ah|oh|correction)\b[\s,.!:\u2013\u2014-]*)+"
    r"(?:(?:I|we) (?:meant|mean)|(?:it|that) should (?:be|say)|make (?:it|that))"
    r"(?P<value>(?: [\w.,:/'\u2019-]+){1,5}?)\W*",
    re.IGNORECASE | re.DOTALL,
)
_PREPOSITION: Final = re.compile(r"(?:on|at|by|in|from|to|for|until) (?=\S)", re.IGNORECASE)
_NUMBER: Final = r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/-])"
_TIMED: Final = re.compile(rf"\d|\b(?:{DATE}|{TIME})(?!\w)", re.IGNORECASE)
_NAMED: Final = re.compile(rf"(?<=[\w,;:(\"] )(?!I\b){_NAME}|(?:^|[.!?] ){_NAME}(?=[,?])")
"""A name in a sentence, or one that is asked about: "Graz?"."""
_LOWERED: Final = re.compile(r"(?:The|My|Our|We|It|This|That|There)\b")


def is_of_a_value_alone(text: str) -> bool:
    """Return whether a text corrects something that it does not name."""
    return _MEANT.fullmatch(text) is not None


def corrected(text: str, earlier: str, between: Sequence[str]) -> str:
    """Return a text that says what it corrects, if its author said that just before (``earlier``).

    It is as it was if it names more than a value, if there is not just one value of that kind, or
    if what others said ``between`` may have one: "No, I meant 21" may answer "Are you 20?".
    """
    first = next(iter(sentences(text[:200])), "")
    meant = _MEANT.fullmatch(first)
    if meant is None:
        return text
    value = meant["value"].strip(" .,")
    known = [(part, match) for part in sentences(earlier) for match in _alike(value, part)]
    if len(known) != 1:
        return text
    sentence, match = known[0]
    may_be_meant = _may_be_of_time_or_number if value_of(value).is_closed else _NAMED.search
    if any(may_be_meant(other) for other in between):
        return text
    if not value_of(value).has_all_of(value_of(match[0])):
        return text  # the year would be lost
    if not _PREPOSITION.match(match[0]):
        value = _PREPOSITION.sub("", value, count=1)
    whole = f"{sentence[: match.start()]}{value}{sentence[match.end() :]}".removeprefix("No, ")
    if _LOWERED.match(whole):
        whole = whole[0].lower() + whole[1:]
    return text.replace(first, f"No, {whole}", 1)


def _may_be_of_time_or_number(text: str) -> bool:
    """Return whether a text has any number, also in words: "at 5?" may ask for a time."""
    words = re.findall(r"[\w-]+", text)
    return _TIMED.search(text) is not None or any(value_of(word).is_closed for word in words)


def _alike(value: str, sentence: str) -> Iterator[re.Match[str]]:
    """Yield the values in a sentence that are of the same kind."""
    bare = _PREPOSITION.sub("", value, count=1)
    for pattern in (rf"\b{DATE}(?!\w)", rf"\b{TIME}(?!\w)"):
        if re.fullmatch(pattern, bare, re.IGNORECASE):
            yield from re.finditer(pattern, sentence, re.IGNORECASE)
            return
    if re.fullmatch(_NUMBER, bare):
        times = re.compile(rf"\b(?:{DATE}|{TIME})(?!\w)", re.IGNORECASE)
        spans = [match.span() for match in times.finditer(sentence)]
        for match in re.finditer(_NUMBER, sentence):
            if not any(start <= match.start() < end for start, end in spans):
                yield match
    elif bare != value and re.fullmatch(_NAME, bare):
        preposition = value[: len(value) - len(bare)]
        yield from re.finditer(rf"\b{re.escape(preposition)}{_NAME}", sentence)
