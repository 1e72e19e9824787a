"""A memory's statistics as one SVG file, written by hand: for viewing, printing and screen readers.

The colours are those of Okabe and Ito, which people with any kind of colour blindness can tell
apart; each also has its own pattern, for prints in black and white. Every bar has a title.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from agent_memory import MemoryStatistics
from agent_memory.cli.tables import clip, safe
from agent_memory.runtime.files import written_atomically
from agent_memory.text.counts import counted

_WIDTH: Final = 960
_LEFT: Final = 90
_CHART_WIDTH: Final = 620
_CHART_HEIGHT: Final = 180
_PANEL_HEIGHT: Final = 260
_TOP: Final = 70
_LABELS: Final = 8
"""The most dates below a chart."""
_SERIES: Final = 7
"""Categories with their own colour; the others share the last."""
_COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442", "#999999",
)  # fmt: skip
_PATTERNS: Final = (
    "",  # plain
    "M0 8 L8 0",
    "M0 0 L8 8",
    "M0 4 H8",
    "M4 0 V8",
    "M0 0 L8 8 M0 8 L8 0",
    "M4 0 V8 M0 4 H8",
    "M3 4 H5",
)
_Named = tuple[str, list[int]]
"""The name of a series, and its number for each period."""


def write_plot(path: Path, statistics: MemoryStatistics) -> None:
    """Write the plot of a memory's statistics, all or nothing. Raises ``StorageError``."""
    with written_atomically(path) as file:
        file.write(plot_of(statistics).encode())


def plot_of(statistics: MemoryStatistics) -> str:
    """Return the plot as the text of an SVG file."""
    panels = list(_panels(statistics))
    height = _TOP + _PANEL_HEIGHT * len(panels)
    span = f"{statistics.periods[0]} to {statistics.until:%Y-%m-%d}"
    title = f"Memory of {statistics.agent_id}, {span}"
    summary = (
        f"{counted(statistics.memory_count)} and {statistics.archived_count:,} archived,"
        f" by {statistics.period_unit}"
    )
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="title summary"',
        f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"',
        'font-family="sans-serif" font-size="13" fill="#000">',
        f'<title id="title">{_xml(title)}</title>',
        f'<desc id="summary">{_xml(f"{summary}. {_spoken(statistics)}")}</desc>',
        f"<defs>{''.join(map(_pattern, range(len(_COLOURS))))}</defs>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="20" y="30" font-size="20">{_xml(title)}</text>',
        f'<text x="20" y="52">{_xml(summary)}</text>',
    ]
    for number, (name, series, is_level) in enumerate(panels):
        top = _TOP + number * _PANEL_HEIGHT
        parts += [f'<g transform="translate({_LEFT} {top + 30})">']
        parts += [f'<text x="{20 - _LEFT}" y="-16" font-size="15">{_xml(name)}</text>']
        parts += _panel(statistics.periods, series, is_level=is_level)
        parts += ["</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panels(statistics: MemoryStatistics) -> Iterator[tuple[str, list[_Named], bool]]:
    """Yield each chart's title and series, and whether these are levels rather than amounts."""
    breakdown = statistics.categories
    series = [
        ("(none)" if each.name is None else each.name, each.counts)
        for each in breakdown.series[:_SERIES]
    ]
    rest = [each.counts for each in breakdown.series[_SERIES:]] + [breakdown.others]
    others = [sum(column) for column in zip(*rest, strict=True)]
    if any(others):
        series.append(("others", others))
    yield "Memories by date and category", series, False
    growth, recalls = statistics.growth, statistics.recalls
    yield "Memories kept, archived ones too", [("memories", growth.memories)], True
    yield "Bytes of their texts", [("bytes", growth.content_bytes)], True
    if any(recalls.searches):
        pairs = zip(recalls.searches, recalls.unanswered, strict=True)
        answered = [max(0, searches - unanswered) for searches, unanswered in pairs]
        yield "Searches", [("answered", answered), ("unanswered", recalls.unanswered)], False
    if any(recalls.tokens):
        yield "Tokens given to models, estimated", [("tokens", recalls.tokens)], False


def _spoken(statistics: MemoryStatistics) -> str:
    """Describe the charts in words, for screen readers."""
    counts = [
        f"{'no category' if each.name is None else each.name} {each.count:,}"
        for each in statistics.categories.series
    ]
    searches = sum(statistics.recalls.searches)
    return (
        f"By category: {', '.join(counts) or 'none'}. {searches:,} searches,"
        f" {sum(statistics.recalls.unanswered):,} of them unanswered."
    )


def _panel(periods: Sequence[str], series: Sequence[_Named], *, is_level: bool) -> Iterator[str]:
    """Yield one chart: its axes, its bars or line, and the legend of its series."""
    columns = list(zip(*(counts for _, counts in series), strict=True)) or [(0,)] * len(periods)
    highest = _rounded_up(max(map(sum, columns)))
    for share in (0.0, 0.5, 1.0):
        y = _CHART_HEIGHT * (1 - share)
        yield f'<path d="M0 {y:.1f} H{_CHART_WIDTH}" stroke="#bbb" fill="none"/>'
        yield f'<text x="-8" y="{y + 4:.1f}" text-anchor="end">{highest * share:,.10g}</text>'
    step = _CHART_WIDTH / len(periods)
    stride = -(-len(periods) // _LABELS)
    for place in range(0, len(periods), stride):
        x = (place + 0.5) * step
        yield f'<text x="{x:.1f}" y="{_CHART_HEIGHT + 18}" text-anchor="middle" font-size="11">'
        yield f"{_xml(periods[place])}</text>"
    scale = _CHART_HEIGHT / highest
    draw = _line if is_level else _stacks
    yield from draw(periods, series, step=step, scale=scale)
    for number, (name, _) in enumerate(series if len(series) > 1 else ()):
        y = number * 22
        yield f'<rect x="{_CHART_WIDTH + 20}" y="{y}" width="16" height="16" {_fill(number)}/>'
        yield f'<text x="{_CHART_WIDTH + 44}" y="{y + 13}">{_xml(clip(name, 26))}</text>'


def _stacks(
    periods: Sequence[str], series: Sequence[_Named], *, step: float, scale: float
) -> Iterator[str]:
    """Yield a bar for each period, stacked from a piece for each series."""
    for place, period in enumerate(periods):
        y = float(_CHART_HEIGHT)
        for number, (name, counts) in enumerate(series):
            height = counts[place] * scale
            if not height:
                continue
            y -= height
            box = (
                f'x="{(place + 0.1) * step:.1f}" y="{y:.2f}"'
                f' width="{step * 0.8:.1f}" height="{height:.2f}"'
            )
            label = _xml(f"{period}, {name}: {counts[place]:,}")
            yield f"<rect {box} {_fill(number)}><title>{label}</title></rect>"


def _line(
    periods: Sequence[str], series: Sequence[_Named], *, step: float, scale: float
) -> Iterator[str]:
    """Yield a line from period to period, with a mark on each."""
    for name, counts in series:
        points = [
            ((place + 0.5) * step, _CHART_HEIGHT - count * scale)
            for place, count in enumerate(counts)
        ]
        drawn = " ".join(f"{x:.1f},{y:.2f}" for x, y in points)
        yield f'<polyline points="{drawn}" fill="none" stroke="{_COLOURS[0]}" stroke-width="2"/>'
        for (x, y), period, count in zip(points, periods, counts, strict=True):
            label = _xml(f"{period}, {name}: {count:,}")
            yield f'<circle cx="{x:.1f}" cy="{y:.2f}" r="3" fill="{_COLOURS[0]}">'
            yield f"<title>{label}</title></circle>"


def _pattern(number: int) -> str:
    """Return the definition of a series' pattern: its colour, with black lines or none."""
    lines = f'<path d="{_PATTERNS[number]}" stroke="#000" stroke-width="1"/>'
    return (
        f'<pattern id="fill-{number}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<rect width="8" height="8" fill="{_COLOURS[number]}"/>'
        f"{lines if _PATTERNS[number] else ''}</pattern>"
    )


def _fill(number: int) -> str:
    return f'fill="url(#fill-{number})" stroke="#000" stroke-width="0.5"'


def _rounded_up(number: int) -> int:
    """Return the next number that can end an axis: an even digit and zeros, or 10, 100."""
    power = 1
    while True:
        for step in (2, 4, 6, 8, 10):
            if number <= step * power:
                return step * power
        power *= 10


def _xml(text: str) -> str:
    """Escape a text for XML; characters that XML forbids, or a viewer obeys, become visible."""
    return escape(safe(text, one_line=True))
