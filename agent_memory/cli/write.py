"""Commands that store and change: store, update, forget, promote, demote, duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import click

import agent_memory
from agent_memory import MemoryNotFound, OnDuplicate, OnSecret, ValidationError
from agent_memory.cli.hits import notes_of_more
from agent_memory.cli.options import (
    Session,
    described,
    description_options,
    json_option,
    listing_options,
    on_secret_option,
)
from agent_memory.cli.questions import ask
from agent_memory.cli.render import details_text, emit, print_notes, progress_bar
from agent_memory.cli.reports import duplicate_text, duplicates_text, groups_text, secret_text
from agent_memory.cli.streams import stdin_text
from agent_memory.cli.tables import safe
from agent_memory.formats.jsonl import read_lines
from agent_memory.text.counts import counted

if TYPE_CHECKING:
    from agent_memory import AgentMemory, Duplicate, FoundSecrets, Memory

_MOST_NOTES: Final = 20
"""The most duplicates in a file, or secrets, that are listed on stderr, one per line."""


class _Listener:
    """Collects the duplicates of what is stored, and answers with the choice in the options."""

    def __init__(self, on_duplicate: str | None) -> None:
        self.heard: list[Duplicate] = []
        self._on_duplicate = on_duplicate

    def __call__(self, duplicate: Duplicate) -> str | None:
        self.heard.append(duplicate)
        return self._on_duplicate

    def as_data(self) -> list[dict[str, Any]]:
        """Return the duplicates, for JSON."""
        return [
            {name: value for name, value in duplicate if name != "new_content"}
            for duplicate in self.heard
        ]


class _SecretListener:
    """Collects the secrets in what is stored, and answers with the choice in the options."""

    def __init__(self, on_secret: str | None) -> None:
        self._heard: list[FoundSecrets] = []
        self._on_secret = on_secret

    def __call__(self, secrets: FoundSecrets) -> str | None:
        decision = OnSecret(self._on_secret) if self._on_secret else secrets.decision
        if decision is not OnSecret.KEEP:
            self._heard.append(secrets.model_copy(update={"decision": decision}))
        return self._on_secret

    def heard(self, ids: Sequence[str]) -> list[FoundSecrets]:
        """Return the secrets, each with the id under which its memory can be found."""
        return [
            secrets.model_copy(update={"memory_id": ids[secrets.index or 0]})
            for secrets in self._heard
        ]


@click.command()
@click.argument("content", nargs=-1)
@description_options
@click.option("--id", help="An id of your own; storing it again changes nothing.")
@click.option("--session", "session_id", help="The session that stores it.")
@click.option(
    "--jsonl", type=click.File("rb"), help="Store one memory per line of FILE, or of '-'."
)
@click.option("--skip-bad", is_flag=True, help="With --jsonl: skip and report invalid lines.")
@click.option(
    "--on-duplicate",
    type=click.Choice([word.value for word in OnDuplicate]),
    help="If the same is stored already; default: keep, but merge what was just recalled.",
)
@on_secret_option
@json_option
@click.pass_obj
def store(
    session: Session,
    /,
    content: tuple[str, ...],
    jsonl: BinaryIO | None,
    skip_bad: bool,
    on_duplicate: str | None,
    on_secret: str | None,
    **options: Any,
) -> None:
    """Store a memory: CONTENT, or standard input for '-'.

    \b
    Examples:
      agent-memory --agent bob store "Prefer PostgreSQL" --tag database
      git log -1 --format=%B | agent-memory --agent bob store -
      agent-memory --agent bob store --jsonl notes.jsonl

    A line of --jsonl is an object with a "content" and any of: category, tags, kind, importance,
    session_id, user_id, run_id, memory_type, timestamp, task_metadata, metadata, id. Options hold
    for every line that does not say otherwise. All lines are stored in one transaction, or, if one
    is wrong, none.
    """
    fields = described(options)
    if len(content) > 1 and "-" in content:
        raise click.UsageError(
            "'-' is standard input: leave the other words out, or quote the text"
        )
    text = " ".join(content) if content else None  # words without quotes, as `search` takes them
    _refuse_together(text, jsonl, skip_bad=skip_bad, has_id="id" in fields)
    item = {**fields, "content": "" if jsonl else _content(text)}
    session_id = fields.pop("session_id", None)
    read = partial(_read_items, defaults=fields, skip_bad=skip_bad, on_secret=on_secret)
    lines = None
    if not session.exists():  # an empty agent would stay if its first memory were refused
        if jsonl is None:
            _refuse_first(session, item, on_secret)
        else:
            with session.open_empty() as empty:
                lines = read(empty, jsonl)
    with session.open(create=True, session_id=session_id) as memory:
        listener = _Listener(on_duplicate)
        secrets = _SecretListener(on_secret)
        if jsonl is None:
            _store_item(session, memory, {**fields, "content": item["content"]}, listener, secrets)
        else:
            items, numbers, skipped = lines or read(memory, jsonl)
            _store_items(session, memory, items, numbers, skipped, listener, secrets)
        print_notes(filter(None, [memory.suggestion(), *memory.limits_passed()]))


def _refuse_together(
    content: str | None, jsonl: BinaryIO | None, *, skip_bad: bool, has_id: bool
) -> None:
    if (content is None) == (jsonl is None):
        raise click.UsageError("give a CONTENT, '-' for stdin, or --jsonl FILE")
    if jsonl is None and skip_bad:
        raise click.UsageError("--skip-bad goes with --jsonl")
    if jsonl is not None and has_id:
        raise click.UsageError("--id goes with one CONTENT; a line of --jsonl may have its own")


def _refuse_first(session: Session, item: dict[str, Any], on_secret: str | None) -> None:
    """Refuse an agent's invalid first memory before its file exists."""
    if on_secret == OnSecret.REFUSE:
        with session.open_empty() as empty:
            empty.validate(item, on_secret=on_secret)
        return
    from agent_memory.models.record import validated  # noqa: PLC0415 - seldom

    validated(agent_memory.MemoryInput, item)


def _content(argument: str | None) -> str:
    return stdin_text("content").rstrip("\r\n") if argument == "-" else argument or ""


def _read_items(
    memory: AgentMemory,
    file: BinaryIO,
    *,
    defaults: dict[str, Any],
    skip_bad: bool,
    on_secret: str | None,
) -> tuple[list[dict[str, Any]], list[int], list[dict[str, Any]]]:
    """Read a JSONL file: its items, their line numbers, and what was left out."""
    items: list[dict[str, Any]] = []
    numbers: list[int] = []
    skipped: list[dict[str, Any]] = []
    taken: dict[str, str] = {}
    for line in read_lines(file):
        item = {**defaults, **line.item}
        reason = line.error or _fault(memory, item, taken, on_secret)
        if reason is None:
            items.append(item)
            numbers.append(line.number)
        elif skip_bad:
            click.echo(f"line {line.number} was skipped: {safe(reason)}", err=True)
            skipped.append({"line": line.number, "reason": reason})
        else:
            raise ValidationError.of(
                f"line {line.number}", f"{reason}. Nothing was stored; --skip-bad skips it", ""
            )
    return items, numbers, skipped


def _store_item(
    session: Session,
    memory: AgentMemory,
    item: dict[str, Any],
    listener: _Listener,
    secrets: _SecretListener,
) -> None:
    memory_id = memory.store(**item, on_duplicate=listener, on_secret=secrets)
    noticed = secrets.heard([memory_id])
    data = {"memory_id": memory_id, "duplicates": listener.as_data()}
    emit(data, text=memory_id, secrets=noticed)
    _note_duplicates(session, listener, [memory_id])
    _note_secrets(noticed)


def _store_items(
    session: Session,
    memory: AgentMemory,
    items: list[dict[str, Any]],
    numbers: list[int],
    skipped: list[dict[str, Any]],
    listener: _Listener,
    secrets: _SecretListener,
) -> None:
    """Store the items of a JSONL file in one transaction; ``numbers`` are their line numbers."""
    with progress_bar("storing") as move:
        try:
            ids = memory.store_many(
                items,
                on_duplicate=listener,
                on_secret=secrets,
                progress=lambda done, _: move(done, len(items)),
            )
        except ValidationError as error:
            for fault in error.errors()[:1]:
                if isinstance(fault["loc"][0], int):  # else it is about all of them
                    error.args = (_fault_by_line(fault, numbers),)
            raise
    text = f"stored {counted(len(ids))}" + (f", skipped {len(skipped)}" if skipped else "")
    data = {"memory_ids": ids, "skipped": skipped, "duplicates": listener.as_data()}
    noticed = secrets.heard(ids)
    emit(data, text=text, secrets=noticed)
    _note_duplicates(session, listener, ids, numbers)
    _note_secrets(noticed)


def _note_duplicates(
    session: Session, listener: _Listener, ids: Sequence[str], numbers: Sequence[int] = ()
) -> None:
    """Report duplicates, one per line, unless JSON has them; ``numbers`` are a file's lines."""
    if session.json:
        return
    for duplicate in listener.heard[:_MOST_NOTES]:
        place = duplicate.index or 0
        line = f"line {numbers[place]}: " if numbers else ""
        click.echo(f"note: {line}{duplicate_text(duplicate, ids[place])}", err=True)
    if (more := len(listener.heard) - _MOST_NOTES) > 0:
        print_notes([f"and {counted(more, 'more duplicate', 'more duplicates')}: see --json"])


def _note_secrets(noticed: Sequence[FoundSecrets]) -> None:
    """Report secrets on stderr, one memory per line, with JSON output too: they are a danger."""
    print_notes(map(secret_text, noticed[:_MOST_NOTES]))
    if (more := len(noticed) - _MOST_NOTES) > 0:
        noun = counted(more, "more memory", "more memories")
        print_notes([f"and {noun} with secrets: `secrets` lists them"])


def _fault_by_line(fault: Mapping[str, Any], numbers: Sequence[int]) -> str:
    """Return what is wrong with an item that was refused, with its line number."""
    place, *field = fault["loc"]
    reason = f"{'.'.join(map(str, field))}: {fault['msg']}"
    if (other := fault.get("ctx", {}).get("item")) is not None:
        reason = f"says the same as line {numbers[other]}: leave one of them out"
    return f"line {numbers[place]}: {reason}. Nothing was stored"


def _fault(
    memory: AgentMemory, item: dict[str, Any], taken: dict[str, str], on_secret: str | None
) -> str | None:
    """Return what is wrong with an item; ``taken`` has the content of each id seen so far."""
    try:
        memory.validate(item, on_secret=on_secret)
    except ValidationError as error:
        return str(error)
    content = item["content"]
    if "id" in item and taken.setdefault(item["id"], content) != content:
        return f"id: {item['id']!r} has other content in an earlier line"
    return None


@click.command()
@click.argument("memory_id")
@click.option("--content", help="The new text; '-' reads standard input.")
@description_options
@click.option("--if-version", type=int, help="Only if the memory still has this version.")
@on_secret_option
@json_option
@click.pass_obj
def update(session: Session, /, memory_id: str, on_secret: str | None, **options: Any) -> None:
    """Change a memory; its old values stay in its history.

    What no option names stays as it is. Tags and metadata replace the old ones: --tag "" takes all
    tags away, --blocker "" all blockers, --outcome "" the outcome, --user "" the user, --run "" the
    run, which stays if only the user goes.

    \b
    Example:
      agent-memory --agent bob update mem-a3f2c1b4e5d6 --content "Prefer tea"
    """
    if options["content"] is not None:
        options["content"] = _content(options["content"])
    with session.open() as memory:
        changes = described(options, memory.get(memory_id))
        changes |= {name: None for name in ("user_id", "run_id") if options[name] == ""}
        if not changes.keys() - {"if_version"}:
            raise click.UsageError("give what to change: --content, --category, --tag, …")
        secrets = _SecretListener(on_secret)
        changed = memory.update(memory_id, **changes, on_secret=secrets)
        noticed = secrets.heard([memory_id])
        emit(changed, text=details_text(changed), secrets=noticed)
        _note_secrets(noticed)


@click.command()
@click.argument("memory_ids", nargs=-1, required=True, metavar="ID…")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def forget(session: Session, /, memory_ids: tuple[str, ...], yes: bool) -> None:
    """Delete memories. They stay in the history.

    \b
    Example:
      agent-memory --agent bob forget mem-a3f2c1b4e5d6 --yes
    """
    with session.open(to_write=True) as memory:
        for memory_id in memory_ids:
            if memory.get(memory_id) is None:
                raise MemoryNotFound(memory_id)
        if not yes and not ask(f"Delete {counted(len({*memory_ids}))}?"):
            raise click.ClickException("nothing was deleted")
        deleted = memory.delete_many(memory_ids)
        text = "\n".join(f"forgot {gone.id}" for gone in deleted)
        emit({"deleted": deleted}, text=text)


@click.command()
@click.argument("memory_id")
@json_option
@click.pass_obj
def promote(session: Session, /, memory_id: str) -> None:
    """Put a memory into the scratchpad, where `context` shows it.

    \b
    Example:
      agent-memory --agent bob promote mem-a3f2c1b4e5d6
    """
    with session.open() as memory:
        done = memory.promote(memory_id)
        was_there = f"{memory_id} was already promoted"
        text = f"promoted {memory_id}" if done.promoted else was_there
        text += f"; {done.evicted} was removed to make room" if done.evicted else ""
        stored = None if done.promoted else memory.get(memory_id)
        if stored is not None and stored.archived:
            message = f"{memory_id} is archived: `unarchive` it first"
            raise ValidationError.of("memory_id", message, memory_id)
        emit(done, text=text)


@click.command()
@click.argument("memory_id")
@json_option
@click.pass_obj
def demote(session: Session, /, memory_id: str) -> None:
    """Take a memory out of the scratchpad; it remains stored.

    \b
    Example:
      agent-memory --agent bob demote mem-a3f2c1b4e5d6
    """
    with session.open() as memory:
        was_in = memory.demote(memory_id)
        text = f"demoted {memory_id}" if was_in else f"{memory_id} was not in the scratchpad"
        emit({"memory_id": memory_id, "demoted": was_in}, text=text)


class _GroupedMemory(NamedTuple):
    """A memory of a group of duplicates, as a row."""

    grade: str
    count: int  # type: ignore[assignment]  # a method of tuples, which no row needs
    memory: Memory


@click.command()
@click.argument("text", required=False)
@click.option("--user", "user_id", help="The user that TEXT is about.")
@click.option("--run", "run_id", help="The run that TEXT belongs to.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1, 2**31 - 1),
    default=20,
    help="At most this many groups; default: 20.",
)
@listing_options
@click.pass_obj
def duplicates(
    session: Session, /, text: str | None, user_id: str | None, run_id: str | None, limit: int
) -> None:
    """Show the memories that say the same as TEXT; without TEXT, all that repeat one another.

    \b
    Examples:
      agent-memory --agent bob duplicates "Prefer PostgreSQL for new projects"
      agent-memory --agent bob duplicates
    """
    with session.open() as memory:
        if text is not None:
            duplicates = memory.duplicates(_content(text), user_id=user_id, run_id=run_id)
            text = duplicates_text(duplicates)
            data = {"duplicates": duplicates}
            emit(data, text=text, rows=(agent_memory.Duplicate, duplicates))
            return
        if user_id is not None or run_id is not None:
            raise click.UsageError("--user and --run go with a TEXT")
        # One more, to know whether there are more: how many would take comparing all.
        groups = list(islice(memory.duplicate_groups(), limit + 1))
    has_more = len(groups) > limit
    shown = groups[:limit]
    rows = [
        _GroupedMemory(group.grade, group.count, memory)
        for group in shown
        for memory in group.memories
    ]
    listed = {"groups": shown, "has_more": has_more}
    emit(listed, text=groups_text(shown), rows=(_GroupedMemory, rows))
    if has_more and not session.json:
        print_notes(notes_of_more(None))
