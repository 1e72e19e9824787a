"""The `agent-memory` command: the group, its options, and the one place where errors end."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Final, cast

import click
from click.core import ParameterSource

from agent_memory.cli.options import FILE, ExitCode, Session, accept_shared_options, complete_agents
from agent_memory.cli.render import ErrorWrapper, fail
from agent_memory.cli.streams import (
    StdoutUnwritable,
    discard_stdout,
    note_closed_stdout,
    prepare_streams,
    show_escapes,
)
from agent_memory.cli.tables import safe
from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    DuplicateMemory,
    MemoryNotFound,
    MissingAgentIdentity,
    StorageError,
    ValidationError,
)
from agent_memory.models.limits import AGENT_VARIABLE, ROOT_VARIABLE

_OF_CLICK: Final = (click.exceptions.Abort, click.ClickException)
_INTERRUPTED: Final = "interrupted: nothing was left half done"
_DEBUG_HINT: Final = "this is a bug in agent-memory: run it again with --debug and report it"


_EPILOG = """\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such memory, 4 a value was
refused, 5 the file cannot be read or written, 6 `check` or `doctor` found
problems, or `erase` a rest, 7 a duplicate was refused, 130 interrupted.

\b
Examples:
  agent-memory --agent bob store "Prefer PostgreSQL" --tag database
  agent-memory --agent bob search "which database do we use?"
  agent-memory guide
"""


GROUPS: Final = {
    "Everyday": {
        "store": "write",
        "search": "read",
        "show": "read",
        "recent": "read",
        "update": "write",
        "forget": "write",
        "scratchpad": "read",
        "promote": "write",
        "demote": "write",
        "context": "read",
    },
    "By meaning": {"migrate": "migrate", "embed": "migrate", "rollback": "migrate"},
    "Life of a memory": {
        "history": "read",
        "undo": "lifecycle",
        "archive": "lifecycle",
        "unarchive": "lifecycle",
        "tidy": "lifecycle",
        "duplicates": "write",
        "merge": "lifecycle",
        "secrets": "lifecycle",
        "reject": "lifecycle",
        "erase": "lifecycle",
        "delete-all": "conversations",
        "reset": "conversations",
    },
    "Conversations and graph": {
        "add": "conversations",
        "review": "conversations",
        "graph": "graph",
    },
    "Files": {
        "export": "transfer",
        "import": "transfer",
        "move": "transfer",
        "backup": "admin",
        "backups": "admin",
        "restore": "admin",
    },
    "Coding agents": {"install": "hosts", "uninstall": "hosts", "doctor": "hosts", "hook": "hosts"},
    "Serving": {"ui": "ui", "mcp": "mcp", "events": "events"},
    "Care": {
        "agents": "admin",
        "info": "admin",
        "stats": "statistics",
        "configure": "admin",
        "check": "admin",
    },
    "Help": {"guide": "guide", "completion": "admin"},
}
"""Each command under its heading in `--help`, with the module that defines it."""
_MODULES: Final = {name: module for group in GROUPS.values() for name, module in group.items()}
_NAME_WIDTH: Final = max(map(len, _MODULES))
_ELSEWHERE: Final = {
    "approve": "review --approve", "delete": "forget", "dismiss": "review --dismiss",
    "find": "search", "get": "show", "list": "recent", "ls": "recent",
    "purge": "erase", "query": "search", "recall": "search", "remember": "store",
    "remove": "forget", "rm": "forget", "save": "store", "statistics": "stats", "status": "info",
    "version": "--version",
}  # fmt: skip
"""Names that other tools use for commands, and ours."""


class _Commands(click.Group):
    """Commands whose modules are imported only when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _MODULES:
            return None
        module = importlib.import_module(f"{__package__}.{_MODULES[cmd_name]}")
        name = "import_" if cmd_name == "import" else cmd_name.replace("-", "_")
        return accept_shared_options(cast("click.Command", getattr(module, name)))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            if near := _nearest(args[0]):
                message = f"{error.message} Did you mean `{near}`?"
                raise click.UsageError(message, ctx) from None
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands under their headings, each with its whole first sentence."""
        for heading, names in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(_NAME_WIDTH), self._summary(ctx, name)) for name in names]
                )

    def _summary(self, context: click.Context, name: str) -> str:
        command = self.get_command(context, name)
        return "" if command is None else command.get_short_help_str(limit=1000)


def _nearest(word: str) -> str | None:
    import difflib  # noqa: PLC0415 - 3 ms, needed only after a typing mistake

    near = difflib.get_close_matches(word.lower(), [*_MODULES, *_ELSEWHERE], n=1)
    return _ELSEWHERE.get(near[0], near[0]) if near else None


@click.group(
    cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option(
    "--root",
    metavar="DIR",
    type=FILE,
    envvar=ROOT_VARIABLE,
    help="The directory of all agents.",
)
@click.option(
    "--agent",
    metavar="ID",
    envvar=AGENT_VARIABLE,
    help="The agent whose memory it is.",
    shell_complete=complete_agents,
)
@click.option(
    "--db",
    metavar="FILE",
    type=FILE,
    help="A memory file at any path, instead of --root; with --agent, that agent's.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--envelope",
    is_flag=True,
    help="Like --json, with a request_id and with errors on stdout too; not for `events --follow`.",
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="agent-memory")
@click.pass_context
def cli(
    context: click.Context,
    root: str | None,
    agent: str | None,
    db: str | None,
    as_json: bool,
    envelope: bool,
    debug: bool,
) -> None:
    """Long-term memory for AI agents, in one SQLite file per agent."""
    if not gc.isenabled():  # see ``__main__``
        gc.freeze()
        gc.set_threshold(50_000)  # imports that are still to come are not garbage either
        gc.enable()
    request_id = context.obj if envelope else None
    printed_as = "json" if as_json or envelope else None
    printed_by = "envelope" if envelope else "json"
    is_inherited = context.get_parameter_source("agent") is ParameterSource.ENVIRONMENT
    context.obj = Session(root, agent, None, debug, request_id, printed_as, printed_by)
    context.obj.is_agent_inherited = is_inherited
    if db:
        context.obj.choose_file(db)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    prepare_streams()
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Every error ends here."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    wrapper = ErrorWrapper() if "--envelope" in words else None
    show_escapes()
    try:
        result = cli.main(
            args=words,
            prog_name="agent-memory",
            standalone_mode=False,
            obj=wrapper and wrapper.request_id,
        )
        sys.stdout.flush()
        note_closed_stdout()
    except (BrokenPipeError, SystemExit):
        # The reader has closed the pipe, as `head` does: nothing more to say. (In this mode click
        # exits with 1 then, and for no other reason.)
        discard_stdout()
        return ExitCode.OK
    except StdoutUnwritable as error:
        discard_stdout()
        error.show()
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - every error ends here, as the exit code
        if "--debug" in words and not isinstance(error, _OF_CLICK):
            import traceback  # noqa: PLC0415 - only for --debug

            click.echo(safe("".join(traceback.format_exception(error))), err=True)
        if wrapper:
            wrapper.emit(_as_library_error(error))
        if not wrapper or not isinstance(error, (*_OF_CLICK, AgentMemoryError)):
            _print_error(error, as_json="--json" in words)
        return _exit_code(error)
    return int(result or 0)


def _print_error(error: Exception, *, as_json: bool) -> None:
    """Print an error on stderr."""
    if as_json and isinstance(error, _OF_CLICK):
        error = _as_library_error(error)
    if isinstance(error, click.ClickException):
        error.show()
    elif isinstance(error, click.exceptions.Abort):
        click.echo(_INTERRUPTED, err=True)
    elif isinstance(error, AgentMemoryError):
        fail(error, as_json=as_json)
    else:
        click.echo(safe(f"Error: {type(error).__name__}: {error} ({_DEBUG_HINT})"), err=True)


def _as_library_error(error: Exception) -> Exception:
    """Return an error of the command line as one of the library's."""
    if isinstance(error, click.ClickException):
        return ValidationError(error.format_message())
    return AgentMemoryError(_INTERRUPTED) if isinstance(error, click.exceptions.Abort) else error


def _exit_code(error: Exception) -> int:
    if isinstance(error, click.ClickException):
        return error.exit_code
    for kind, code in (
        (click.exceptions.Abort, ExitCode.INTERRUPTED),
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
