"""The command that shows what happens in a memory: events."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from typing import Final

import click

from agent_memory import EventName, MemoryEvent
from agent_memory.cli.options import ExitCode, Moment, Session, json_option
from agent_memory.cli.render import emit
from agent_memory.cli.tables import safe

_OFF: Final = (
    "events are not recorded: `agent-memory configure event_log brief` turns that on (`full`:"
    " with texts)"
)


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Keep printing new events, until Ctrl-C.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(0, 2**31 - 1),  # a larger number would raise OverflowError in a list
    default=20,
    help="At most this many past events; default: 20.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="EVENT",
    type=click.Choice([event.value for event in EventName]),
    help="Only these events, such as memory:stored.",
)
@click.option(
    "--since", type=Moment(), help="From this time on: a time, or 12h, 7d, 2w, yesterday."
)
@json_option
@click.pass_obj
def events(
    session: Session, /, follow: bool, limit: int, names: tuple[str, ...], since: datetime | None
) -> None:
    """Show what happened in a memory, in any process; with --follow, also what happens next.

    Events are recorded if the setting event_log is brief or full: in events.jsonl beside the file,
    or in the table events of a database.

    \b
    Examples:
      agent-memory --agent bob configure event_log brief
      agent-memory --agent bob events --name memory:stored --since 1d
      agent-memory --agent bob events --follow --json
    """
    with session.open() as memory:
        if memory.configure().event_log == "off" and not session.json:
            click.echo(f"note: {_OFF}", err=True)
        coming = memory.follow_events() if follow else iter(())
        before = deque(_wanted(memory.events(), names, since), maxlen=limit)
        if session.json and not follow:
            emit({"events": list(before)}, text="")
            return
        try:
            for event in chain(before, _wanted(coming, names, since)):
                _show(event, as_json=session.json)
        except KeyboardInterrupt:  # that is how following ends: it is no error
            click.get_current_context().exit(ExitCode.INTERRUPTED)


def _wanted(
    events: Iterable[MemoryEvent], names: tuple[str, ...], since: datetime | None
) -> Iterator[MemoryEvent]:
    for event in events:
        if (not names or event.name in names) and (since is None or event.timestamp >= since):
            yield event


def _show(event: MemoryEvent, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"event": event.name, **event.payload()}))
        return
    data = ", ".join(f"{name} {_short(value)}" for name, value in event.data.items())
    click.echo(safe(f"{event.timestamp:%Y-%m-%d %H:%M:%S}  {event.name:<27} {data}"))


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
