"""Texts as sentences: English and most other languages by their stops, Chinese and Japanese too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_STOP: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)"  # noqa: RUF001 - quotation marks
    r"|[。！？｡]++[」』”’）]*+"  # noqa: RUF001 - the stops of Chinese and Japanese
    r"|\n+"
)
# What may end a sentence all the same: "… at 5.", "… at 5 p.m.", "… and so on, etc."
_ABBREVIATED: Final = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|vs|cf|approx|no|fig|al|ca|dr|mr|mrs|ms|prof|st|jr|sr|z\.B"
    r"|bzw|(?P<may_end>etc|usw|(?:[A-Za-z]\.)+[A-Za-z]|\d{1,3})|[A-Za-z])\.$",
    re.IGNORECASE,
)
_LISTED: Final = re.compile(r"^\s*(?:[-*•–]\s+|\d{1,3}[.)]\s+)")  # noqa: RUF001
_NEXT_LETTER: Final = re.compile(r" *(\S)")
_JOINT: Final = re.compile(r"([,;]\s+(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)", re.IGNORECASE)
"""Between clauses, and between the things of a list."""
_HAS_WORD: Final = re.compile(r"\w")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line; a line break ends one too.

    Nothing is left out but white space, marks of lists, and what has no letter or digit.
    """
    parts = (" ".join(text[begin:end].split()) for begin, end in sentence_spans(text))
    bare = (_LISTED.sub("", part).strip() for part in parts)
    return [part for part in bare if _HAS_WORD.search(part)]


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each sentence of a text begins and ends, one after the other, all of the text."""
    begin = 0
    for stop in _STOP.finditer(text):
        if stop[0] == "." and not _may_end(text, stop):
            continue
        yield begin, stop.end()
        begin = stop.end()
    yield begin, len(text)


def _may_end(text: str, stop: re.Match[str]) -> bool:
    """Return whether a full stop ends a sentence: that of "Dr. Smith" does not."""
    abbreviated = _ABBREVIATED.search(text, max(0, stop.start() - 12), stop.end())
    if abbreviated is None:
        return True
    following = _NEXT_LETTER.match(text, stop.end())
    is_new = following is not None and following[1].isupper()
    return is_new and abbreviated["may_end"] is not None


def clauses(sentence: str) -> list[tuple[str, str]]:
    """Return the clauses of a sentence, each behind what joins it to the one before."""
    pieces = ["", *_JOINT.split(sentence)]
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def fitting(text: str, longest: int) -> list[str]:
    """Return a text in pieces of ``longest`` characters at most, cut between sentences or words."""
    pieces: list[str] = []
    rest = text.strip()
    while len(rest) > longest:
        head = rest[:longest]
        ends = [end for _, end in sentence_spans(head)][:-1]
        cut = ends[-1] if ends and ends[-1] > longest // 2 else head.rfind(" ")
        cut = cut if cut > longest // 2 else longest
        pieces.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    return [piece for piece in [*pieces, rest] if piece]
