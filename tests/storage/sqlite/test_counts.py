"""How many memories there are is told without looking at each, and is true whoever wrote them."""

from __future__ import annotations

import apsw
import pytest
from conftest import database_of

from agent_memory import AgentMemory


def steps_of(memory: AgentMemory, *, most: int) -> int:
    """Return how many hundreds of steps SQLite's machine takes for ``info``."""
    connection = database_of(memory)._connection
    assert connection is not None
    taken = 0

    def count() -> bool:
        nonlocal taken
        taken += 1
        return taken > most

    connection.set_progress_handler(count, 100)
    try:
        memory.info()
    finally:
        connection.set_progress_handler(None)
    return taken


@pytest.mark.parametrize("read_only", [False, True])
def test_info_takes_no_longer_where_there_are_more(memory: AgentMemory, read_only: bool) -> None:
    taken = []
    for start in (0, 1_000):
        memory.store_many([{"content": f"fact {n}"} for n in range(start, start + 1_000)])
        memory.info()
        with AgentMemory.open(memory.path, read_only=read_only) as other:
            other.info()
            taken.append(steps_of(other, most=50))
    assert taken[1] <= taken[0] + 1 < 10


def test_counts_are_true_though_other_programs_write(memory: AgentMemory) -> None:
    ids = memory.store_many([{"content": f"fact {number}"} for number in range(6)])
    memory.archive(ids[0])

    def figures() -> tuple[int, int, int]:
        info = memory.info()
        return info.memory_count, info.archived_count, memory.count(filters={"archived": None})

    assert figures() == (5, 1, 6)
    connection = apsw.Connection(str(memory.path))
    for sql, expected in (
        ("INSERT INTO memories (content) VALUES ('by hand')", (6, 1, 7)),
        (f"UPDATE memories SET archived = 1 WHERE id = '{ids[1]}'", (5, 2, 7)),
        # No trigger runs for the rows that these replace.
        (f"REPLACE INTO memories (id, content) VALUES ('{ids[1]}', 'anew')", (6, 1, 7)),
        (f"REPLACE INTO memories (id, content) VALUES ('{ids[2]}', 'anew')", (6, 1, 7)),
        ("DELETE FROM memories WHERE archived = 1", (6, 0, 6)),
        ("UPDATE memories SET archived = 1", (0, 6, 6)),
    ):
        connection.execute(sql)
        assert figures() == expected, sql
    connection.close()
    assert [row.archived for row in memory.list_recent(9, filters={"archived": True})] == [True] * 6
    memory.check(repair=True)  # of what was replaced, the scratchpad still had the entries
