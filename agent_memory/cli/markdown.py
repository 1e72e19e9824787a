"""Markdown laid out for a terminal: prose filled to its width, tables in columns, code as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

_LEAST_COLUMN: Final = 8
_GAP: Final = "  "
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_ITEM: Final = re.compile(r"(\s*(?:[-*]|\d+\.)\s+)")
_CELL_END: Final = re.compile(r"(?<!\\)\|")
_CODE: Final = re.compile(r"`[^`]{1,60}`")
# What ends a paragraph without a blank line: a heading, a table, a list item, a code block.
_STARTS: Final = re.compile(r"#|\||\s*(?:[-*]|\d+\.)\s|```")


def terminal_text(markdown: str, width: int) -> str:
    """Return a Markdown document as lines of at most ``width``, code blocks excepted."""
    return "\n".join(_lines(markdown.splitlines(), width)) + "\n"


def _lines(source: Sequence[str], width: int) -> Iterator[str]:
    position = 0
    while position < len(source):
        end = _block_end(source, position)
        block = source[position:end]
        if block[0].startswith("|"):
            yield from _table(block, width)
        elif block[0].startswith(("#", "```", "    ")) or not block[0].strip():
            yield from block
        else:
            yield from _filled(block, width)
        position = end


def _block_end(source: Sequence[str], start: int) -> int:
    """Return where the block ends that starts at a line."""
    first, end = source[start], start + 1
    if first.startswith("```"):
        while end < len(source) and not source[end].startswith("```"):
            end += 1
        return min(end + 1, len(source))
    if first.startswith("|"):
        while end < len(source) and source[end].startswith("|"):
            end += 1
    elif first.strip() and not first.startswith(("#", "    ")):
        while end < len(source) and source[end].strip() and not _STARTS.match(source[end]):
            end += 1
    return end


def _filled(block: Sequence[str], width: int) -> list[str]:
    """Fill a paragraph or a list item, whose further lines hang under its text."""
    mark = match[1] if (match := _ITEM.match(block[0])) else ""
    text = " ".join(line.strip() for line in block).removeprefix(mark.strip())
    lines = textwrap.wrap(
        # What is typed in, such as a command, stays on one line.
        _CODE.sub(lambda code: code[0].replace(" ", "\0"), _without_links(text.strip())),
        width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _without_links(text: str) -> str:
    """Leave a guide's topic as code, of another link the text and, in brackets, the address."""
    return _LINK.sub(
        lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else f"`{link[1]}`", text
    )


def _table(block: Sequence[str], width: int) -> Iterator[str]:
    """Set a table in columns; where it is too wide, the widest are wrapped."""
    rows = [_cells(line) for line in block]
    rule = rows.pop(1)
    widths = _column_widths(rows, width - len(_GAP) * (len(rule) - 1))
    for number, row in enumerate(rows):
        wrapped = [
            textwrap.wrap(cell, space, break_on_hyphens=False) or [""]
            for cell, space in zip(row, widths, strict=True)
        ]
        for line in range(max(map(len, wrapped))):
            cells = [cell[line] if line < len(cell) else "" for cell in wrapped]
            padded = [cell.ljust(space) for cell, space in zip(cells, widths, strict=True)]
            yield _GAP.join(padded).rstrip()
        if number == 0:
            yield _GAP.join("-" * space for space in widths)


def _cells(line: str) -> list[str]:
    cells = _CELL_END.split(line.strip())[1:-1]
    return [_without_links(cell.strip()).replace("\\|", "|") for cell in cells]


def _column_widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return each column's width: that of its longest cell, the widest narrowed to fit.

    No word is broken unless the longest of all columns do not fit beside each other.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in (cell or "-").split())
             for column in columns]  # fmt: skip
    least = words if sum(words) <= room else [_LEAST_COLUMN] * len(words)
    while sum(widths) > room:
        spare = [width - fewest for width, fewest in zip(widths, least, strict=True)]
        if max(spare) <= 0:
            break
        widths[spare.index(max(spare))] -= 1
    return widths
