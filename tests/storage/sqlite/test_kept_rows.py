"""What is kept of memories from one search to the next is what the file holds, whoever writes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_memory import AgentMemory
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.kept_rows import KeptRows
from bench.engine import engine_of
from bench.workload import NOW

TALK = ["Alice lives in Rome", "since when?", "since June", "Bob lives in Oslo"]


@pytest.fixture
def memory(root: Path) -> AgentMemory:
    memory = AgentMemory("bob", root=root, clock=lambda: NOW)
    memory.store_many([{"content": text, "session_id": "talk"} for text in TALK])
    return memory


def answer(memory: AgentMemory, question: str = "who lives in Rome?") -> list[tuple[Any, ...]]:
    """Search without leaving a trace; return all that a hit says."""
    hits = memory.search(question, explain=True, count_accesses=False)
    return [(hit.memory.content, hit.relevance_score, hit.score) for hit in hits]


def fresh_answer(memory: AgentMemory, question: str = "who lives in Rome?") -> list[Any]:
    with AgentMemory.open(memory.path, clock=lambda: NOW) as other:
        return answer(other, question)


def by_another_process(memory: AgentMemory, sql: str) -> None:
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    )
    subprocess.run([sys.executable, "-c", code, str(memory.path), sql], check=True)


CHANGES: dict[str, str] = {
    "text": "UPDATE memories SET content = 'Carla lives in Rome' WHERE seq = 4",
    "repeat": "UPDATE memories SET content = 'Alice lives in Rome' WHERE seq = 4",
    "session": "UPDATE memories SET created_by_session = 'other' WHERE seq = 1",
    "time": "UPDATE memories SET timestamp = '2020-01-01T00:00:00.000000Z' WHERE seq = 1",
    "archived": "UPDATE memories SET archived = 1 WHERE seq = 2",
    "used": "UPDATE memories SET access_count = 40 WHERE seq = 4",
    "gone": "DELETE FROM memories WHERE seq = 2",
    "new": "INSERT INTO memories (content, created_by_session) VALUES ('Rome is old', 'talk')",
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_another_program_changed_is_seen(memory: AgentMemory, change: str) -> None:
    before = answer(memory)
    by_another_process(memory, CHANGES[change])
    assert answer(memory) == fresh_answer(memory) != before


VERBS: dict[str, Callable[[AgentMemory, str], object]] = {
    "update": lambda memory, memory_id: memory.update(memory_id, content="Carla lives in Rome"),
    "delete": lambda memory, memory_id: memory.delete(memory_id),
    "store": lambda memory, _: memory.store("Rome is old", session_id="talk"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_this_memory_changed_is_seen(memory: AgentMemory, verb: str) -> None:
    before = answer(memory)
    VERBS[verb](memory, memory.list_recent(order="oldest")[3].id)
    assert answer(memory) == fresh_answer(memory) != before


def test_a_search_counts_and_what_is_kept_holds(memory: AgentMemory) -> None:
    before = answer(memory)
    engine = engine_of(memory)

    def stamp() -> object:
        with engine.read():
            return engine.database.stamp()

    for one in memory.list_recent():
        memory.demote(one.id)
    first = stamp()
    for _ in range(3):
        memory.search("who lives in Rome?")
        memory._store._unit_of_work.flush()
    assert memory.scratchpad().memories  # what was found for the third time is promoted
    assert stamp() == first
    assert answer(memory) == fresh_answer(memory) != before  # it was accessed three times more


def test_nothing_is_read_twice_while_nothing_changes(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answer(memory)
    read: list[str] = []
    rows = Database.rows

    def spied(database: Database, sql: str, values: Any = ()) -> list[Any]:
        read.append(sql)
        return rows(database, sql, values)

    monkeypatch.setattr(Database, "rows", spied)
    assert answer(memory) == before
    assert not [sql for sql in read if "m.access_count\n" in sql or "memory_text" in sql]
    assert not [sql for sql in read if "group_concat" in sql or "m.tags, m.timestamp" in sql]
    assert not [sql for sql in read if "f.fingerprint" in sql or "m.archived <> 0 LIMIT" in sql]


def test_a_restored_file_is_read_anew(memory: AgentMemory) -> None:
    copy = memory.backup()
    memory.update(memory.list_recent(order="oldest")[3].id, content="Carla lives in Rome")
    before = answer(memory)
    AgentMemory.restore(memory.path, copy)
    assert answer(memory) == fresh_answer(memory) != before


def test_what_is_undone_was_never_kept(memory: AgentMemory) -> None:
    engine = engine_of(memory)

    def change_and_fail() -> None:
        with engine.write():
            engine.database.run("UPDATE memories SET created_by_session = 'other' WHERE seq = 1")
            assert engine.memories.neighbours([1])[1] == {}
            (signals,) = engine.memories.ranking_signals([1], NOT_ARCHIVED)
            assert signals.session == "other"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change_and_fail()
    with engine.read():
        assert engine.memories.neighbours([1])[1] == {1: 2, 2: 3}
        (signals,) = engine.memories.ranking_signals([1], NOT_ARCHIVED)
    assert signals.session == "talk"


def test_no_more_is_kept_than_is_meant_to() -> None:
    kept: KeptRows[int, int] = KeptRows(2)
    kept.current("one").update({1: 1, 2: 2, 3: 3})
    assert kept.current("one") == {}
    kept.current("one").update({1: 1})
    assert kept.current("one") == {1: 1}
    assert kept.current("two") == {}
    kept.current("two").update({1: 1})
    assert kept.current(None) == {}
    kept.forget(1)
    assert kept.current("two") == {}


def test_nobody_is_given_what_another_keeps_meanwhile() -> None:
    kept: KeptRows[int, int] = KeptRows(2)

    class Stamp:
        """While it is compared, another thread has its turn."""

        def __eq__(self, other: object) -> bool:
            if self is other:
                kept.current("two").update({1: 2})
            return self is other

        __hash__ = object.__hash__

    stamp = Stamp()
    kept.current(stamp).update({1: 1})
    assert kept.current(stamp) == {1: 1}
    assert kept.current("two") == {1: 2}
