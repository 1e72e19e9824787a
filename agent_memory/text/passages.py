"""Where something is said in a text: the sentence around a place, and its surroundings.

Pure, and bounded: however long the text is, a passage is made from 1,500 characters before and
after the place, unless more are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from agent_memory.text.sentences import sentence_spans

REACH: Final = 1_500
"""Characters before and after a place that are examined."""
LONGEST_SENTENCE: Final = 1_000
"""Characters. A longer run without a stop is not a sentence."""
_HEAD: Final = 300
"""Characters of a line that show whether it is code."""
_WRAPPED: Final = 50
"""A line of this many characters may have been broken because it was full."""

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\n", "b": " ", "f": " "}
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_DIFF_HUNK: Final = re.compile(r"^(?:@@ -\d|diff --git |\+\+\+ )", re.MULTILINE)
_GREP: Final = re.compile(r"(?P<path>(?:[\w.@~+-]*/)*[\w.@+-]+\.\w{1,8}):\d+[:-](?:\d+:)?")
_LOG: Final = re.compile(
    r"""[\[(]?
    (?: \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?
      | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s+\d{1,2}\s\d\d:\d\d:\d\d
      | \d\d:\d\d(?::\d\d)?(?:[.,]\d+)? )
    [\])]?\s+""",
    re.VERBOSE,
)
_LEVEL: Final = re.compile(
    r"\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\]?:?\s+"
)
_MODULE: Final = re.compile(r"(?:\[[\w.:/-]{1,40}\]|[\w./-]{1,30}(?:\[\d+\])?:)\s+")
_SPEAKER: Final = re.compile(r"(?:<@?[\w.-]{1,30}>|@[\w.-]{1,30}:|[a-z][\w.-]{0,20}:)\s+")
_BLOCK: Final = re.compile(
    r"(?:[-*+•] +|\d{1,3}[.)] +)(?:\[[ xX]\] +)?|(?:> ?)+|#{2,6} +"
    r"|[#=~-]{3,} *|\*{3,} +|\* [0-9a-f]{7,12} |[0-9a-f]{7,12} (?:\([^)]*\) )?"
)
_COMMENT: Final = re.compile(r"(?://+|/\*+|--+|<!--+|;;+|#+|%+|REM\b|\"{3}|'{3})!? *")
_DONE: Final = re.compile(r"(?:^|\s)\[[xX]\] ")
_BLOCK_START: Final = re.compile(
    r"\s*(?:$|[-*+•] |\d{1,3}[.)] |#|>|\||```|~~~|\$ |<|@|\[|\w+:\s|\d{4}-\d\d|//|/\*|--)"
)
_COMMENT_IN_LINE: Final = re.compile(r"\s(?://|#\s|/\*|<!--)\s*")
_CAPS_LABEL: Final = re.compile(r"\s*[A-Z]{3,10}[:(]")
_TAG: Final = re.compile(
    r"</[A-Za-z][^<>]{0,300}>|<[A-Za-z][\w-]*\s[^<>=]{0,100}=[^<>]{0,300}>"
    r"|<(?:a|abbr|b|big|blockquote|br|center|code|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|img"
    r"|ins|kbd|li|mark|ol|p|pre|q|s|samp|section|small|span|strong|sub|summary|sup|table|tbody|td|th"
    r"|thead|tr|tt|u|ul|var)\s*/?>"
    r"|<([A-Za-z][\w.:-]{0,60})>(?=.{0,300}</\1>)|^<[A-Za-z][^<>]{0,300}>(?=\w)",
    re.IGNORECASE,
)
"""Not what stands for something, as in ``List<String>`` and ``feature/<ticket>``."""
_LINK: Final = re.compile(r"!?\[([^\]\[]{1,300})\]\([^()\s]{1,500}\)")
_CODE_SPAN: Final = re.compile(r"`[^`]{1,500}`")
_EMPHASIS: Final = tuple(
    re.compile(
        rf"(?<![\w*/]){mark}(?=[\w\"'(\[<`\u201c\u201e])(?P<inner>[^\n]{{1,{LONGEST_SENTENCE}}}?)"
        rf"(?<=[\w.,:;!?%)\]>`\"'\u201c\u201d\u2026]){mark}(?![\w*/]|\.\w)"
    )
    for mark in (r"\*\*\*", r"\*\*(?!\*)", r"__(?![a-z0-9_]+__)", r"\*(?!\*)")
)
"""Pairs around words: not a glob (``src/**/*.kt``), a power (``2**10``) or ``__init__``."""
_MARK: Final = re.compile(r"`|^(?:\*\*|__)(?=[A-Z])|(?<=[.:!?])(?:\*\*|__)$")
"""The mark of code, and one of a pair of emphasis whose other one is in another sentence."""
_BEFORE: Final = re.compile(r"(?:[#*>/|-]*\s)*")
_CLOSERS: Final = (" */", "-->", '"""')
"""The ends of comments."""
_AFTER: Final = " \t\n*|#"
_CODE_LINE: Final = re.compile(
    r"[{};]\s*$|^\s*(?:def|class|import|from|return|const|let|var|func|fn|pub|if|for|while|elif"
    r"|else|try|except|package|void|int|char|export|async|await|raise|assert|case)\b[^.!?]*[:;{(=)]"
    r"|^(?>.*?\w\().*\)\s*[:;{]?\s*$|^\s*\w[\w.\[\]]*\s*[:+-]?=\s?\S|=>|->|::|^\s*[\"']{3}|</\w+>"
)
_HELP: Final = re.compile(
    r"^(?:NAME|SYNOPSIS|DESCRIPTION|OPTIONS|EXIT STATUS)\s*$|^\s*usage:|^Usage: |^\s+-\w, --\w"
    r"|^\s+--\w[\w-]*\s|positional arguments:",
    re.MULTILINE,
)
_LEGAL: Final = re.compile(
    r"WITHOUT WARRANTY|\bliab(?:le|ility)\b|\bcopyright holders?\b|\bterms of use\b", re.IGNORECASE
)
_SALES: Final = re.compile(r"\bunsubscribe\b|\bcookies\b|\bprivacy policy\b", re.IGNORECASE)
# Each has a hint; without one in the text, its pattern, which takes twenty times as long, cannot
# match.
_KINDS_OF_TEXT: Final = (
    (
        "help",
        ("name", "synopsis", "description", "options", "status", "usage:", "--", "arguments:"),
        _HELP,
    ),
    ("legal", ("warranty", "liab", "copyright holder", "terms of use"), _LEGAL),
    ("sales", ("unsubscribe", "cookies", "privacy policy"), _SALES),
)
_LISTED: Final = re.compile(r"^[-dlcbps][rwxsStT-]{9}[.+@]?\s|^\.{0,2}/\S+|^\s*\S+/\S*$")
_SETTING: Final = re.compile(r"^\s*[\w.-]+:(?:\s|$)", re.MULTILINE)
_FOREIGN: Final = re.compile(
    r"(?:^|/)(?:node_modules|site-packages|dist-packages|vendor|third_party|\.venv|venv|target"
    r"|build|dist|\.cargo|pkg/mod|usr/(?:lib|share|include))/"
)


class Passage(NamedTuple):
    """One sentence as it was said, without markup, and its surroundings.

    ``at`` is the place within the sentence. ``shapes`` are words such as ``code``, ``comment``,
    ``log``, ``help`` and ``done``; ``key`` is the name of a JSON value. ``before`` and ``after``
    are the characters next to the match, as they stand in the text, and ``around`` is a wider part
    of it.
    """

    sentence: str
    at: int
    before: str
    after: str
    shapes: frozenset[str] = frozenset()
    key: str = ""
    around: str = ""


@dataclass(slots=True)
class _Line:
    """A line of the window: its text without what stands in front, and where that begins."""

    text: str
    begin: int

    def strip(self, pattern: re.Pattern[str], place: int) -> re.Match[str] | None:
        """Take away what a pattern finds at the beginning, if it ends before the place."""
        indent = len(self.text) - len(self.text.lstrip())
        match = pattern.match(self.text, indent)
        if match is None or match.end() == indent or self.begin + match.end() > place:
            return None
        self.cut(match.end())
        return match

    def leave_cell(self, place: int) -> None:
        """Of a row of a table, leave the cell that a place is in."""
        at = place - self.begin
        last = self.text.find("|", at)
        self.text = self.text[: last if last >= 0 else None]
        self.cut(self.text.rfind("|", 0, at) + 1)

    def cut(self, count: int) -> None:
        """Take away some characters at the beginning."""
        self.text, self.begin = self.text[count:], self.begin + count


def passage(
    text: str, start: int, end: int, *, fenced: bool = False, reach: int = REACH
) -> Passage:
    """Return the sentence that contains ``text[start:end]``, and its surroundings."""
    low, high = max(0, start - reach), min(len(text), end + reach)
    window = text[low:high]
    begin = window.rfind("\n", 0, start - low) + 1
    stop = window.find("\n", end - low)
    stop = len(window) if stop < 0 else stop
    line = _Line(window[begin:stop], begin)
    shapes = _surroundings(window, line, fenced=fenced)
    _strip_prefixes(line, start - low, shapes)
    joined, offset = _joined(window, line, start - low, shapes)
    at = start - low - line.begin + offset
    sentence, at = _sentence(joined, at)
    sentence, at = _plain(sentence, at)
    return Passage(
        sentence=sentence,
        at=at,
        before=text[max(0, start - 2) : start],
        after=text[end : end + 2],
        shapes=frozenset(shapes),
        around=window[max(0, begin - 700) : stop + 400],
    )


def kind_of_text(around: str) -> set[str]:
    """Return the kind of text that a passage is from, if it is known: help, legal, sales."""
    folded = around.lower()
    return {
        name
        for name, hints, pattern in _KINDS_OF_TEXT
        if any(hint in folded for hint in hints) and pattern.search(around)
    }


def quoted(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    """Return the span and the key of the quoted text, as in JSON or CSV, around a place."""
    low = max(text.rfind("\n", max(0, start - REACH), start) + 1, start - REACH, 0)
    high = min(len(text), end + REACH)
    for mark in ('"', "'"):
        opening = _opening(text, mark, low, start)
        if opening is None:
            continue
        closing = opening + 1
        while (closing := text.find(mark, closing, high)) >= 0 and _is_escaped(text, closing):
            closing += 1
        follows = text[closing + 1 : closing + 3].lstrip(" ") if closing >= 0 else ""
        if follows[:1] in ("", *",;}])\n") and (closing < 0 or closing >= end):
            key = re.search(r"([\w.@/-]+)[\"']?\s*:\s*$", text[max(0, opening - 60) : opening])
            return opening + 1, high if closing < 0 else closing, key[1] if key else ""
    return None


def unescaped(text: str) -> str:
    r"""Return a text with ``\n``, ``\"`` and the like replaced by what they stand for."""
    if "\\" not in text:
        return text

    def meant(match: re.Match[str]) -> str:
        if match[1]:
            letter = chr(int(match[1], 16))
            return "\ufffd" if "\ud800" <= letter <= "\udfff" else letter
        return _ESCAPES.get(match[2], match[2])

    return _ESCAPED.sub(meant, text)


def is_foreign(path: str) -> bool:
    """Return whether a path belongs to a dependency or to build output."""
    return _FOREIGN.search(path) is not None


def _opening(text: str, mark: str, low: int, start: int) -> int | None:
    """Return where the quotation begins that a place on the line is in."""
    place = start
    while (place := text.rfind(mark, low, place)) >= 0:
        if not _is_escaped(text, place):
            before = text[max(low, place - 2) : place].rstrip()
            return place if before[-1:] and before[-1] in ":,;[{(" else None
    return None


def _is_escaped(text: str, place: int) -> bool:
    count = 0
    while place > count and text[place - count - 1] == "\\" and count < 8:
        count += 1
    return count % 2 == 1


def _surroundings(window: str, line: _Line, *, fenced: bool) -> set[str]:
    """Return what the lines around are like."""
    shapes = {"fenced"} if fenced else set()
    before, after = window[: line.begin], window[line.begin + len(line.text) :]
    is_beginning = not line.text[:1].isspace()
    near = _near(before, after, 4, stops_at_blank=is_beginning)
    if _count(_CODE_LINE, near) >= 2:
        shapes.add("among code")
    if _count(_SETTING, near) >= 2:
        shapes.add("among settings")
    if (
        _COMMENT.match(line.text.lstrip("+- "))
        and _count(_CODE_LINE, _near(before, after, 12, stops_at_blank=False)) >= 3
    ):
        shapes.add("near code")
    hunks = list(_DIFF_HUNK.finditer(before))
    if hunks and "\n\n" not in before[hunks[-1].start() :]:
        shapes.add("diff")
    if _LISTED.search(line.text[:_HEAD]):
        shapes.add("listed")
    return shapes


def _count(pattern: re.Pattern[str], lines: list[str]) -> int:
    return sum(pattern.search(line[:_HEAD]) is not None for line in lines)


def _near(before: str, after: str, reach: int, *, stops_at_blank: bool) -> list[str]:
    """Return some lines on either side, those beyond a blank one perhaps left out."""
    above, below = before.splitlines()[-reach:], after.splitlines()[1 : reach + 1]
    if not stops_at_blank:
        return above + below
    last = max((n + 1 for n, line in enumerate(above) if not line.strip()), default=0)
    first = next((n for n, line in enumerate(below) if not line.strip()), len(below))
    return above[last:] + below[:first]


def _strip_prefixes(line: _Line, place: int, shapes: set[str]) -> None:
    """Take away what stands before what is said: marks of diffs, logs, lists and comments."""
    if _DONE.search(line.text):
        shapes.add("done")
    if "diff" in shapes:
        shapes.add("added" if line.text.startswith("+") else "not added")
        if line.text[:1] in "+- ":
            line.text, line.begin = line.text[1:], line.begin + 1
    if (grep := line.strip(_GREP, place)) is not None:
        shapes.update(("grep", "foreign") if is_foreign(grep["path"]) else ("grep",))
    if line.strip(_LOG, place):
        shapes.add("log")
        line.strip(_LEVEL, place)
        line.strip(_MODULE, place)
    line.strip(_SPEAKER, place)
    while line.strip(_BLOCK, place):
        pass
    _strip_comment(line, place, shapes)
    if line.text.count("|") >= 2:
        shapes.add("cell")
        line.leave_cell(place)


def _strip_comment(line: _Line, place: int, shapes: set[str]) -> None:
    """Take away the mark of a comment, and the code before it; tell code."""
    is_heading = line.text.startswith("#") and not shapes & {
        "grep",
        "added",
        "near code",
        "among code",
    }
    if line.strip(_COMMENT, place) and not is_heading:
        shapes.add("comment")
    head = line.text[: place - line.begin]
    if "comment" not in shapes and _CODE_LINE.search(line.text[:_HEAD]) and "<" not in line.text:
        shapes.add("code")
    if _COMMENT_IN_LINE.search(head):
        shapes.add("comment")
        line.cut(len(head) - len(_COMMENT_IN_LINE.split(head)[-1]))


def _joined(window: str, line: _Line, place: int, shapes: set[str]) -> tuple[str, int]:
    """Return the line together with those that it was wrapped into, and where it begins there."""
    if shapes & {"cell", "grep", "listed"}:
        return line.text, 0
    first = window.rfind("\n", 0, place) + 1
    rest = window[line.begin + len(line.text) + 1 :].split("\n")[:6]
    text = _with_following(line.text, window[first : line.begin] + line.text, rest, shapes)
    # A line that begins with a mark is an entry of a list, or somebody else's words.
    if line.begin > first or shapes & {"log", "comment", "diff"}:
        return text, 0
    return _with_earlier(text, window[:first].split("\n")[:-1][-4:])


def _with_following(text: str, full: str, rest: list[str], shapes: set[str]) -> str:
    """Append the lines that a sentence goes on in; after "Important:" alone, the next one."""
    for following in rest:
        ends = text.rstrip()
        if len(ends) < 40 and ends.endswith(":"):
            if following.strip():
                return f"{ends} {following.strip()}"
            continue
        if "comment" in shapes:
            mark = _COMMENT.match(following.lstrip("+ \t"))
            if mark is None or _ends(ends) or _CAPS_LABEL.match(following, mark.end()):
                break
            following = following.lstrip("+ \t")[mark.end() :]  # noqa: PLW2901
        elif _ends(ends) or len(full) < _WRAPPED or _BLOCK_START.match(following):
            break
        text, full = f"{ends} {following.strip()}", following
    return text


def _with_earlier(text: str, lines: list[str]) -> tuple[str, int]:
    """Prepend the lines that a sentence began in, and say by how much longer it is."""
    offset = 0
    for earlier in reversed(lines):
        is_entry = earlier[:1].isspace() and not text[:1].isspace() and not offset
        if len(earlier) < _WRAPPED or _ends(earlier) or is_entry:
            break
        indent = len(text) - len(text.lstrip())
        text = f"{earlier.strip()} {text.lstrip()}"
        offset += len(earlier.strip()) + 1 - indent
        if _BLOCK_START.match(earlier):
            break
    return text, offset


def _ends(line: str) -> bool:
    return line.rstrip(" \"')]*_").endswith((".", "!", "?", ":", ";", "。", "…"))


def _sentence(text: str, at: int) -> tuple[str, int]:
    """Cut the sentence that a place is in out of a text."""
    for begin, end in sentence_spans(text):
        if at < end:
            return text[begin:end], at - begin
    return text, at


def _plain(sentence: str, at: int) -> tuple[str, int]:
    """Take away markup, and keep the place."""
    parts = []
    last = removed = 0
    for start, end in sorted(_markup(sentence)):
        if start >= last:
            parts.append(sentence[last:start])
            last = end
            removed += max(0, min(end, at) - start)
    whole, at = "".join((*parts, sentence[last:])), at - removed
    if before := _BEFORE.match(whole, 0, at):
        whole, at = whole[before.end() :], at - before.end()
    head = whole[:at]
    place = len(" ".join(head.split())) + (1 if head[-1:].isspace() else 0)
    return " ".join(_without_end(whole).split()), place


def _without_end(text: str) -> str:
    """Take away the end of a comment, and marks that stand apart: "C#" keeps its own."""
    text = text.rstrip()
    for closer in _CLOSERS:
        text = text.removesuffix(closer)
    marks = text[len(text.rstrip(_AFTER)) :]
    apart = marks.lstrip(_AFTER.strip())
    return text.removesuffix(apart)


def _markup(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a sentence that are markup and not what is said."""
    code = [span.span() for span in _CODE_SPAN.finditer(text)]
    for link in _LINK.finditer(text) if "](" in text else ():
        yield link.start(), link.start(1)
        yield link.end(1), link.end()
    yield from (mark.span() for mark in _MARK.finditer(text))
    for tag in _TAG.finditer(text) if "<" in text else ():
        if not _is_inside(tag, code):
            yield tag.span()
    for pattern in _EMPHASIS if "*" in text or "__" in text else ():
        for pair in pattern.finditer(text):
            if not _is_inside(pair, code):
                yield pair.start(), pair.start("inner")
                yield pair.end("inner"), pair.end()


def _is_inside(match: re.Match[str], spans: list[tuple[int, int]]) -> bool:
    return any(start < match.start() < end for start, end in spans)
