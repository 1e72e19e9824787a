"""Vectors compared with each query by numpy, all at once.

Only if a model in this process has loaded numpy; otherwise SQL compares them: loading it just for
this does not pay.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

MOST_KEPT: Final = 2
"""Users whose vectors are cached: those of one are 7 MB of 1,000,000 memories."""


def can_compare() -> bool:
    """Return whether this process has loaded numpy: loading it takes longer than a search."""
    return sys.modules.get("numpy") is not None  # None there forbids importing it


class ComparedVectors:
    """Rows and their quantized vectors of ``dimensions`` numbers, concatenated."""

    def __init__(self, row_ids: Sequence[int], vectors: bytes, dimensions: int) -> None:
        import numpy as np  # noqa: PLC0415 - see above

        self._row_ids = row_ids
        self._numbers = np.frombuffer(vectors, np.int8).reshape(len(row_ids), dimensions)
        squares = np.einsum("ij,ij->i", self._numbers, self._numbers, dtype=np.int32)
        self._lengths = np.sqrt(np.maximum(squares, 1))

    def nearest(self, direction: bytes, limit: int) -> list[int]:
        """Return the ``limit`` rows with vectors of the most similar directions, in any order."""
        import numpy as np  # noqa: PLC0415 - see above

        if not self._row_ids:
            return []
        # Exact: 32 bits hold the sum of products of 130,000 numbers.
        asked = np.frombuffer(direction, np.int8)
        cosines = np.einsum("ij,j->i", self._numbers, asked, dtype=np.int32) / self._lengths
        places = np.argpartition(-cosines, min(limit, len(cosines)) - 1)[:limit]
        return [self._row_ids[place] for place in places.tolist()]
