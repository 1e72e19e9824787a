"""Commands about search by meaning: migrate, rollback, embed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agent_memory import AgentMemory, MigrationPlan, MigrationProgress, StorageBackend
from agent_memory.cli.options import Session, json_option
from agent_memory.cli.questions import confirm
from agent_memory.cli.render import emit, progress_bar
from agent_memory.cli.reports import count_text, rebuilt_text
from agent_memory.cli.tables import safe
from agent_memory.embeddings.registry import EMBEDDERS, embedder_names
from agent_memory.text.counts import counted


def _complete_embedders(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the embedders that begin with the typed text, for the shell."""
    return [name for name in embedder_names() if name.startswith(incomplete)]


@click.command()
@click.option(
    "--embedder",
    "-e",
    default="auto",
    show_default=True,
    shell_complete=_complete_embedders,
    help=f"{', '.join(EMBEDDERS)}, NAME:MODEL, or NAME,NAME to try in turn.",
)
@click.option("--dry-run", is_flag=True, help="Only show what it would take.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def migrate(session: Session, /, embedder: str, dry_run: bool, yes: bool) -> None:
    """Switch to search by meaning, or to another embedding model. Continues an interrupted move.

    All memories are first exported to scratchpad.yaml.backup beside the file. `auto` is the
    embedder that made the file's vectors; without any, openai if OPENAI_API_KEY is set, else what
    is installed.

    openai asks OPENAI_BASE_URL, or OpenAI itself, for MODEL, else AGENT_MEMORY_EMBEDDING_MODEL,
    else the `embedding_model` that `configure` set, else text-embedding-3-small. There are also
    AGENT_MEMORY_EMBEDDING_DIMENSIONS, _BATCH_SIZE, _TIMEOUT and _RETRIES.

    \b
    Examples:
      agent-memory --agent bob migrate --dry-run
      agent-memory --agent bob migrate --embedder openai:text-embedding-3-large
      agent-memory --agent bob migrate --embedder wordllama --yes
    """
    with session.open(to_write=not dry_run) as memory:
        plan = memory.migration_plan(embedder=embedder)
        archived = memory.count(filters={"archived": True})
        plan_text = _plan_text(plan, archived)
        if dry_run:
            emit(plan, text=plan_text)
            return
        confirm(f"{plan_text}\nContinue?", yes=yes, otherwise="nothing was changed")
        done = _with_bar(memory, embedder, plan)
    is_new = plan.to_embed or plan.current_backend is StorageBackend.FILE
    verb = "is" if done.vectors_stored == 1 else "are"
    memories = count_text(done.vectors_stored, archived)
    text = f"{memories} {verb} found by meaning too ({plan.model})"
    text = f"done: {text}" if is_new else f"nothing to do: {text} already"
    emit(done, text="\n".join([text, *map(safe, done.errors)]))


def _with_bar(memory: AgentMemory, embedder: str, plan: MigrationPlan) -> MigrationProgress:
    with progress_bar("embedding") as move:
        return memory.migrate(
            embedder=embedder,
            progress=lambda now: move(now.memories_processed, plan.memory_count),
        )


def _plan_text(plan: MigrationPlan, archived: int) -> str:
    dollars = plan.estimated_cost_usd
    price = "nothing" if not dollars else f"${dollars:.2f}" if dollars >= 0.01 else "under a cent"
    return (
        f"{count_text(plan.memory_count, archived)}, of which {plan.to_embed:,} are to be embedded"
        f" by {plan.embedder} ({plan.model}, {plan.dimensions} numbers each)\nabout"
        f" {plan.estimated_tokens:,} tokens, {plan.estimated_duration_seconds:,.0f} s; it"
        f" costs {price}\nbackup: {plan.backup_path or 'none, for a database'}"
    )


@click.command()
@click.option(
    "--from",
    "backup",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rebuild a damaged file from this scratchpad.yaml.backup.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def rollback(session: Session, /, backup: Path | None, yes: bool) -> None:
    """Return to search by keyword. The vectors are dropped; every memory stays.

    With --from, a file that cannot be read is set aside, never deleted, and a new one is made from
    the backup and from everything that can still be read.

    \b
    Examples:
      agent-memory --agent bob rollback
      agent-memory --agent bob rollback --from scratchpad.yaml.backup
    """
    if backup is not None:
        confirm(f"Rebuild {session.path()} from {backup}?", yes=yes, otherwise="nothing was done")
        done = AgentMemory.rebuild(session.path(), backup, agent_id=session.agent)
        emit(done, text=rebuilt_text(done))
        return
    with session.open(to_write=True) as memory:
        info = memory.info()
        count = info.memory_count + info.archived_count
        memories = count_text(count, info.archived_count)
        question = f"Drop the vectors of {memories}?"
        if info.vector_model is not None:
            confirm(question, yes=yes, otherwise="nothing was dropped")
        was_there = memory.rollback()
        data: dict[str, Any] = {"rolled_back": was_there, "memory_count": info.memory_count}
    text = f"{memories} {'is' if count == 1 else 'are'} found by keyword"
    emit(data, text=text if was_there else f"{text}: there were no vectors")


@click.command()
@json_option
@click.pass_obj
def embed(session: Session, /) -> None:
    """Embed the memories that are waiting for it, for example after an embedder failed.

    \b
    Example:
      agent-memory --agent bob embed
    """
    with session.open() as memory:
        waiting = memory.info().pending_embeddings
        with progress_bar("embedding") as move:
            done = memory.embed(progress=lambda count, _: move(count, waiting))
        backend = memory.info().storage_backend
    text = f"embedded {counted(done)}"
    text += ": search is by keyword; `agent-memory migrate` changes that" * (backend == "file")
    emit({"embedded": done}, text=text)
