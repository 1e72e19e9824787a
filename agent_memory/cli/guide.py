"""The command `guide`: what is in `agent_memory/guides`, listed by topic, printed, or as a site.

Two more are generated on demand: every command's help page, and every public name. Markdown is laid
out for a terminal: prose wrapped to its width, tables in columns, code as it is.
"""

from __future__ import annotations

import difflib
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from agent_memory.cli.options import FILE, Session, json_option
from agent_memory.cli.render import emit
from agent_memory.cli.tables import terminal_width
from agent_memory.runtime.package_files import PACKAGE
from agent_memory.text.counts import counted

GUIDES: Final = PACKAGE / "guides"
TOPICS: Final = (
    "first-steps", "python", "shell", "recipes", "search", "meaning", "duplicates", "formats",
    "moving-in", "life-cycle", "conversations", "sessions-and-users", "coding-agents",
    "inside-agents", "frameworks", "mcp", "amplifier", "page", "events", "statistics", "security",
    "secrets", "plain-sqlite", "postgresql", "errors", "reliability", "invariants",
    "measurements", "experiments", "how-it-compares", "changes", "working-on-it",
)  # fmt: skip
"""The guides, in a good reading order for newcomers."""
MADE: Final = {
    "commands": ("Every command", "Every command with its help page."),
    "reference": ("Every public name", "Every public name, with what its docstring says."),
}
"""The guides that are generated on demand, with their titles and summaries."""
_WIDEST: Final = 100
_NEAREST: Final = 3
_SHORTEST: Final = 3
_SIMILARITY: Final = 0.6


@dataclass(frozen=True)
class Guide:
    """A guide: a Markdown file that begins with its title and a summary paragraph."""

    topic: str
    title: str
    summary: str
    text: str


def guides() -> list[Guide]:
    """Read all guides, in order."""
    return [_read(topic) for topic in TOPICS]


def _read(topic: str) -> Guide:
    text = (GUIDES / f"{topic}.md").read_text(encoding="utf-8")
    title, summary = text.split("\n\n", 2)[:2]
    return Guide(topic, title.removeprefix("# "), summary.strip(), text)


def _make(topic: str, program: click.Command) -> Guide:
    """Generate a guide from the program or from the public names."""
    from agent_memory.cli.reference import commands_text, reference_text  # noqa: PLC0415 - seldom

    title, summary = MADE[topic]
    body = commands_text(program) if topic == "commands" else reference_text()
    return Guide(topic, title, summary, f"# {title}\n\n{summary}\n\n{body}")


def _completed(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the topics that begin with the typed text, for the shell."""
    return [topic for topic in (*TOPICS, *MADE) if topic.startswith(incomplete)]


@click.command()
@click.argument("topic", required=False, shell_complete=_completed)
@click.option("--no-pager", is_flag=True, help="Print a long guide without paging.")
@click.option(
    "--html", "folder", metavar="DIR", type=FILE, help="Write all guides as a site into DIR."
)
@json_option
@click.pass_context
def guide(context: click.Context, topic: str | None, no_pager: bool, folder: str | None) -> None:
    """Print the guide to TOPIC, or list the topics.

    In a terminal it is fitted to the width, and paged if it is longer than the screen; elsewhere it
    is printed as Markdown. --html writes all guides as a static site.

    \b
    Examples:
      agent-memory guide
      agent-memory guide search
      agent-memory guide reference --no-pager
      agent-memory guide --html ~/guides
    """
    session: Session = context.obj
    program = context.find_root().command
    if folder is not None:
        _write_site(topic, folder, program)
    elif topic is None:
        _list()
    elif topic in MADE:
        _print(_make(topic, program), as_json=session.json, is_paged=not no_pager)
    elif topic in TOPICS:
        _print(_read(topic), as_json=session.json, is_paged=not no_pager)
    else:
        raise click.UsageError(_unknown(topic))


def _print(chosen: Guide, *, as_json: bool, is_paged: bool) -> None:
    if as_json or not sys.stdout.isatty():
        emit(asdict(chosen), text=chosen.text.rstrip("\n"))
        return
    import shutil  # noqa: PLC0415 - 4 ms, which output to a pipe does not need

    text = terminal_text(chosen.text, _width()).rstrip("\n")
    if is_paged and text.count("\n") + 1 >= shutil.get_terminal_size().lines:
        click.echo_via_pager(text)
    else:
        click.echo(text)


def _write_site(topic: str | None, folder: str, program: click.Command) -> None:
    """Write all guides as a site, and say where."""
    from agent_memory.cli.site import write_site  # noqa: PLC0415 - seldom

    if topic is not None:
        raise click.UsageError("--html writes all guides: leave the topic out")
    pages = [*guides(), *(_make(made, program) for made in MADE)]
    files = write_site(pages, Path(folder))
    data = {"folder": folder, "files": [path.name for path in files]}
    emit(data, text=f"{counted(len(files), 'file', 'files')} in {folder}: open {files[0]}")


def _list() -> None:
    """Print each topic with its guide's summary sentence."""
    listed = [(entry.topic, entry.title, entry.summary) for entry in guides()]
    listed += [(topic, *about) for topic, about in MADE.items()]
    formatter = click.HelpFormatter(width=_width() if sys.stdout.isatty() else _WIDEST)
    formatter.write_dl([(topic, summary) for topic, _, summary in listed])
    data = [dict(zip(("topic", "title", "summary"), entry, strict=True)) for entry in listed]
    text = f"{formatter.getvalue()}\nagent-memory guide TOPIC prints one."
    emit({"topics": data}, text=text)


def _unknown(topic: str) -> str:
    """Return the message for an unknown topic: which topics are near it, by subject or by name."""
    word = topic.lower()
    near = [
        entry.topic
        for entry in guides()
        if len(word) >= _SHORTEST and word in f"{entry.title} {entry.summary}".lower()
    ]
    others = {*TOPICS, *MADE}.difference(near)
    near += difflib.get_close_matches(word, others, _NEAREST, _SIMILARITY)
    meant = f" Did you mean {' or '.join(near[:_NEAREST])}?" if near else ""
    return f"there is no guide {topic!r:.80}.{meant} `agent-memory guide` lists the topics"


def _width() -> int:
    return min(terminal_width(), _WIDEST)


_LEAST_COLUMN: Final = 8
_GAP: Final = "  "
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_ITEM: Final = re.compile(r"(\s*(?:[-*]|\d+\.)\s+)")
_CELL_END: Final = re.compile(r"(?<!\\)\|")
_CODE: Final = re.compile(r"`[^`]{1,60}`")
# What ends a paragraph without a blank line: a heading, a table, a list item, a code block.
_STARTS: Final = re.compile(r"#|\||\s*(?:[-*]|\d+\.)\s|```")


def terminal_text(markdown: str, width: int) -> str:
    """Return a Markdown document as lines of at most ``width``, except for code blocks."""
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
    """Return the end of the block that starts at a line."""
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
    """Wrap a paragraph or a list item; an item's further lines are indented."""
    mark = match[1] if (match := _ITEM.match(block[0])) else ""
    text = " ".join(line.strip() for line in block).removeprefix(mark.strip())
    lines = textwrap.wrap(
        # Things to type, such as a command, stay on one line.
        _CODE.sub(lambda code: code[0].replace(" ", "\0"), _without_links(text.strip())),
        width,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]


def _without_links(text: str) -> str:
    """Replace a link to a guide by its topic as code, another by "text (address)"."""
    return _LINK.sub(
        lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else f"`{link[1]}`", text
    )


def _table(block: Sequence[str], width: int) -> Iterator[str]:
    """Lay out a table in columns; if it is too wide, wrap the widest."""
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
    """Return the width of each column: its longest cell, with the widest columns narrowed to fit.

    No word is broken unless the longest words of all columns do not fit side by side.
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
