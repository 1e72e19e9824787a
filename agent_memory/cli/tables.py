"""Tables: fitted to a terminal, with some color, or in a form for documents."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final, Literal, TextIO

Row = Sequence[str]
Style = Literal["strong", "faint", "good", "bad"]

_FEW_ROWS: Final = 10
_MANY_LINES: Final = 12
_FEW_LINES: Final = 3
_END: Final = "\ufdd0"
_MARKS: Final[dict[Style, str]] = {
    "strong": "\ufdd1", "faint": "\ufdd2", "good": "\ufdd3", "bad": "\ufdd4",
}  # fmt: skip
_CODES: Final = {
    _END: "\x1b[0m",
    _MARKS["strong"]: "\x1b[1m",
    _MARKS["faint"]: "\x1b[2m",
    _MARKS["good"]: "\x1b[32m",
    _MARKS["bad"]: "\x1b[31m",
}
"""Marks of where a style begins and ends, until a text is printed: no text has them."""
_ANY_MARK: Final = re.compile(f"([{''.join(_CODES)}])")


def table(
    headings: Row,
    rows: Iterable[Row],
    *,
    flexible: int = 1,
    styles: Callable[[int, str], str] = lambda _, text: text,
) -> str:
    """Lay out rows in columns; the last ``flexible`` columns are wrapped to fit the terminal.

    A cell has at most ``_FEW_LINES`` lines, ``_MANY_LINES`` if there are few rows, and any number
    with --full. ``styles`` gets the number of a row and one of its lines, and returns the line with
    its styles. With --table or --fmt the table is in that form, and nothing is cut.
    """
    session = _session()
    cells = [tuple(headings), *(tuple(safe(cell, one_line=True) for cell in row) for row in rows)]
    if session and session.printed_as == "table":
        return FORMS[session.form](cells)
    widths = _widths(cells)
    # In a pipe or a file, a row is one line, and nothing is cut.
    total = terminal_width() if sys.stdout.isatty() else sys.maxsize
    room = total - sum(widths[:-flexible]) - 2 * (len(widths) - 1)
    cut = widths[-flexible:]
    while sum(cut) > max(room, 8 * flexible):
        cut[cut.index(max(cut))] -= 1
    widths[-flexible:] = cut
    most = _MANY_LINES if len(cells) <= _FEW_ROWS + 1 else _FEW_LINES
    limit = None if session and session.full else most
    lines = [styled(line, "strong") for line in _lines(cells[0], widths, limit)]
    for number, row in enumerate(cells[1:]):
        lines += [styles(number, line) for line in _lines(row, widths, limit)]
    return "\n".join(lines)


def _session() -> Any:  # a ``Session``, of a module above this one
    """Return the command's options; a search without click has not imported them."""
    options = sys.modules.get("agent_memory.cli.options")
    return None if options is None else options.current_session()


def _widths(rows: Sequence[Row]) -> list[int]:
    return [max(map(display_width, column)) for column in zip(*rows, strict=True)]


# Forms for documents ------------------------------------------------------------------------


def _plain(rows: Sequence[Row]) -> str:
    widths = _widths(rows)
    return "\n".join("  ".join(map(_padded, row, widths)).rstrip() for row in rows)


def _simple(rows: Sequence[Row]) -> str:
    rule = ["-" * width for width in _widths(rows)]
    return _plain([rows[0], rule, *rows[1:]])


def _grid(rows: Sequence[Row]) -> str:
    widths = _widths(rows)
    border = f"+{'+'.join('-' * (width + 2) for width in widths)}+"
    lines = [f"| {' | '.join(map(_padded, row, widths))} |" for row in rows]
    under = [border.replace("-", "="), *[border] * (len(rows) - 1)]
    return "\n".join([border, *(part for pair in zip(lines, under, strict=True) for part in pair)])


def _markdown(rows: Sequence[Row]) -> str:
    # A backslash before a bar would undo the bar's escape.
    escaped = ((cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row) for row in rows)
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


FORMS: Final[dict[str, Callable[[Sequence[Row]], str]]] = {
    "plain": _plain,
    "simple": _simple,
    "grid": _grid,  # reStructuredText reads it too
    "markdown": _markdown,
    "github": _markdown,  # sqlite-utils' name for it
}
"""The functions that lay out rows, after the headings, in a form of --fmt."""


# Lines and widths ---------------------------------------------------------------------------


def _lines(row: Sequence[str], widths: Sequence[int], most: int | None) -> Iterable[str]:
    """Yield the lines of a row, with each cell wrapped to its width."""
    wrapped = [_wrapped(cell, width, most) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*wrapped, fillvalue=""):
        yield "  ".join(map(_padded, parts, widths)).rstrip()


def _wrapped(text: str, width: int, most: int | None) -> list[str]:
    """Break a text into lines of a width in terminal cells, at spaces if possible."""
    lines: list[str] = []
    while display_width(text) > width and (most is None or len(lines) + 1 < most):
        fitting = max(1, _fitting(text, width))
        end = text.rfind(" ", 0, fitting + 1)
        end = fitting if end <= 0 else end
        lines.append(text[:end])
        text = text[end:].lstrip(" ")
    return [*lines, text]  # the last line is cut later if it is still too long


def _fitting(text: str, width: int) -> int:
    """Return how many characters of a text fit into a width."""
    used = 0
    for place, letter in enumerate(text):
        used += display_width(letter)
        if used > width:
            return place
    return len(text)


def terminal_width() -> int:
    """Return the width of the terminal in cells; 80 if there is no terminal."""
    import shutil  # noqa: PLC0415 - 4 ms, which output to a pipe does not need

    return shutil.get_terminal_size().columns


def _padded(cell: str, width: int) -> str:
    text = clip(cell, width)
    return text + " " * (width - display_width(text))


def clip(text: str, width: int) -> str:
    """Cut a text to a width in terminal cells, with a mark that it was cut."""
    text = safe(text, one_line=True)
    if display_width(text) <= width:
        return text
    return text[: _fitting(text, width - 1)] + "…"


def display_width(text: str) -> int:
    """Return the width of a text in terminal cells: two for a Chinese character."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def safe(text: str, *, one_line: bool = False) -> str:
    """Make control and direction characters visible: a memory must not control the terminal."""
    if text.isprintable():
        return text
    kept = " " if one_line else "\n\t "
    return "".join(
        letter if letter.isprintable() or (letter in kept and not one_line)
        else " " if letter in "\n\r\t" or letter.isspace()
        else f"\\u{ord(letter):04x}" if letter <= "\uffff" else f"\\U{ord(letter):08x}"
        for letter in text
    )  # fmt: skip


# Color ----


def has_color(stream: TextIO) -> bool:
    """Return whether a stream may be colored: it is a terminal, and NO_COLOR and TERM allow it."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return is_wanted and stream.isatty()


def styled(text: str, style: Style) -> str:
    """Return a text that ``shown`` gives a style, if stdout is a terminal with colors."""
    return f"{_MARKS[style]}{text}{_END}" if text and has_color(sys.stdout) else text


def shown(line: str) -> str:
    """Return a line for printing: only its styles control the terminal."""
    if not has_color(sys.stdout):
        return safe(line)
    parts = _ANY_MARK.split(line)
    ending = _CODES[_END] if len(parts) > 1 else ""
    return "".join(_CODES.get(part) or safe(part) for part in parts).removesuffix(ending) + ending
