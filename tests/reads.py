"""Reads a store: one memory, what was found, and by every verb what other programs left in it."""

from __future__ import annotations

import re
from pathlib import Path

from agent_memory import AgentMemory, Memory, SearchResults
from agent_memory.formats.registry import names
from agent_memory.models.fields import is_memory_id

LOSSLESS = ("store", "sqlite", "json", "jsonl", "record-json", "record-jsonl", "directory")
"""The formats that have a place for all that a memory is."""


def stored(memory: AgentMemory, memory_id: str) -> Memory:
    """Return a memory that must be there."""
    found = memory.get(memory_id)
    assert found is not None
    return found


def contents(results: SearchResults) -> list[str]:
    return [hit.memory.content for hit in results]


def contents_of(path: Path) -> list[str]:
    """Open a copy as a memory of its own, which must be sound, and return what it holds."""
    with AgentMemory.open(path, create=False) as copy:
        assert copy.check().problems == []
        return sorted(memory.content for memory in copy.list_recent(10_000))


def unmarked(text: str) -> str:
    """Return a text without the marks between which memories stand: each has its own."""
    return re.sub(r"(memories)-[0-9a-f]{8}", r"\1", text)


def read_everything(memory: AgentMemory, folder: Path) -> None:
    """Read by every verb that reads; none may fail for the sake of one row."""
    for found in memory.list_recent(1_000):
        found.model_dump_json()
        if is_memory_id(found.id) and memory.history(found.id):
            memory.get(found.id, as_of=found.updated_at)
    for change in memory.history(limit=1_000):
        change.model_dump_json()
    for query in ("café gare", "tea", "Alice", "é", "a\x01b"):
        for hit in memory.search(query, 100, count_accesses=False, graph=True):
            hit.model_dump_json()
        memory.duplicates(query)
        memory.holders(query)
    for filters in (
        {"tags": ["é"]},
        {"user_id": "u1"},
        {"custom_filters": {"OR": [{"place": {"icontains": "É"}}, {"list": ["é"]}]}},
    ):
        memory.count(filters=filters)
    memory.context()
    memory.scratchpad()
    memory.get_all()
    memory.secrets()
    memory.reviews()
    memory.rejections()
    memory.graph.entities()
    memory.graph.relationships()
    memory.info()
    list(memory.duplicate_groups())
    memory.tidy(dry_run=True)
    memory.backup(folder / "copy.db", overwrite=True)
    for name in names():
        memory.export(folder / f"all.{name}", format=name, overwrite=True)
