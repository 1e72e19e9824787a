"""How codes are searched, and sorted into cells, in every engine: the sizes, and what is pure.

Few vectors are all compared. Of more the codes name the nearest, and those vectors decide. Many
codes are sorted into cells, each with its like, and only the nearest cells are looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from agent_memory.storage.quantization import as_number, code_of

NEAREST: Final = 100
"""Memories that are found."""
NAMED: Final = 300
"""Memories that the codes in cells name: of 1,000,000 as many hold 0.7 of 100 more than 200."""
EXACT_UP_TO: Final = 2_000
"""So many vectors are all compared: that takes 6 ms for those of 1,536 numbers."""
SAMPLE: Final = 256
"""Vectors that the mean of a store is computed from: more move it by next to nothing."""
MIDDLES: Final = 32
"""Means that are kept: of the whole store, and of the users who searched last."""
CHUNK: Final = 1_000
"""Vectors that are read at a time."""

SORTED_FROM: Final = 50_000
"""So many codes are in one cell: they are looked at in 5 ms."""
CELL_SIZE: Final = 1_500
"""Codes of a cell when it is made, about."""
CELLS_ASKED: Final = 4
"""Cells that a search looks at, for each binary digit of their number: 28 of 66, 40 of 666. Of
100,000 vectors of 384 numbers the nearest 24, 32 and 40 of 66 cells hold 97.9, 99.0 and 99.4 of 100
neighbours; of 1,000,000 the nearest 16, 24 and 40 of 665 have 95.6, 96.6 and 98.7 in them."""
SAMPLE_OF_CELL: Final = 32
"""Vectors that a cell is made from: with half as many 2 of 100 neighbours more are missed."""

UNSORTED: Final = 0
"""The number of the cell without a centre: what is in it was not sorted yet."""


class Cell(NamedTuple):
    """A cell: the code of its centre, as a number, and whether it takes in nothing more."""

    number: int
    centre: int
    is_retired: bool


def nearest_cells(cells: Sequence[Cell], code: bytes) -> list[int]:
    """Return the cells to look at. What is not sorted yet is always looked at.

    While codes move, those of a neighbourhood are in old cells and in new ones.
    """
    most = CELLS_ASKED * len(cells).bit_length()
    if any(cell.is_retired for cell in cells):
        most *= 2
    asked = as_number(code)
    nearest = heapq.nsmallest(most, cells, key=lambda cell: (asked ^ cell.centre).bit_count())
    return [UNSORTED, *(cell.number for cell in nearest if cell.number != UNSORTED)]


def coded(entries: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return rows with the codes of their vectors."""
    return [(row_id, code_of(data)) for row_id, data in entries]


def rounded(number: int) -> int:
    """Round a number down to its four highest bits."""
    dropped = max(0, number.bit_length() - 4)
    return number >> dropped << dropped


def without_ties(named: Sequence[tuple[int, int]]) -> list[int]:
    """Leave out those as far away as the last: of these the codes name some, a scan others."""
    last = named[-1][1] if named else 0
    return [row_id for row_id, far in named if far < last] or [row_id for row_id, _ in named]


def best(cosines: Mapping[int, float]) -> dict[int, float]:
    """Return the nearest of some rows, by their cosines."""
    row_ids = heapq.nsmallest(NEAREST, cosines, key=lambda row_id: (-cosines[row_id], row_id))
    return {row_id: cosines[row_id] for row_id in row_ids}
