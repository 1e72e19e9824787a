"""Commands that find and show: search, show, recent, scratchpad, context, history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

import agent_memory
from agent_memory import MemoryNotFound
from agent_memory.cli.hits import answer_text, memories_text, notes_of, notes_of_more
from agent_memory.cli.options import (
    Session,
    are_defaults,
    as_of_option,
    filter_options,
    filters_of,
    json_option,
    listing_options,
)
from agent_memory.cli.plain_reads import COMMANDS, empty_context_notes
from agent_memory.cli.render import details_text, emit, print_notes
from agent_memory.cli.reports import history_text
from agent_memory.cli.streams import stdin_text
from agent_memory.cli.tables import table
from agent_memory.models.columns import MemoryValues
from agent_memory.models.excerpt import HitValues, SearchFilterValues
from agent_memory.models.limits import DEFAULT_SEARCH_LIMIT
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory import AgentMemory, Memory, SearchResults, SessionMemory
    from agent_memory.models.excerpt import SearchResultValues

_user_option: Final = click.option("--user", "user_id", help="Only memories about this user.")
_run_option: Final = click.option("--run", "run_id", help="Only memories of this run of the user.")


@click.command()
@click.argument("query", nargs=-1)
@click.option("--limit", "-n", type=click.IntRange(1, 100), help="At most this many; default: 5.")
@filter_options
@click.option(
    "--min-similarity",
    type=click.FloatRange(0, 1),
    help="Drop hits less similar than this; 0 drops none.",
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    help="Drop hits less likely to be relevant than this.",
)
@click.option("--no-weak", is_flag=True, help="Leave out the weaker hits.")
@click.option("--no-count", is_flag=True, help="Do not count the hits as accessed.")
@click.option("--explain", is_flag=True, help="Show the parts of each score.")
@click.option(
    "--shared",
    multiple=True,
    metavar="ID",
    help="Search this agent's memories too; may be repeated.",
)
@click.option(
    "--hops",
    type=click.IntRange(1, 2),
    default=1,
    help="2: also search for what the first hits lead to.",
)
@click.option(
    "--expand", metavar="MODEL", help="Let a language model reword the query: openai:NAME."
)
@as_of_option
@listing_options
@click.pass_obj
def search(
    session: Session, /, query: tuple[str, ...], limit: int | None, no_count: bool, **options: Any
) -> None:
    """Find memories that answer QUERY, in plain words, or standard input for '-'.

    Weaker hits have their score in brackets.

    \b
    Examples:
      agent-memory --agent bob search "which database do we use?"
      agent-memory --agent bob search deployment --since 7d --tag ops --json
      agent-memory --agent bob search "what broke last week?" --explain
      agent-memory --agent bob search "which database?" --as-of 2026-01-28
      agent-memory --agent bob search "how do we deploy?" --shared team
    """
    question = stdin_text("query").strip() if query == ("-",) else " ".join(query)
    no_weak = options.pop("no_weak")
    results: SearchResults | SearchResultValues | None = None
    filters = filters_of(options)
    if are_defaults(options) and SearchFilterValues.takes(filters):
        results = session.ask(
            lambda reader: reader.answer(
                question,
                limit or DEFAULT_SEARCH_LIMIT,
                filters=filters,
                include_weak=not no_weak,
                count_accesses=not no_count,
                whole=True,
            ),
            by_keyword=False,
        )
    if results is None:
        with session.open() as memory:
            results = memory.search(
                question,
                limit,
                filters=filters,
                similarity_threshold=options["min_similarity"],
                min_confidence=options["min_confidence"],
                include_weak=not no_weak,
                count_accesses=not no_count,
                explain=options["explain"],
                as_of=options["as_of"],
                shared=options["shared"],
                hops=options["hops"],
                expand=options["expand"],
            )
    emit(results, text=answer_text(results, question), rows=(HitValues, results.results))
    notes = notes_of(results, limit or DEFAULT_SEARCH_LIMIT)
    print_notes(results.search_metadata.degraded if session.json or no_weak else notes)


@click.command()
@click.argument("memory_id")
@as_of_option
@json_option
@click.pass_obj
def show(session: Session, /, memory_id: str, as_of: datetime | None) -> None:
    """Show everything known about a memory, now or at an earlier time.

    \b
    Example:
      agent-memory --agent bob show mem-a3f2c1b4e5d6
    """
    memory_shown: Memory | MemoryValues | None = None
    if as_of is None:
        memory_shown = session.ask(lambda reader: reader.get(memory_id))
    if memory_shown is None:
        with session.open() as memory:
            memory_shown = memory.get(memory_id, as_of=as_of)
            missing = MemoryNotFound(memory_id)
            if memory_shown is None and as_of is None:
                (deletion,) = memory.history(memory_id, limit=1)  # raises unless it existed
                message = (
                    f"{memory_id} was forgotten: `history {memory_id}` shows what it was, and"
                    f" `undo --change {deletion.change_id}` brings it back"
                )
                missing.args = (message,)
            if memory_shown is None:
                raise missing
    emit(memory_shown, text=details_text(memory_shown))


@click.command()
@click.option(
    "--limit", "-n", type=click.IntRange(min=1), default=10, help="At most this many; default: 10."
)
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out this many first.")
@filter_options
@as_of_option
@listing_options
@click.pass_obj
def recent(
    session: Session, /, limit: int, offset: int, as_of: datetime | None, **options: Any
) -> None:
    """List the newest memories, now or at an earlier time.

    \b
    Examples:
      agent-memory --agent bob recent --limit 20 --category decision
      agent-memory --agent bob recent --limit 20 --offset 20
    """
    listed: tuple[Sequence[Memory | MemoryValues], int | None] | None = None
    filters = filters_of(options)
    is_plain = as_of is None and not offset and SearchFilterValues.takes(filters)
    if is_plain and COMMANDS["recent"].takes(limit):
        listed = session.ask(
            lambda reader: (
                reader.list_whole(limit, filters=filters), reader.count(filters=filters)
            )
        )  # fmt: skip
    if listed is None:
        with session.open() as memory:
            memories = memory.list_recent(limit, offset=offset, filters=filters, as_of=as_of)
            # Of an earlier time, the count would take as long as the list.
            listed = memories, memory.count(filters=filters) if as_of is None else None
    shown, total = listed
    text = memories_text(shown, filters)
    if total and not shown:
        text = f"no more than {counted(total)}"
    data = {"memories": shown} if total is None else {"memories": shown, "total_count": total}
    emit(data, text=text, rows=(MemoryValues, shown))
    if total is not None and shown and not session.json:
        print_notes(notes_of_more(total - offset - len(shown)))


def _view_of(
    memory: AgentMemory, user_id: str | None, run_id: str | None
) -> AgentMemory | SessionMemory:
    """Return the memory, or what it has of a user, or of one run of this user."""
    if user_id is None and run_id is None:
        return memory
    if user_id is None:
        raise click.UsageError("--run goes with --user ID")
    return memory.session({"user_id": user_id, "run_id": run_id})


@click.command()
@_user_option
@_run_option
@listing_options
@click.pass_obj
def scratchpad(session: Session, /, user_id: str | None, run_id: str | None) -> None:
    """Show the scratchpad: the memories that the agent always sees.

    \b
    Example:
      agent-memory --agent bob scratchpad
    """
    with session.open() as memory:
        pad = _view_of(memory, user_id, run_id).scratchpad()
    rows = [
        (entry.id, str(entry.timestamp.date()), entry.category, str(entry.access_count),
         "yes" if entry.id in pad.promoted else "", entry.content)
        for entry in pad.memories
    ]  # fmt: skip
    headings = ("id", "date", "category", "accesses", "promoted", "content")
    text = table(headings, rows) if rows else "the scratchpad is empty"
    shown = {**pad.model_dump(), "promoted": pad.promoted}
    emit(shown, text=text, rows=(agent_memory.ScratchpadMemoryEntry, pad.memories))


@click.command()
@click.option(
    "--budget", "-b", type=click.IntRange(min=0), help="At most this many tokens; default: 2000."
)
@_user_option
@_run_option
@json_option
@click.pass_obj
def context(
    session: Session, /, budget: int | None, user_id: str | None, run_id: str | None
) -> None:
    """Print the scratchpad as Markdown for a model's context, within a token budget.

    \b
    Examples:
      agent-memory --agent bob context --budget 800
      agent-memory --agent bob context --user alice
    """
    text: str | None = None
    tokens = int(COMMANDS["context"].default) if budget is None else budget
    if user_id is None and run_id is None and COMMANDS["context"].takes(tokens):
        text = session.ask(lambda reader: reader.context(tokens))
    if text is None:
        with session.open() as memory:
            text = _view_of(memory, user_id, run_id).context(budget)
    if not session.json:
        print_notes(empty_context_notes(text, tokens))
    emit({"context": text}, text=text.rstrip("\n"))


@click.command()
@click.argument("memory_id", required=False)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    default=20,
    help="At most this many; default: 20.",
)
@_user_option
@_run_option
@listing_options
@click.pass_obj
def history(
    session: Session,
    /,
    memory_id: str | None,
    limit: int,
    user_id: str | None,
    run_id: str | None,
) -> None:
    """Show what was added, changed and deleted, newest first: for one memory, or for all.

    \b
    Examples:
      agent-memory --agent bob history mem-a3f2c1b4e5d6
      agent-memory --agent bob history --user alice
    """
    with session.open() as memory:
        # One more, to know whether there are more: how many would take counting all.
        most = limit + (limit < 2**63 - 1)
        entries = _view_of(memory, user_id, run_id).history(memory_id, limit=most)
    shown = entries[:limit]
    data = {"history": shown, "has_more": len(entries) > limit}
    emit(data, text=history_text(shown), rows=(agent_memory.HistoryEntry, shown))
    if data["has_more"] and not session.json:
        print_notes(notes_of_more(None))
