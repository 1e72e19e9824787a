"""Vectors seen from the middle: the same cosines as those of vectors with the mean taken off."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agent_memory import AgentMemory
from agent_memory.storage.centering import Centred, Middle, centred, middle_of
from agent_memory.storage.quantization import cosine, quantize
from agent_memory.storage.sqlite import compared_vectors
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.embeddings import EmbeddingTable
from agent_memory.storage.sqlite.vector_index import VectorIndex

UNTIMED = settings(deadline=None)
Numbers = NDArray[np.float64]
DIMENSIONS = 256
ROUNDING = 0.02
"""How far the cosine of quantized vectors may be off."""


def common(count: int, dimensions: int = DIMENSIONS, *, shared: float = 1.0) -> Numbers:
    """Make vectors that have a direction in common, as those of a model have."""
    numbers = np.random.default_rng(7)
    return numbers.normal(size=(count, dimensions)) + shared * numbers.normal(size=dimensions)


def small(vectors: Numbers) -> list[bytes]:
    return [quantize(vector.tolist()).data for vector in vectors]


def unit(data: bytes) -> Numbers:
    """Return a quantized vector's numbers at a length of 1."""
    numbers = np.frombuffer(data, dtype=np.int8).astype(np.float64)
    return numbers / np.linalg.norm(numbers)


def exact(one: Numbers, two: Numbers) -> float:
    return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))


def made(vectors: Sequence[bytes], dimensions: int = DIMENSIONS) -> Middle:
    middle = middle_of(vectors, dimensions)
    assert middle is not None
    return middle


def seen_from(middle: Middle, query: bytes) -> Centred:
    seen = centred(query, middle)
    assert seen is not None
    return seen


def found(seen: Centred, vector: bytes) -> float:
    """Return the cosine as a search makes it: from two cosines of quantized vectors."""
    return seen.cosine(cosine(vector, seen.data), cosine(vector, seen.middle.direction))


# The middle -------------------------------------------------------------------------------------


def test_the_middle_of_many_is_nearly_their_mean() -> None:
    vectors = small(common(2_000))
    mean = np.mean([unit(data) for data in vectors], axis=0)
    middle = made(vectors)
    assert exact(np.array(middle.numbers), mean) == pytest.approx(1.0)
    assert middle.length == pytest.approx(float(np.linalg.norm(mean)), rel=0.01)
    assert middle.length == pytest.approx(math.hypot(*middle.numbers))
    assert exact(unit(middle.direction), mean) == pytest.approx(1.0, abs=ROUNDING / 10)


def test_the_fewer_the_vectors_the_nearer_is_their_middle_to_nothing() -> None:
    vector = small(common(1))
    lengths = [made(vector * count).length for count in (1, 3, 30, 3_000)]
    assert lengths == sorted(lengths)
    assert lengths[0] < 0.2
    assert lengths[-1] == pytest.approx(1.0, abs=0.01)


def test_the_length_of_a_vector_does_not_move_the_middle() -> None:
    one, two = bytes([100, 0, 0]), bytes([0, 100, 0])
    halved = bytes([0, 50, 0])
    assert made([one, two], 3) == made([one, halved], 3)


def test_the_order_of_the_vectors_does_not_matter() -> None:
    vectors = small(common(50))
    shuffled = list(vectors)
    random.Random(1).shuffle(shuffled)
    assert made(shuffled).numbers == pytest.approx(made(vectors).numbers)


@pytest.mark.parametrize(
    "vectors",
    [
        [],
        [bytes(3)],  # a vector of nothing, as after damage
        [b"\x01\x02"],  # of another length
        [bytes([127, 0, 0]), bytes([129, 0, 0])],  # 127 and -127: the middle is nothing
    ],
)
def test_where_there_is_no_middle_there_is_none(vectors: list[bytes]) -> None:
    assert middle_of(vectors, 3) is None


def test_damaged_vectors_are_left_out_of_the_middle() -> None:
    good = [bytes([127, 3, 0]), bytes([127, 0, 3])]
    assert made([bytes(3), *good, b"\x01"], 3) == made(good, 3)


# Cosines from there -----------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("count", [1, 5, 500])
def test_a_cosine_from_the_middle_is_that_of_the_vectors_without_it(
    count: int, shared: float
) -> None:
    vectors = small(common(count + 1, shared=shared))
    query = vectors.pop()
    middle = made(vectors)
    seen = seen_from(middle, query)
    off = unit(query) - np.array(middle.numbers)
    for vector in vectors[:100]:
        expected = exact(unit(vector) - np.array(middle.numbers), off)
        assert found(seen, vector) == pytest.approx(expected, abs=ROUNDING)


def test_what_all_have_in_common_is_no_nearness_any_more() -> None:
    vectors = small(common(1_000, shared=3.0))
    query = vectors[0]
    seen = seen_from(made(vectors), query)
    plain = [cosine(vector, query) for vector in vectors[1:]]
    from_middle = [found(seen, vector) for vector in vectors[1:]]
    assert min(plain) > 0.7
    assert abs(float(np.mean(from_middle))) < 0.05


def test_the_order_of_nearness_is_that_of_exact_numbers() -> None:
    vectors = small(common(300))
    middle = made(vectors)
    seen = seen_from(middle, vectors[0])
    numbers = np.array(middle.numbers)
    off = unit(vectors[0]) - numbers
    expected = [exact(unit(vector) - numbers, off) for vector in vectors]
    nearest = np.argsort([-found(seen, vector) for vector in vectors])[:10]
    assert len(set(nearest.tolist()) & set(np.argsort(np.negative(expected))[:12].tolist())) == 10


def test_a_vector_like_the_query_is_as_near_as_can_be() -> None:
    vectors = small(common(100))
    seen = seen_from(made(vectors), vectors[3])
    assert found(seen, vectors[3]) == pytest.approx(1.0, abs=ROUNDING)
    assert max(found(seen, vector) for vector in vectors) == found(seen, vectors[3])


def test_where_all_vectors_are_the_same_they_are_near_to_that_query_and_no_other() -> None:
    one, other = small(common(2, shared=0.0))
    seen = seen_from(made([one] * 5), one)
    assert found(seen, one) == pytest.approx(1.0, abs=ROUNDING)
    assert found(seen_from(made([one] * 5), other), one) < 0.2


def test_with_few_vectors_a_cosine_is_nearly_the_plain_one() -> None:
    one, query = small(common(2))
    seen = seen_from(made([one]), query)
    assert found(seen, one) == pytest.approx(cosine(one, query), abs=0.1)


def test_a_query_that_lies_in_the_middle_is_not_seen_from_there() -> None:
    data = bytes([0, 127, 0])
    assert centred(data, Middle([0.0, 1.0, 0.0], data, 1.0)) is None
    assert centred(data, Middle([0.0, 0.9, 0.0], data, 0.9)) is not None


def test_a_vector_that_lies_in_the_middle_has_nothing_to_do_with_a_query() -> None:
    middle = Middle([1.0, 0.0], bytes([127, 0]), 1.0)
    seen = seen_from(middle, bytes([0, 127]))
    assert seen.cosine(0.3, 1.0) == 0.0


BYTES = st.lists(st.integers(0, 255), min_size=4, max_size=4).map(bytes).filter(any)


@UNTIMED
@given(st.lists(BYTES, max_size=8), BYTES, BYTES)
def test_any_vectors_have_a_cosine_of_minus_1_to_1(
    vectors: list[bytes], query: bytes, vector: bytes
) -> None:
    middle = middle_of(vectors, 4)
    if middle is None:  # there are none, or they cancel each other
        return
    assert 0.0 < middle.length < 1.0
    seen = seen_from(middle, query)
    assert -1.0 <= found(seen, vector) <= 1.0


# In a file --------------------------------------------------------------------------------------


class MadeUp:
    """Gives the n-th text the n-th vector."""

    model = "made-up"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._vectors = common(61)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [self._vectors[int(text.split()[-1])].tolist() for text in texts]


@pytest.fixture
def stored(root: Path) -> Path:
    with AgentMemory("bob", root=root, embedder=MadeUp()) as memory:
        memory.store_many({"content": f"number {number}"} for number in range(60))
        assert memory.migrate(embedder=MadeUp()).status == "completed"
        return memory.path


@pytest.mark.parametrize("by", ["numpy", "SQL", "Python"])
def test_cosines_of_a_file_are_those_of_exact_numbers(
    stored: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    if by == "Python":
        monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    monkeypatch.setattr(compared_vectors, "can_compare", lambda: by == "numpy")
    vectors = small(common(61))
    middle = made(vectors[:60])
    seen = seen_from(middle, vectors[60])
    database = Database(stored)
    try:
        assert database.load_vectors() is (by != "Python")
        (model,) = EmbeddingTable(database).models()
        index = VectorIndex(database)
        of_file = index.cosines(model.model_id, range(1, 62), seen)  # there is no 61
        plain = index.cosines(model.model_id, range(1, 61), vectors[60])
        other_size = index.cosines(model.model_id, [1, 2], vectors[60][:-1])
    finally:
        database.close()
    assert list(of_file) == list(range(1, 61))
    assert other_size == {}
    off = unit(vectors[60]) - np.array(middle.numbers)
    for row_id, vector in enumerate(vectors[:60], start=1):
        expected = exact(unit(vector) - np.array(middle.numbers), off)
        assert of_file[row_id] == pytest.approx(expected, abs=ROUNDING)
        assert of_file[row_id] == pytest.approx(found(seen, vector), abs=1e-5)
        assert plain[row_id] == pytest.approx(cosine(vector, vectors[60]), abs=1e-5)
    assert max(plain.values()) - max(of_file.values()) > 5 * ROUNDING  # it is seen from elsewhere
