"""Vectors made small: how much of them is left, and codes that are near where vectors are."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Sequence
from itertools import pairwise
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory import EmbeddingError
from agent_memory.storage.quantization import (
    INDEX_BITS,
    Quantized,
    code_bits,
    code_of,
    cosine,
    distance,
    quantize,
    text_hash,
)

# What an embedder's answer is made of, once it was checked: 32-bit floats.
NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)
VECTORS = st.lists(NUMBERS, min_size=1, max_size=60).filter(any)
CODES = st.binary(min_size=32, max_size=32)


def numbers_of(quantized: Quantized) -> list[float]:
    return [byte * quantized.scale for byte in memoryview(quantized.data).cast("b")]


def exact_cosine(one: Sequence[float], two: Sequence[float]) -> float:
    product: float = sum(map(mul, one, two))
    return product / math.hypot(*one) / math.hypot(*two)


def random_vector(numbers: random.Random, dimensions: int) -> list[float]:
    return [numbers.gauss(0, 1) for _ in range(dimensions)]


def moved(numbers: random.Random, vector: Sequence[float], by: float) -> list[float]:
    return [value + by * numbers.gauss(0, 1) for value in vector]


# One byte a number ------------------------------------------------------------------------------


@given(VECTORS)
def test_each_number_is_off_by_half_a_step_at_most(vector: list[float]) -> None:
    quantized = quantize(vector)
    assert len(quantized.data) == len(vector)
    for before, after in zip(vector, numbers_of(quantized), strict=True):
        assert abs(before - after) <= quantized.scale / 2 * (1 + 1e-9)


@given(VECTORS)
def test_the_largest_number_takes_the_largest_byte(vector: list[float]) -> None:
    quantized = quantize(vector)
    assert quantized.scale > 0
    assert max(map(abs, memoryview(quantized.data).cast("b"))) == 127
    assert quantized.scale * 127 == pytest.approx(max(map(abs, vector)))


@given(VECTORS, st.sampled_from([0.25, 4.0, 1024.0]))
def test_only_the_direction_is_in_the_bytes(vector: list[float], factor: float) -> None:
    longer = [value * factor for value in vector]
    assert quantize(longer).data == quantize(vector).data
    assert quantize(longer).scale == pytest.approx(quantize(vector).scale * factor)


@given(st.integers(1, 60).flatmap(lambda size: st.tuples(*[_of_size(size)] * 2)))
def test_the_cosine_is_off_by_no_more_than_the_two_roundings(
    pair: tuple[list[float], list[float]],
) -> None:
    small = [quantize(vector) for vector in pair]
    angles = (
        math.pi / 2 * math.sqrt(len(vector)) * quantized.scale / 2 / math.hypot(*vector)
        for vector, quantized in zip(pair, small, strict=True)
    )
    found = cosine(small[0].data, small[1].data)
    assert abs(found - exact_cosine(*pair)) <= sum(angles) + 1e-9


def _of_size(size: int) -> st.SearchStrategy[list[float]]:
    numbers = st.floats(-1000, 1000, width=32).filter(lambda value: not 0 < abs(value) < 1e-3)
    return st.lists(numbers, min_size=size, max_size=size).filter(any)


@pytest.mark.parametrize("dimensions", [64, 256, 1536])
def test_cosines_of_vectors_like_a_models_are_right_to_the_second_place(dimensions: int) -> None:
    numbers = random.Random(dimensions)
    for _ in range(20):
        one = random_vector(numbers, dimensions)
        two = moved(numbers, one, by=numbers.random() * 2)
        found = cosine(quantize(one).data, quantize(two).data)
        assert found == pytest.approx(exact_cosine(one, two), abs=0.01)


@given(VECTORS)
def test_a_vector_has_a_cosine_of_one_with_itself(vector: list[float]) -> None:
    data = quantize(vector).data
    opposite = quantize([-value for value in vector]).data
    assert cosine(data, data) == pytest.approx(1)
    assert cosine(data, opposite) == pytest.approx(-1, abs=0.02)


def test_a_damaged_vector_of_zeros_is_near_nothing() -> None:
    assert cosine(bytes(8), quantize([1.0] * 8).data) == 0.0


@pytest.mark.parametrize(
    "vector",
    [
        [0.0],
        [0.0] * 256,
        [-0.0, 0.0],
        [math.nan],
        [math.nan] * 3,
        [math.nan, 1.0],
        [1.0, math.nan],
        [1.0, math.nan, -1.0],
        [math.inf, 1.0],
        [1.0, math.inf],
        [1.0, -math.inf],
        [math.inf, -math.inf],
    ],
)
@pytest.mark.parametrize("kind", [list, lambda numbers: array("f", numbers)])
def test_what_has_no_direction_is_refused(vector: list[float], kind: type[list[float]]) -> None:
    with pytest.raises(EmbeddingError, match="finite"):
        quantize(kind(vector))


# Codes ------------------------------------------------------------------------------------------

EVERY_SIZE = range(1, 4097)


def test_a_code_has_whole_bytes_at_every_size() -> None:
    assert [size for size in EVERY_SIZE if code_bits(size) % 8 or code_bits(size) < size] == []


@pytest.mark.parametrize("first", [1, 2, 7, 8])
def test_a_code_is_as_long_as_is_said(first: int) -> None:
    numbers = random.Random(first)
    for dimensions in [*range(first, 1600, 31), *range(1600 + first, 4097, 97), 4096]:
        data = quantize(random_vector(numbers, dimensions)).data
        assert len(code_of(data)) * 8 == code_bits(dimensions)


def test_a_code_never_has_more_bits_than_the_index_or_the_numbers_ask_for() -> None:
    for dimensions in EVERY_SIZE:
        assert code_bits(dimensions) <= max(INDEX_BITS, dimensions) + 7


@given(CODES, CODES)
def test_the_distance_is_the_same_both_ways(one: bytes, two: bytes) -> None:
    assert distance(one, two) == distance(two, one)
    assert distance(one, one) == 0
    assert (distance(one, two) == 0) == (one == two)


@given(CODES, CODES, CODES)
def test_a_detour_is_never_shorter(one: bytes, two: bytes, three: bytes) -> None:
    assert distance(one, three) <= distance(one, two) + distance(two, three)


def test_a_distance_counts_the_bits_that_differ() -> None:
    assert distance(b"\x00\x0f", b"\x01\xff") == 5


@given(VECTORS)
def test_the_same_vector_has_the_same_code(vector: list[float]) -> None:
    data = quantize(vector).data
    assert code_of(data) == code_of(bytes(data))


@pytest.mark.parametrize("dimensions", [63, 64, 128, 256, 384, 767, 1536, 3072])
def test_the_nearer_the_vectors_the_nearer_their_codes(dimensions: int) -> None:
    numbers = random.Random(dimensions)
    totals = [0, 0, 0, 0]
    for _ in range(30):
        vector = random_vector(numbers, dimensions)
        code = code_of(quantize(vector).data)
        others = [
            *(moved(numbers, vector, by=by) for by in (0.1, 0.5, 1.5)),
            random_vector(numbers, dimensions),
        ]
        for place, other in enumerate(others):
            totals[place] += distance(code, code_of(quantize(other).data))
    assert all(nearer < farther for nearer, farther in pairwise(totals)), totals


@pytest.mark.parametrize("dimensions", [64, 256, 1536])
def test_opposite_vectors_differ_in_most_bits(dimensions: int) -> None:
    vector = random_vector(random.Random(3), dimensions)
    one = code_of(quantize(vector).data)
    other = code_of(quantize([-value for value in vector]).data)
    assert distance(one, other) > code_bits(dimensions) * 0.5


# What tells texts apart -------------------------------------------------------------------------


@given(st.text(), st.text())
def test_texts_have_the_same_hash_only_if_they_are_the_same(one: str, two: str) -> None:
    assert (text_hash(one) == text_hash(two)) == (one == two)
    assert len(text_hash(one)) == 16


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("", " "),
        ("walnut", "Walnut"),
        ("walnut", "walnut "),
        ("a\0b", "a"),
        ("é", "e\u0301"),
        ("\ud800", "\udfff"),
        ("\ud800", "?"),
    ],
)
def test_texts_that_look_alike_have_different_hashes(one: str, two: str) -> None:
    assert text_hash(one) != text_hash(two)
