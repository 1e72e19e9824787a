"""What an index derives from a sample of the vectors: the mean of a store, and its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from agent_memory.storage import code_search
from agent_memory.storage.cells import CellSample
from agent_memory.storage.centering import Middle, centred, middle_of
from agent_memory.storage.filters import EVERYTHING, Filter
from agent_memory.storage.quantization import as_number, code_of
from agent_memory.storage.records import QueryVector

if TYPE_CHECKING:
    from agent_memory.models.embedding_rows import EmbeddingModel
    from agent_memory.storage.tables import MemoryTable

_SAMPLE: Final = 256
"""Vectors that the mean of a store is computed from: more of them hardly move it."""
_MIDDLES: Final = 32
"""Means that are cached: that of the whole store, and of the users who searched last."""


class SampledVectors(Protocol):
    """What an engine's table of vectors offers on those of a model."""

    def is_queue_empty(self) -> bool:
        """Return whether no memory changed since the embeddings were last brought up to date."""

    def count(self, model_id: int) -> int:
        """Count the vectors."""

    def count_up_to(self, model_id: int, most: int) -> int:
        """Count the vectors, stopping at ``most``."""

    def listed(self, model: EmbeddingModel, row_ids: Sequence[int]) -> list[bytes]:
        """Return the vectors of these rows."""

    def newest(self, model: EmbeddingModel, limit: int) -> list[bytes]:
        """Return the newest vectors."""


def spread_sample(
    vectors: SampledVectors,
    model: EmbeddingModel,
    *,
    last_row_id: int,
    size: int,
    among: Sequence[int] | None = None,
) -> list[bytes]:
    """Return the vectors of up to ``size`` rows spread evenly, the same ones each time.

    With ``among``, only of these rows; ``last_row_id`` is then their number.
    """
    if last_row_id <= size:
        row_ids = list(range(1, last_row_id + 1))
    else:
        row_ids = [1 + number * last_row_id // size for number in range(size)]
    if among is not None:
        return vectors.listed(model, [among[place - 1] for place in row_ids])
    sample = vectors.listed(model, row_ids)
    # If the sample is smaller, the memories of most of these rows are deleted.
    return sample if len(sample) >= size // 4 else vectors.newest(model, size)


def cell_sample(
    memories: MemoryTable, vectors: SampledVectors, model: EmbeddingModel, *, least: int
) -> CellSample | None:
    """Return what cells are made from, if there are at least ``least`` vectors."""
    last = memories.last_row_id()
    if last < least or vectors.count_up_to(model.model_id, least) < least:
        return None
    count = vectors.count(model.model_id)
    cells = count // code_search.CELL_SIZE
    size = cells * code_search.SAMPLE_OF_CELL
    sample = spread_sample(vectors, model, last_row_id=last, size=size)
    codes = [as_number(code_of(data)) for data in sample]
    return CellSample(codes, cells, count) if codes else None


class Middles:
    """Caches the means of vectors, by model and filter.

    Each mean is computed from the rows up to a bound that lags their number by an eighth at most,
    so that processes that started at different times use the same mean.
    """

    def __init__(self, memories: MemoryTable, vectors: SampledVectors) -> None:
        self._memories = memories
        self._vectors = vectors
        self._kept: dict[tuple[EmbeddingModel, Filter, int], Middle | None] = {}

    def center(self, query: QueryVector, filters: Filter) -> QueryVector:
        """Return a query centred on the mean of the vectors of memories that pass the filters."""
        middle = self._middle(query.model, filters)
        return query if middle is None else query._replace(seen=centred(query.data, middle))

    def _middle(self, model: EmbeddingModel, filters: Filter) -> Middle | None:
        is_whole = filters == EVERYTHING
        size = self._memories.last_row_id() if is_whole else self._memories.count(filters)
        bound = code_search.rounded(size)
        key, kept = (model, filters, bound), self._kept
        if key in kept:
            return kept[key]
        own = None if is_whole else sorted(self._memories.row_ids(filters))
        sample = spread_sample(self._vectors, model, last_row_id=bound, size=_SAMPLE, among=own)
        # Each vector once: otherwise many copies of one text would make up the mean.
        middle = middle_of(dict.fromkeys(sample), model.dimensions)
        # Not cached while vectors are still to come.
        if len(sample) >= min(bound, _SAMPLE) or self._vectors.is_queue_empty():
            self._kept = {**dict(list(kept.items())[1 - _MIDDLES :]), key: middle}
        return middle
