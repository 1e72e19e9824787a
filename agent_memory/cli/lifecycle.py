"""Commands about a memory's life: archive, unarchive, undo, tidy, erase, reject, secrets."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from agent_memory import (
    AgentMemory,
    ErasureReceipt,
    FoundSecrets,
    Rejection,
    Undone,
    ValidationError,
)
from agent_memory.cli.options import (
    ExitCode,
    Session,
    filter_options,
    filters_of,
    json_option,
    listing_options,
)
from agent_memory.cli.questions import confirm
from agent_memory.cli.render import emit
from agent_memory.cli.reports import receipt_text, rejections_text, secrets_text, tidy_text
from agent_memory.cli.streams import stdin_text
from agent_memory.cli.tables import clip
from agent_memory.text.counts import counted

_MOST_UNDONE: Final = 20
"""The most memories that `undo` lists, one per line."""
_UNDONE_WIDTH: Final = 80


@click.command()
@click.argument("memory_ids", nargs=-1, required=True, metavar="ID…")
@json_option
@click.pass_obj
def archive(session: Session, /, memory_ids: tuple[str, ...]) -> None:
    """Archive memories: they leave searches and the scratchpad, but not the file.

    \b
    Examples:
      agent-memory --agent bob archive mem-a3f2c1b4e5d6
      agent-memory --agent bob search "old plans" --archived
    """
    with session.open() as memory:
        changed = memory.archive(memory_ids)
    text = "\n".join(f"archived {memory.id}" for memory in changed)
    emit({"memories": changed}, text=text)


@click.command()
@click.argument("memory_ids", nargs=-1, required=True, metavar="ID…")
@json_option
@click.pass_obj
def unarchive(session: Session, /, memory_ids: tuple[str, ...]) -> None:
    """Bring archived memories back.

    \b
    Example:
      agent-memory --agent bob unarchive mem-a3f2c1b4e5d6
    """
    with session.open() as memory:
        changed = memory.unarchive(memory_ids)
    text = "\n".join(f"unarchived {memory.id}" for memory in changed)
    emit({"memories": changed}, text=text)


@click.command()
@click.argument("keep", metavar="ID")
@click.argument("others", nargs=-1, required=True, metavar="OTHER…")
@json_option
@click.pass_obj
def merge(session: Session, /, keep: str, others: tuple[str, ...]) -> None:
    """Keep one memory and forget others that say the same; it gets their tags and metadata.

    One `undo` brings them back. Memories of different users or runs are refused.

    \b
    Example:
      agent-memory --agent bob merge mem-a3f2c1b4e5d6 mem-0d4f5e6a7b8c
    """
    with session.open() as memory:
        kept = memory.merge(keep, others)
    text = f"kept {kept.id}, and forgot {', '.join(others)}"
    emit({"memory": kept, "forgotten": list(others)}, text=text)


@click.command()
@click.option(
    "--change", type=click.IntRange(min=1), help="Undo this change, by its number in `history`."
)
@click.option("--review", type=click.IntRange(min=1), help="Reopen this dismissed review.")
@json_option
@click.pass_obj
def undo(session: Session, /, change: int | None, review: int | None) -> None:
    """Undo what was last done to memories, or a given change. An undo can be undone.

    Everything that one command did (an import, a tidy) is undone together. What is not a change of
    a memory is not covered, and what was done before it is undone. Take it back with: `demote` for
    `promote` and the reverse, `reject --lift` for `reject`, the old value for `configure`, `graph
    remove` for `graph add` and the reverse. `graph merge` stays.

    \b
    Examples:
      agent-memory --agent bob undo
      agent-memory --agent bob undo --change 17
    """
    with session.open() as memory:
        done = memory.undo(change, review_id=review)
        text = _undone_text(memory, done)
    emit(done, text=text)


def _undone_text(memory: AgentMemory, done: Undone) -> str:
    """Return what was undone, and what became of each memory, with its text."""
    if not done.change_ids:  # the change was only a question for review, or a decision on one
        return f"undid {done.verb}: no memory changed, `review` shows what is under review"
    named = ", ".join(done.memory_ids[:3]) + (", …" if len(done.memory_ids) > 3 else "")
    lines = [f"undid {done.verb} of {counted(len(done.memory_ids))}: {named}"]
    for memory_id in done.memory_ids[:_MOST_UNDONE]:
        became = (
            "removed" if memory_id in done.removed
            else "back" if memory_id in done.restored
            else "changed"
        )  # fmt: skip
        lines.append(f"{became}: {_text_after_undo(memory, memory_id)}")
    if (more := len(done.memory_ids) - _MOST_UNDONE) > 0:
        lines.append(f"and {more:,} more: --json lists them")
    return "\n".join(lines)


def _text_after_undo(memory: AgentMemory, memory_id: str) -> str:
    """Return a memory's text, shortened; if the undo changed the text, also what it was."""
    texts: list[str] = []
    for change in memory.history(memory_id, limit=1):
        values = (change.new_values or {}, change.old_values or {})
        texts = [clip(str(each["content"]), _UNDONE_WIDTH) for each in values if "content" in each]
    if len(texts) > 1:
        return f"{texts[0]} (was: {texts[1]})"
    if texts:
        return texts[0]
    stored = memory.get(memory_id)  # its text was not changed
    return memory_id if stored is None else clip(stored.content, _UNDONE_WIDTH)


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be archived.")
@json_option
@click.pass_obj
def tidy(session: Session, /, dry_run: bool) -> None:
    """Archive what the agent's retention policy asks for; `undo` brings it back.

    Memories of high importance, promoted by hand or used recently are never touched. There is no
    policy until one is set. `standard` archives learnings that were not used for 90 days and tasks
    that were completed 30 days ago, and limits how many there are.

    \b
    Examples:
      agent-memory --agent bob configure retention standard
      agent-memory --agent bob tidy --dry-run
    """
    with session.open() as memory:
        report = memory.tidy(dry_run=dry_run)
    emit(report, text=tidy_text(report))


@click.command()
@click.argument("memory_ids", nargs=-1, metavar="[ID…]")
@filter_options
@click.option("--backups", is_flag=True, help="Also erase from the library's own backups.")
@click.option("--finish", is_flag=True, help="Complete an erasure that was interrupted.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
@click.pass_context
def erase(
    context: click.Context,
    session: Session,
    /,
    memory_ids: tuple[str, ...],
    backups: bool,
    finish: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Erase memories for good: by their IDs, or all that match the options.

    Their content is removed from the rows, the history, the indexes, the log and the free pages;
    nothing brings it back. A receipt says what was removed, and whether a scan of the raw bytes
    still found anything; if so, the command exits with 6. Of a user, run or session, memories that
    were deleted earlier are erased too, unless other options are given. `forget` is the ordinary
    command that can be undone.

    \b
    Examples:
      agent-memory --agent bob erase mem-a3f2c1b4e5d6 --backups
      agent-memory --agent bob erase --where '{"source": "crm"}' --yes
    """
    filters = filters_of(options)
    criteria = {name for name, value in filters.items() if value and name != "tags_match"}
    if bool(memory_ids) + bool(criteria) + finish != 1:
        raise click.UsageError("give IDs, filters or --finish")
    with session.open(to_write=True) as memory:
        if finish:
            memory.finish_erasing()
            emit({"finished": True}, text="the file was rewritten")
            return
        _confirm_erasure(memory, memory_ids, filters, backups=backups, yes=yes)
        described = None if memory_ids else filters
        receipt: ErasureReceipt = memory.erase(memory_ids, filters=described, backups=backups)
    data = {**receipt.model_dump(), "clean": receipt.clean}
    emit(data, text=receipt_text(receipt))
    if not receipt.clean:
        context.exit(ExitCode.PROBLEMS_FOUND)


def _confirm_erasure(
    memory: AgentMemory,
    memory_ids: tuple[str, ...],
    filters: dict[str, Any],
    *,
    backups: bool,
    yes: bool,
) -> None:
    what = counted(len({*memory_ids}))
    if not backups:  # which may have memories that the file does not know
        for memory_id in memory_ids:
            memory.history(memory_id, limit=1)  # raises if it is unknown
    if not memory_ids:
        count = memory.count(filters={"archived": None, **filters})
        what = counted(count)
        if filters.keys() <= {"user_id", "run_id", "session_id"}:
            what += ", and those deleted earlier,"
        if filters.keys() == {"user_id"}:
            what += " and what was stated by hand in the graph,"
    confirm(f"Erase {what} for good?", yes=yes, otherwise="nothing was erased")
    if sys.stderr.isatty():
        click.echo("erasing, then searching the bytes of the file…", err=True)


@click.command()
@click.argument("text", required=False)
@click.option("--reason", help="The reason, shown by `reject --list`.")
@click.option("--lift", metavar="NUMBER", type=int, help="Allow a rejected text again.")
@click.option("--list", "lists", is_flag=True, help="Show what is rejected.")
@listing_options
@click.pass_obj
def reject(
    session: Session,
    /,
    text: str | None,
    reason: str | None,
    lift: int | None,
    lists: bool,
) -> None:
    """Never store a memory that contains TEXT, until this is lifted; '-' reads standard input.

    TEXT is matched in contents, tags and metadata, regardless of case and of punctuation between
    its words. Only its hash is kept. Memories that contain it already are listed, and stay: use
    `erase` for those.

    \b
    Examples:
      agent-memory --agent bob reject "hunter2" --reason "an old password"
      agent-memory --agent bob reject --list
      agent-memory --agent bob reject --lift 1
    """
    if (text is not None) + (lift is not None) + lists != 1:
        raise click.UsageError("give a TEXT, --lift NUMBER or --list")
    value = stdin_text("text").strip() if text == "-" else text or ""
    # A value without words is refused: it must not leave an empty agent behind.
    with session.open(create=any(map(str.isalnum, value))) as memory:
        if lift is not None:
            if not memory.lift(lift):
                message = f"there is no rejection {lift}: `reject --list` lists them"
                raise ValidationError.of("lift", message, lift)
            emit({"lifted": True}, text=f"lifted {lift}")
        elif text is None:
            rejections = memory.rejections()
            data = {"rejections": rejections}
            emit(data, text=rejections_text(rejections), rows=(Rejection, rejections))
        else:
            _reject(memory, value, reason)


def _reject(memory: AgentMemory, value: str, reason: str | None) -> None:
    rejection = memory.reject(value, reason=reason)
    holders = memory.holders(value)
    message = f"rejected: number {rejection.rejection_id}"
    if holders:
        verb = "contains" if len(holders) == 1 else "contain"
        message += f"\n{counted(len(holders))} {verb} it: {' '.join(holders[:10])}"
    data = {"rejection": rejection, "holders": holders}
    emit(data, text=message)


@click.command()
@listing_options
@click.pass_obj
def secrets(session: Session, /) -> None:
    """List the memories that seem to contain keys, tokens or passwords, without showing those.

    Archived memories are included, and those with a secret in their history. What happens to
    secrets from now on is the setting on_secret: warn (the default), mask, refuse or keep.

    \b
    Examples:
      agent-memory --agent bob secrets
      agent-memory --agent bob configure on_secret mask
    """
    with session.open() as memory:
        secrets = memory.secrets()
    emit({"secrets": secrets}, text=secrets_text(secrets), rows=(FoundSecrets, secrets))
