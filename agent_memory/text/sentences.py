"""Texts as sentences: English and most other languages by their stops, Chinese and Japanese too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_STOP: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)"  # noqa: RUF001 - quotation marks
    r"|[。！？｡]++[」』”’）]*+"  # noqa: RUF001 - the stops of Chinese and Japanese
    r"|\n+"
)
_TITLES: Final = (
    "dr|mr|mrs|ms|prof|st|sr|gen|lt|sgt|capt|col|rev|gov|mme|mlle|sra|srta|dra|uds?|(?-i:Hr|Fr)"
    r"|dr\. (?:med|phil|jur|ing)"
)
_SHORT: Final = (
    r"e\.g|i\.e|vs|cf|approx|no|fig|al|ca|z\.B|bzw|bspw|vgl|inkl|exkl|ggf|evtl|mio|mrd|p\. ?ex"
    "|ee|uu"
)
_BEFORE_A_NUMBER: Final = (
    "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|okt|dez|nr|núm|tel|sec|ch|vol|pp|pág"
)
# What may end a sentence all the same: "… at 5.", "… at 5 p.m.", "… and so on, etc."
_ABBREVIATED: Final = re.compile(
    rf"(?:^|[\s(])(?:{_TITLES}|{_SHORT}"
    rf"|(?P<may_end>etc|usw|jr|inc|ltd|corp|co|{_BEFORE_A_NUMBER}|(?:[A-Za-z]\.)+[A-Za-z]|\d{{1,3}})"
    r"|[A-Za-z])\.$",
    re.IGNORECASE,
)
# German writes "am 5. Mai" and "im 3. Stock", with a capital behind the stop.
_ARTICLE_AND_NUMBER: Final = re.compile(
    r"\b(?:der|die|das|dem|den|des|im|vom|zum|zur|beim|jede[mnrs]?) \d{1,3}\.$", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?<!\S)\d{1,2}\.$")
_GERMAN_MONTH: Final = re.compile(
    r" *(?:Jan(?:uar)?|Jänner|Feb(?:ruar)?|März|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Okt(?:ober)?|Nov(?:ember)?|Dez(?:ember)?)\b"
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


def with_lists_joined(text: str) -> str:
    """Return a text in which a list of single words stands behind the line that it belongs to.

    "My allergies:", and "- nuts" and "- pollen" below it, is "My allergies: nuts, pollen". A list
    of longer things, which say something alone, stays as it is.
    """
    lines: list[str] = []
    below: list[str] = []
    for line in text.split("\n"):
        has_lead = bool(lines) and lines[-1].rstrip("*_").endswith(":")
        if has_lead and (_LISTED.match(line) or len(line.split()) <= 1):
            below.append(line)
            continue
        _take_list(lines, below)
        below = []
        lines.append(line.rstrip())
    _take_list(lines, below)
    return "\n".join(lines)


def _take_list(lines: list[str], below: Sequence[str]) -> None:
    """Take the lines of a list: single words into the line before it."""
    items = [_LISTED.sub("", line).strip().rstrip(",;") for line in below]
    if any(len(item.split()) == 1 for item in items):
        lines[-1] = f"{lines[-1]} {', '.join(filter(None, items))}"
    else:
        lines += below


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
    begin = max(0, stop.start() - 12)
    abbreviated = _ABBREVIATED.search(text, begin, stop.end())
    if abbreviated is None:
        return True
    following = _NEXT_LETTER.match(text, stop.end())
    is_new = following is not None and following[1].isupper()
    if not is_new or abbreviated["may_end"] is None:
        return False
    is_ordinal = _ARTICLE_AND_NUMBER.search(text, begin, stop.end()) is not None or (
        _NUMBER.search(text, begin, stop.end()) is not None
        and _GERMAN_MONTH.match(text, stop.end()) is not None
    )
    return not is_ordinal


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
