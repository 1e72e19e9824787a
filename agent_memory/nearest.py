"""The memories whose vectors are nearest to a query's: short codes first, then the vectors.

Where few memories are asked about, every vector is compared. Else the index names the nearest by
their codes, and their vectors decide. Without sqlite-vec the same two steps are taken in Python.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Final

from agent_memory import vector_index, vectors
from agent_memory.connection import Database
from agent_memory.filters import NOT_ARCHIVED, Condition
from agent_memory.models.embedding import EmbeddingModel
from agent_memory.quantization import code_of, distance

NEAREST: Final = 80
"""Memories that the index names. Its time grows with them: of 100,000, 80 take 13 ms, 160 21."""
EXACT_UP_TO: Final = 2_000
"""So many vectors are all compared: that takes 6 ms for those of 1,536 numbers."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query's vector, quantized, and the model that it and the vectors it meets are of."""

    model: EmbeddingModel
    data: bytes


@dataclass(frozen=True, slots=True)
class QueryMeaning:
    """A query's vector, if there is one to be had; what kept it; how long that took."""

    vector: QueryVector | None = None
    degraded: list[str] = field(default_factory=list)
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Nearest:
    """Cosines by row of the nearest, and what was not as it should be."""

    cosines: dict[int, float]
    degraded: str | None = None


def nearest(database: Database, query: QueryVector, condition: Condition) -> Nearest:
    """Return the nearest of the memories that meet a condition. Must run inside ``read()``."""
    model_id = query.model.model_id
    has_extension = database.load_vectors()
    degraded = None if has_extension else f"{database.vectors_problem()}; vectors were scanned"
    if _are_few(database, model_id, condition):
        cosines = vectors.all_cosines(database, model_id, condition, query.data)
        return Nearest(_best(cosines), degraded)
    # The index has no archived memories.
    if condition.leaves_out_archived and has_extension and query.model.is_indexed:
        found = vector_index.nearest(database, model_id, query.data, condition, limit=NEAREST)
    elif has_extension:
        cosines = vectors.all_cosines(database, model_id, condition, query.data)
        return Nearest(_best(cosines))
    else:
        found = _by_code(database, query, condition)
    return Nearest(vectors.cosines(database, model_id, found, query.data), degraded)


def _are_few(database: Database, model_id: int, condition: Condition) -> bool:
    most = EXACT_UP_TO + 1
    if vectors.count_up_to(database, model_id, most) < most:
        return True
    if condition.sql == NOT_ARCHIVED.sql:
        return False
    return len(vectors.narrowed(database, condition, limit=most)) < most


def _best(cosines: dict[int, float]) -> dict[int, float]:
    rows = heapq.nsmallest(NEAREST, cosines, key=lambda seq: (-cosines[seq], seq))
    return {seq: cosines[seq] for seq in rows}


def _by_code(database: Database, query: QueryVector, condition: Condition) -> list[int]:
    """Do in Python what the index does."""
    code = code_of(query.data)
    rows = vectors.vectors_of(database, query.model.model_id, condition)
    distances = ((distance(code_of(data), code), seq) for seq, data in rows)
    return [seq for _, seq in heapq.nsmallest(NEAREST, distances)]
