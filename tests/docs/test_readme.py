"""Everything that the README shows is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

CHECKOUT = Path(__file__).parents[2]
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_the_python_blocks_run_one_after_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = _blocks("python")
    assert len(blocks) >= 4
    names: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "Prefer PostgreSQL for new projects" in printed
    assert "## Recent Memories" in printed
    assert "no_match" in printed


def test_the_shell_blocks_run_one_after_the_other(tmp_path: Path) -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("the sqlite3 shell is not installed")
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for block in _blocks("bash"):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block],
            cwd=CHECKOUT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr
        assert done.stdout


def test_the_first_command_does_its_job(tmp_path: Path) -> None:
    """What follows the installation in the README's first command, with this installation."""
    (line,) = [line for line in README.splitlines() if "bench/notes.jsonl" in line]
    words = line.strip().split(" && ")[2:]
    assert len(words) == 2
    for command in words:
        here = command.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        here = here.replace(".venv/demo", str(tmp_path / "demo"))
        done = subprocess.run(
            ["bash", "-c", here], cwd=CHECKOUT, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
    best = done.stdout.splitlines()[1]
    assert "notes-15" in best
    assert "rarest words" in best


def test_every_command_is_in_the_readme_or_the_help() -> None:
    from agent_memory.cli import cli

    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert command.help, name
        assert "Example" in command.help, name


def test_the_notes_are_json_lines_with_ids_of_their_own() -> None:
    lines = (CHECKOUT / "bench" / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(set(ids)) == len(lines) == 20


def test_the_figures_are_filled_in() -> None:
    assert re.findall(r"\b[A-Z]+_TABLE\b", README) == []
    assert "100,000" in README
