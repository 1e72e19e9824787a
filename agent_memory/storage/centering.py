"""Centres vectors: cosines taken from the mean of a store's vectors. Pure.

All texts of a store have something in common, as have all vectors of a model, and a cosine counts
that as nearness. Taken from the middle of the store's own vectors, what is left is what tells one
memory from another: of 40 answers that share no word with their question, among 4,000 other
memories, 26 are among the nearest five so, and 21 without (wordllama; of MiniLM 39 and 35).
"""

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Final, NamedTuple

from agent_memory.storage.quantization import quantize

_PRIOR: Final = 10
"""Vectors of nothing that the middle is drawn towards: that of three vectors tells little."""


class Middle(NamedTuple):
    """The mean of vectors of length 1: its numbers, its direction quantized, its length."""

    numbers: Sequence[float]
    direction: bytes
    length: float


def middle_of(vectors: Iterable[bytes], dimensions: int) -> Middle | None:
    """Return the middle of quantized vectors, or ``None`` where there is none to speak of."""
    total = [0.0] * dimensions
    count = 0
    for data in vectors:
        unit = _unit(data)
        if len(unit) == dimensions:
            total = [sum_ + number for sum_, number in zip(total, unit, strict=True)]
            count += 1
    numbers = [number / (count + _PRIOR) for number in total]
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    return Middle(numbers, quantize(numbers).data, length) if length > 0 else None


class Centred(NamedTuple):
    """A query's vector seen from the middle: quantized, its length, and how far the middle is.

    ``offset`` is the product of this vector and the middle.
    """

    data: bytes
    length: float
    offset: float
    middle: Middle

    def cosine(self, with_query: float, with_middle: float) -> float:
        """Return the cosine, seen from the middle, of a vector of length 1.

        ``with_query`` is its cosine with ``data``, ``with_middle`` that with the middle.
        """
        away = self.middle.length
        squared = 1.0 - 2.0 * with_middle * away + away * away
        if squared <= 0.0:
            return 0.0
        cosine = (with_query * self.length - self.offset) / (self.length * math.sqrt(squared))
        return max(-1.0, min(1.0, cosine))


def centred(query: bytes, middle: Middle) -> Centred | None:
    """See a query's vector from the middle; ``None`` for one that lies there itself."""
    numbers = [
        number - middle_number
        for number, middle_number in zip(_unit(query), middle.numbers, strict=True)
    ]
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    if length <= 0.0:
        return None
    offset = sum(map(mul, numbers, middle.numbers))
    return Centred(quantize(numbers).data, length, offset, middle)


def _unit(data: bytes) -> list[float]:
    """Return a quantized vector's numbers, at a length of 1."""
    numbers = memoryview(data).cast("b").tolist()
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    return [number / length for number in numbers] if length else []
