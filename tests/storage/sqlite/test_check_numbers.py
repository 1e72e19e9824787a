"""A row with the highest number there is: nothing could be stored any more, nothing said why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_memory import AgentMemory, StorageFull

HIGHEST = 2**63 - 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "memories.db"
    with AgentMemory.open(place, agent_id="bob", embedder="wordllama") as memory:
        memory.store("the walnut stands in the garden", id="first", tags=["tree"])
        memory.store("the door code is known", id="second", tags=["door"])
        memory.promote("second")
        memory.migrate()
    return place


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO memories (seq, id, content) VALUES ({HIGHEST}, 'odd', 'an oak, too')",
        f"UPDATE history SET change_id = {HIGHEST} WHERE memory_id = 'second'",
        f"UPDATE sqlite_sequence SET seq = {HIGHEST}",
        "UPDATE sqlite_sequence SET seq = 'many'",
    ],
    ids=["memory", "change", "sequence", "text"],
)
def test_row_numbers_that_are_used_up_are_named_and_mended(
    path: Path, visitor: Callable[[Path, str], str], sql: str, tmp_path: Path
) -> None:
    visitor(path, sql)
    with AgentMemory.open(path, embedder="wordllama") as memory:
        if "many" not in sql:
            with pytest.raises(StorageFull, match=r"no more row numbers for .* check --repair`"):
                memory.store("one more")
        before = {each.id: (each.content, each.tags) for each in memory.list_recent()}
        problems = memory.check().problems
        assert problems
        assert {problem.kind for problem in problems} == {"wrong_number"}
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        assert {each.id: (each.content, each.tags) for each in memory.list_recent()} == before
        memory.store("one more", id="more")
        assert memory.check().problems == []
        assert [hit.memory.id for hit in memory.search("walnut garden", 1)] == ["first"]
        if "odd" in before:
            assert [hit.memory.id for hit in memory.search("oak", 1)] == ["odd"]
            assert memory.get("odd") is not None
        assert {"first", "second"} < {entry.id for entry in memory.scratchpad().memories}
        memory.undo()
        assert memory.count() == len(before)
        memory.export(tmp_path / "all.yaml", format="store")
    with AgentMemory.open(tmp_path / "own.db", agent_id="bob", embedder=None) as own:
        own.import_(tmp_path / "all.yaml")
        assert own.count() == len(before)


def test_a_memory_with_a_vector_and_a_place_in_the_scratchpad_keeps_both(
    path: Path, visitor: Callable[[Path, str], str]
) -> None:
    sql = "INSERT INTO memories (seq, id, content, tags) VALUES ({}, 'odd', 'an oak', '[\"wood\"]')"
    visitor(path, sql.format(HIGHEST))
    with AgentMemory.open(path, embedder="wordllama") as memory:
        assert memory.embed() == 1
        memory.promote("odd")
        assert memory.check(repair=True).ok
        assert memory.check().problems == []
        assert {entry.id for entry in memory.scratchpad().memories} == {"first", "second", "odd"}
        assert memory.embed() == 0, "the vector came along"
        (hit,) = memory.search("an oak", 1)
        assert (hit.memory.id, hit.memory.tags, hit.match_type) == ("odd", ["wood"], "promoted")
