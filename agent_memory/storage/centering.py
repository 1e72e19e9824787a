"""Centres vectors: measures cosines from the mean of a store's vectors. Pure.

All texts of a store have something in common, as do all vectors of a model, and a cosine counts
that as nearness. Measured from the mean of the store's own vectors, only what distinguishes one
memory from another is left: of 40 answers that share no word with their question, among 4,000 other
memories, 26 are then among the nearest five, and 21 without centring (wordllama; with MiniLM 39 and
35).
"""

import math
from collections.abc import Iterable, Sequence
from operator import mul
from typing import Final, NamedTuple

from agent_memory.storage.quantization import quantize

_PRIOR: Final = 10
"""Zero vectors that draw the mean towards zero: the mean of three vectors says little."""


class Middle(NamedTuple):
    """The mean of unit vectors: its numbers, its direction (quantized), its length."""

    numbers: Sequence[float]
    direction: bytes
    length: float


def middle_of(vectors: Iterable[bytes], dimensions: int) -> Middle | None:
    """Return the mean of quantized vectors, or ``None`` if it is zero."""
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
    """A query's vector relative to the mean: quantized, its length, and its offset.

    ``offset`` is the dot product of this vector and the mean.
    """

    data: bytes
    length: float
    offset: float
    middle: Middle

    def cosine(self, with_query: float, with_middle: float) -> float:
        """Return the cosine of a unit vector, relative to the mean.

        ``with_query`` is its cosine with ``data``, ``with_middle`` its cosine with the mean.
        """
        away = self.middle.length
        squared = 1.0 - 2.0 * with_middle * away + away * away
        if squared <= 0.0:
            return 0.0
        cosine = (with_query * self.length - self.offset) / (self.length * math.sqrt(squared))
        return max(-1.0, min(1.0, cosine))


def centred(query: bytes, middle: Middle) -> Centred | None:
    """Return a query's vector relative to the mean; ``None`` if it equals the mean."""
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
    """Return a quantized vector's numbers, scaled to a length of 1."""
    numbers = memoryview(data).cast("b").tolist()
    length = math.sqrt(sum(map(mul, numbers, numbers)))
    return [number / length for number in numbers] if length else []
