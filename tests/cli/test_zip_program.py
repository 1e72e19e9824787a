"""The library in a zip archive, from which Python imports it: as zipapp, shiv and PEX make them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import agent_memory

PACKAGE = Path(agent_memory.__file__).parent
MIGRATIONS = PACKAGE.parent / "migrations"
MAIN = "from agent_memory.__main__ import main\nmain()\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program in one file, with the package as a wheel has it."""
    path = tmp_path_factory.mktemp("bin") / "agent-memory.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__main__.py", MAIN)
        for file in (*PACKAGE.rglob("*"), *MIGRATIONS.rglob("*")):
            if file.is_file() and file.parent.name != "__pycache__":
                inside = PACKAGE if file.is_relative_to(PACKAGE) else PACKAGE.parent
                archive.write(file, "agent_memory" / file.relative_to(inside))
    return path


def run(program: Path, *words: str, stdin: str = "") -> str:
    """Run the program outside of the checkout, and return what it printed."""
    command = [sys.executable, str(program), *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=program.parent, env=environment, input=stdin, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_its_migrations_and_guides_are_found(program: Path, tmp_path: Path) -> None:
    whose = ("--root", str(tmp_path / "root"), "--agent", "bob")
    run(program, *whose, "store", "The standup is at nine")
    assert "The standup is at nine" in run(program, *whose, "search", "standup")
    assert "sound" in run(program, *whose, "check")
    assert "first quarter of an hour" in run(program, "guide", "first-steps")
    run(program, "guide", "--html", str(tmp_path / "site"))
    assert (tmp_path / "site" / "style.css").is_file()


def test_its_page_and_its_migrations_for_postgresql_are_found(program: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from agent_memory.integrations.ui.page_files import page_files\n"
        "from agent_memory.runtime.package_files import PACKAGE\n"
        "from agent_memory.storage.migrations import read_migrations\n"
        "print(len(page_files()), len(read_migrations(PACKAGE, 'postgres')))\n"
    )
    command = [sys.executable, "-c", script]
    from_zip, plain = (
        subprocess.run([*command, place], capture_output=True, text=True, check=True).stdout
        for place in (str(program), str(PACKAGE.parent))
    )
    assert from_zip == plain
