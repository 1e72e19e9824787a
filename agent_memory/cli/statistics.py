"""The command stats: figures of a memory over time, its gaps, and what needs attention."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from agent_memory import Breakdown, MemoryStatistics
from agent_memory.cli.options import FILE, Moment, Session, json_option
from agent_memory.cli.render import emit
from agent_memory.cli.tables import clip, display_width, safe, table, terminal_width
from agent_memory.text.counts import counted

_LONGEST_LABEL: Final = 24
_ADVICE: Final = {
    "off": "not counted: `configure event_log brief` counts them, `full` keeps questions too",
    "brief": "which: `configure event_log full` keeps the questions from then on",
}


@click.command()
@click.option(
    "--since", type=Moment(), help="From this time on: a time, or 12h, 7d, 2w, yesterday."
)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 1000),
    default=10,
    help="At most this many per list; default: 10.",
)
@click.option("--plot", metavar="FILE.svg", type=FILE, help="Also draw it, into an SVG file.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
@click.pass_obj
def stats(
    session: Session, /, since: datetime | None, limit: int, plot: str | None, force: bool
) -> None:
    """Show how a memory grows and is used, its gaps, and what to review or archive.

    Searches are counted if the setting event_log is brief or full; questions without an answer are
    known if it is full. Nothing is changed.

    \b
    Examples:
      agent-memory --agent bob stats
      agent-memory --agent bob stats --since 30d --plot bob.svg
      agent-memory --agent bob stats --json
    """
    if plot is not None and not plot.lower().endswith(".svg"):
        raise click.BadParameter(
            "a plot is SVG: name a file that ends with .svg", param_hint="--plot"
        )
    with session.open() as memory:
        place = None
        if plot is not None:
            # Without this check a plot overwrote a memory, and all of it was lost.
            place = memory.check_destination(plot, overwrite=force, field="plot")
        statistics = memory.statistics(since=since, limit=limit)
    if place is not None:
        from agent_memory.cli.plot import write_plot  # noqa: PLC0415 - seldom used

        write_plot(place, statistics)
    emit(statistics, text=_text(statistics, session, plot))


def _text(statistics: MemoryStatistics, session: Session, plot: str | None) -> str:
    sections = [
        _heading(statistics, session),
        _over_time(statistics),
        *(
            _section(f"by {name}", _breakdown(breakdown))
            for name, breakdown in (
                ("category", statistics.categories),
                ("source", statistics.sources),
                ("session", statistics.sessions),
            )
        ),
        _section("growth", _growth(statistics)),
        _section("recalls", _recalls(statistics)),
        _section("unanswered questions", _gaps(statistics)),
        _section("most recalled", _most_recalled(statistics)),
        _section("counts", _counts(statistics)),
        _section("recommended", _recommended(statistics, session)),
    ]
    if plot is not None:
        sections.append(f"plot: {safe(plot)}")
    return "\n\n".join(section for section in sections if section)


def _section(title: str, lines: Iterator[str]) -> str:
    body = "\n".join(f"  {line}" for text in lines for line in text.split("\n"))
    return f"{title}\n{body}" if body else ""


def _heading(statistics: MemoryStatistics, session: Session) -> str:
    first = statistics.periods[0] if statistics.since is None else str(statistics.since.date())
    place = "a file" if isinstance(session.address(), Path) else "rows of a database"
    return (
        f"{statistics.agent_id}: {counted(statistics.memory_count)} and"
        f" {statistics.archived_count:,} archived, {statistics.content_bytes / 1e6:.2f} MB of text"
        f" in {place} of {statistics.file_bytes / 1e6:.2f} MB\n"
        f"{first} to {statistics.until:%Y-%m-%d}, by {statistics.period_unit}"
    )


def _over_time(statistics: MemoryStatistics) -> str:
    categories = statistics.categories
    numbers = [*(series.counts for series in categories.series), categories.others]
    counts = [sum(column) for column in zip(*numbers, strict=True)]
    rows = [row for row in zip(statistics.periods, counts, strict=True) if row[1]]
    total = statistics.memory_count + statistics.archived_count
    if (others := total - sum(counts)) > 0:  # in the future, or before --since
        rows.append(("other dates", others))
    return _section("memories by date", _bars(rows))


def _breakdown(breakdown: Breakdown) -> Iterator[str]:
    rows = [
        ("(none)" if series.name is None else series.name, series.count)
        for series in breakdown.series
    ]
    yield from _bars(rows)
    if (more := breakdown.value_count - len(breakdown.series)) > 0:
        yield f"and {more:,} more, with {sum(breakdown.others):,}"


def _bars(rows: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Yield a bar for each number, the longest as wide as the terminal allows."""
    labels = [clip(label, _LONGEST_LABEL) for label, _ in rows]
    width = max(map(display_width, labels), default=0)
    figures = [f"{number:,}" for _, number in rows]
    room = max(1, terminal_width() - 2 - width - 4 - max(map(len, figures), default=0))
    largest = max((number for _, number in rows), default=0) or 1
    block = "█" if _can_print("█") else "#"
    for label, figure, (_, number) in zip(labels, figures, rows, strict=True):
        bar = block * max(1 if number else 0, round(number / largest * room))
        yield f"{label}{' ' * (width - display_width(label))}  {bar} {figure}"


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _growth(statistics: MemoryStatistics) -> Iterator[str]:
    growth = statistics.growth
    columns = (growth.added, growth.changed, growth.deleted, growth.memories, growth.content_bytes)
    rows = [
        (period, *(f"{number:,}" for number in numbers))
        for period, *numbers in zip(statistics.periods, *columns, strict=True)
        if any(numbers[:3])
    ]
    if rows:
        headings = (statistics.period_unit, "added", "changed", "deleted", "memories", "bytes")
        yield table(headings, rows)


def _recalls(statistics: MemoryStatistics) -> Iterator[str]:
    recalls = statistics.recalls
    columns = (recalls.searches, recalls.unanswered, recalls.memories, recalls.tokens)
    rows = [
        (period, *(f"{number:,}" for number in numbers))
        for period, *numbers in zip(statistics.periods, *columns, strict=True)
        if any(numbers)
    ]
    if rows:
        headings = (statistics.period_unit, "searches", "unanswered", "memories", "tokens")
        yield table(headings, rows)
        yield f"{recalls.memories_per_day:,.1f} memories a day"
    if recalls.event_log == "off":
        yield _ADVICE["off"]


def _gaps(statistics: MemoryStatistics) -> Iterator[str]:
    rows = [
        (f"{gap.unanswered:,}", f"{gap.last_asked:%Y-%m-%d}", gap.question)
        for gap in statistics.gaps
    ]
    if rows:
        yield table(("times", "last", "question"), rows)
        if (more := statistics.gap_count - len(rows)) > 0:
            yield f"and {more:,} more"
    elif statistics.recalls.event_log == "brief" and any(statistics.recalls.unanswered):
        yield _ADVICE["brief"]


def _most_recalled(statistics: MemoryStatistics) -> Iterator[str]:
    rows = [
        (
            memory.memory_id,
            f"{memory.access_count:,}",
            "-" if memory.share is None else f"{memory.share:.0%}",
        )
        for memory in statistics.most_recalled
    ]
    if rows:
        yield table(("memory", "times", "of searches"), rows)


def _counts(statistics: MemoryStatistics) -> Iterator[str]:
    rows = (
        (statistics.never_recalled_count, "never recalled, and 30 days old or more"),
        (statistics.old_answer_count, "answered often, and 90 days old or more"),
        (statistics.contradiction_count, "under review: `review` lists them"),
        (statistics.duplicate_count, "duplicates of another: `duplicates` lists them"),
        (statistics.archivable_count, "could be archived for their age or number"),
    )
    width = max(len(f"{count:,}") for count, _ in rows)
    for count, meaning in rows:
        yield f"{count:>{width},}  {meaning}"


def _recommended(statistics: MemoryStatistics, session: Session) -> Iterator[str]:
    """Yield each recommendation with its reason, and a command that can be run as it is."""
    options: list[str] = []
    for name, value in (("--root", session.root), ("--agent", session.agent), ("--db", session.db)):
        options += [name, value] if value else []
    run = shlex.join(["agent-memory", *options])
    for item in statistics.recommendations:
        yield f"{item.action} {clip(' '.join(item.memory_ids), 60)}: {safe(item.reason)}"
        yield f"  {run}{item.command.removeprefix('agent-memory')}"
