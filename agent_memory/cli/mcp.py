"""The command that serves a memory to other programs: mcp."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from agent_memory.cli.options import Session
from agent_memory.cli.streams import refuse_closed


@click.command()
@click.option("--agent", "agent_id", metavar="ID", help="The agent, as before the command.")
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Use the agent of DIR's git repository, unless an agent is named.",
)
@click.option(
    "--roots",
    "by_roots",
    is_flag=True,
    help="Use the agent of the folder that the client works in, if it names one.",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65_535),
    metavar="PORT",
    help="Serve HTTP at http://127.0.0.1:PORT/mcp instead of stdio; 0 takes a free port.",
)
@click.option(
    "--host", metavar="ADDRESS", help="The address to listen on with --http; default: 127.0.0.1."
)
@click.option(
    "--allow-remote",
    "names",
    multiple=True,
    metavar="NAME",
    help="Accept other machines, which call this one NAME. There is no password.",
)
@click.option("--read-only", is_flag=True, help="Offer only the tools that read.")
@click.option("--user", "user_id", metavar="ID", help="Only memories about this user.")
@click.option("--run", "run_id", metavar="ID", help="Only memories of this run of the user.")
@click.pass_obj
def mcp(
    session: Session,
    /,
    agent_id: str | None,
    project: str | None,
    by_roots: bool,
    port: int | None,
    host: str | None,
    names: tuple[str, ...],
    **served_options: Any,
) -> None:
    """Serve a memory to Claude, Cursor, VS Code and others (Model Context Protocol).

    Such a program starts it by itself and talks to it over stdin and stdout. With --http it runs on
    its own, for several clients at once; that needs the extra agent-memory[mcp].

    \b
    Examples:
      agent-memory mcp --agent bob
      agent-memory --agent bob mcp --http 8765
      agent-memory mcp --project .
      agent-memory mcp --roots
      agent-memory mcp --agent bob --user alice@example.org
      claude mcp add memory -- agent-memory mcp --agent bob
    """
    from agent_memory.integrations.hosts.project import project_of  # noqa: PLC0415 - seldom needed
    from agent_memory.integrations.mcp import (  # noqa: PLC0415 - seldom needed
        ProjectServer,
        ServedMemory,
        run,
    )

    if by_roots and (port is not None or session.db is not None):
        raise click.UsageError("--roots goes with one client over stdio, and not with --db")
    if port is None and (host is not None or names):
        raise click.UsageError("--host and --allow-remote go with --http PORT")
    if port is None:
        refuse_closed("stdin", "stdout")
    if served_options["run_id"] is not None and served_options["user_id"] is None:
        raise click.UsageError("--run goes with --user ID")
    of_project = project_of(project).agent_id if project and session.db is None else None
    session.agent = agent_id or session.agent or of_project
    if by_roots:
        serve = partial(ServedMemory, root=session.root, **served_options)
        run(ProjectServer(serve, otherwise=session.agent))
        return
    session.address()  # raises if nothing says whose memory it is
    served = ServedMemory(session.agent, root=session.root, db=session.db, **served_options)
    run(served, port=port, host=host or "127.0.0.1", remote_names=names)
