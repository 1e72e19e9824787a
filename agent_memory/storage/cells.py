"""Cells: similar index codes grouped together, so that a search looks at a few groups. Pure.

A cell has a centre: a code of the bits that most of its codes have. A code belongs to the cell
whose centre differs from it in the fewest bits. That takes only integers, and no vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_ROUNDS: Final = 5
"""How many times codes and centres are fitted to each other. With 1,000,000 vectors of 384 numbers,
the nearest 40 of 666 cells hold 97.1 of 100 neighbours after 3 rounds, and 97.4 after 5."""


_GROUPED_FROM: Final = 64
"""From this many centres on, and for many codes, only the centres of the nearest groups are
compared."""
_GROUPS_ASKED: Final = 4
"""Groups whose centres are compared. Of 1,333 centres, 4 groups contain the nearest for 89 of 100
codes, in 36 microseconds each; 3 groups for 84, in 33."""


class CellSample(NamedTuple):
    """What new cells are made from: codes, the number of cells, and the number of all vectors."""

    codes: Sequence[int]
    cells: int
    vectors: int


def nearest_cell(code: int, centres: Sequence[int]) -> int:
    """Return the index of the centre that differs from a code in the fewest bits."""
    distances = [(code ^ centre).bit_count() for centre in centres]
    return distances.index(min(distances))


def nearest_cells_of(codes: Sequence[int], centres: Sequence[int]) -> list[int]:
    """Return, for each of the codes, the index of a centre that differs from it in few bits.

    If there are many centres, only those of the nearest groups are compared: of 666, a fifth. That
    may miss the nearest in favour of another that is hardly farther away.
    """
    if len(centres) < _GROUPED_FROM or len(codes) < len(centres):
        return [nearest_cell(code, centres) for code in codes]
    groups = _groups_of(tuple(centres))
    middles = [group.middle for group in groups]
    return [_nearest_in_groups(code, groups, middles) for code in codes]


class _Group(NamedTuple):
    """Similar centres, with their indexes, and the bits that most of them have."""

    middle: int
    places: list[int]
    centres: list[int]


@lru_cache(maxsize=2)
def _groups_of(centres: tuple[int, ...]) -> list[_Group]:
    middles = centres_of(centres, math.isqrt(len(centres)))
    places: list[list[int]] = [[] for _ in middles]
    for place, centre in enumerate(centres):
        places[nearest_cell(centre, middles)].append(place)
    return [
        _Group(middle, own, [centres[place] for place in own])
        for middle, own in zip(middles, places, strict=True)
        if own
    ]


def _nearest_in_groups(code: int, groups: Sequence[_Group], middles: Sequence[int]) -> int:
    distances = [(code ^ middle).bit_count() for middle in middles]
    bound = sorted(distances)[:_GROUPS_ASKED][-1]
    best, least = 0, math.inf
    for distance, group in zip(distances, groups, strict=True):
        if distance <= bound:
            own = [(code ^ centre).bit_count() for centre in group.centres]
            if (nearest := min(own)) < least:
                best, least = group.places[own.index(nearest)], nearest
    return best


def centres_of(codes: Sequence[int], count: int) -> list[int]:
    """Return the centres of at most ``count`` cells for codes like these.

    The largest group is halved until there are enough, then all are fitted together. Codes that are
    all the same stay in one cell.
    """
    groups = [list(codes)]
    whole: list[list[int]] = []
    while groups and len(groups) + len(whole) < count:
        groups.sort(key=len)
        halves = _halved(groups[-1])
        if halves is None:
            whole.append(groups.pop())
        else:
            groups[-1:] = halves
    centres = [majority(group) for group in groups + whole]
    for _ in range(_ROUNDS):
        centres = [majority(group) for group in _grouped(codes, centres)]
    return centres


def majority(codes: Sequence[int]) -> int:
    """Return the bits that more than half of the codes have."""
    counts: list[int] = []  # bit-sliced: the lowest digits of all bits' counts, then the next
    for code in codes:
        carried = code
        for digit, digits in enumerate(counts):
            counts[digit], carried = digits ^ carried, digits & carried
            if not carried:
                break
        if carried:
            counts.append(carried)
    more, same = 0, -1
    half = len(codes) // 2
    for digit in reversed(range(max(len(counts), half.bit_length()))):
        digits = counts[digit] if digit < len(counts) else 0
        if half >> digit & 1:
            same &= digits
        else:
            more |= same & digits
            same &= ~digits
    return more


def _halved(codes: Sequence[int]) -> list[list[int]] | None:
    """Split a group in two, each code with its nearest; ``None`` if all codes are the same."""
    middle = majority(codes)
    first = max(codes, key=lambda code: (code ^ middle).bit_count())
    second = max(codes, key=lambda code: (code ^ first).bit_count())
    groups: list[list[int]] = []
    for _ in range(_ROUNDS):
        groups = _grouped(codes, [first, second])
        if len(groups) < 2:
            return None
        first, second = map(majority, groups)
    return groups


def _grouped(codes: Sequence[int], centres: Sequence[int]) -> list[list[int]]:
    """Group the codes by their nearest centre, leaving out empty groups."""
    groups: list[list[int]] = [[] for _ in centres]
    for code, place in zip(codes, nearest_cells_of(codes, centres), strict=True):
        groups[place].append(code)
    return [group for group in groups if group]
