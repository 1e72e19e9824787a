"""Texts as sentences: English and most other languages by their stops, Chinese and Japanese too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_MEMORY_CONTENT_LENGTH = 10_000

_STOP: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)"  # noqa: RUF001 - quotation marks
    r"|[。！？｡]++[」』”’）]*+"  # noqa: RUF001 - the stops of Chinese and Japanese
    r"|\n+"
)
_ABBREVIATED: Final = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|approx|no|fig|al|ca|dr|mr|mrs|ms|prof|st|jr|sr|u\.s|u\.k|z\.B"
    r"|bzw|(?:[A-Za-z]\.)*[A-Za-z]|\d{1,3})\.$",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"^\s*(?:[-*•–]\s+|\d{1,3}[.)]\s+)")  # noqa: RUF001
_NEXT_LETTER: Final = re.compile(r" *(\S)")
_HAS_WORD: Final = re.compile(r"\w")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line; a line break ends one too.

    Nothing is left out but white space, marks of lists, and what has no letter or digit.
    """
    found = (_LISTED.sub("", " ".join(part.split())).strip() for part in _parts(text))
    return [part for part in found if _HAS_WORD.search(part)]


def _parts(text: str) -> Iterator[str]:
    begin = 0
    for stop in _STOP.finditer(text):
        if stop[0] == "." and _ABBREVIATED.search(text, max(0, stop.start() - 12), stop.end()):
            follows = _NEXT_LETTER.match(text, stop.end())
            # "… at 5." and "… at 5 p.m." may end a sentence; "Dr. Smith" does not.
            may_end = text[stop.start() - 1 : stop.start()].isdigit() or (
                text[stop.start() - 2 : stop.start() - 1] == "."
            )
            if not (may_end and follows and follows[1].isupper()):
                continue
        yield text[begin : stop.end()]
        begin = stop.end()
    yield text[begin:]


def fitting(text: str, longest: int = MAX_MEMORY_CONTENT_LENGTH) -> list[str]:
    """Return a text in pieces of ``longest`` characters at most, cut between sentences or words."""
    pieces: list[str] = []
    rest = text.strip()
    while len(rest) > longest:
        head = rest[:longest]
        stops = [stop.end() for stop in _STOP.finditer(head)]
        cut = stops[-1] if stops and stops[-1] > longest // 2 else head.rfind(" ")
        cut = cut if cut > longest // 2 else longest
        pieces.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return [piece for piece in [*pieces, rest] if piece]
