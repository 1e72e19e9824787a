"""Commands about coding agents and editors: hook."""

from __future__ import annotations

import click

from agent_memory.cli.options import Session


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="HOST EVENT [--agent ID] [--root DIR]")
@click.pass_obj
def hook(session: Session, /, words: tuple[str, ...]) -> None:
    """Answer one event of a coding agent: its JSON on stdin, what it should know on stdout.

    Hosts run this by themselves. It always exits with 0, within two seconds; what went
    wrong is in hooks/log.jsonl of the agent's folder.

    \b
    Example:
      agent-memory hook claude-code SessionStart < event.json
    """
    from agent_memory.integrations.hosts.hook import main  # noqa: PLC0415 - seldom needed

    before = {"--agent": session.agent, "--root": session.root}
    options = [word for name, value in before.items() if value for word in (name, value)]
    main([*options, *words])
