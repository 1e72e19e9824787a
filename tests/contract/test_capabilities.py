"""What only some engines can do is refused by name where an engine cannot; the rest goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_memory import AgentMemory, ConfigurationError, MemoryNotFound
from agent_memory.storage.engine import Capability
from agent_memory.storage.sqlite.engine import SQLiteEngine

VERBS: dict[str, tuple[Capability, Callable[[AgentMemory], object]]] = {
    "backup": (Capability.FILE_BACKUP, lambda memory: memory.backup()),
    "backups": (Capability.FILE_BACKUP, lambda memory: memory.backups()),
    "as_of": (Capability.SNAPSHOT, lambda memory: memory.search("tea", as_of="2026-01-30")),
    "erase in backups": (
        Capability.FILE_BACKUP,
        lambda memory: memory.erase([memory.store("I drink wine")], backups=True),
    ),
    "finish_erasing": (Capability.PROVEN_ERASURE, lambda memory: memory.finish_erasing()),
    "check": (Capability.REPAIR, lambda memory: memory.check()),
}


def without(patch: pytest.MonkeyPatch, *missing: Capability) -> None:
    patch.setattr(SQLiteEngine, "capabilities", frozenset(Capability) - set(missing))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_says_what_the_engine_lacks_and_what_to_do(memory: AgentMemory, verb: str) -> None:
    memory.store("I drink tea", id="mem-tea")
    capability, call = VERBS[verb]
    with pytest.MonkeyPatch.context() as patch:
        without(patch, capability)
        with pytest.raises(ConfigurationError) as error:
            call(memory)
    assert f"offers no {capability.value.replace('_', ' ')}: " in str(error.value)
    assert memory.get("mem-tea") is not None
    call(memory)  # where it has it, the same call works


def test_what_needs_none_of_them_works_without_any(memory: AgentMemory) -> None:
    with pytest.MonkeyPatch.context() as patch:
        without(patch, *Capability)
        memory_id = memory.store("I drink tea")
        memory.update(memory_id, content="I drink green tea")
        assert [hit.memory.id for hit in memory.search("green tea")] == [memory_id]
        memory.configure(retention="standard")
        memory.store("old", timestamp="2020-01-01")
        assert memory.tidy().backup is None
        memory.undo()
        memory.delete(memory_id)
        assert memory.count() == 0


def test_without_files_all_rows_are_erased_and_looked_through(memory: AgentMemory) -> None:
    text = "The code of the door to the old boathouse by the lake is 4711"
    other = memory.store(f"Ben said: {text}")
    erased = memory.store(text)
    memory.update(erased, content="The code was changed")
    with pytest.MonkeyPatch.context() as patch:
        without(patch, *Capability)
        receipt = memory.erase(erased)
    assert (receipt.memories, receipt.changes, receipt.files_scanned) == (1, 2, 0)
    assert receipt.bytes_scanned > len(text)
    assert (receipt.clean, receipt.also_in) == (True, [other])
    with pytest.raises(MemoryNotFound):  # not even a history is left
        memory.history(erased)
