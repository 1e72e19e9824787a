"""The command that shows a memory in a browser: ui."""

from __future__ import annotations

from pathlib import Path

import click

from agent_memory.cli.options import Session


@click.command()
@click.option("--agent", "agent_id", metavar="ID", help="The agent, as before the command.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    metavar="PORT",
    help="The port; 0 takes a free one.",
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing.")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
@click.pass_obj
def ui(
    session: Session, /, agent_id: str | None, port: int, read_only: bool, no_open: bool
) -> None:
    """Open a memory in the browser: browse, search, see why, correct, undo.

    The page is served on this machine only and needs no network. Its address admits one browser,
    once. Ctrl-C ends it.

    \b
    Examples:
      agent-memory --agent bob ui
      agent-memory --agent bob ui --read-only --no-open --port 8700
    """
    # A slow import, needed only for the server.
    from agent_memory.integrations.ui.agents import AgentPlace  # noqa: PLC0415
    from agent_memory.integrations.ui.run import run  # noqa: PLC0415

    session.agent = agent_id or session.agent
    session.refuse_missing()
    address = session.address()
    root = session.root or ""
    place = address if isinstance(address, Path) else AgentPlace(address.agent_id, root)
    run(place, port=port, read_only=read_only, open_browser=not no_open)
