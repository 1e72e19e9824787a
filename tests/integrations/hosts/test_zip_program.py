"""The program in one file, a zip archive, as zipapp, shiv and PEX make it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from host_inputs import event, wait_until_stored

import agent_memory
from agent_memory.integrations.hosts.installation import Installation
from agent_memory.integrations.hosts.table import HOSTS

PACKAGE = Path(agent_memory.__file__).parent
MIGRATIONS = PACKAGE.parent / "migrations"
MAIN = """\
import sys
sys.path.append({packages!r})  # as shiv does
from agent_memory.__main__ import main
main()
"""


class Program:
    """A program in one file, and a Python that has none of its packages."""

    def __init__(self, path: Path, python: Path) -> None:
        self.path = path
        self.python = python
        self.environment = {**os.environ, "HOME": str(path.parent)}
        for name in ("PYTHONPATH", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
            self.environment.pop(name, None)

    def run(self, *words: str, stdin: str = "", code: int = 0) -> str:
        """Run it outside of the checkout, and return what it printed."""
        done = subprocess.run(
            [self.python, self.path, *words],
            cwd=self.path.parent,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("python")
    venv.create(folder, symlinks=os.name != "nt")
    return folder / ("Scripts" if os.name == "nt" else "bin") / Path(sys.executable).name


@pytest.fixture
def program(tmp_path: Path, python: Path) -> Program:
    """Return a program with the package as a wheel has it."""
    path = tmp_path / "agent-memory.pyz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("__main__.py", MAIN.format(packages=sysconfig.get_path("purelib")))
        for file in (*PACKAGE.rglob("*"), *MIGRATIONS.rglob("*")):
            if file.is_file() and file.parent.name != "__pycache__":
                inside = PACKAGE if file.is_relative_to(PACKAGE) else PACKAGE.parent
                archive.write(file, "agent_memory" / file.relative_to(inside))
    return Program(path, python)


def test_its_migrations_and_guides_are_found(program: Program, root: Path, tmp_path: Path) -> None:
    whose = ("--root", str(root), "--agent", "bob")
    program.run(*whose, "store", "The standup is at nine")
    assert "The standup is at nine" in program.run(*whose, "search", "standup")
    assert "sound" in program.run(*whose, "check")
    assert "first fifteen minutes" in program.run("guide", "first-steps")
    program.run("guide", "--html", str(tmp_path / "site"))
    assert (tmp_path / "site" / "style.css").is_file()


def test_its_page_and_its_migrations_for_postgresql_are_found(program: Program) -> None:
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
        for place in (str(program.path), str(PACKAGE.parent))
    )
    assert from_zip == plain


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a hook stores by itself")
def test_what_its_hooks_hear_is_stored(program: Program, root: Path) -> None:
    whose = ("--root", str(root), "--agent", "bob")
    said = event("claude-code", "prompt", root, "Remember that staging lives in Oslo.")
    program.run("hook", "claude-code", "UserPromptSubmit", *whose, stdin=json.dumps(said))
    wait_until_stored(root)
    with agent_memory.AgentMemory("bob", root=root) as memory:
        assert [entry.content for entry in memory.list_recent()] == ["staging lives in Oslo."]


def test_its_hooks_run_it_again(
    program: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    program.run("install", "claude-code")
    hooks = Installation(HOSTS["claude-code"]).installed_hooks()
    commands = [hook.command for hook in hooks if hook.command]  # others ask the server
    assert commands
    for command in commands:
        assert shlex.split(command)[1:3] == [str(program.path), "hook"]
        done = subprocess.run(
            command, shell=True, env=program.environment, input=b"{}", capture_output=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert program.run("install", "claude-code").count("unchanged: ") == 2
    program.run("uninstall", "claude-code")
    assert Installation(HOSTS["claude-code"]).installed_hooks() == []


def test_by_another_name_its_hooks_would_not_be_known_again(program: Program) -> None:
    program.path = program.path.rename(program.path.with_name("app.pyz"))
    told = program.run("install", "claude-code", code=4)
    assert "rename it to agent-memory.pyz" in told
    assert not (program.path.parent / ".claude").exists()
