"""The guide of errors has a row for each error, with its code and its exit code."""

from __future__ import annotations

import re

import pytest

import agent_memory
from agent_memory import AgentMemoryError, cli
from agent_memory.cli.guide import GUIDES

ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| (\d+) \| (.+) \|$", re.MULTILINE)
ROWS = ROW.findall((GUIDES / "errors.md").read_text(encoding="utf-8"))
ERRORS: dict[str, type[AgentMemoryError]] = {
    name: public
    for name in agent_memory.__all__
    if isinstance(public := getattr(agent_memory, name), type)
    and issubclass(public, AgentMemoryError)
    and public is not AgentMemoryError
}


def test_each_error_has_one_row() -> None:
    assert sorted(name for name, *_ in ROWS) == sorted(ERRORS)


@pytest.mark.parametrize(("name", "code", "exit_code", "advice"), ROWS)
def test_a_row_tells_the_code_and_the_exit_code(
    name: str, code: str, exit_code: str, advice: str
) -> None:
    error = ERRORS[name].__new__(ERRORS[name])
    assert error.code == code
    assert int(cli._exit_code(error)) == int(exit_code)
    assert advice.endswith(".")
