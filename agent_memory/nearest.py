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

NEAREST: Final = 100
"""Memories that the index names. Its time grows with them: of 100,000, 80 take 12 ms, 160 20."""
_MOST_TRIED: Final = 300
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


def nearest(
    database: Database, query: QueryVector, condition: Condition, *, wanted: int
) -> Nearest:
    """Return the nearest of the memories that meet a condition, at least ``wanted`` if there are.

    Must run inside ``read()``.
    """
    has_extension = database.load_vectors()
    degraded = None if has_extension else f"{database.vectors_problem()}; vectors were scanned"
    found = _few(database, query.model.model_id, condition)
    if found is None:
        is_indexed = query.model.is_indexed and has_extension
        if is_indexed and vector_index.exists(database, query.model.model_id):
            found = _by_index(database, query, condition, wanted)
        else:
            found = _by_code(database, query, condition)
    cosines = vectors.cosines(database, query.model.model_id, found, query.data)
    return Nearest(_best(cosines), degraded)


def _few(database: Database, model_id: int, condition: Condition) -> list[int] | None:
    """Return the rows that meet a condition if they are so few that each can be compared."""
    most = EXACT_UP_TO + 1
    is_everything = condition.sql == NOT_ARCHIVED.sql
    if is_everything and vectors.count_up_to(database, model_id, most) == most:
        return None
    rows = vectors.meeting(database, condition, limit=most)
    return rows if len(rows) < most else None


def _by_index(
    database: Database, query: QueryVector, condition: Condition, wanted: int
) -> list[int]:
    """Let the index name the nearest.

    A filter is tested on the nearest of all first: those that pass are the nearest of the filtered,
    in order, and where they are enough, the filter need not be tested on every memory. Then more of
    the nearest are tried, and then the index is told all rows that pass, which takes it 30 ms more.
    """
    model_id, data = query.model.model_id, query.data
    if not condition.leaves_out_archived:  # the index has no archived memories
        return vectors.meeting(database, condition, limit=-1)
    found = vector_index.nearest(database, model_id, data, limit=NEAREST)
    if not condition.is_narrowing:
        return found
    passing = vectors.filtered(database, condition, found)
    needed = NEAREST * wanted // max(1, len(passing)) * 5 // 4
    if len(passing) < wanted and needed <= _MOST_TRIED:
        found = vector_index.nearest(database, model_id, data, limit=needed)
        passing = vectors.filtered(database, condition, found)
    if len(passing) >= wanted:
        return passing
    within = vectors.meeting(database, condition, limit=-1)
    return vector_index.nearest(database, model_id, data, limit=NEAREST, within=within)


def _best(cosines: dict[int, float]) -> dict[int, float]:
    rows = heapq.nsmallest(NEAREST, cosines, key=lambda seq: (-cosines[seq], seq))
    return {seq: cosines[seq] for seq in rows}


def _by_code(database: Database, query: QueryVector, condition: Condition) -> list[int]:
    """Do in Python what the index does."""
    code = code_of(query.data)
    rows = vectors.vectors_of(database, query.model.model_id, condition)
    distances = ((distance(code_of(data), code), seq) for seq, data in rows)
    return [seq for _, seq in heapq.nsmallest(NEAREST, distances)]
