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
    "erase, of backups": (
        lambda memory, _: memory.erase("mem-none", backups=True),
        "its own tools, or export",
    ),
    "finish_erasing": (lambda memory, _: memory.finish_erasing(), "the receipt of `erase` says"),
    "search, as_of": (lambda memory, _: memory.search("x", as_of="2020-01-01"), "history"),
    "export, as a file": (
        lambda memory, folder: memory.export(folder / "copy.db", format="sqlite"),
        "its own tools, or export",
    ),
    "path": (lambda memory, _: memory.path, "in a database"),
    "open": (lambda memory, _: AgentMemory.open(address_of(memory)), "give it as `root`"),
    "opened_copy": (
        lambda memory, _: AgentMemory.opened_copy(address_of(memory)).__enter__(),
        "give it as `root`",
    ),
    "backups_of": (
        lambda memory, _: AgentMemory.backups_of(address_of(memory)),
        "give it as `root`",
    ),
    "restore": (
        lambda memory, folder: AgentMemory.restore(address_of(memory), folder / "copy.db"),
        "give it as `root`",
    ),
    "rebuild": (
        lambda memory, folder: AgentMemory.rebuild(address_of(memory), folder / "copy.db"),
        "give it as `root`",
    ),
}
"""Each with what the message says."""


def address_of(memory: AgentMemory) -> str:
    return memory.location.partition(" (agent ")[0]


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
