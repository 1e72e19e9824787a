"""The one table of integrations has all that there are, and all that is made from it is so."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import agent_memory
from agent_memory import ConfigurationError
from agent_memory.integrations.registry import INTEGRATIONS, Integration, missing_package

PACKAGE = Path(agent_memory.__path__[0])
PROJECT = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SHARED = {"__init__", "__pycache__", "loopback", "registry", "result_texts", "texts", "turns"}
rows = pytest.mark.parametrize("row", INTEGRATIONS.values(), ids=INTEGRATIONS)


def test_every_module_beside_the_table_is_in_it() -> None:
    entries = {entry.stem for entry in (PACKAGE / "integrations").iterdir()}
    assert set(INTEGRATIONS) == entries - SHARED


def test_the_entry_points_are_those_of_the_package() -> None:
    listed = {name for row in INTEGRATIONS.values() for name in row.entry_points}
    assert listed == set(PROJECT["entry-points"]["amplifier.modules"])


@rows
def test_an_extra_and_a_guide_are_there(row: Integration) -> None:
    assert not row.extra or row.extra in PROJECT["optional-dependencies"]
    assert bool(row.extra) == bool(row.packages)
    assert (PACKAGE / "guides" / f"{row.guide}.md").exists()


@rows
def test_the_guide_has_the_row(row: Integration) -> None:
    guide = (PACKAGE / "guides" / "inside-agents.md").read_text(encoding="utf-8")
    assert row.row in guide.splitlines()


@rows
def test_a_missing_package_is_answered_with_what_installs_it(row: Integration) -> None:
    other = ModuleNotFoundError("no module named tomato", name="tomato")
    assert missing_package(row.name, other) is other
    for package in row.packages:
        error = ModuleNotFoundError("it is not there", name=f"{package}.inner")
        answer = missing_package(row.name, error)
        assert isinstance(answer, ConfigurationError)
        assert package in str(answer)
        assert f"pip install 'agent-memory[{row.extra}]'" in str(answer)
