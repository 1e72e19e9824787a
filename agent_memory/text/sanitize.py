"""Makes text inert: nothing in it can be obeyed by a model or rendered by a Markdown viewer.

Text from any source is put before a model as one line. Characters that would begin markup are
replaced by their full-width forms, which no parser recognises: ``<`` in ``<system>`` becomes
U+FF1C. It remains readable, and is equal to the original under Unicode's NFKC, so an echo of it is
still recognised. Invisible characters are removed.
"""

from __future__ import annotations

import re
from typing import Final

_FULL_WIDTH: Final = 0xFEE0
"""The distance between an ASCII character and its full-width form."""
# With any kind of line break, a text could begin a heading or an entry of its own. Marks that
# reverse the direction of the text after them could hide it.
_BREAKS: Final = r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+"
# Joiners and variation selectors belong to emoji and to some scripts, one at a time. Any others can
# spell out a message that only a model reads: tags and sequences of selectors do.
_UNSEEN: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2060-\u2065"
    "\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
    "|(?:\\A|(?<=[\x00-\x7f]))[\u200c\u200d]+"
    "|[\u200c\u200d\ufe00-\ufe0f]{3,}|[\u200c\u200d]{2}|[\ufe00-\ufe0f]{2}"
)
# The start of a turn at the beginning of a line: "Human:" after a line break.
_TURN: Final = (
    r"(?i)(?:\A|\n)[ #>*_\[(-]*"
    r"(?:human|user|assistant|ai|system|developer|tool|function|model|bot)[ \])*_]*(?P<active>:)"
)
_ACTIVE: Final = (
    r"(?i)(?P<active>"
    r"(?<!<)<+(?![\s=<\d-]|\Z)|<(?=0x)"  # tags, comments, <|im_start|>; not "a < b", "<3", "<-"
    r"|(?<=[|\u2581\uff5c])>"  # the end of <|…|>
    r"|`{3,}|~{3,}"  # code fences
    r"|\A(?:>+|\#(?=\s|\Z))|\#{2,}(?=\s|\Z)"  # quotes and headings, ### Instruction
    r"|!(?=\[)|(?<=\])[(](?=[^\s)])|\A\[(?=[^\]]*\]:)"  # images, links, link definitions
    r"|\[(?=/?(?:INST|SYS|SYSTEM|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
    r"|\{(?=[^}]{1,200}\sby\s)"  # it would claim another source
    r")"
)
_LINE_BREAK: Final = r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
# These are compiled only for a text that needs them: together that takes 2 ms.

# Most texts contain none of this: one check, at a tenth of the cost, is enough for them.
_SUSPECT: Final = re.compile(
    r"[^ 0-9A-Za-z\u00c0-\u024f,.:;?'\"/%&+=$@^_()\u2010-\u2019\u201c\u201d-]|  |\A | \Z"
)


def as_data(text: str) -> str:
    """Return a text on one line, with nothing in it that a reader of the line would obey."""
    if _SUSPECT.search(text) is None:
        return re.sub(_TURN, _widened, text) if ":" in text else text
    return _neutralised(text)


def _neutralised(text: str) -> str:
    seen = re.sub(_UNSEEN, "", text)
    lines = re.sub(_BREAKS, _folded, seen).strip()
    return re.sub(_ACTIVE, _widened, re.sub(_TURN, _widened, lines).replace("\n", " "))


def _folded(match: re.Match[str]) -> str:
    return "\n" if re.search(_LINE_BREAK, match[0]) else " "


def _widened(match: re.Match[str]) -> str:
    """Return what was matched, with what is active of it in full width."""
    begin, end = (place - match.start() for place in match.span("active"))
    whole = match[0]
    wide = "".join(chr(ord(letter) + _FULL_WIDTH) for letter in whole[begin:end])
    return whole[:begin] + wide + whole[end:]
