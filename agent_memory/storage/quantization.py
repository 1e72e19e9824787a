"""Quantizes vectors: one byte per number for storage, one to six bits per number for the index.

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
"""The approximate number of bits in an index code. For 1,536 numbers the signs are enough: the
nearest 80 by signs contain 99 of 100 of the true nearest ten. For 256 numbers the signs contain 74,
four thresholds each 95."""
_THRESHOLDS: Final = (
    (),
    (0.0,),
    (-0.5, 0.5),
    (-0.6, 0.0, 0.6),
    (-1.0, -0.4, 0.4, 1.0),
    (-1.0, -0.5, 0.0, 0.5, 1.0),
)
"""Thresholds, indexed by their number, in units of the vector's root mean square."""


class Quantized(NamedTuple):
    """A vector of signed bytes, the largest of them 127 or -127, to be multiplied by ``scale``."""

    scale: float
    data: bytes

    def numbers(self) -> list[float]:
        """Return the vector, as closely as its bytes represent it."""
        return [(byte - 256 if byte > 127 else byte) * self.scale for byte in self.data]


def quantize(vector: Sequence[float]) -> Quantized:
    """Quantize a vector to signed bytes.

    Each vector is scaled by its own largest number: on a common scale of -1 to 1, a unit vector of
    1,536 numbers would have only two or three bits per number left. Raises ``EmbeddingError`` for a
    vector that is zero or not finite: its cosine is undefined.
    """
    most, least = max(vector), min(vector)
    largest = max(most, -least)
    if not (math.isfinite(largest) and largest > 0.0 and math.isfinite(sum(vector))):
        raise EmbeddingError("a vector must have finite numbers, not all of them zero")
    factor = _LARGEST / largest
    # int() truncates towards zero; shifted to be positive first, it rounds.
    data = bytes([int(number * factor + 128.5) for number in vector]).translate(_SHIFT)
    return Quantized(largest / _LARGEST, data)


_SHIFT: Final = bytes((number - 128) % 256 for number in range(256))


def text_hash(text: str) -> bytes:
    """Return a 16-byte hash that distinguishes texts."""
    return hash_of(text.encode(errors="surrogatepass"))


def hash_of(encoded: bytes) -> bytes:
    """Return the hash of a text in UTF-8."""
    import hashlib  # noqa: PLC0415 - 3 ms, and a keyword search hashes nothing

    return hashlib.sha256(encoded).digest()[:16]


def code_of(data: bytes) -> bytes:
    """Return the index code: near vectors differ in few bits (Hamming distance).

    Each number gives one bit per threshold, set if the number is above it; padded with zeros to
    whole bytes.
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
    """Return the number of bits in an index code for ``dimensions`` numbers: a multiple of 8."""
    return -(-dimensions * _levels(dimensions) // 8) * 8


def _levels(dimensions: int) -> int:
    return min(max(1, INDEX_BITS // dimensions), len(_THRESHOLDS) - 1)


@cache
def _above(threshold: int) -> bytes:
    """Return the table that maps each signed byte to the digit 1 if it is above, else 0."""
    return bytes(
        ord("1") if (byte - 256 if byte > 127 else byte) > threshold else ord("0")
        for byte in range(256)
    )


_SQUARES: Final = tuple((byte - 256 if byte > 127 else byte) ** 2 for byte in range(256))


def as_number(code: bytes) -> int:
    """Return a code as an integer, so that all bits of two codes are compared at once."""
    return int.from_bytes(code, "big")


def distance(code: bytes, other: bytes) -> int:
    """Return the number of bits in which two codes differ."""
    return (as_number(code) ^ as_number(other)).bit_count()


def cosine(data: bytes, other: bytes) -> float:
    """Return the cosine of two quantized vectors of the same length."""
    numbers, other_numbers = memoryview(data).cast("b"), memoryview(other).cast("b")
    lengths = sum(map(mul, numbers, numbers)) * sum(map(mul, other_numbers, other_numbers))
    return sum(map(mul, numbers, other_numbers)) / math.sqrt(lengths) if lengths else 0.0
