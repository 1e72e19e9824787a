"""Stores to export and import, and what is seen of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Clock

from agent_memory import AgentMemory, AgentMemoryError, Memory
from agent_memory.models.reports import ImportReport

OF_MEMORIES = ("store", "backup", "json", "jsonl", "record-json", "record-jsonl", "directory")
"""The formats that hold every memory with every field, and are made of text."""
READ_BY = {"backup": "scratchpad", "record-json": "json", "record-jsonl": "jsonl"}
ONE_CORE_MEMORY = {"limits": {"core": {"max_memories": 1, "enforcement": "hard"}}}
OF_FILES = pytest.mark.file_only("no engine is asked: the file is that is written or read")


def filled(memory: AgentMemory, clock: Clock) -> AgentMemory:
    """Give the memory something of everything that a store can hold."""
    memory.configure(scratchpad_max_size=20, categories=["recipe"], backups_kept=3)
    kept = memory.store(
        "Prefer PostgreSQL for “new” projects \u2028 \U0001f600 e\u0301",
        category="preference",
        tags=["database", "größe"],
        kind="core",
        importance="high",
        user_id="alice",
        run_id="run-1",
        memory_type="PROCEDURAL",
        timestamp="2025-12-31T23:59:59.123456Z",
        metadata={"sure": 0.95, "deep": {"list": [1, None, True, {"no": "yes"}]}, "1": "012"},
        id="Team:a_1.b-2",
    )
    clock.forward(minutes=1)
    task = {"status": "blocked", "blockers": ["the api"], "outcome": "none yet"}
    memory.store("two lines\n\n  - and: a third\n\t# no\n", kind="task", task_metadata=task)
    clock.forward(minutes=1)
    words = [
        "no",
        "2026-02-30",
        "012",
        "1e3",
        "~",
        "{a: b}",
        "- x",
        "'",
        "日本語のメモ",
        " padded ",
    ]
    memory.store_many([{"content": word, "tags": [word]} for word in words])
    clock.forward(minutes=1)
    gone = memory.store("a mistake", metadata={"to": "delete"})
    memory.delete(gone)
    memory.archive(memory.store("an old habit", category="recipe", session_id="session-0"))
    clock.forward(minutes=1)
    memory.update(kept, content="Prefer PostgreSQL for all projects", metadata={"sure": 1.0})
    memory.promote(kept)
    memory.reject("my secret word", reason="asked for")
    memory.search("postgresql projects")
    memory.search("nothing like that")
    memory.info()  # writes what the searches counted
    return memory


def everything(memory: AgentMemory) -> dict[str, Memory]:
    """Return all memories, archived ones too, by id."""
    found = memory.list_recent(10_000) + memory.list_recent(10_000, filters={"archived": True})
    return {one.id: one for one in found}


def contents(memory: AgentMemory) -> dict[str, str]:
    return {memory_id: one.content for memory_id, one in everything(memory).items()}


def exported(memory: AgentMemory, folder: Path, format: str = "store", **options: Any) -> Path:
    """Export into a folder, under a name that says nothing, and return the path."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}"
    memory.export(path, format=format, **options)
    return path


def data(path: Path) -> dict[str, list[bytes]]:
    """Return the lines of a file, or those of the files of a folder, but the backups in it.

    In a folder memories stand by kind: the order of their lines is not that of the store.
    """
    if path.is_file():
        return {"": path.read_bytes().splitlines(keepends=True)}
    return {
        str(file.relative_to(path)): sorted(file.read_bytes().split(b"\n"))
        for file in sorted(path.rglob("*.*"))
        if file.is_file() and ".backup" not in file.parts
    }


def lines(*items: dict[str, Any]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def saved(folder: Path, text: str | bytes, name: str = "in") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def told(report: ImportReport) -> dict[str, Any]:
    """Return what a report says, but what only the run itself has."""
    return report.model_dump(exclude={"dry_run", "backup"})


def state(memory: AgentMemory, folder: Path) -> bytes:
    """Return everything that a store holds, as one text."""
    return exported(memory, folder).read_bytes()


def fault_of(verb: Callable[[], object]) -> str | None:
    """Return what is said where a verb refuses, ``None`` where it does not."""
    try:
        verb()
    except AgentMemoryError as error:
        return str(error)
    return None


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def run(code: str, *arguments: object) -> list[str]:
    """Run Python code in a process of its own and return the lines that it printed."""
    words = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
