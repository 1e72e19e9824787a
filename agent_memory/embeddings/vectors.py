"""One vector of an embedder's answer: made into 32-bit floats, and refused if it is unfit."""

from __future__ import annotations

import math
from array import array
from contextlib import suppress
from typing import Any, Final

# No model's vectors are this short, and their squares would vanish in 32 bits.
_SMALLEST: Final = 1e-12


def to_float32(row: Any, dimensions: int) -> array[float]:  # noqa: ANN401 - a plugin's answer
    """Return a vector as an array of 32-bit floats.

    ``row`` is a list or tuple of numbers, an array, or a row of numpy's or of another package that
    has ``tolist``. Raises ``ValueError`` that says what is wrong: the number of dimensions, a value
    that is not finite (as 32 bits: 1e300 is not), all zeros; ``TypeError`` for what is no vector.
    """
    vector = _as_array(row)
    if len(vector) != dimensions:
        raise ValueError(f"a vector of {len(vector)} numbers instead of {dimensions}")
    if not math.isfinite(sum(vector)):
        # 32-bit values cannot overflow a sum of 64 bits: one of them is not finite itself.
        raise ValueError("a vector with a value that is infinite or not a number")
    if not any(value > _SMALLEST or value < -_SMALLEST for value in vector):
        raise ValueError("a vector of zeros")
    return vector


def _as_array(row: Any) -> array[float]:  # noqa: ANN401 - a plugin's answer
    if isinstance(row, str | bytes | bytearray):
        raise TypeError(f"a {type(row).__name__} where a vector should be")
    if not isinstance(row, list | tuple):
        with suppress(TypeError):  # it has no buffer, as a generator or a tensor
            view = memoryview(row)
            if view.format == "f" and view.ndim == 1:
                return array("f", view.tobytes())
        # numpy's numbers one by one would take ten times as long as Python's.
        row = row.tolist() if hasattr(row, "tolist") else list(row)
    try:
        return array("f", row)
    except OverflowError as error:  # an integer of over 308 digits
        raise ValueError("a vector with a value that is infinite or not a number") from error
