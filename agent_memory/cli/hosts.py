"""Commands about coding agents and editors: install, uninstall, doctor, hook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agent_memory.cli.options import ExitCode, Session, json_option
from agent_memory.cli.render import emit
from agent_memory.cli.tables import styled
from agent_memory.integrations.hosts.project import project_of
from agent_memory.integrations.hosts.table import HOSTS
from agent_memory.runtime.paths import memory_root
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory.integrations.hosts.installation import Change, Installation

_host_argument: Final = click.argument("host", type=click.Choice(list(HOSTS)), metavar="HOST")
_PLUGIN_STEP: Final = "/plugin install agent-memory@agent-memory, both in Claude Code"
_PATH_STEP: Final = "agent-memory must be on the PATH of everybody who does that"
_project_option: Final = click.option(
    "--project", is_flag=True, help="In the settings of this project, not in your own."
)
_dry_run_option: Final = click.option(
    "--dry-run", is_flag=True, help="Only show the changes, as a diff."
)


@click.command()
@_host_argument
@_project_option
@click.option(
    "--agent", "agent_id", metavar="ID", help="The agent to use; default: one per project."
)
@click.option(
    "--plugin",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write a plugin for Claude Code into DIR instead.",
)
@_dry_run_option
@json_option
@click.pass_obj
def install(
    session: Session,
    /,
    host: str,
    project: bool,
    agent_id: str | None,
    plugin: str | None,
    dry_run: bool,
) -> None:
    """Register the MCP server and the hooks in the settings of a coding agent or editor.

    HOST is claude-code, codex, gemini, cursor, claude-desktop or vscode. Other servers, other hooks
    and comments are left alone, and the replaced file is kept beside the new one. Installing twice
    changes nothing.

    \b
    Examples:
      agent-memory install claude-code
      agent-memory install codex --dry-run
      agent-memory install claude-desktop --agent bob
      agent-memory install claude-code --plugin ./marketplace
    """
    from agent_memory.integrations.hosts.installation import program  # noqa: PLC0415 - seldom
    from agent_memory.integrations.hosts.plugin import plugin_changes  # noqa: PLC0415 - likewise

    if plugin is not None:
        if host != "claude-code" or project or agent_id:
            raise click.UsageError("--plugin goes with claude-code alone, for each project's agent")
        changes = plugin_changes(Path(plugin))
        steps = f"/plugin marketplace add {Path(plugin).absolute()}", _PLUGIN_STEP, _PATH_STEP
        _carry_out(changes, steps, dry_run=dry_run)
        return
    chosen = _chosen(host, project=project, agent=agent_id or session.agent, root=session.root)
    _carry_out(chosen.install(program()), chosen.host.advice, dry_run=dry_run)


@click.command()
@_host_argument
@_project_option
@_dry_run_option
@json_option
def uninstall(host: str, project: bool, dry_run: bool) -> None:
    """Remove the MCP server and the hooks from a host's settings. The memories stay.

    \b
    Examples:
      agent-memory uninstall claude-code
      agent-memory uninstall cursor --project --dry-run
    """
    changes = _chosen(host, project=project).uninstall()
    _carry_out(changes, (), dry_run=dry_run)


def _chosen(
    host: str, *, project: bool, agent: str | None = None, root: str | None = None
) -> Installation:
    from agent_memory.integrations.hosts.installation import Installation  # noqa: PLC0415 - seldom

    folder = project_of(str(Path.cwd())).folder if project else None
    return Installation(
        HOSTS[host], folder, agent, None if root is None else str(memory_root(root))
    )


def _carry_out(changes: Sequence[Change], advice: Sequence[str], *, dry_run: bool) -> None:
    """Apply changes, or show them, and say what the user still has to do."""
    from agent_memory.integrations.hosts.installation import write  # noqa: PLC0415 - seldom

    backups = {} if dry_run else write(changes)
    is_changed = any(change.action != "unchanged" for change in changes)
    shown: list[dict[str, Any]] = [
        {
            "path": str(change.path),
            "action": change.action,
            "diff": change.diff,
            "backup": str(backups[change.path]) if change.path in backups else None,
        }
        for change in changes
    ]
    next_steps = list(advice) if is_changed and not dry_run else []
    lines = []
    for each in shown:
        backup = f" (before: {each['backup']})" if each["backup"] else ""
        action = each["action"]
        if dry_run and action != "unchanged":
            action = f"would be {action}"
        lines.append(f"{action}: {each['path']}{backup}")
        if dry_run and each["diff"]:
            lines.append(each["diff"].rstrip("\n"))
    lines += [f"next: {step}" for step in next_steps]
    if dry_run:
        lines.append("nothing was changed")
    data = {"dry_run": dry_run, "files": shown, "next": next_steps}
    emit(data, text="\n".join(lines))


@click.command()
@json_option
@click.pass_obj
@click.pass_context
def doctor(context: click.Context, session: Session, /) -> None:
    """Check whether coding agents use the memory of this project, and if not, why.

    Each registered hook is run once, without storing anything. Exits with 6 if something is wrong.

    \b
    Example:
      agent-memory doctor
    """
    from agent_memory.integrations.hosts import doctor as diagnosis  # noqa: PLC0415 - seldom

    project = project_of(str(Path.cwd()))
    agent_id, root = diagnosis.agent_in_use(project, session.agent, session.root)
    report = diagnosis.Examination(agent_id, root, project.folder).report()
    emit(report, text=_doctor_text(report))
    if report["problems"]:
        context.exit(ExitCode.PROBLEMS_FOUND)


def _doctor_text(report: dict[str, Any]) -> str:
    """Lay out the findings, one per line, followed by the problems."""
    lines = [f"agent {report['agent_id']}, {report['path']}", f"project {report['project']}"]
    for each in report["hosts"]:
        answering = [hook for hook in each["hooks"] if hook["ok"]]
        slowest = max((hook["milliseconds"] for hook in each["hooks"]), default=0)
        hooks = f", {len(answering)} of {len(each['hooks'])} hooks answer ({slowest} ms at most)"
        server = "MCP server" if each["server"] else "no MCP server"
        shown = hooks if each["hooks"] else ""
        lines.append(f"{each['host']} ({each['scope']}): {server}{shown}")
    last = {name: at for name, at in report["last"].items() if name != "failed"}
    if any(last.values()):
        lines += [f"last {name.replace('_', ' ')}: {at or 'never'}" for name, at in last.items()]
    else:
        lines.append("no hook has run yet")
    memory = report["memory"]
    unknown = (
        "not checked for damage, which its server does"
        if memory["memory_count"]
        else "nothing stored yet"
    )
    sound = {True: "sound", False: "NOT sound", None: unknown}[memory["sound"]]
    embedder = memory["embedder"] or "none: searches are by keyword"
    if memory["memory_count"] is None:
        lines.append(
            "the memory cannot be opened" + ("" if memory["sound"] is None else f", {sound}")
        )
    else:
        lines.append(f"{counted(memory['memory_count'])}, {sound}; embedder {embedder}")
    if server := memory.get("server"):
        lines.append(
            f"PostgreSQL {memory['server_version']} at {server['host']}:{server['port']}, schema"
            f" version {memory['schema_version']}; of {server['pool_size']} connections"
            f" {server['connections']} open, {server['idle']} idle, {server['waiting']} waiting"
        )
    for finding in report["problems"]:
        lines += [f"{styled('problem', 'bad')}: {finding['problem']}", f"  do: {finding['advice']}"]
    return "\n".join(lines if report["problems"] else [*lines, styled("all is well", "good")])


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="HOST EVENT [--agent ID] [--root DIR]")
@click.pass_obj
def hook(session: Session, /, words: tuple[str, ...]) -> None:
    """Answer one event of a coding agent: its JSON on stdin, context for the agent on stdout.

    Hosts run this by themselves. It always exits with 0, within two seconds; errors are logged in
    hooks/log.jsonl of the agent's folder.

    \b
    Example:
      agent-memory hook claude-code SessionStart < event.json
    """
    from agent_memory.integrations.hosts.hook import main  # noqa: PLC0415 - seldom

    before = {"--agent": session.agent, "--root": session.root}
    options = [word for name, value in before.items() if value for word in (name, value)]
    main([*options, *words])
