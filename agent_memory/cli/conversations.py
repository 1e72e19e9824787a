"""Commands about conversations and whole scopes: add, review, delete-all, reset."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from agent_memory import (
    AgentMemory,
    SystemConfig,
    ValidationError,
    load_system_config,
    refuse_remote_store,
    store_root,
)
from agent_memory.cli.options import FILE, ExitCode, JsonObject, Session, json_option
from agent_memory.cli.questions import confirm
from agent_memory.cli.render import emit, print_notes
from agent_memory.cli.reports import added_text, reviews_text
from agent_memory.cli.streams import stdin_bytes
from agent_memory.text.counts import counted


@click.command()
@click.argument("source", metavar="FILE|-", type=FILE)
@click.option("--user", "user_id", help="The user it is about.")
@click.option("--run", "run_id", help="The run it belongs to.")
@click.option("--llm", help="Extract with a language model: openai:gpt-4.1-mini.")
@click.option("--base-url", help="Its server, such as http://localhost:11434/v1.")
@click.option("--config", help="Settings, YAML or JSON: `llm`, `vector_store`, `graph_store`.")
@click.option("--metadata", type=JsonObject(), help="Metadata for each memory, as a JSON object.")
@click.option("--graph", is_flag=True, help="Also record relationships: see `graph`.")
@click.option("--as-is", is_flag=True, help="Store each message as it is.")
@click.option("--strict", is_flag=True, help="Refuse everything if one message is unreadable.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@json_option
@click.pass_obj
def add(session: Session, /, source: str, **options: Any) -> None:
    """Learn from a conversation: its facts, compared with what is already known.

    FILE contains messages as JSON (a list, or an object with `messages`), as JSONL, or as plain
    text; - is standard input. Transcripts of OpenAI, Anthropic, LangChain, Amplifier and MCP are
    accepted as they are. Without --llm, a --config or AGENT_MEMORY_LLM_MODEL, rules do it, on this
    machine alone.

    \b
    Examples:
      agent-memory --agent bob add chat.json --user alice --dry-run
      echo "I moved to Lisbon" | agent-memory --agent bob add - --user alice
    """
    from agent_memory.extraction.messages import read_transcript  # noqa: PLC0415 - of this command

    transcript = read_transcript(_text_of(source), strict=options["strict"])
    settings = load_system_config(options.pop("config"))
    refuse_remote_store(settings)
    _follow_store(session, settings)
    llm = _model(settings, options.pop("llm"), options.pop("base_url"))
    arguments = {name: value for name, value in options.items() if value is not None}
    arguments["graph"] = arguments["graph"] or settings.graph_store.enabled
    arguments["infer"] = not arguments.pop("as_is")
    with _opened(session, dry_run=arguments["dry_run"]) as memory:
        answer = memory.add(transcript, llm=llm, **arguments)
    problems = list(answer.metadata.problems or ())
    if answer.metadata.passed_over:
        problems.append(
            counted(
                answer.metadata.passed_over,
                "message or part was skipped, as it is",
                "messages or parts were skipped, as they are",
            )
            + " not dialogue"
        )
    print_notes(problems)
    emit(answer, text=added_text(answer, foreseen=arguments["dry_run"]))
    if not answer.success:
        click.get_current_context().exit(ExitCode.INVALID)


def _follow_store(session: Session, settings: SystemConfig) -> None:
    """Let the settings decide where the memories are, unless the command does."""
    root = store_root(settings)
    if root is not None and session.root is None and session.db is None:
        session.root = root


@click.command()
@click.option(
    "--approve", type=click.IntRange(min=1), multiple=True, help="Delete what is contradicted."
)
@click.option("--dismiss", type=click.IntRange(min=1), multiple=True, help="Keep the memory.")
@json_option
@click.pass_obj
def review(session: Session, /, approve: tuple[int, ...], dismiss: tuple[int, ...]) -> None:
    """List the memories that wait for your decision, or decide about them.

    \b
    Examples:
      agent-memory --agent bob review
      agent-memory --agent bob review --approve 3 --dismiss 4
    """
    with session.open() as memory:
        if not approve and not dismiss:
            reviews = memory.reviews()
            shown = [each.model_dump(mode="json") for each in reviews]
            emit({"reviews": shown}, text=reviews_text(reviews))
            return
        _refuse_unknown(memory, approve, dismiss)
        approved, kept = memory.decide(approve=approve, dismiss=dismiss)
        left = [memory.get(was.id) for was in approved]
    shortened = [each for each in left if each is not None]
    deleted = [was for was, each in zip(approved, left, strict=True) if each is None]
    lines = [f"deleted {was.id}" for was in deleted]
    lines += [f"shortened {each.id}: {each.content}" for each in shortened]
    lines += [f"kept {review.memory_id}" for review in kept]
    dismissed = [review.model_dump(mode="json") for review in kept]
    data = {"deleted": deleted, "shortened": shortened, "kept": dismissed}
    emit(data, text="\n".join(lines))


@click.command("delete-all")
@click.option("--user", "user_id", help="Everything about this user.")
@click.option("--run", "run_id", help="Everything of this run.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete_all(session: Session, /, user_id: str | None, run_id: str | None, yes: bool) -> None:
    """Delete all memories about a user, or of a run. They stay in the history; `undo` works.

    \b
    Example:
      agent-memory --agent bob delete-all --user alice
    """
    with session.open(to_write=True) as memory:
        if not user_id and not run_id:
            raise click.UsageError("give --user or --run; `reset` deletes everything")
        count = memory.count(filters={"user_id": user_id, "run_id": run_id, "archived": None})
        if count:
            confirm(f"Delete {counted(count)}?", yes=yes, otherwise="nothing was deleted")
        gone = memory.delete_all(user_id=user_id, run_id=run_id) if count else []
    text = "no memory matches: nothing was deleted"
    if gone:  # otherwise `undo` would revert an earlier change
        text = (
            f"deleted {counted(len(gone))}: `undo` brings {'it' if len(gone) == 1 else 'them'} back"
        )
    emit({"deleted": [memory.id for memory in gone]}, text=text)


@click.command()
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def reset(session: Session, /, yes: bool) -> None:
    """Delete every memory of the agent, after a backup. `undo` brings them back.

    To leave no trace, use `agent-memory erase` instead.

    \b
    Example:
      agent-memory --agent bob reset
    """
    with session.open(to_write=True) as memory:
        count = memory.count(filters={"archived": None})
        question = f"Delete {counted(count)}, all of agent {memory.agent_id!r}?"
        confirm(question, yes=yes, otherwise="nothing was deleted")
        count = memory.reset(confirm=memory.agent_id)
    emit({"deleted": count}, text=f"deleted {counted(count)}")


def _refuse_unknown(
    memory: AgentMemory, approve: tuple[int, ...], dismiss: tuple[int, ...]
) -> None:
    """Refuse all decisions if one of them cannot be carried out."""
    review_ids = {review.review_id for review in memory.reviews()}
    for number in (*approve, *dismiss):
        if number not in review_ids:
            message = f"there is no review {number}: nothing was decided; `review` lists them"
            raise ValidationError.of("review_id", message, number)
        if number in approve and number in dismiss:
            raise click.UsageError(
                f"review {number} cannot be both approved and dismissed: choose one"
            )


@contextlib.contextmanager
def _opened(session: Session, *, dry_run: bool) -> Iterator[AgentMemory]:
    """Open the memory; if there is none yet, a dry run uses an empty temporary one."""
    if not dry_run or session.exists():
        with session.open(create=not dry_run) as memory:
            yield memory
        return
    with session.open_empty() as memory:
        yield memory


def _text_of(source: str) -> str:
    try:
        data = stdin_bytes().read() if source == "-" else Path(source).read_bytes()
        return data.decode("utf-8-sig")
    except FileNotFoundError as error:
        problem = f"no such file: {source!r}. To add a text itself, use -: echo TEXT | … add -"
        raise click.BadParameter(problem, param_hint="FILE") from error
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{source} cannot be read: {error}", param_hint="FILE") from error


def _model(settings: SystemConfig, llm: str | None, base_url: str | None) -> dict[str, Any] | None:
    """Return C's settings for the chosen model, or ``None``."""
    settings_given = {} if settings.llm is None else settings.llm.settings()
    if llm:
        provider, _, model = llm.partition(":")
        is_same = settings_given.get("provider", provider) == provider
        others = settings_given if is_same else {}
        settings_given = {**others, "provider": provider, "model": model}
    if base_url:
        settings_given["base_url"] = base_url
    return settings_given or None
