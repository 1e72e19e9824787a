"""Arguments that cannot be: each a ``ValidationError`` that names it, and nothing was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory, ValidationError

Call = Callable[[AgentMemory, Any], object]
"""A verb, called with one value."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with a file to import."""
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text('{"content": "comes from a file"}\n')


def stored(memory: AgentMemory) -> str:
    """Return all that a memory holds, as text."""
    memory.export("all.yaml", overwrite=True)
    return Path("all.yaml").read_text("utf-8")


def faults_of(memory: AgentMemory, call: Call, value: object) -> list[tuple[object, ...]]:
    """Return which arguments a call is refused for, which must leave all as it was."""
    before = stored(memory)
    with pytest.raises(ValidationError) as caught:
        call(memory, value)
    assert stored(memory) == before
    return [error["loc"] for error in caught.value.errors()]


FLAGS: dict[str, tuple[str, Call]] = {
    "import_": ("dry_run", lambda m, it: m.import_("in.jsonl", dry_run=it)),
    "import_ skips": ("skip_bad", lambda m, it: m.import_("in.jsonl", skip_bad=it)),
    "import_ erased": ("include_erased", lambda m, it: m.import_("in.jsonl", include_erased=it)),
    "tidy": ("dry_run", lambda m, it: m.tidy(dry_run=it)),
    "add": ("dry_run", lambda m, it: m.add("I like tea.", user_id="ann", dry_run=it)),
    "erase": ("backups", lambda m, it: m.erase("kept", backups=it)),
}


@pytest.mark.parametrize("value", [None, "", "no", [], 5, 0.5], ids=repr)
@pytest.mark.parametrize("call", FLAGS)
def test_what_is_neither_true_nor_false_does_nothing(
    memory: AgentMemory, call: str, value: object
) -> None:
    name, verb = FLAGS[call]
    memory.store("Bob drinks tea", id="kept")
    assert faults_of(memory, verb, value) == [(name,)]


@pytest.mark.parametrize("value", [True, 1])
def test_1_is_true(memory: AgentMemory, value: bool) -> None:
    assert memory.import_("in.jsonl", dry_run=value).dry_run
    assert memory.count() == 0
