"""Quantizes vectors: one byte a number for the truth, one to six bits a number for the index.

Pure: numbers in, bytes out, the same on every machine and with or without sqlite-vec.
"""

import math
from collections.abc import Sequence
from functools import cache
from operator import mul
from typing import Final, NamedTuple

from agent_memory.errors import EmbeddingError

_LARGEST: Final = 127

INDEX_BITS: Final = 1536
"""Bits of an index code, about. Of 1,536 numbers the signs are enough: the nearest 80 by them hold
99 of 100 of the true nearest ten. Of 256 numbers the signs hold 74, four thresholds each 95."""
_THRESHOLDS: Final = (
    (),
    (0.0,),
    (-0.5, 0.5),
    (-0.6, 0.0, 0.6),
    (-1.0, -0.4, 0.4, 1.0),
    (-1.0, -0.5, 0.0, 0.5, 1.0),
)
"""By how many there are, in units of the vector's root mean square."""


class Quantized(NamedTuple):
    """A vector of signed bytes, the largest of them 127 or -127; times ``scale``, the vector."""

    scale: float
    data: bytes

    def numbers(self) -> list[float]:
        """Return the vector, as near as its bytes are to it."""
        return [(byte - 256 if byte > 127 else byte) * self.scale for byte in self.data]


def quantize(vector: Sequence[float]) -> Quantized:
    """Make a vector of signed bytes.

    Each is scaled by its own largest number: a unit vector of 1,536 numbers on a common scale of
    -1 to 1 would be left two or three bits a number. Zero, infinite and undefined numbers are
    ``EmbeddingError``: nothing can be told from their cosine.
    """
    most, least = max(vector), min(vector)
    largest = max(most, -least)
    if not (math.isfinite(largest) and largest > 0.0 and math.isfinite(sum(vector))):
        raise EmbeddingError("a vector must have finite numbers, not all of them zero")
    factor = _LARGEST / largest
    # int() cuts towards zero: shifted to be positive first, it rounds.
    data = bytes([int(number * factor + 128.5) for number in vector]).translate(_SHIFT)
    return Quantized(largest / _LARGEST, data)


_SHIFT: Final = bytes((number - 128) % 256 for number in range(256))


def text_hash(text: str) -> bytes:
    """Return what tells one text from another: 16 bytes."""
    return hash_of(text.encode(errors="surrogatepass"))


def hash_of(encoded: bytes) -> bytes:
    """Return the hash of a text in UTF-8."""
    import hashlib  # noqa: PLC0415 - 3 ms, and a search by keyword hashes nothing

    return hashlib.sha256(encoded).digest()[:16]


def code_of(data: bytes) -> bytes:
    """Return the index code: vectors that are near differ in few bits (Hamming distance).

    Each number gives one bit a threshold, set where it is above; whole bytes, filled with zeros.
    """
    thresholds = _THRESHOLDS[_levels(len(data))]
    if thresholds == (0.0,):
        digits = data.translate(_above(0))
    else:
        size = math.sqrt(sum(map(_SQUARES.__getitem__, data)) / len(data))
        digits = b"".join(
            data.translate(_above(round(threshold * size))) for threshold in thresholds
        )
    return int(digits, 2).to_bytes(code_bits(len(data)) // 8, "big")


def code_bits(dimensions: int) -> int:
    """Return the bits of an index code for vectors of so many numbers: a multiple of 8."""
    return -(-dimensions * _levels(dimensions) // 8) * 8


def _levels(dimensions: int) -> int:
    return min(max(1, INDEX_BITS // dimensions), len(_THRESHOLDS) - 1)


@cache
def _above(threshold: int) -> bytes:
    """Return the table that turns each signed byte into the digit 1 if it is above, else 0."""
    return bytes(
        ord("1") if (byte - 256 if byte > 127 else byte) > threshold else ord("0")
        for byte in range(256)
    )


_SQUARES: Final = tuple((byte - 256 if byte > 127 else byte) ** 2 for byte in range(256))


def as_number(code: bytes) -> int:
    """Return a code as a number: the bits of two are compared at once."""
    return int.from_bytes(code, "big")


def distance(code: bytes, other: bytes) -> int:
    """Return the bits in which two codes differ."""
    return (as_number(code) ^ as_number(other)).bit_count()


def cosine(data: bytes, other: bytes) -> float:
    """Return the cosine of two quantized vectors of the same length."""
    numbers, other_numbers = memoryview(data).cast("b"), memoryview(other).cast("b")
    lengths = sum(map(mul, numbers, numbers)) * sum(map(mul, other_numbers, other_numbers))
    return sum(map(mul, numbers, other_numbers)) / math.sqrt(lengths) if lengths else 0.0
