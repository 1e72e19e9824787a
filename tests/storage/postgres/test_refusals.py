"""What only a file can do is refused with what to use instead, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from postgres_server import Schemas

from agent_memory import AgentMemory, ConfigurationError

REFUSED: Final[dict[str, tuple[Callable[[AgentMemory, Path], Any], str]]] = {
    "backup": (lambda memory, _: memory.backup(), "its own tools, or export"),
    "backups": (lambda memory, _: memory.backups(), "its own tools, or export"),
    "as_of": (lambda memory, _: memory.search("x", as_of="2020-01-01"), "history"),
    "export as a file": (
        lambda memory, folder: memory.export(folder / "copy.db", format="sqlite"),
        "its own tools, or export",
    ),
    "path": (lambda memory, _: memory.path, "in a database"),
}
"""Each with what the message says."""


@pytest.fixture
def memory(schemas: Schemas) -> Iterator[AgentMemory]:
    with AgentMemory("bob", root=schemas.url("own")) as memory:
        yield memory


@pytest.mark.parametrize("verb", REFUSED)
def test_what_only_a_file_can_do_is_refused(memory: AgentMemory, tmp_path: Path, verb: str) -> None:
    memory.store("the oven is broken")
    before = memory.history()
    call, message = REFUSED[verb]
    with pytest.raises(ConfigurationError, match=message):
        call(memory, tmp_path)
    assert memory.history() == before
    assert list(tmp_path.iterdir()) == []
