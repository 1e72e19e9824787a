"""The memories whose vectors are nearest to a query's: short codes first, then the vectors.

Where few memories are asked about, every vector is compared. Else the index names the nearest by
their codes, and their vectors decide. Without sqlite-vec the same two steps are taken in Python.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
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
_LEAST_WANTED: Final = 32
"""Of the nearest ten by their codes alone, too few are among the nearest five by their vectors."""
EXACT_UP_TO: Final = 2_000
"""So many vectors are all compared: that takes 6 ms for those of 1,536 numbers."""


Namer = Callable[[int, Sequence[int] | None], list[int]]
"""From how many, and among which, to rows: the nearest first."""


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


def nearest(database: Database, query: QueryVector, condition: Condition, *, limit: int) -> Nearest:
    """Return the nearest of the memories that meet a condition, more than ``limit`` if there are.

    Must run inside ``read()``.
    """
    has_extension = database.load_vectors()
    degraded = None if has_extension else f"{database.vectors_problem()}; vectors were scanned"
    found = _few(database, query.model.model_id, condition)
    if found is None:
        found = _by_code(database, query, condition, wanted=max(_LEAST_WANTED, 2 * limit))
    cosines = vectors.cosines(database, query.model.model_id, found, query.data)
    return Nearest(_best(cosines), degraded)


def _few(database: Database, model_id: int, condition: Condition) -> list[int] | None:
    """Return the rows that meet a condition if they are so few that each can be compared.

    The same where it lets archived memories pass, which the index does not have.
    """
    most = EXACT_UP_TO + 1
    is_everything = condition.sql == NOT_ARCHIVED.sql
    if is_everything and vectors.count_up_to(database, model_id, most) == most:
        return None
    limit = most if condition.leaves_out_archived else -1
    rows = vectors.meeting(database, condition, limit=limit)
    return rows if limit == -1 or len(rows) < most else None


def _by_code(
    database: Database, query: QueryVector, condition: Condition, *, wanted: int
) -> list[int]:
    """Return the rows whose codes are nearest.

    A filter is tested on the nearest of all first: those that pass are the nearest of the filtered,
    in order, and where they are enough, the filter need not be tested on every memory. Then more of
    the nearest are tried, and then the index is told all rows that pass, which takes it 30 ms more.
    """
    name = _namer(database, query)
    found = name(NEAREST, None)
    if not condition.is_narrowing:
        return found
    passing = vectors.filtered(database, condition, found)
    needed = NEAREST * wanted // max(1, len(passing)) * 5 // 4
    if len(passing) < wanted and needed <= _MOST_TRIED:
        passing = vectors.filtered(database, condition, name(needed, None))
    if len(passing) >= wanted:
        return passing
    return name(NEAREST, vectors.meeting(database, condition, limit=-1))


def _namer(database: Database, query: QueryVector) -> Namer:
    """Return what names the rows of the nearest codes: the index, or a scan that does the same."""
    model = query.model
    is_indexed = model.is_indexed and database.load_vectors()
    if is_indexed and vector_index.exists(database, model.model_id):
        return lambda limit, within: _without_ties(
            vector_index.nearest(database, model.model_id, query.data, limit=limit, within=within)
        )
    code = code_of(query.data)
    rows = vectors.to_index(database, model, after=0, limit=-1)
    distances = [(seq, distance(code_of(data), code)) for seq, data in rows]

    def scan(limit: int, within: Sequence[int] | None) -> list[int]:
        allowed = None if within is None else set(within)
        asked = (entry for entry in distances if allowed is None or entry[0] in allowed)
        return _without_ties(heapq.nsmallest(limit, asked, key=lambda entry: entry[1]))

    return scan


def _without_ties(found: Sequence[tuple[int, int]]) -> list[int]:
    """Leave out those as far away as the last: of these the index names some, a scan others."""
    last = found[-1][1] if found else 0
    return [seq for seq, far in found if far < last] or [seq for seq, _ in found]


def _best(cosines: dict[int, float]) -> dict[int, float]:
    rows = heapq.nsmallest(NEAREST, cosines, key=lambda seq: (-cosines[seq], seq))
    return {seq: cosines[seq] for seq in rows}
