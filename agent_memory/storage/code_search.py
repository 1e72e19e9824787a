"""How codes are searched, and sorted into cells, in every engine: the sizes, and what is pure.

Few vectors are all compared. Of more the codes name the nearest, and those vectors decide. Many
codes are sorted into cells, each with its like, and only the nearest cells are looked at.
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
"""Memories that are found."""
NAMED: Final = 300
"""Memories that the codes in cells name: of 1,000,000 as many hold 0.7 of 100 more than 200."""
NAMED_PASSING: Final = 150
"""Memories that pass a filter, of those that the codes name: of 1,000,000 memories of which a tenth
passes, as many hold all that 300 do."""
ENOUGH_PASSING: Final = 120
"""So many of these are enough: to name them anew takes as long as all else."""
EXACT_UP_TO: Final = 2_000
"""So many vectors are all compared: that takes 6 ms for those of 1,536 numbers."""
NUMBERS_FOR_NAMED: Final = 1_280
"""Numbers of a user's vectors that are compared in the time in which a code is named and asked
whether it passes. So all that a user has is compared where that is a small part: up to 27,000
vectors of 256 numbers of 1,000,000, 8,600 of 100,000. Of 25,000 the codes in the nearest cells had
75 of 100 of the nearest ten."""
PASSING_MANY: Final = 20_000
"""Memories that pass a filter, as a sample has it, where surely more pass than are all compared."""
CHUNK: Final = 1_000
"""Vectors that are read at a time."""

CODES_SAMPLED: Final = 4_000
"""Codes that tell how near the nearest of all are."""
SPARE: Final = 6
"""Standard deviations that a sample may be wrong by, on top of three times as many codes as are
asked for: near a query they lie closer than elsewhere, and some are in cells that are not asked. Of
160 searches 2 found too few, with twice as many and two deviations 25."""
LEAST_SAMPLED: Final = 8
"""Of the sample so many are as near, at least, or it says too little."""

SORTED_FROM: Final = 50_000
"""So many codes are in one cell: they are looked at in 5 ms."""
CELL_SIZE: Final = 750
"""Codes of a cell when it is made, about."""
CELLS_ASKED: Final = 6
"""Cells that a search with a filter looks at, for each binary digit of their number: 48 of 133, 66
of 1,333. Of 1,000,000 vectors of 384 numbers the nearest 24, 40 and 60 of 1,333 cells hold 98.6,
99.2 and 99.7 of 100 neighbours; of 120,000 sentences that people wrote, which have fewer that are
like them, the nearest 40, 60 and 80 of 160 hold 91.9, 95.3 and 97.1."""
STEPS_FOR_ASKED: Final = 4
"""Without a filter a search would look at those in so many steps: it looks at the first fourth, and
goes on while a step brings something. By halves it takes a third longer, and finds 0.3 of 100
more."""
MOST_STEPS: Final = 16
"""It goes on up to so many steps. How far it pays depends on the question: vectors that are near
others have all their neighbours in the first cells; of questions in words, put to 1,000,000
sentences, those hold 81 of the 100 nearest ten, four times as many 91, all cells 96."""
WORTH_ASKING: Final = 0.02
"""The share of what is named that the last cells must have brought."""
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
    """Return the cells that have a centre, the nearest first."""
    asked = as_number(code)
    order = sorted(cells, key=lambda cell: (asked ^ cell.centre).bit_count())
    return [cell.number for cell in order if cell.number != UNSORTED]


def cells_to_ask(cells: Sequence[Cell], limit: int) -> int:
    """Return how many of the nearest cells to look at for so many rows that a filter is asked of.

    While codes move, those of a neighbourhood are in old cells and in new ones. Where more are to
    be named, the neighbourhood is wider: of 100,000 memories of which one in 16 passes a filter, 28
    of 66 cells have 97.5 of 100 neighbours in them, and 48 have 99.5.
    """
    most = CELLS_ASKED * (len(cells) * limit // NAMED).bit_length()
    return 2 * most if any(cell.is_retired for cell in cells) else most


def coded(entries: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return rows with the codes of their vectors."""
    return [(row_id, code_of(data)) for row_id, data in entries]


def placed(
    codes: Sequence[tuple[int, bytes]], cells: Sequence[Cell]
) -> list[tuple[int, int, bytes]]:
    """Return rows, cells and codes: each code in the nearest of the cells that take in new ones."""
    open_cells = [cell for cell in cells if not cell.is_retired]
    if not open_cells:  # another program took them out
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
    """Leave out those as far away as the last: of these the codes name some, a scan others."""
    last = named[-1][1] if named else 0
    return [row_id for row_id, far in named if far < last] or [row_id for row_id, _ in named]


class Namer(NamedTuple):
    """What names the rows of the nearest codes.

    ``name`` takes how many, and returns so many of the nearest rows with their distances, nearest
    first, or all that it looks at. ``usual`` is how many it is asked for without a filter.
    """

    name: Callable[[int], Sequence[tuple[int, int]]]
    usual: int


def in_cells(
    cells: Sequence[Cell],
    code: bytes,
    nearest: Callable[[Sequence[int], int, int], Sequence[tuple[int, int]]],
) -> Namer:
    """Return what names rows of the nearest cells. What is not sorted yet is always looked at.

    ``nearest`` takes cells, how many rows, and how many bits may differ in those at most.
    """
    usual = NAMED if len(cells) > 1 else NEAREST
    farthest = 8 * len(code)

    def name(limit: int) -> Sequence[tuple[int, int]]:
        order = nearest_cells(cells, code)
        asked = cells_to_ask(cells, limit)
        if limit > usual:  # for a filter: so many rows are far apart, and any cell brings some
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
    """Return how many bits may differ in the nearest ``limit`` codes ``of`` so many.

    A sample says it, as numbers. vec0 takes as long to return a row as to look at ten: of 1,000,000
    codes it returned 27,000 until it knew how near the nearest 7,500 are, and now 14,000.
    """
    expected = limit * len(sample) / max(1, of)
    place = math.ceil(3 * expected + SPARE * math.sqrt(expected))
    if not LEAST_SAMPLED <= place <= len(sample):
        return 8 * len(code)
    asked = as_number(code)
    return heapq.nsmallest(place, [(asked ^ other).bit_count() for other in sample])[-1]


def scan(vectors: Iterable[tuple[int, bytes]], code: bytes) -> Namer:
    """Return what names rows as a table of codes does, of vectors that are in none."""
    distances = [(row_id, distance(code_of(data), code)) for row_id, data in vectors]
    return Namer(lambda limit: heapq.nsmallest(limit, distances, key=itemgetter(1)), NEAREST)


def rows_to_compare(
    memories: MemoryTable, filters: Filter, namer: Callable[[], Namer], *, is_small: bool
) -> list[int]:
    """Return the rows to compare: those of the nearest codes, or all that pass the filters.

    ``is_small`` says that there are so few vectors that all may be compared. The codes have no
    archived memories: where they may be found, each of them is compared.
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
    """Return whether a filter leaves many more than are all compared, as a sample has it.

    To find the first 2,000 of those that have a tag takes 7 ms.
    """
    return memories.share_passing(filters) * memories.last_row_id() > PASSING_MANY


def nearest_passing(
    name: Callable[[int], Sequence[tuple[int, int]]], memories: MemoryTable, filters: Filter
) -> list[int]:
    """Return the nearest rows that pass a filter, or all that pass, where those are quicker to see.

    To ask of each row that is named whether it passes is quicker than to list all that do: of
    1,000,000 memories an eighth takes 190 ms.
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
    """Return the nearest of some rows, by their cosines."""
    row_ids = heapq.nsmallest(NEAREST, cosines, key=lambda row_id: (-cosines[row_id], row_id))
    return {row_id: cosines[row_id] for row_id in row_ids}
