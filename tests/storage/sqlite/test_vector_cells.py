"""Cells of the index: made where there are many vectors, and anew when these have doubled.

The sizes are made small, so that a store of some hundreds goes through what one of a million does.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import engine_of
from embedding_server import DIMENSIONS, WordEmbedder, text_vector

from agent_memory import AgentMemory
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.services.vectors import VectorService
from agent_memory.storage import code_search
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.quantization import code_bits, quantize
from agent_memory.storage.records import QueryVector
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.vector_index import VectorIndex

WORDS = "red green blue old new fast slow house river tree cat dog train garden snow lamp".split()
KINDS = ["vec0", "table"]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_search, "SORTED_FROM", 300)
    monkeypatch.setattr(code_search, "CELL_SIZE", 20)
    monkeypatch.setattr(code_search, "CELLS_ASKED", 1)
    monkeypatch.setattr(code_search, "EXACT_UP_TO", 49)


def opened(root: Path) -> AgentMemory:
    return AgentMemory("bob", root=root, embedder=WordEmbedder())


def text(number: int) -> str:
    return f"item{number} {' '.join(random.Random(number).choices(WORDS, k=4))}"


def fill(memory: AgentMemory, start: int, stop: int) -> None:
    memory.store_many(
        [{"content": text(number), "id": f"m{number}"} for number in range(start, stop)]
    )


def rows(memory: AgentMemory, sql: str) -> list[tuple[object, ...]]:
    database = Database(memory.path, read_only=True)
    try:
        return [tuple(row) for row in database.rows(sql)]
    finally:
        database.close()


def cells(memory: AgentMemory) -> dict[int, bool]:
    """Return the numbers of the cells, and whether each is retired."""
    return dict(rows(memory, "SELECT cell, retired <> 0 FROM embedding_cells_1"))  # type: ignore[arg-type]


def found(memory: AgentMemory, numbers: Sequence[int]) -> list[int]:
    """Return those of the memories that a search with their own text, by meaning, has first."""
    return [
        number
        for number in numbers
        if f"m{number}"
        in [hit.memory.id for hit in memory.search(text(number), 3, count_accesses=False)]
    ]


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, root: Path) -> Iterator[AgentMemory]:
    """Return a store with vectors, of 200 memories, with either kind of index."""
    with opened(root) as opened_memory:
        opened_memory.configure(vector_index=request.param)
        fill(opened_memory, 0, 200)
        opened_memory.migrate(embedder=WordEmbedder())
        yield opened_memory


def test_few_codes_are_in_one_cell_and_many_in_cells_of_their_like(memory: AgentMemory) -> None:
    assert cells(memory) == {0: False}
    fill(memory, 200, 700)
    memory.embed()
    made = cells(memory)
    assert len(made) > 8
    assert 0 not in made
    assert not any(made.values())
    assert memory.check().problems == []
    assert len(found(memory, range(0, 700, 7))) == 100


def test_cells_that_another_process_makes_are_looked_at(memory: AgentMemory, root: Path) -> None:
    """The cells are kept from search to search, but no longer than they are true."""
    engine = engine_of(memory)

    def by_vector(number: int) -> bool:
        with engine.read():
            (model,) = engine.embeddings.models()
            query = QueryVector(model, quantize(text_vector(text(number))).data)
            row_ids = engine.vectors.nearest(query, NOT_ARCHIVED).cosines
            found_ids = {found.id for found in engine.memories.get_many(row_ids).values()}
        return f"m{number}" in found_ids

    assert by_vector(7)
    with opened(root) as other:
        fill(other, 200, 700)
        other.embed()
        assert 0 not in cells(other)
    assert all(map(by_vector, range(0, 700, 7)))


def test_memories_are_found_while_their_codes_move_and_by_a_process_that_comes_later(
    memory: AgentMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.services.vectors._SORTED_AT_ONCE", 25)
    fill(memory, 200, 290)
    seen = set()
    for number in range(290, 330):
        fill(memory, number, number + 1)
        state = cells(memory)
        if any(state.values()) and not all(state.values()):
            seen.add(len(state))
            assert found(memory, [number, 3, 77, 150]) == [number, 3, 77, 150]
            assert memory.check().problems == []
            memory.close()
            memory.__init__("bob", root=root, embedder=WordEmbedder())  # type: ignore[misc]
    assert seen
    memory.embed()
    assert not any(cells(memory).values())
    assert memory.check().problems == []


def test_cells_are_made_anew_when_the_vectors_have_doubled(memory: AgentMemory) -> None:
    made_of = "SELECT DISTINCT made_of FROM embedding_cells_1 WHERE retired = 0"
    sizes = []
    for start in range(200, 1_300, 100):
        fill(memory, start, start + 100)
        memory.embed()
        ((size,),) = rows(memory, made_of)
        sizes.append(int(str(size)))
    assert sorted(sizes) == sizes
    assert set(sizes) == {300, 600, 1_200}
    assert len(cells(memory)) > 30
    assert len(found(memory, range(0, 1_300, 13))) >= 98


def test_an_index_that_is_built_anew_is_sorted_from_the_start(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_memory.services.vectors._SORTED_AT_ONCE", 1)
    fill(memory, 200, 700)
    memory.embed()
    change = Database(memory.path)
    with change.write():
        change.run("UPDATE embedding_models SET is_indexed = 0")
    change.close()
    assert len(found(memory, range(0, 700, 7))) == 100
    made = cells(memory)
    assert len(made) > 8
    assert 0 not in made
    assert not any(made.values())
    assert memory.check().problems == []


def test_changes_of_sorted_memories_are_followed(memory: AgentMemory) -> None:
    fill(memory, 200, 500)
    memory.embed()
    memory.update("m5", content="a lantern in the harbour")
    memory.delete("m6")
    memory.update("m7", archived=True)
    memory.erase("m8")
    assert memory.search("a lantern in the harbour", 1)[0].memory.id == "m5"
    assert found(memory, [6, 7, 8]) == []
    assert memory.check().problems == []
    (count,) = rows(memory, "SELECT count(*) FROM memories WHERE archived = 0")
    assert count == (497,)


def test_a_filter_that_few_pass_is_looked_for_in_more_cells(memory: AgentMemory) -> None:
    memory.store_many(
        {
            "content": text(number),
            "id": f"m{number}",
            "user_id": "ann" if number % 6 == 0 else "ben",
        }
        for number in range(1_000, 1_900)
    )
    memory.embed()
    for number in range(1_002, 1_900, 48):
        (hit, *_) = memory.search(text(number), 3, user_id="ann", count_accesses=False)
        assert hit.memory.id == f"m{number}"


def test_a_filter_that_many_pass_is_looked_for_as_far_as_a_sample_says(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_search, "PASSING_MANY", 100)
    memory.store_many(
        {"content": text(number), "id": f"m{number}", "tags": ["kept"] if number % 3 == 0 else []}
        for number in range(1_000, 2_900)
    )
    memory.embed()
    bits: list[int] = []
    reach_of = VectorIndex._reach

    def spied(index: VectorIndex, *asked: Any) -> int:
        bits.append(reach_of(index, *asked))
        return bits[-1]

    monkeypatch.setattr(VectorIndex, "_reach", spied)
    for number in range(1_000, 2_900, 50):
        hits = memory.search(text(number), 3, tags=["kept"], count_accesses=False)
        assert (f"m{number}" in [hit.memory.id for hit in hits]) == (number % 3 == 0)
    assert 0 < min(bits) < code_bits(DIMENSIONS)


def test_codes_that_are_all_the_same_make_one_cell_and_are_made_once(memory: AgentMemory) -> None:
    memory.store_many(
        [{"content": "the same words", "id": f"s{number}"} for number in range(900)],
        on_duplicate="keep",
    )
    memory.embed()
    before = cells(memory)
    memory.store("the same words", on_duplicate="keep")
    assert cells(memory) == before
    assert memory.check().problems == []


def test_what_is_killed_while_codes_move_is_finished_by_the_next(root: Path) -> None:
    program = f"""
import os, sys
sys.path[:0] = {sys.path!r}
import test_vector_cells as cells
from agent_memory.services import vectors
cells.code_search.SORTED_FROM, cells.code_search.CELL_SIZE = 300, 20
vectors._SORTED_AT_ONCE = 20
from pathlib import Path
from typing import Any
memory = cells.opened(Path(sys.argv[1]))
cells.fill(memory, 0, 299)
memory.migrate(embedder=cells.WordEmbedder())
cells.fill(memory, 299, 301)
cells.fill(memory, 301, 302)
print(cells.cells(memory), flush=True)
os.kill(os.getpid(), 9)
"""
    words = [sys.executable, "-c", program, str(root)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == -9, done.stderr
    with opened(root) as memory:
        state = cells(memory)
        assert True in state.values(), done.stdout
        assert memory.check().problems == []
        assert len(found(memory, range(0, 302, 3))) == 101
        memory.embed()
        assert not any(cells(memory).values())
        assert memory.check().problems == []


def test_an_index_is_built_a_part_at_a_time_and_follows_meanwhile(
    memory: AgentMemory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(memory, 200, 700)
    memory.embed()
    other = "vec0" if memory.configure().vector_index == "table" else "table"
    memory._store.change_config(lambda config: config.model_copy(update={"vector_index": other}))
    engine = memory._store.vectors._engine

    def build_part() -> bool:
        with engine.write():
            (model,) = engine.embeddings.models()
            engine.vectors.begin(model)
            return engine.vectors.build(model, 100)

    assert build_part()
    assert build_part()
    with monkeypatch.context() as patched:
        patched.setattr(VectorService, "restore_indexes", lambda _self, **_options: None)
        memory.delete("m3")  # which is in it already
        memory.update("m4", content=text(1_000))
        memory.update("m600", content=text(1_001))  # which is not yet
        fill(memory, 700, 720)
        memory.embed()
        changed = [
            hit.memory.id for number in (1_000, 1_001) for hit in memory.search(text(number), 1)
        ]
        assert changed == ["m4", "m600"]
        assert found(memory, [3, 5, 300, 650, 710]) == [5, 300, 650, 710]
        assert memory.check().problems == []
    memory.close()

    parts = []
    build = VectorIndex.build

    def counted(index: VectorIndex, model: EmbeddingModel, limit: int) -> bool:
        parts.append(limit)
        return build(index, model, limit)

    monkeypatch.setattr(VectorIndex, "build", counted)
    monkeypatch.setattr("agent_memory.services.vectors._BUILT_AT_ONCE", 100)
    with opened(root) as later:
        later.embed()
        assert len(parts) == 6  # of 719, 200 were there
        assert later.check().problems == []
        assert len(found(later, range(5, 720, 7))) >= 100
        name = {"vec0": "embedding_index_1", "table": "embedding_codes_1"}[other]
        names = {str(row[0]) for row in rows(later, "SELECT name FROM sqlite_schema")}
        assert name in names
        assert not names & ({"embedding_index_1", "embedding_codes_1"} - {name})
