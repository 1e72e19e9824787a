"""Commands about copies of a whole file: backup, backups, restore."""

from __future__ import annotations

import os

import click

from agent_memory import AgentMemory
from agent_memory.cli.options import Session, confirm, json_option
from agent_memory.cli.render import emit
from agent_memory.cli.reports import backups_text


@click.command()
@click.argument("destination", required=False)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@click.pass_obj
def backup(session: Session, /, destination: str | None, force: bool) -> None:
    """Copy an agent's file, whole, while it may be in use; into `backups/` unless said otherwise.

    \b
    Example:
      agent-memory --agent bob backup /mnt/safe/bob.db
    """
    with session.open() as memory:
        path = memory.backup(destination, overwrite=force)
    emit({"path": str(path)}, text=str(path), as_json=session.json)


@click.command()
@json_option
@click.pass_obj
def backups(session: Session, /) -> None:
    """List the backups of an agent's file, newest first.

    Those that were made before something destructive say before what; of these the newest
    `backups_kept` (5, see `configure`) are kept.

    \b
    Example:
      agent-memory --agent bob backups
    """
    with session.open() as memory:
        backups = memory.backups()
    emit({"backups": backups}, text=backups_text(backups), as_json=session.json)


@click.command()
@click.argument("backup")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def restore(session: Session, /, backup: str, yes: bool) -> None:
    """Go back to BACKUP: a file, the name of one that `backups` lists, or `latest`.

    It is checked first. The file that it replaces is kept beside it.

    \b
    Examples:
      agent-memory --agent bob restore latest
      agent-memory --agent bob restore /mnt/safe/bob.db --yes
    """
    path = session.path()
    confirm(f"Replace {path} with {backup}?", yes=yes, otherwise="nothing was changed")
    done = AgentMemory.restore(path, os.path.expanduser(backup), agent_id=session.agent)  # noqa: PTH111 - it may be a name
    text = f"restored {done.memory_count:,} memories from {done.backup}"
    text += f"; what was there is {done.replaced}" if done.replaced else ""
    text += f"; {done.rejected:,} hold a rejected value" if done.rejected else ""
    if not done.rejections_kept:
        text += "; what was rejected since that backup could not be read"
    emit(done, text=text, as_json=session.json)
