"""Commands about agents and their files: agents, info, configure, check, backups, completion."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Container
from functools import partial
from pathlib import Path

import click

from agent_memory import (
    AgentConfig,
    AgentMemory,
    AgentSummary,
    BackupFile,
    CheckReport,
    Problem,
    StorageCorrupt,
    ValidationError,
)
from agent_memory.cli.options import FILE, ExitCode, Session, json_option, listing_options
from agent_memory.cli.questions import confirm
from agent_memory.cli.render import details_text, emit, plain
from agent_memory.cli.reports import agents_text, backups_text, check_text
from agent_memory.cli.tables import safe, table
from agent_memory.models.record import validated
from agent_memory.runtime.files import is_there
from agent_memory.runtime.paths import backup_advice
from agent_memory.text.counts import counted


@click.command()
@listing_options
@click.pass_obj
def agents(session: Session, /) -> None:
    """List the agents that have memories.

    \b
    Example:
      agent-memory agents
    """
    agents = AgentMemory.agents(session.root)
    emit({"agents": agents}, text=agents_text(agents), rows=(AgentSummary, agents))


@click.command()
@json_option
@click.pass_obj
def info(session: Session, /) -> None:
    """Show an agent's figures and settings.

    \b
    Example:
      agent-memory --agent bob info --json
    """
    with session.open() as memory:
        info = memory.info()
    emit(info, text=details_text(info))


class _WithSettings(click.Command):
    """A command whose help ends with what each setting means."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if meanings := _meanings():  # none under `python -OO`, which drops docstrings
            with formatter.section("Settings"):
                formatter.write_dl(list(meanings.items()))


def _meanings() -> dict[str, str]:
    """Return what each setting means, and the values that it takes, from the model's docstring."""
    text = inspect.cleandoc(AgentConfig.__doc__ or "")
    entries = re.findall(r"^- ``(\w+)``: (.+(?:\n  .+)*)", text, re.MULTILINE)
    meanings = {name: " ".join(meaning.split()) for name, meaning in entries}
    for mark, replacement in {"``": "", "None": "null", " (see OnSecret)": ""}.items():
        meanings = {name: text.replace(mark, replacement) for name, text in meanings.items()}
    return meanings


@click.command(cls=_WithSettings)
@click.argument("name", required=False)
@click.argument("value", required=False)
@json_option
@click.pass_obj
def configure(session: Session, /, name: str | None, value: str | None) -> None:
    """Show an agent's settings and what they mean, or change one. VALUE is JSON, or plain text.

    NAME without VALUE shows that setting. VALUE replaces the whole setting: whatever it leaves out
    of a list or an object is gone.

    \b
    Examples:
      agent-memory --agent bob configure
      agent-memory --agent bob configure scratchpad_max_size 30
      agent-memory --agent bob configure categories '["incident", "contact"]'
    """
    change = {} if name is None or value is None else {name: _read(value)}
    if change and not session.exists():  # an empty agent would stay if it were refused afterwards
        _refuse_unknown(name, AgentConfig.model_fields)
        validated(AgentConfig, change)
    with session.open(create=bool(change)) as memory:
        settings = plain(memory.configure(**change))
    _refuse_unknown(name, settings)
    shown = settings if name is None else {name: settings[name]}
    meanings = _meanings()
    rows = [(key, _text_of(each), meanings.get(key, "")) for key, each in shown.items()]
    # As JSON a change has always returned all settings.
    emit(settings if change else shown, text=table(("setting", "value", "meaning"), rows))


def _refuse_unknown(name: str | None, settings: Container[str]) -> None:
    if name is not None and name not in settings:
        raise ValidationError.of(name, "is no setting: `configure` lists them", name)


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read(value: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


@click.command()
@click.option("--repair", is_flag=True, help="Repair what can be repaired; nothing is thrown away.")
@json_option
@click.pass_obj
@click.pass_context
def check(context: click.Context, session: Session, /, repair: bool) -> None:
    """Look for damage and for indexes that do not match the memories. Exits with 6 if there is any.

    \b
    Example:
      agent-memory --agent bob check --repair
    """
    try:
        with session.open() as memory:
            if sys.stderr.isatty():
                what = "page of the file" if isinstance(session.address(), Path) else "row"
                click.echo(f"reading every {what}…", err=True)  # 1.5 s for 100,000
            report = memory.check(repair=repair)
    except StorageCorrupt as error:  # it cannot even be opened
        damage = Problem(kind="damaged_file", detail=str(error))
        report = CheckReport(path=str(session.address()), memory_count=None, problems=[damage])
    data = {**report.model_dump(), "ok": report.ok}
    emit(data, text=check_text(report))
    if not report.ok:
        context.exit(ExitCode.PROBLEMS_FOUND)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    \b
    Example:
      agent-memory completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - 4 ms

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    group = context.find_root().command
    click.echo(kind(group, {}, "agent-memory", "_AGENT_MEMORY_COMPLETE").source())


@click.command()
@click.argument("destination", required=False, type=FILE)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
@click.pass_obj
def backup(session: Session, /, destination: str | None, force: bool) -> None:
    """Copy an agent's file, even while it is in use; by default into `backups/`.

    \b
    Example:
      agent-memory --agent bob backup /mnt/safe/bob.db
    """
    if destination == "-":
        raise click.UsageError(
            "a backup is a file: give its path; `export --format sqlite` can write to stdout"
        )
    with session.open() as memory:
        path = memory.backup(destination, overwrite=force)
    emit({"path": str(path)}, text=str(path))


@click.command()
@listing_options
@click.pass_obj
def backups(session: Session, /) -> None:
    """List the backups of an agent's file, newest first.

    A backup that was made before something destructive says before what. The newest `backups_kept`
    of these are kept (5, see `configure`). They are listed even if the file itself is gone.

    \b
    Example:
      agent-memory --agent bob backups
    """
    backups = _backups_of_missing(session)
    if not backups:
        with session.open() as memory:
            backups = memory.backups()
    emit({"backups": backups}, text=backups_text(backups), rows=(BackupFile, backups))


def _backups_of_missing(session: Session) -> list[BackupFile]:
    """Return the backups of a file that is gone, and say so: the list alone would hide it."""
    address = session.address()
    if not isinstance(address, Path) or is_there(address):
        return []
    backups = AgentMemory.backups_of(address)
    if backups and not session.json:
        click.echo(safe(f"note: {address} is gone. {backup_advice(address)}"), err=True)
    return backups


@click.command()
@click.argument("backup", type=FILE)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def restore(session: Session, /, backup: str, yes: bool) -> None:
    """Go back to BACKUP: a file, a name that `backups` lists, or `latest`.

    The backup is checked first, and the file it replaces is kept beside it. What was erased since
    then is left out; `import --include-erased` brings it back from a file.

    \b
    Examples:
      agent-memory --agent bob restore latest
      agent-memory --agent bob restore /mnt/safe/bob.db --yes
    """
    path = session.path()
    newest = AgentMemory.backups_of(path)[:1] if backup == "latest" else []
    question = f"Replace {path} with {newest[0].path if newest else backup}?"
    done = AgentMemory.restore(
        path,
        os.path.expanduser(backup),  # noqa: PTH111 - it may be a name
        agent_id=session.agent,
        before_replacing=partial(confirm, question, yes=yes, otherwise="nothing was changed"),
    )
    text = f"restored {counted(done.memory_count)} from {done.backup}"
    text += f"; the previous file is {done.replaced}" if done.replaced else ""
    text += f"; {done.rejected:,} contain a rejected value" if done.rejected else ""
    text += f"; {done.erased:,} erased since then were skipped" if done.erased else ""
    if not done.rejections_kept:
        text += "; rejections and erasures since that backup could not be read"
    emit(done, text=text)
