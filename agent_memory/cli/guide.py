"""The command `guide`: what is in `agent_memory/guides`, listed by topic or printed."""

from __future__ import annotations

import difflib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from agent_memory.cli.options import Session, json_option
from agent_memory.cli.render import emit

GUIDES: Final = Path(__file__).parents[1] / "guides"
TOPICS: Final = (
    "python", "shell", "search", "meaning", "duplicates", "formats", "life-cycle", "conversations",
    "sessions-and-users", "inside-agents", "mcp", "amplifier", "events", "secrets", "plain-sqlite",
    "reliability", "measurements", "working-on-it",
)  # fmt: skip
"""The guides, in the order in which a newcomer may read them."""
_WIDEST: Final = 100
_NEAREST: Final = 3
_SHORTEST: Final = 3
_SIMILARITY: Final = 0.6


@dataclass(frozen=True)
class Guide:
    """A guide: a Markdown file that begins with its title and a paragraph that sums it up."""

    topic: str
    title: str
    summary: str
    text: str


def guides() -> list[Guide]:
    """Read all guides, in their order."""
    return [_read(topic) for topic in TOPICS]


def _read(topic: str) -> Guide:
    text = (GUIDES / f"{topic}.md").read_text(encoding="utf-8")
    title, summary = text.split("\n\n", 2)[:2]
    return Guide(topic, title.removeprefix("# "), summary.strip(), text)


def _completed(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the topics that begin with what was typed, for the shell."""
    return [topic for topic in TOPICS if topic.startswith(incomplete)]


@click.command()
@click.argument("topic", required=False, shell_complete=_completed)
@json_option
@click.pass_obj
def guide(session: Session, /, topic: str | None) -> None:
    """Print the guide to TOPIC, or list the topics.

    In a terminal it is paged and fitted to the width; elsewhere it is printed as Markdown.

    \b
    Examples:
      agent-memory guide
      agent-memory guide search
      agent-memory guide formats --json
    """
    if topic is None:
        _list(guides(), as_json=session.json)
    elif topic not in TOPICS:
        raise click.UsageError(_unknown(topic))
    else:
        _print(_read(topic), as_json=session.json)


def _print(chosen: Guide, *, as_json: bool) -> None:
    if sys.stdout.isatty() and not as_json:
        from agent_memory.cli.markdown import terminal_text  # noqa: PLC0415 - of this case alone

        click.echo_via_pager(terminal_text(chosen.text, _width()).rstrip("\n"))
    else:
        emit(asdict(chosen), text=chosen.text.rstrip("\n"), as_json=as_json)


def _list(listed: list[Guide], *, as_json: bool) -> None:
    """Print each topic with the sentence that sums its guide up."""
    formatter = click.HelpFormatter(width=_width() if sys.stdout.isatty() else _WIDEST)
    formatter.write_dl([(entry.topic, entry.summary) for entry in listed])
    data = [{name: getattr(entry, name) for name in ("topic", "title", "summary")}
            for entry in listed]  # fmt: skip
    text = f"{formatter.getvalue()}\nagent-memory guide TOPIC prints one."
    emit({"topics": data}, text=text, as_json=as_json)


def _unknown(topic: str) -> str:
    """Return what to say of an unknown topic: which are near it, by subject or by name."""
    word = topic.lower()
    near = [
        entry.topic
        for entry in guides()
        if len(word) >= _SHORTEST and word in f"{entry.title} {entry.summary}".lower()
    ]
    near += difflib.get_close_matches(word, set(TOPICS).difference(near), _NEAREST, _SIMILARITY)
    meant = f" Did you mean {' or '.join(near[:_NEAREST])}?" if near else ""
    return f"there is no guide {topic!r:.80}.{meant} `agent-memory guide` lists the topics"


def _width() -> int:
    import shutil  # noqa: PLC0415 - 4 ms, which output to a pipe need not pay

    return min(shutil.get_terminal_size().columns, _WIDEST)
