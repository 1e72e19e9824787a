"""Splits texts into sentences: by full stops in most languages, in Chinese and Japanese too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

_STOP: Final = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s|\Z)"  # noqa: RUF001 - quotation marks
    r"|[。！？｡]++[」』”’）]*+"  # noqa: RUF001 - Chinese and Japanese full stops
    r"|\n+"
)
_TITLES: Final = (
    "dr|mr|mrs|ms|prof|sr|gen|lt|sgt|capt|col|rev|gov|mme|mlle|sra|srta|dra|uds?|(?-i:Hr)"
    r"|dr\. (?:med|phil|jur|ing)"
)
_SHORT: Final = r"e\.g|i\.e|vs|cf|approx|fig|al|ca|z\.B|bzw|bspw|vgl|inkl|exkl|ggf|evtl|p\. ?ex|ee"
_BEFORE_A_NUMBER: Final = (
    "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|okt|dez|no|nr|núm|tel|sec|ch|vol|pp|pág"
)
# What may still end a sentence: "… at 5.", "… at 5 p.m.", "… and so on, etc."
_ABBREVIATED: Final = re.compile(
    rf"(?:^|[\s(])(?:{_TITLES}|{_SHORT}"
    rf"|(?P<may_end>etc|usw|jr|inc|ltd|corp|co|uu|mio|mrd|{_BEFORE_A_NUMBER}"
    r"|(?:[A-Za-z]\.)+[A-Za-z]|\d{1,3})"
    r"|(?P<at_name>st|(?<=\w\s)[A-Za-z])|[A-Za-z])\.$",
    re.IGNORECASE,
)
# "St. Paul" and "J. Smith", but "I live on Oak St. Do you know it?" and "We take plan B. It works."
_NO_NAME: Final = re.compile(
    r"\s+(?:I|You|He|She|It|We|They|This|That|These|Those|There|The|My|Your|His|Her|Our|Their|Its|Do"
    r"|Does|Did|Is|Are|Has|Have|Can|Could|Would|Should|What|Where|When|Who|Why|How|Which|And|But)\b"
)
# German has a capital after the stops of "am 5. Mai", "im 3. Stock" and "5 Mio. Euro". The words
# that may follow are listed: any other capital begins a sentence ("Ich bleibe bis zum 15. Passt dir
# das?").
_MONTHS: Final = r"Jan(?:uar)?|Jänner|Feb(?:ruar)?|März|Mai|Juni|Juli|Okt(?:ober)?|Dez(?:ember)?"
_ALSO_ENGLISH: Final = r"April?|Aug(?:ust)?|Sept?(?:ember)?|Nov(?:ember)?"
_COUNTED: Final = (
    "Stock(?:werk)?|Etage|OG|Klasse|Semester|Jahrhunderts?|Mal|Platz|Tag|Woche|Monat|Jahr|Kapitel"
    "|Geburtstags?|Lebensjahr|Bezirk|Liga|Runde"
)
_GOES_ON: Final = tuple(
    (re.compile(rf"(?<!\S){before}\.$"), re.compile(rf" *(?:{following})\b"))
    for before, following in (
        (r"\d{1,2}", _MONTHS),
        (
            r"(?i:der|die|das|dem|den|des|am|ab|bis|seit|im|vom|zum|zur|beim|jede[mnrs]?) \d{1,3}",
            f"{_ALSO_ENGLISH}|{_COUNTED}",
        ),
        ("(?:Mio|Mrd)", "Euro|Dollar|Franken|EUR|USD|CHF|Menschen|Einwohner"),
    )
)
# The number of "3. Mai" is not a list marker.
_LISTED: Final = re.compile(
    r"^\s*(?:[-*•–]\s+|\+\s+(?!\d)"  # noqa: RUF001
    rf"|\d{{1,3}}[.)]\s+(?!(?:{_MONTHS}|{_ALSO_ENGLISH})\b))"
)
_HEADING: Final = re.compile(r"^\s*#{1,6}\s+(?=\S)")
_NO_LEAD: Final = re.compile(r"[.!?;,|]\W*$")
_HOW: Final = re.compile(
    r"\W{0,3}(?:(?:how )?to \w+ [^.!?\n]{1,80}[,:]\s|(?!https?:)\w[^.!?,;:\n]{1,40}: [^\n])",
    re.IGNORECASE,
)
"""How instructions begin: "To reset it, hold the button", "Soup: boil a carrot"."""
_NEXT_LETTER: Final = re.compile(r" *(\S)")
_JOINT: Final = re.compile(r"([,;]\s+(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)", re.IGNORECASE)
"""The joints between clauses, and between the items of a list."""
_HAS_WORD: Final = re.compile(r"\w")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each on one line; a line break ends a sentence.

    Only white space, list markers, and parts without a letter or digit are left out.
    """
    parts = (" ".join(text[begin:end].split()) for begin, end in sentence_spans(text))
    bare = (_LISTED.sub("", part).strip() for part in parts)
    return [part for part in bare if _HAS_WORD.search(part)]


def tells_steps(text: str) -> bool:
    """Return whether a text has a list below a line, or begins by saying how something is done."""
    lines = [line for line in text.split("\n") if line.strip()]
    listed = [_LISTED.match(line) is not None for line in lines]
    return (sum(listed) > 1 and not listed[0]) or _HOW.match(text) is not None


def with_lists_joined(text: str) -> str:
    """Return a text in which a list of words follows the line that it belongs to.

    "My allergies:" with "- nuts" and "- cow milk" below becomes "My allergies: nuts, cow milk". The
    same is done below a heading. A list with an item that may stand alone is left as it is.
    """
    lines: list[str] = []
    below: list[str] = []
    for line in text.split("\n"):
        bare = line.strip().rstrip(",;")
        lead = lines[-1].rstrip("*_") if lines else ""
        is_listed = _LISTED.match(line) is not None
        if lead.endswith(":"):
            goes_below = is_listed or not bare or bare.isalpha()
        elif _HEADING.match(lead):
            goes_below = is_listed or not bare
        else:
            goes_below = is_listed and bool(lead) and _may_lead(lead)
        if goes_below:
            below.append(line)
            continue
        _take_list(lines, below)
        below = []
        lines.append(line.rstrip())
    _take_list(lines, below)
    return "\n".join(lines)


def _may_lead(line: str) -> bool:
    return not (_LISTED.match(line) or _NO_LEAD.search(line))


def _take_list(lines: list[str], below: Sequence[str]) -> None:
    """Take the lines of a list: those of one or two words into the line before it."""
    items = [_LISTED.sub("", line).strip().rstrip(",;") for line in below]
    counts = {len(item.split()) for item in items}
    if 1 in counts and counts <= {0, 1, 2} and not any(item.endswith("?") for item in items):
        lead = _HEADING.sub("", lines[-1])
        colon = "" if lead.rstrip("*_").endswith(":") else ":"
        lines[-1] = f"{lead}{colon} {', '.join(filter(None, items))}"
    else:
        lines += below


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence, one after the other, covering the whole text."""
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
    if not is_new:
        return False
    if abbreviated["at_name"] is not None:
        return _NO_NAME.match(text, stop.end()) is not None
    return abbreviated["may_end"] is not None and not any(
        before.search(text, begin, stop.end()) and after.match(text, stop.end())
        for before, after in _GOES_ON
    )


def clauses(sentence: str) -> list[tuple[str, str]]:
    """Return the clauses of a sentence, each after the word that joins it to the one before."""
    pieces = ["", *_JOINT.split(sentence)]
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def fitting(text: str, longest: int) -> list[str]:
    """Return a text in pieces of at most ``longest`` characters, cut between sentences or words."""
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
