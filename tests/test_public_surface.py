"""What programs and scripts depend on: no name, argument, option or exit code goes unnoticed.

``UPDATE_GOLDEN=1 pytest tests/test_public_surface.py`` writes the list anew. What goes or changes
there breaks somebody's program: tell it in the guide of changes.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

import click

import agent_memory
from agent_memory import AgentMemoryError, cli
from agent_memory.cli.options import ExitCode

SURFACE = Path(__file__).parent / "golden" / "public_surface.txt"


def surface() -> list[str]:
    """Return a line for each name, argument, field, option and exit code."""
    lines = [line for name in agent_memory.__all__ for line in _of_name(name)]
    lines += _of_command(cli.cli, "agent-memory")
    lines += [f"exit code {code.value}: {code.name}" for code in ExitCode]
    return sorted(lines)


def _of_name(name: str) -> Iterator[str]:
    public = getattr(agent_memory, name)
    yield name
    if inspect.isclass(public):
        for fields in ("model_fields", "model_computed_fields"):
            yield from (f"{name}.{field}" for field in getattr(public, fields, {}))
        if issubclass(public, Enum):
            yield from (f"{name}.{member.name} = {member.value!r}" for member in public)
        if issubclass(public, AgentMemoryError):
            yield f"{name}.code = {public.code}"
        for member, value in inspect.getmembers(public):
            is_own = str(getattr(value, "__module__", None)).startswith("agent_memory")
            if callable(value) and is_own and not member.startswith("_"):
                yield from _of_function(f"{name}.{member}", value)
    elif inspect.isfunction(public):
        yield from _of_function(name, public)


def _of_function(name: str, function: Callable[..., object]) -> Iterator[str]:
    yield f"{name}()"
    if inspect.isroutine(function):
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in ("self", "cls"):
                must = "" if parameter.default is inspect.Parameter.empty else " (may be left out)"
                yield f"{name}({parameter.name}){must}"


def _of_command(command: click.Command, path: str) -> Iterator[str]:
    yield path
    for parameter in command.params:
        names = (
            parameter.opts
            if isinstance(parameter, click.Option)
            else [parameter.human_readable_name]
        )
        yield from (f"{path} {option}" for option in names)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _of_command(below, f"{path} {name}")


def test_nothing_that_others_depend_on_goes_or_changes_unnoticed() -> None:
    lines = surface()
    if os.environ.get("UPDATE_GOLDEN"):
        SURFACE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    known = SURFACE.read_text(encoding="utf-8").splitlines()
    assert [line for line in known if line not in set(lines)] == []
    assert [line for line in lines if line not in set(known)] == []
