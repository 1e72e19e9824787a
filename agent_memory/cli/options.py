"""Options that several commands share, and what they are converted to."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

import agent_memory
from agent_memory import (
    AgentMemoryError,
    AgentNotFound,
    ConfigurationError,
    Importance,
    MemoryCategory,
    MemoryKind,
    MissingAgentIdentity,
    OnSecret,
    StorageReadOnly,
    TaskStatus,
    ValidationError,
)
from agent_memory.cli.plain_reads import Answer, asked
from agent_memory.cli.tables import FORMS
from agent_memory.integrations.hosts.journal import agent_folder, is_anything_heard
from agent_memory.models.limits import EMBEDDER_VARIABLE
from agent_memory.models.times import format_briefly, parse_point
from agent_memory.runtime.addresses import Address
from agent_memory.runtime.files import is_there
from agent_memory.runtime.paths import (
    advice_on_missing,
    agent_address,
    agent_files,
    server_root,
)

if TYPE_CHECKING:
    from agent_memory import AgentMemory, Memory, MemoryReader

    _MomentType = click.ParamType[datetime]
    _JsonType = click.ParamType[dict[str, Any]]
else:  # before click 8.4 it is not generic
    _MomentType = _JsonType = click.ParamType

Command = TypeVar("Command", bound=Callable[..., Any])

# Each command loads its model again, which takes sentence-transformers over five seconds.
_CREATED_WITHIN_SECONDS: Final = 3
_BEAT_SECONDS: Final = 0.02
_EMBEDDING_TIMEOUT_SECONDS: Final = 20.0


class ExitCode(IntEnum):
    """The meaning of the command's exit codes."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    INVALID = 4
    STORAGE = 5
    PROBLEMS_FOUND = 6
    DUPLICATE = 7
    INTERRUPTED = 130


FILE: Final = click.Path(readable=False, allow_dash=True)
"""A path that the library checks itself; the type lets shells complete it."""


def complete_agents(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the agents whose names begin with the typed text, for the shell."""
    root = context.find_root().params.get("root")
    names: list[str] = []
    with contextlib.suppress(AgentMemoryError):  # completion must not print errors
        if server_root(root) is None:  # completion does not wait for a server either
            names = [name for name, _ in agent_files(root)]
    return [name for name in names if name.startswith(incomplete)]


def complete_categories(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the categories, the agent's own too, that begin with the typed text, for the shell."""
    options = context.find_root().params
    own: list[str] = []
    with contextlib.suppress(AgentMemoryError):
        session = Session(options["root"], options["agent"], options["db"])
        path = session.path()
        with agent_memory.AgentMemory.open(path, create=False, read_only=True) as memory:
            own = memory.info().config.categories
    categories = [*(category.value for category in MemoryCategory), *own]
    return [category for category in categories if category.startswith(incomplete)]


@dataclass
class Session:
    """The options before the command."""

    root: str | None
    agent: str | None
    db: str | None
    debug: bool = False
    request_id: str | None = None
    """The id of this run of the command in the envelope of --envelope."""
    printed_as: str | None = None
    """The output format, if not the terminal's: json, or for a list also csv, nl or table."""
    printed_by: str = "json"
    """The option that chose it: --json, --envelope, --csv, --nl, --table or --fmt."""
    form: str = "markdown"
    """The form of a table, if one is requested."""
    full: bool = False
    """Whether texts in a table are shown in full, however long."""
    is_agent_inherited: bool = False
    """Whether the agent is that of the environment, and not named in the command."""

    def choose_file(self, path: str) -> None:
        """Choose a file by its path. It knows whose it is: the environment's agent is not meant.

        A file that does not exist yet becomes that agent's.
        """
        self.db = path
        if self.is_agent_inherited and is_there(Path(path)):
            self.agent = None

    @contextlib.contextmanager
    def open(
        self, *, create: bool = False, to_write: bool = False, session_id: str | None = None
    ) -> Iterator[AgentMemory]:
        """Open the chosen memory for the body. Only a command that stores creates a new one.

        A file that cannot be written is opened for reading, and a write to it raises the reason;
        with ``to_write`` that is raised at once, before the user is asked whether to continue.
        """
        try:
            memory = self._opened(create=create, session_id=session_id)
        except StorageReadOnly as refusal:
            if create or to_write:
                raise
            with self._opened(read_only=True) as reader:
                try:
                    yield reader
                except StorageReadOnly as error:
                    if not error.is_asked_for:
                        raise  # it is about another place, or says what to do
                    raise refusal from None  # read-only mode was chosen here, not by the user
        else:
            with memory:
                yield memory

    @contextlib.contextmanager
    def open_empty(self) -> Iterator[AgentMemory]:
        """Open an empty temporary memory for the body, in place of one that does not exist."""
        from agent_memory.runtime.private_folders import private_folder  # noqa: PLC0415 - seldom

        agent = self.agent or "agent"
        with (
            private_folder() as folder,
            replace(self, root=str(folder), db=None, agent=agent).open(create=True) as memory,
        ):
            yield memory

    def _opened(self, *, create: bool = False, **options: Any) -> AgentMemory:
        if self.db is None:
            self.address()  # raises if nothing says whose memory it is
            self._take_in_heard(self.agent or "")
        if not create:
            self.refuse_missing()
        # Not validated: building the validator takes a tenth of a cold search.
        config = agent_memory.MemoryToolConfig.model_construct(
            embedding_timeout_seconds=_EMBEDDING_TIMEOUT_SECONDS
        )
        if self.db is not None:
            return agent_memory.AgentMemory.open(
                self.db, agent_id=self.agent, create=create, config=config, **options
            )
        return agent_memory.AgentMemory(
            self.agent or "", root=self.root, create=create, config=config, **options
        )

    @property
    def json(self) -> bool:
        """Whether results are printed as JSON."""
        return self.printed_as == "json"

    def ask(
        self, what: Callable[[MemoryReader], Answer], *, by_keyword: bool = True
    ) -> Answer | None:
        """Return a reader's answer, without the models; ``None`` if ``open`` must be used.

        ``by_keyword`` is true unless the search may be by meaning.
        """
        # If an embedder is set, ``open`` checks that it exists.
        if self.db is not None or not self.agent or os.environ.get(EMBEDDER_VARIABLE):
            return None
        return asked(what, self.agent, self.root, by_keyword=by_keyword)

    def _take_in_heard(self, agent_id: str) -> None:
        """Store what the hooks of coding agents heard, if their own process could not.

        Where that is about to create the memory, wait for it.
        """
        with contextlib.suppress(OSError):  # an agent in a database may have no folder
            folder = agent_folder(agent_id, self.root)
            if not is_anything_heard(folder):
                return
            from agent_memory.integrations.hosts.intake import take_in  # noqa: PLC0415 - seldom

            is_new = not self.exists()
            if not take_in(folder, agent_id, self.root) and is_new:
                deadline = time.monotonic() + _CREATED_WITHIN_SECONDS
                while is_anything_heard(folder) and time.monotonic() < deadline:
                    time.sleep(_BEAT_SECONDS)

    def refuse_missing(self) -> None:
        """Raise ``AgentNotFound`` for an agent that has no memories."""
        if self.db is None and not self.exists():
            address = self.address()
            raise AgentNotFound(
                f"agent {self.agent!r} has no memories yet: there is no {address}. "
                + (
                    advice_on_missing(address)
                    or "`agent-memory store` creates it; `agent-memory agents` lists the"
                    " existing ones"
                )
            )

    def exists(self) -> bool:
        """Return whether the chosen memories exist."""
        address = self.address()
        if isinstance(address, Path):
            return is_there(address)
        return agent_memory.AgentMemory.exists(self.agent or "", self.root)

    def path(self) -> Path:
        """Return the chosen file. Raises ``ConfigurationError`` for a database."""
        address = self.address()
        if not isinstance(address, Path):
            advice = "back it up and restore it with the database's own tools"
            raise ConfigurationError(f"{address} is in a database, not a file: {advice}")
        return address

    def address(self) -> Address:
        """Return the address of the chosen memories."""
        if self.db is not None:
            return Path(self.db)
        if not self.agent:
            raise MissingAgentIdentity(
                "which agent? Give `agent-memory --agent ID …` or set AGENT_MEMORY_AGENT;"
                " `agent-memory agents` lists the existing ones"
            )
        return agent_address(self.agent, self.root)


def current_session() -> Session | None:
    """Return the options before the running command; ``None`` outside of one."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.find_object(Session)


def _remember_printed_as(
    context: click.Context, parameter: click.Parameter, value: bool | str | None
) -> None:
    """Record how the result is to be printed; two formats at once are a usage error."""
    if not value:
        return
    session: Session = context.find_object(Session)  # type: ignore[assignment]
    chosen = "table" if parameter.name == "fmt" else parameter.name
    if session.printed_as not in (None, chosen):
        raise click.UsageError(f"--{session.printed_by} and --{parameter.name}: choose one")
    session.printed_as, session.printed_by = chosen, str(parameter.name)
    if isinstance(value, str):
        session.form = value


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    session: Session = context.find_object(Session)  # type: ignore[assignment]
    if value and parameter.name == "db":
        session.choose_file(str(value))
    elif value:
        setattr(session, str(parameter.name), value)
        session.is_agent_inherited &= parameter.name != "agent"


def _printing(
    name: str, what: str, forms: Sequence[str] | None = None
) -> Callable[[Command], Command]:
    """Return an option for how a result is printed: a flag, or one of several forms."""
    return click.option(
        name,
        is_flag=forms is None,
        type=None if forms is None else click.Choice(forms),
        expose_value=False,
        callback=_remember_printed_as,
        help=what,
    )


def _all_of(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that adds several options to a command, in the order of its help."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


json_option = _printing("--json", "Print JSON.")
listing_options = _all_of(
    json_option,
    _printing("--table", "Print a table in Markdown, or in the format of --fmt."),
    _printing("--fmt", "Print a table in this format.", tuple(FORMS)),
    _printing("--csv", "Print CSV, for spreadsheets; `import` reads what `export` writes."),
    _printing("--nl", "Print JSON, one row per line."),
    click.option(
        "--full",
        is_flag=True,
        expose_value=False,
        callback=_remember,
        help="Do not shorten long texts.",
    ),
)
"""Options for printing a list."""


def accept_shared_options(command: click.Command) -> click.Command:
    """Let a command accept the global options after its name too.

    Everybody writes ``agent-memory search --agent bob x`` once.
    """
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            accept_shared_options(subcommand)
    names = {name for parameter in command.params for name in parameter.opts}
    for name in {"--agent", "--root", "--db", "--debug"} - names:
        command.params.append(
            click.Option(
                [name],
                is_flag=name == "--debug",
                hidden=True,
                expose_value=False,
                callback=_remember,
                shell_complete=complete_agents if name == "--agent" else None,
            )
        )
    return command


class Moment(_MomentType):
    """A time: ISO 8601, how long ago (``12h``, ``7d``, ``2w``), ``today`` or ``yesterday``.

    A date alone is the first moment of its day, or the last if the time ``ends`` a period.
    """

    name = "time"

    def __init__(self, *, ends: bool = False) -> None:
        self.ends = ends

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time in UTC."""
        try:
            return parse_point(str(value), ends=self.ends)
        except ValueError as error:
            self.fail(str(error), param, ctx)


as_of_option = click.option(
    "--as-of",
    type=Moment(ends=True),
    help="As the store was at this time: 2026-01-28 (the end of that day), 7d.",
)


class JsonObject(_JsonType):
    """A JSON object."""

    name = "json"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, Any]:
        """Return the mapping."""
        if isinstance(value, dict):
            return value
        from agent_memory.formats.json_reader import object_of  # noqa: PLC0415 - seldom used

        try:
            mapping = json.loads(str(value), object_pairs_hook=object_of)
        except ValidationError as error:  # a duplicate key: json would silently keep the last
            self.fail(f"the value {error}", param, ctx)
        except (ValueError, RecursionError) as error:
            self.fail(f"the value is not JSON: {error}", param, ctx)
        if not isinstance(mapping, dict):
            self.fail("the value is not a JSON object such as {...}", param, ctx)
        return mapping


description_options = _all_of(
    click.option(
        "--category", "-c", help="preference, decision, note, …", shell_complete=complete_categories
    ),
    click.option("--tag", "-t", "tags", multiple=True, help="A tag; may be repeated."),
    click.option("--kind", type=click.Choice([kind.value for kind in MemoryKind])),
    click.option("--importance", type=click.Choice([level.value for level in Importance])),
    click.option("--user", "user_id", help="The user it is about."),
    click.option("--run", "run_id", help="The run it belongs to."),
    click.option("--timestamp", type=Moment(), help="When it was learned; of a new one: now."),
    click.option("--metadata", type=JsonObject(), help="Anything else, as a JSON object."),
    click.option(
        "--status",
        type=click.Choice([status.value for status in TaskStatus]),
        help="The status of a task.",
    ),
    click.option(
        "--blocker", "blockers", multiple=True, help="What blocks a task; may be repeated."
    ),
    click.option("--outcome", help="The outcome of a task."),
)
"""The fields of a memory, for `store` and `update`."""

on_secret_option = click.option(
    "--on-secret",
    type=click.Choice([word.value for word in OnSecret]),
    help="What to do with a key or password in it; default: as configured, else warn.",
)


filter_options = _all_of(
    click.option(
        "--since",
        type=Moment(),
        help="From this time on: 2026-01-28 (UTC), or 7d for seven days ago, yesterday.",
    ),
    click.option(
        "--until", type=Moment(ends=True), help="Up to this time: 2026-01-28 (all of that day), 7d."
    ),
    click.option(
        "--category",
        "-c",
        "categories",
        multiple=True,
        help="Of this category; may be repeated.",
        shell_complete=complete_categories,
    ),
    click.option(
        "--tag", "-t", "tags", multiple=True, help="With this tag; if repeated, with all of them."
    ),
    click.option("--any-tag", is_flag=True, help="One of the tags is enough."),
    click.option("--kind", type=click.Choice([kind.value for kind in MemoryKind])),
    click.option("--importance", type=click.Choice([level.value for level in Importance])),
    click.option(
        "--status",
        "task_status",
        type=click.Choice([status.value for status in TaskStatus]),
        help="Tasks with this status.",
    ),
    click.option("--session", "session_id", help="Stored by this session."),
    click.option("--user", "user_id", help="About this user."),
    click.option("--run", "run_id", help="Belonging to this run."),
    click.option(
        "--where", type=JsonObject(), help='Conditions on metadata: {"confidence": {"gte": 0.9}}.'
    ),
    click.option("--archived", is_flag=True, help="Only archived memories."),
)
"""The filters of `search` and `recent`."""


def described(options: dict[str, Any], existing: Memory | None = None) -> dict[str, Any]:
    """Return a memory's fields from the options; task fields are added to the existing ones."""
    fields = {name: value for name, value in options.items() if value not in (None, ())}
    task = {name: fields.pop(name) for name in ("status", "blockers", "outcome") if name in fields}
    stored: dict[str, Any] = {}
    if existing is not None and existing.task_metadata is not None:
        stored = existing.task_metadata.model_dump(exclude_none=True)
    if not stored:  # nothing to take away: a note does not become a task
        task = {name: value for name, value in task.items() if "".join(value).strip()}
    is_blocked = any(text.strip() for text in task.get("blockers", ()))
    if not task:
        return fields
    if is_blocked and task.setdefault("status", TaskStatus.BLOCKED) != TaskStatus.BLOCKED:
        raise click.UsageError("--blocker goes with --status blocked")
    joined: dict[str, Any] = {"status": TaskStatus.IN_PROGRESS.value} | stored | task
    if joined["status"] != TaskStatus.BLOCKED:
        joined.pop("blockers", None)
    if joined["status"] != TaskStatus.COMPLETED:
        joined.pop("completed_at", None)
    fields["task_metadata"] = joined
    if existing is None:
        fields.setdefault("kind", MemoryKind.TASK.value)
    return fields


def are_defaults(options: Mapping[str, Any]) -> bool:
    """Return whether none of these options was used."""
    context = click.get_current_context()
    return all(context.get_parameter_source(name) is ParameterSource.DEFAULT for name in options)


def filters_of(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the filter options from a command's options; return them for ``SearchFilters``."""
    since, until = options.pop("since"), options.pop("until")
    if since and until and since > until:
        message = f"--since {format_briefly(since)} is after --until {format_briefly(until)}"
        raise ValidationError(f"{message}: swap the two")
    filters = {
        "date_range": {"start": since, "end": until} if since or until else None,
        "category": list(options.pop("categories")) or None,
        "tags": list(options.pop("tags")) or None,
        "tags_match": "any" if options.pop("any_tag") else None,
        "custom_filters": options.pop("where"),
        "archived": options.pop("archived") or None,
        **{
            name: options.pop(name)
            for name in ("kind", "importance", "task_status", "session_id", "user_id", "run_id")
        },
    }
    return {name: value for name, value in filters.items() if value is not None}
