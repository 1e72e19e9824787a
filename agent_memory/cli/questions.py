"""Questions before something destructive: asked on stderr, answered on stdin."""

from __future__ import annotations

import select
import sys

import click


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Ask before something destructive, unless ``yes``; raise the error that ends the command."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "give --yes: stdin is not a terminal, so the question cannot be asked."
            f" {question.splitlines()[0]}"
        )
    if not ask(question):
        raise click.ClickException(otherwise)


def ask(question: str) -> bool:
    """Ask on stderr, and return whether the answer on stdin is yes.

    ``click.confirm`` prints a space on stdout before click 8.3.
    """
    if not _is_at_end():
        click.echo(f"{question} [y/N]: ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer and not sys.stdin.isatty():
        raise click.UsageError(
            "give --yes: stdin is not a terminal, so the question cannot be asked"
        )
    if not answer:
        raise click.Abort
    return answer.strip().lower() in ("y", "yes")


def _is_at_end() -> bool:
    """Return whether stdin has ended, as far as that can be told without waiting."""
    if sys.stdin.isatty():
        return False
    try:
        has_news = bool(select.select([sys.stdin], [], [], 0)[0])
        return has_news and not sys.stdin.buffer.peek(1)  # type: ignore[union-attr]
    except (OSError, ValueError):  # Windows knows it of sockets alone
        return False
