"""Questions before something destructive: asked on stderr, answered on stdin."""

from __future__ import annotations

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
    click.echo(f"{question} [y/N]: ", nl=False, err=True)
    answer = sys.stdin.readline()
    if not answer and not sys.stdin.isatty():
        click.echo(err=True)
        raise click.UsageError("give --yes: stdin has ended, so nobody can answer the question")
    if not answer:
        raise click.Abort
    return answer.strip().lower() in ("y", "yes")
