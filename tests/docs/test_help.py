"""The program's own help: every command is under exactly one heading, with a whole sentence."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter

import click
import pytest

import agent_memory.cli
from agent_memory.cli import GROUPS, cli, run


def help_text(capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["--help"]) == 0
    return capsys.readouterr().out


def defined_commands() -> set[str]:
    """Return the names of the commands that the modules of the command line define."""
    commands: dict[click.Command, str] = {}
    inner: set[click.Command] = {cli}
    for module in pkgutil.iter_modules(agent_memory.cli.__path__):
        imported = importlib.import_module(f"agent_memory.cli.{module.name}")
        for name, value in vars(imported).items():
            if isinstance(value, click.Command):
                commands[value] = name.rstrip("_").replace("_", "-")
            if isinstance(value, click.Group):
                inner |= set(value.commands.values())
    return {name for command, name in commands.items() if command not in inner}


def test_every_command_is_in_exactly_one_group() -> None:
    listed = Counter(name for group in GROUPS.values() for name in group)
    assert {name for name, count in listed.items() if count > 1} == set()
    assert set(listed) == defined_commands()


def test_the_help_shows_every_command_once_under_its_heading(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sections = re.findall(r"^(\w[\w ]*):\n((?:  .*\n)+)", help_text(capsys), flags=re.MULTILINE)
    shown = {
        heading: re.findall(r"^  ([a-z][\w-]*) ", rows, flags=re.MULTILINE)
        for heading, rows in sections
        if heading != "Options"
    }
    assert shown == {heading: list(names) for heading, names in GROUPS.items()}


def test_no_line_of_the_help_is_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_text(capsys)
    assert "..." not in text.partition("Options:")[2]
    assert max(map(len, text.splitlines())) <= 80
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        first = str(command.help).partition("\n")[0].split(". ")[0]
        assert " ".join(first.split()).rstrip(".") in " ".join(text.split())
