"""How codes are searched and sorted into cells, in every engine: the sizes and the pure functions.

If there are few vectors, all are compared. Otherwise the codes name the nearest candidates, whose
vectors decide. Many codes are sorted into cells of similar ones, and only the nearest cells are
searched.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.storage.cells import nearest_cells_of
from agent_memory.storage.filters import NOT_ARCHIVED, Archived, Filter
from agent_memory.storage.quantization import as_number, code_of, distance

if TYPE_CHECKING:
    from agent_memory.storage.tables import MemoryTable

NEAREST: Final = 100
"""How many memories a search returns."""
NAMED: Final = 300
"""How many candidates the codes in cells name: of 1,000,000 vectors, this many hold 0.7 of 100 more
neighbours than 200 do."""
NAMED_PASSING: Final = 150
"""How many of the candidates that pass a filter are kept: of 1,000,000 memories of which a tenth
passes, this many hold all that 300 do."""
ENOUGH_PASSING: Final = 120
"""This many of those are enough: naming candidates again takes as long as everything else."""
EXACT_UP_TO: Final = 2_000
"""Up to this many vectors are all compared: that takes 6 ms for vectors of 1,536 numbers."""
NUMBERS_FOR_NAMED: Final = 1_280
"""How many numbers of a user's vectors are compared in the time that it takes to name a code and
check whether it passes. So if a user's share is small, all of it is compared: up to 27,000 vectors
of 256 numbers of 1,000,000, and 8,600 of 100,000. Of 25,000, the codes in the nearest cells had 75
of 100 of the nearest ten."""
PASSING_MANY: Final = 20_000
"""If a sample suggests that this many memories pass a filter, surely more than ``EXACT_UP_TO``
do."""
CHUNK: Final = 1_000
"""Vectors read at a time."""

CODES_SAMPLED: Final = 4_000
"""Codes sampled to estimate how near the nearest of all are."""
SPARE: Final = 6
"""Standard deviations allowed for the error of a sample, on top of three times as many codes as are
wanted: near a query codes lie closer together than elsewhere, and some are in cells that are not
searched. Of 160 searches, 2 found too few; with twice as many codes and two deviations, 25."""
LEAST_SAMPLED: Final = 8
"""At least this many codes of the sample must be as near, or it says too little."""

SORTED_FROM: Final = 50_000
"""Up to this many codes stay in one cell: scanning them takes 5 ms."""
CELL_SIZE: Final = 750
"""The approximate number of codes in a new cell."""
CELLS_ASKED: Final = 6
"""Cells searched with a filter, per binary digit of the number of cells: 48 of 133, 66 of 1,333.
With 1,000,000 vectors of 384 numbers, the nearest 24, 40 and 60 of 1,333 cells hold 98.6, 99.2 and
99.7 of 100 neighbours; with 120,000 sentences written by people, of which fewer are alike, the
nearest 40, 60 and 80 of 160 hold 91.9, 95.3 and 97.1."""
STEPS_FOR_ASKED: Final = 4
"""Without a filter, those cells are divided into this many steps: a search looks at the first
quarter, and goes on while a step brings something. By halves it takes a third longer, and finds 0.3
of 100 more."""
MOST_STEPS: Final = 16
"""The most steps taken. How far they pay depends on the question: vectors that are close to others
have all their neighbours in the first cells; for questions in words, put to 1,000,000 sentences,
those hold 81 of the 100 nearest ten, four times as many cells 91, and all cells 96."""
WORTH_ASKING: Final = 0.02
"""The share of the candidates that the last cells must have brought for the search to go on."""
SAMPLE_OF_CELL: Final = 32
"""Vectors sampled per cell to be made: with half as many, 2 of 100 more neighbours are missed."""

UNSORTED: Final = 0
"""The number of the cell without a centre, which holds codes that are not sorted yet."""


class Cell(NamedTuple):
    """A cell: the code of its centre as a number, and whether it no longer accepts codes."""

    number: int
    centre: int
    is_retired: bool


def nearest_cells(cells: Sequence[Cell], code: bytes) -> list[int]:
    """Return the cells that have a centre, nearest first."""
    asked = as_number(code)
    order = sorted(cells, key=lambda cell: (asked ^ cell.centre).bit_count())
    return [cell.number for cell in order if cell.number != UNSORTED]


def cells_to_ask(cells: Sequence[Cell], limit: int) -> int:
    """Return how many of the nearest cells to search for ``limit`` candidates to be filtered.

    While codes are being moved, those of a neighbourhood are in old cells and in new ones. If more
    candidates are needed, the neighbourhood is wider: of 100,000 memories of which one in 16 passes
    a filter, 28 of 66 cells hold 97.5 of 100 neighbours, and 48 hold 99.5.
    """
    most = CELLS_ASKED * (len(cells) * limit // NAMED).bit_length()
    return 2 * most if any(cell.is_retired for cell in cells) else most


def coded(entries: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return rows with the codes of their vectors."""
    return [(row_id, code_of(data)) for row_id, data in entries]


def placed(
    codes: Sequence[tuple[int, bytes]], cells: Sequence[Cell]
) -> list[tuple[int, int, bytes]]:
    """Return rows, cells and codes: each code in the nearest cell that still accepts codes."""
    open_cells = [cell for cell in cells if not cell.is_retired]
    if not open_cells:  # another program deleted them
        open_cells = [Cell(UNSORTED, 0, is_retired=False)]
    centres = [cell.centre for cell in open_cells]
    places = nearest_cells_of([as_number(code) for _, code in codes], centres)
    return [
        (row_id, open_cells[place].number, code)
        for (row_id, code), place in zip(codes, places, strict=True)
    ]


def rounded(number: int) -> int:
    """Round a number down to its four highest bits."""
    dropped = max(0, number.bit_length() - 4)
    return number >> dropped << dropped


def without_ties(named: Sequence[tuple[int, int]]) -> list[int]:
    """Drop rows as far away as the last: codes name some of those, a scan others."""
    last = named[-1][1] if named else 0
    return [row_id for row_id, far in named if far < last] or [row_id for row_id, _ in named]


class Namer(NamedTuple):
    """Names the rows of the nearest codes.

    ``name`` takes a number, and returns that many of the nearest rows with their distances, nearest
    first, or all that it looks at. ``usual`` is the number it is given without a filter.
    """

    name: Callable[[int], Sequence[tuple[int, int]]]
    usual: int


def in_cells(
    cells: Sequence[Cell],
    code: bytes,
    nearest: Callable[[Sequence[int], int, int], Sequence[tuple[int, int]]],
) -> Namer:
    """Return a namer of rows in the nearest cells. Unsorted codes are always searched.

    ``nearest`` takes cells, the number of rows, and the most bits in which they may differ.
    """
    usual = NAMED if len(cells) > 1 else NEAREST
    farthest = 8 * len(code)

    def name(limit: int) -> Sequence[tuple[int, int]]:
        order = nearest_cells(cells, code)
        asked = cells_to_ask(cells, limit)
        if limit > usual:  # for a filter: this many rows are far apart, and any cell brings some
            return nearest([*order[:asked], UNSORTED], limit, farthest)
        step = max(1, asked // STEPS_FOR_ASKED)
        named = nearest([*order[:step], UNSORTED], limit, farthest)
        for end in range(step, min(len(order), MOST_STEPS * step), step):
            bound = named[-1][1] if len(named) == limit else farthest
            more = nearest(order[end : end + step], limit, bound)
            named = sorted([*named, *more], key=itemgetter(1))[:limit]
            if len(set(named).intersection(more)) < WORTH_ASKING * limit:
                break
        return named

    return Namer(name, usual)


def reach(sample: Sequence[int], code: bytes, limit: int, *, of: int) -> int:
    """Return the most bits in which the nearest ``limit`` codes ``of`` so many may differ.

    A sample of codes, as numbers, gives the estimate. vec0 takes as long to return a row as to look
    at ten: of 1,000,000 codes it returned 27,000 without an estimate for the nearest 7,500, and
    returns 14,000 with it.
    """
    expected = limit * len(sample) / max(1, of)
    place = math.ceil(3 * expected + SPARE * math.sqrt(expected))
    if not LEAST_SAMPLED <= place <= len(sample):
        return 8 * len(code)
    asked = as_number(code)
    return heapq.nsmallest(place, [(asked ^ other).bit_count() for other in sample])[-1]


def scan(vectors: Iterable[tuple[int, bytes]], code: bytes) -> Namer:
    """Return a namer of vectors that are in no table of codes, with the same result."""
    distances = [(row_id, distance(code_of(data), code)) for row_id, data in vectors]
    return Namer(lambda limit: heapq.nsmallest(limit, distances, key=itemgetter(1)), NEAREST)


def rows_to_compare(
    memories: MemoryTable, filters: Filter, namer: Callable[[], Namer], *, is_small: bool
) -> list[int]:
    """Return the rows to compare: those of the nearest codes, or all that pass the filters.

    ``is_small`` means that there are so few vectors that all may be compared. Archived memories
    have no codes: if the filters admit them, each of them is compared.
    """
    if not filters.leaves_out_archived:
        archived = memories.row_ids(filters.and_also(Archived(archived=True)))
        current = filters.and_also(NOT_ARCHIVED)
        return archived + rows_to_compare(memories, current, namer, is_small=is_small)
    is_narrowed = filters != NOT_ARCHIVED
    if is_small or (is_narrowed and not _pass_many(memories, filters)):
        few = memories.row_ids(filters, limit=EXACT_UP_TO + 1)
        if len(few) <= EXACT_UP_TO:
            return few
    name, usual = namer()
    return nearest_passing(name, memories, filters) if is_narrowed else without_ties(name(usual))


def _pass_many(memories: MemoryTable, filters: Filter) -> bool:
    """Return whether a sample suggests that far more pass a filter than are all compared.

    Finding the first 2,000 memories with a tag takes 7 ms.
    """
    return memories.share_passing(filters) * memories.last_row_id() > PASSING_MANY


def nearest_passing(
    name: Callable[[int], Sequence[tuple[int, int]]], memories: MemoryTable, filters: Filter
) -> list[int]:
    """Return the nearest rows that pass a filter, or all that pass if those are quicker to get.

    Checking whether each named row passes is quicker than listing all that do: listing an eighth of
    1,000,000 memories takes 190 ms.
    """
    share = memories.share_passing(filters)
    passing = share * memories.last_row_id()
    limit = round(NAMED_PASSING / share) if share else 0
    while 0 < limit <= passing:
        named = name(limit)
        kept = set(memories.row_ids(filters, among=[row_id for row_id, _ in named]))
        if len(kept) >= ENOUGH_PASSING:
            return without_ties([entry for entry in named if entry[0] in kept][:NAMED_PASSING])
        limit *= 2
    return memories.row_ids(filters)


def best(cosines: Mapping[int, float]) -> dict[int, float]:
    """Return the nearest of the rows, by their cosines."""
    row_ids = heapq.nsmallest(NEAREST, cosines, key=lambda row_id: (-cosines[row_id], row_id))
    return {row_id: cosines[row_id] for row_id in row_ids}
