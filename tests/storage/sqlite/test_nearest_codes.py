"""The nearest codes of a table, and those of them that pass a filter, beside all compared."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import engine_of

from agent_memory import AgentMemory
from agent_memory.storage.code_search import (
    CELLS_ASKED,
    MOST_STEPS,
    NAMED,
    NAMED_PASSING,
    SPARE,
    STEPS_FOR_ASKED,
    UNSORTED,
    Cell,
    in_cells,
    nearest_passing,
    reach,
)
from agent_memory.storage.filters import HasTag
from agent_memory.storage.quantization import distance
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.plain_codes import PlainCodes
from agent_memory.storage.sqlite.tables.vec0_codes import Vec0Codes

CELLS = list(range(9))
COUNT = 3_000


@pytest.mark.parametrize("kind", [PlainCodes, Vec0Codes])
def test_a_table_of_cells_returns_the_nearest_of_them_all(
    tmp_path: Path, kind: type[PlainCodes | Vec0Codes]
) -> None:
    numbers = random.Random(3)
    # Few bits: many are as far away as others.
    rows = [
        (row, numbers.choice(CELLS), numbers.randbytes(4) + bytes(16))
        for row in range(1, COUNT + 1)
    ]
    database = Database(tmp_path / "codes.db")
    assert database.load_vectors()
    with database.write():
        table = kind(database)
        table.create(1, 32)
        table.put(1, rows)
        for _ in range(10):
            code = numbers.randbytes(4) + bytes(16)
            cells = numbers.sample(CELLS, numbers.randint(1, len(CELLS)))
            all_of = {row: distance(other, code) for row, cell, other in rows if cell in cells}
            for limit, within in [(1, 160), (20, 160), (300, 160), (COUNT, 160), (COUNT, 10)]:
                nearest = table.nearest(1, code, cells=cells, limit=limit, within=within)
                expected = sorted(far for far in all_of.values() if far <= within)[:limit]
                assert [far for _, far in nearest] == expected
                assert all(all_of[row] == far for row, far in nearest)
    database.close()


def test_a_sample_says_how_near_the_nearest_codes_are() -> None:
    numbers = random.Random(4)
    codes = [numbers.getrandbits(256) for _ in range(20_000)]
    code = numbers.randbytes(32)
    distances = sorted((int.from_bytes(code, "big") ^ other).bit_count() for other in codes)
    for limit in (100, 800, 1_600):
        bits = reach(codes[::10], code, limit, of=len(codes))
        assert distances[limit - 1] <= bits <= distances[2 * SPARE * limit - 1]
    assert reach(codes[::10], code, 5, of=len(codes)) == 256  # too few of the sample
    assert reach(codes[::10], code, 19_000, of=len(codes)) == 256  # and more than it has
    assert reach([], code, 1, of=0) == 256


FIRST = CELLS_ASKED * 8 // STEPS_FOR_ASKED  # of 200 cells


@pytest.mark.parametrize(
    ("spread", "limit", "expected"),
    [
        (1, NAMED, 2 * FIRST),  # all that is near is in the first: the next brought nothing
        (3 * FIRST, NAMED, 4 * FIRST),
        (200, NAMED, MOST_STEPS * FIRST),  # each brings as much as the one before
        (200, NAMED * 4, 5 * FIRST),  # with a filter: no more than those
    ],
    ids=["in one cell", "in some", "in all", "filtered"],
)
def test_cells_are_looked_at_as_long_as_they_bring_something(
    spread: int, limit: int, expected: int
) -> None:
    code = bytes(32)
    cells = [Cell(number + 1, (1 << number) - 1, is_retired=False) for number in range(200)]
    looked_at: list[int] = []

    def nearest(numbers: Sequence[int], most: int, within: int) -> list[tuple[int, int]]:
        looked_at.extend(numbers)
        near = [number for number in numbers if 0 < number <= spread]
        rows = [
            (1_000 * number + row, row) for number in near for row in range(250) if row <= within
        ]
        return sorted(rows, key=lambda row: row[1])[:most]

    namer = in_cells([Cell(UNSORTED, 0, is_retired=False), *cells], code, nearest)
    named = namer.name(limit)
    assert len(named) == min(limit, 250 * min(spread, expected))
    assert [number for number in looked_at if number != UNSORTED] == list(range(1, expected + 1))
    assert looked_at.count(UNSORTED) == 1


FAR = 1_600


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        (range(1_000), NAMED_PASSING - 1),  # the last is left out: others may be as far away
        (range(400, FAR), NAMED_PASSING - 1),  # of those named first none passes
        (range(FAR - 100, FAR), 100),
        (range(0), 0),
    ],
    ids=["near", "farther", "few", "none"],
)
def test_the_nearest_that_pass_are_named_or_all_that_pass(
    memory: AgentMemory, tagged: Sequence[int], expected: int
) -> None:
    memory.store_many(
        {"content": f"memory {row}", "tags": ["kept"] if row in tagged else []}
        for row in range(FAR)
    )
    engine = engine_of(memory)
    with engine.read():
        found = nearest_passing(
            lambda limit: [(row + 1, row) for row in range(min(limit, FAR))],
            engine.memories,
            HasTag("kept"),
        )
    assert sorted(found) == [row + 1 for row in tagged][:expected]
