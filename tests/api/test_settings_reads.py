"""How often a verb reads the agent's settings from the file: not once more with every item."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import engine_of

from agent_memory import AgentMemory
from agent_memory.storage.tables import AgentTable

CALLS: dict[str, Callable[[AgentMemory, int], Any]] = {
    "store_many": lambda memory, count: memory.store_many(
        {"content": f"note {number}", "category": "note", "tags": ["x"]} for number in range(count)
    ),
    "add": lambda memory, count: memory.add(
        [{"role": "user", "content": f"I like tea {number}."} for number in range(count)],
        user_id="ann",
        infer=False,
    ),
}


@pytest.fixture
def reads(memory: AgentMemory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give what is read of settings from now on, an entry each time."""
    table_class = type(engine_of(memory).agent)
    read = table_class.settings
    texts: list[str] = []

    def noted(table: AgentTable) -> str:
        texts.append(read(table))
        return texts[-1]

    monkeypatch.setattr(table_class, "settings", noted)
    return texts


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_many_items_read_the_settings_as_often_as_one(
    root: Path, call: Callable[[AgentMemory, int], Any], reads: list[str]
) -> None:
    counts = []
    for items in (1, 20):
        with AgentMemory(f"bob{items}", root=root, embedder=None) as memory:
            reads.clear()
            call(memory, items)
            counts.append(len(reads))
    assert counts[0] == counts[1] > 0


VERBS: dict[str, Callable[[AgentMemory], Any]] = {
    "store": lambda memory: memory.store("I like tea"),
    "store_many": lambda memory: memory.store_many([{"content": "a"}, {"content": "b"}]),
    "update": lambda memory: memory.update("mem-1", content="I like coffee"),
    "search": lambda memory: memory.search("tea"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_reads_the_settings_once(memory: AgentMemory, verb: str, reads: list[str]) -> None:
    memory.store("I like milk", id="mem-1")
    reads.clear()
    VERBS[verb](memory)
    assert len(reads) == 1
