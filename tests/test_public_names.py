"""What the package offers: every name exists and is explained, and importing it is quick."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import agent_memory

NAMES: list[str] = agent_memory.__all__


def in_order(name: str) -> tuple[int, str]:
    """Constants come first, then classes, then functions, each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_public_names_are_sorted_and_stand_once() -> None:
    assert sorted(set(NAMES), key=in_order) == NAMES


def test_no_public_name_is_hidden_or_a_module() -> None:
    for name in NAMES:
        assert not name.startswith("_")
        assert not isinstance(getattr(agent_memory, name), ModuleType)


def test_whatever_the_package_imports_for_its_users_is_a_public_name() -> None:
    imported = {
        name
        for name, value in vars(agent_memory).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert imported <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_exists_and_is_explained(name: str) -> None:
    value = getattr(agent_memory, name)
    if inspect.isclass(value) or inspect.isroutine(value):
        # A class is explained by its own docstring, not by one that it inherits.
        explanation = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        assert explanation
        assert len(explanation.split()) >= 3
        assert value.__module__.startswith("agent_memory")


@pytest.mark.parametrize("name", NAMES)
def test_the_methods_of_a_public_class_are_explained(name: str) -> None:
    value = getattr(agent_memory, name)
    methods = vars(value).items() if inspect.isclass(value) else ()
    bare = [
        method
        for method, function in methods
        if not method.startswith("_")
        and (inspect.isroutine(function) or isinstance(function, property | classmethod))
        and not function.__doc__
    ]
    assert bare == []


def test_a_star_import_brings_the_public_names() -> None:
    brought: dict[str, object] = {}
    exec("from agent_memory import *", brought)
    assert set(NAMES) == set(brought) - {"__builtins__"}


def loaded_by(code: str) -> set[str]:
    """Return what a fresh Python has loaded when it has run the code."""
    code += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", ["openai", "numpy", "yaml", "asyncio", "sqlite3", "_sqlite3"])
def test_importing_the_package_does_not_load(module: str, loaded: set[str]) -> None:
    assert "agent_memory.api.memory" in loaded
    assert module not in loaded


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    return loaded_by("import agent_memory")


def test_neither_storing_nor_searching_loads_another_sqlite_or_a_model(root: Path) -> None:
    found = loaded_by(
        "import agent_memory\n"
        f"with agent_memory.AgentMemory('bob', root={str(root)!r}) as memory:\n"
        "    memory.store('the lighthouse is red')\n"
        "    assert len(memory.search('lighthouse')) == 1\n"
    )
    assert "apsw" in found
    assert not found & {"openai", "numpy", "sqlite3", "_sqlite3", "asyncio"}
