"""Our modules before Amplifier's own judges: its command, and the suites that it ships."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest.importorskip("amplifier_core")

from agent_memory.integrations.amplifier import BUNDLE

MODULES = {
    "tool-memory-semantic": "tool",
    "hooks-memory-capture": "hook",
    "hooks-memory-context": "hook",
    "context-memory-scratchpad": "context",
}
SUITES = {
    "tool": ("Tool", "7"),
    "hook": ("Hook", "7"),
    "context": ("Context", "10"),
}


def package(module: str) -> Path:
    return BUNDLE / "modules" / f"amplifier_module_{module.replace('-', '_')}"


def run(*words: str | Path, place: Path) -> subprocess.CompletedProcess[str]:
    home = {"HOME": str(place), "USERPROFILE": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=place,
        env={**os.environ, **home},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("module", MODULES)
def test_amplifiers_command_finds_nothing_wrong(module: str, tmp_path: Path) -> None:
    words = ("-m", "amplifier_core.cli", "validate", MODULES[module], package(module))
    done = run(*words, place=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(0 errors, 0 warnings)" in done.stdout
    assert done.stderr == "", "a mount is quiet"
    assert list(tmp_path.iterdir()) == [], "a mount writes nothing"


def test_all_seven_tools_are_there_and_are_checked(tmp_path: Path) -> None:
    words = ("-m", "amplifier_core.cli", "validate", "tool", package("tool-memory-semantic"))
    done = run(*words, place=tmp_path)
    for name in "store search list_recent get update promote forget".split():
        assert f"Tool has name: 'memory_{name}'" in done.stdout


@pytest.mark.parametrize("module", MODULES)
def test_amplifiers_suites_pass(module: str, tmp_path: Path) -> None:
    place = tmp_path / f"amplifier-module-{module}"
    shutil.copytree(package(module), place / package(module).name)
    suite, behaviours = SUITES[MODULES[module]]
    (place / "test_conformance.py").write_text(
        f"from amplifier_core.validation.behavioral import {suite}BehaviorTests\n"
        f"from amplifier_core.validation.structural import {suite}StructuralTests\n"
        f"class TestBehavior({suite}BehaviorTests): pass\n"
        f"class TestStructure({suite}StructuralTests): pass\n"
    )
    (place / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    done = run("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", place, place=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{int(behaviours) + 1} passed" in done.stdout, done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.parametrize("module", MODULES)
def test_an_entry_point_mounts_what_the_bundle_mounts(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = entry_points(group="amplifier.modules", name=module)
    monkeypatch.syspath_prepend(str(BUNDLE / "modules"))
    packaged = __import__(package(module).name)
    assert entry.load() is packaged.mount
    assert packaged.__amplifier_module_type__ == MODULES[module]


def test_without_amplifier_the_error_says_how_to_install_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['amplifier_core'] = None\n"
        "import agent_memory.integrations.amplifier as a; print(a.BUNDLE.name)\n"
        "import agent_memory.integrations.amplifier.tools\n"
    )
    done = run("-c", code, place=tmp_path)
    assert done.stdout == "amplifier\n"
    assert "pip install 'agent-memory[amplifier]'" in done.stderr
