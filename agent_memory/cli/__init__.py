"""The `agent-memory` command: the group, its options, and the one place where errors end."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final, cast

import click

from agent_memory.cli.options import ExitCode, Session
from agent_memory.cli.render import fail, safe
from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    DuplicateMemory,
    MemoryNotFound,
    MissingAgentIdentity,
    StorageError,
    ValidationError,
)

_DEBUG_HINT: Final = "this is a fault of agent-memory: run it again with --debug and report it"


_EPILOG = """\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such memory, 4 a value was refused,
5 the file cannot be read or written, 6 `check` found problems, 7 a duplicate was refused,
130 interrupted.

\b
Examples:
  agent-memory --agent bob store "Prefer PostgreSQL for new projects" --tag database
  agent-memory --agent bob search "which database do we use?"
"""


_COMMANDS: Final = {
    "store": "write",
    "update": "write",
    "forget": "write",
    "promote": "write",
    "demote": "write",
    "duplicates": "write",
    "archive": "life",
    "unarchive": "life",
    "undo": "life",
    "tidy": "life",
    "erase": "life",
    "reject": "life",
    "secrets": "life",
    "search": "read",
    "show": "read",
    "recent": "read",
    "scratchpad": "read",
    "context": "read",
    "history": "read",
    "migrate": "meaning",
    "rollback": "meaning",
    "embed": "meaning",
    "export": "exchange",
    "import": "exchange",
    "agents": "admin",
    "info": "admin",
    "configure": "admin",
    "check": "admin",
    "events": "watching",
    "mcp": "serving",
    "backup": "backups",
    "backups": "backups",
    "restore": "backups",
    "completion": "admin",
}
"""Each command, and the module that has it under its name."""


class _Commands(click.Group):
    """Commands whose module is imported when one of them is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{_COMMANDS[cmd_name]}")
        name = "import_" if cmd_name == "import" else cmd_name
        return cast("click.Command", getattr(module, name))


@click.group(
    cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--root", metavar="DIR", envvar="AGENT_MEMORY_ROOT", help="Directory of all agents.")
@click.option("--agent", metavar="ID", envvar="AGENT_MEMORY_AGENT", help="Whose memory.")
@click.option("--db", metavar="FILE", help="A memory file anywhere, instead of --root and --agent.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="agent-memory")
@click.pass_context
def cli(
    context: click.Context,
    root: str | None,
    agent: str | None,
    db: str | None,
    as_json: bool,
    debug: bool,
) -> None:
    """Long-term memory for AI agents, in one SQLite file per agent."""
    context.obj = Session(root=root, agent=agent, db=db, json=as_json, debug=debug)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Every error ends here."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    _print_whatever_comes()
    try:
        result = cli.main(args=words, prog_name="agent-memory", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        click.echo("interrupted: nothing was left half done", err=True)
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (BrokenPipeError, SystemExit):
        # The reader has gone, as `head` does: nothing more to say. (click exits with 1 then, and
        # for nothing else in this mode.)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except AgentMemoryError as error:
        if debug:
            raise
        fail(error, as_json="--json" in words)
        return _exit_code(error)
    except Exception as error:
        if debug:
            raise
        click.echo(safe(f"Error: {type(error).__name__}: {error} ({_DEBUG_HINT})"), err=True)
        return ExitCode.FAILED
    return int(result or 0)


def _print_whatever_comes() -> None:
    """Let a terminal or file that knows no UTF-8 show what it cannot write as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _exit_code(error: AgentMemoryError) -> ExitCode:
    for kind, code in (
        (MemoryNotFound, ExitCode.NOT_FOUND),
        (MissingAgentIdentity, ExitCode.USAGE),
        (DuplicateMemory, ExitCode.DUPLICATE),
        (ValidationError, ExitCode.INVALID),
        (ConfigurationError, ExitCode.INVALID),
        (StorageError, ExitCode.STORAGE),
    ):
        if isinstance(error, kind):
            return code
    return ExitCode.FAILED
