"""Cells: what a centre is, and that codes come to those that they are like."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_memory.storage.cells import centres_of, majority, nearest_cell

BITS = 64
CODES = st.lists(st.integers(0, 2**BITS - 1), min_size=1, max_size=40)


@given(CODES)
@settings(deadline=None)
def test_a_centre_has_the_bits_that_more_than_half_of_the_codes_have(codes: list[int]) -> None:
    expected = sum(
        1 << bit for bit in range(BITS) if 2 * sum(code >> bit & 1 for code in codes) > len(codes)
    )
    assert majority(codes) == expected


@given(CODES, st.integers(0, 2**BITS - 1))
@settings(deadline=None)
def test_the_nearest_cell_is_the_first_of_those_that_differ_least(
    centres: list[int], code: int
) -> None:
    distances = [(code ^ centre).bit_count() for centre in centres]
    assert nearest_cell(code, centres) == distances.index(min(distances))


def groups_of_codes(groups: int, each: int) -> list[list[int]]:
    """Return codes in groups: those of one differ in a tenth of their bits from its middle."""
    numbers = random.Random(3)
    middles = [numbers.getrandbits(512) for _ in range(groups)]
    return [
        [middle ^ sum(1 << bit for bit in numbers.sample(range(512), 51)) for _ in range(each)]
        for middle in middles
    ]


@pytest.mark.parametrize("groups", [2, 7, 20])
def test_codes_that_come_in_groups_get_a_cell_for_each(groups: int) -> None:
    grouped = groups_of_codes(groups, 30)
    codes = [code for group in grouped for code in group]
    random.Random(5).shuffle(codes)
    centres = centres_of(codes, groups)
    cells = [{nearest_cell(code, centres) for code in group} for group in grouped]
    assert all(len(cell) == 1 for cell in cells)
    assert len({cell for (cell,) in cells}) == groups


def test_as_many_cells_are_made_as_are_asked_for_and_none_is_empty() -> None:
    numbers = random.Random(9)
    codes = [numbers.getrandbits(256) for _ in range(2_000)]
    centres = centres_of(codes, 40)
    assert 35 <= len(centres) <= 40
    sizes = [0] * len(centres)
    for code in codes:
        sizes[nearest_cell(code, centres)] += 1
    assert min(sizes) > 0
    assert max(sizes) < len(codes) // 8


@pytest.mark.parametrize("codes", [[5] * 300, [0], [5] * 300 + [9]])
def test_codes_that_are_the_same_stay_together(codes: list[int]) -> None:
    centres = centres_of(codes, 10)
    assert 1 <= len(centres) <= len(set(codes))
