"""Commands that move memories out and in: export, import, move."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from agent_memory import AgentMemory, ImportReport, ValidationError
from agent_memory.cli.options import FILE, Session, as_of_option, json_option
from agent_memory.cli.render import emit, print_notes, progress_bar
from agent_memory.cli.reports import count_text, import_text
from agent_memory.cli.streams import place_to_write, refuse_json_beside_export, stdin_bytes
from agent_memory.cli.tables import safe
from agent_memory.formats import registry
from agent_memory.formats.registry import FORMATS, PEERS, Format
from agent_memory.runtime.files import open_private
from agent_memory.runtime.private_folders import private_folder
from agent_memory.text.counts import counted

_WRITTEN: Final = click.Choice(registry.names())
_READ: Final = click.Choice(registry.readable_names())


@click.command()
@click.option(
    "--format", "-f", "name", metavar="NAME", type=_WRITTEN, default="store", show_default=True
)
@click.option(
    "--output",
    "-o",
    metavar="PATH",
    type=FILE,
    default="-",
    help="A file or folder; - for stdout.",
)
@click.option(
    "--embeddings", is_flag=True, help="Include the vectors, if the format can hold them."
)
@as_of_option
@click.option("--user", "user_id", help="Only memories about this user.")
@click.option("--run", "run_id", help="Only memories of this run of the user.")
@click.option("--force", is_flag=True, help="Replace what exists.")
@json_option
@click.pass_obj
def export(
    session: Session,
    /,
    name: str,
    output: str,
    force: bool,
    **options: Any,
) -> None:
    """Export an agent's memories, in one of the documented formats.

    \b
    {formats}

    The same store gives the same bytes.

    \b
    Examples:
      agent-memory --agent bob export --output bob.yaml
      agent-memory --agent bob export --format jsonl | head
      agent-memory --agent bob export --format directory --output ./memories
      agent-memory --agent bob export --user alice --output alice.yaml
    """
    to_stdout = output == "-"
    if to_stdout and registry.codec(name).is_folder:
        raise click.UsageError(f"{name} is a folder: give --output PATH")
    refuse_json_beside_export(output, session.printed_as, session.printed_by)
    with session.open() as memory, place_to_write(output) as place:
        done = memory.export(place, format=name, overwrite=force, **options)
        archived = memory.count(filters={"archived": True})
        is_whole = options["as_of"] is None and done.memory_count == memory.count() + archived
    print_notes([*done.notes, *_unlike_its_name(done.path, name)])
    if not to_stdout:
        memories = count_text(done.memory_count, archived if is_whole else None)
        emit(done, text=f"wrote {memories} to {done.path}")


_NAMED_LIKE: Final = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".db": "sqlite", ".sqlite": "sqlite",
    ".md": "markdown",
}  # fmt: skip


def _unlike_its_name(path: str, name: str) -> list[str]:
    """Note that an export is YAML, if no format was chosen and the file name suggests another."""
    wanted = _NAMED_LIKE.get(Path(path).suffix.lower())
    if name != "store" or wanted is None:
        return []
    return [
        f"{path} contains YAML, with everything in it; `--format {wanted}` would match its name"
    ]


def _with_rows(text: str | None, rows: Iterable[Format]) -> str:
    """Insert the formats into a help text, one per line."""
    lines = (f"{row.name:<{_WIDTH}} {row.summary}" for row in rows)
    return (text or "").replace("{formats}", "\n    ".join(lines))


_WIDTH: Final = max(map(len, registry.readable_names()))
export.help = _with_rows(export.help, FORMATS.values())


@click.command()
@click.argument("path", type=FILE)
@click.option(
    "--format",
    "-f",
    "name",
    metavar="NAME",
    type=_READ,
    help="The format; default: recognised by the content.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["skip", "replace", "newer", "keep-both"]),
    default="skip",
    show_default=True,
    help="If a memory exists here with other content.",
)
@click.option("--skip-bad", is_flag=True, help="Skip and report entries that cannot be imported.")
@click.option("--include-erased", is_flag=True, help="Also import what was erased here.")
@click.option("--raw", is_flag=True, help="Import every message of a conversation as it is.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@json_option
@click.pass_obj
def import_(
    session: Session,
    /,
    path: str,
    name: str | None,
    on_conflict: str,
    skip_bad: bool,
    include_erased: bool,
    raw: bool,
    dry_run: bool,
) -> None:
    """Import what PATH holds (a file, a folder, or '-' for standard input), in one transaction.

    The format is recognised by the content: anything that `export` writes or `store --jsonl` takes,
    and the documented formats. If an entry is invalid, nothing is imported, unless --skip-bad. What
    was erased here stays out, and is reported. An agent without memories is created.

    \b
    The memories of these programs are recognised too (guide moving-in):
    {formats}

    \b
    Examples:
      agent-memory --agent bob import bob.yaml --dry-run
      agent-memory --agent bob import ~/.claude/agents/memories
      agent-memory --agent bob import ../alice/memories.db --on-conflict newer
      agent-memory --agent bob import postgresql://me@host/langgraph --dry-run
    """
    with contextlib.ExitStack() as stack:
        place = str(_from_stdin(stack)) if path == "-" else path
        memory = stack.enter_context(_opened(session, stack, dry_run=dry_run))
        try:
            report = _with_bar(
                memory,
                place,
                format=name,
                on_conflict=on_conflict,
                skip_bad=skip_bad,
                include_erased=include_erased,
                raw=raw,
                dry_run=dry_run,
            )
        except ValidationError as error:
            if path != "-":
                raise
            message = str(error).replace(place, "stdin")
            raise type(error)(message, error.errors()) from error
        suggestion = memory.suggestion()
    report = report.model_copy(update={"path": "stdin" if path == "-" else report.path})
    emit(report, text=import_text(report))
    if suggestion:
        print_notes([suggestion])


import_.help = _with_rows(import_.help, PEERS.values())


@click.command()
@click.option("--to", "destination", metavar="ROOT", required=True, help="The new root.")
@json_option
@click.pass_obj
def move(session: Session, /, destination: str) -> None:
    """Move a whole memory to the same agent under another root, and verify the copy.

    ROOT is as for `--root`. Ids, history, graph, vectors and settings are copied, and the original
    is left unchanged. Nothing is visible at the new place until everything has arrived. If the
    command is interrupted, run it again: it continues where it stopped.

    \b
    Example:
      agent-memory --agent bob move --to ~/shared/memories
    """
    with session.open(create=False) as memory, progress_bar("moving") as bar:
        archived = memory.count(filters={"archived": True})
        report = memory.move_to(destination, progress=bar)
    notes = "".join(f"\nnote: {safe(note)}" for note in report.notes)
    text = (
        f"moved {count_text(report.memories, archived)} of {report.agent_id} to {report.target}:"
        f" all {counted(report.rows, 'row is', 'rows are')} the same{notes}\n{report.source} is"
        " unchanged: stop using it"
    )
    emit(report, text=text)


class _StandIn(AgentMemory):
    """An empty memory that reads an import for an agent that has none yet.

    The agent's own is created once everything was read: a refused import left an empty one.
    """

    make: Callable[[str], AgentMemory]
    taker: AgentMemory | None = None

    def _taker(self) -> AgentMemory:
        self.taker = self.make(self.session_id)
        return self.taker

    def suggestion(self) -> str | None:
        return None if self.taker is None else self.taker.suggestion()


def _opened(
    session: Session, stack: contextlib.ExitStack, *, dry_run: bool
) -> contextlib.AbstractContextManager[AgentMemory]:
    """Open the chosen memory, or a stand-in for one that does not exist yet."""
    if session.exists():
        return session.open(create=not dry_run)
    folder = stack.enter_context(private_folder())
    memory = _StandIn.open(folder / "memories.db", agent_id=session.agent)
    memory.make = lambda session_id: stack.enter_context(
        session.open(create=True, session_id=session_id)
    )
    return memory


def _from_stdin(stack: contextlib.ExitStack) -> Path:
    place = stack.enter_context(private_folder()) / "stdin"
    with open(place, "wb", opener=open_private) as file:
        shutil.copyfileobj(stdin_bytes(), file)
    return place


def _with_bar(memory: AgentMemory, place: str, **options: Any) -> ImportReport:
    with progress_bar("importing") as move:

        def progress(done: int, total: int) -> None:
            if total:
                move(done, total)
            elif sys.stderr.isatty():
                click.echo(f"\rreading: {done:,}", nl=False, err=True)

        return memory.import_(place, progress=progress, **options)
