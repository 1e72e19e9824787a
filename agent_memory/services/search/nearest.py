"""The memories whose vectors are nearest to a query's: short codes first, then the vectors.

Where few memories are asked about, every vector is compared. Else the index names the nearest by
their codes, and their vectors decide. Without sqlite-vec the same two steps are taken in Python.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from agent_memory.models.embedding import EmbeddingModel
from agent_memory.storage.centering import Centred, Middle, centred, middle_of
from agent_memory.storage.quantization import code_of, distance
from agent_memory.storage.sqlite import vector_index
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.filters import NOT_ARCHIVED, Condition
from agent_memory.storage.sqlite.tables import embeddings as vectors
from agent_memory.storage.sqlite.tables import memories as records

NEAREST: Final = 100
"""Memories that the index names. Its time grows with them: of 100,000, 80 take 12 ms, 160 20."""
EXACT_UP_TO: Final = 2_000
"""So many vectors are all compared: that takes 6 ms for those of 1,536 numbers."""
_MANY: Final = EXACT_UP_TO + 1
_SAMPLE: Final = 256
"""Vectors that the middle of a store is told from: more of them move it by next to nothing."""


Namer = Callable[[Sequence[int] | None], list[int]]
"""Takes rows, or ``None`` for all, and returns the nearest of them."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query's vector, quantized, and the model that it and the vectors it meets are of.

    ``seen`` is the vector as seen from the middle of the store, if cosines are to be from there.
    """

    model: EmbeddingModel
    data: bytes
    seen: Centred | None = None

    @property
    def asked(self) -> bytes | Centred:
        """Return what cosines are asked with."""
        return self.data if self.seen is None else self.seen

    @property
    def direction(self) -> bytes:
        """Return what the nearest vectors point to."""
        return self.data if self.seen is None else self.seen.data


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


class Middles:
    """The middles of the models' vectors in one file, as they were told last.

    Each is told from the rows up to a bound that grows with the file by an eighth or less, so that
    processes that opened the file at different times tell the same.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[EmbeddingModel, int], Middle | None] = {}

    def see(self, database: Database, query: QueryVector) -> QueryVector:
        """See a query from the middle of the vectors that it meets."""
        bound = _rounded(records.last_seq(database))
        key = (query.model, bound)
        if key not in self._known:
            found = vectors.spread(database, query.model, last_seq=bound, size=_SAMPLE)
            # Each once: among many copies of one text, that would be what all have in common.
            middle = middle_of(dict.fromkeys(found), query.model.dimensions)
            if len(found) >= min(bound, _SAMPLE) or vectors.is_queue_empty(database):
                self._known = {key: middle}  # else vectors are still to come
        else:
            middle = self._known[key]
        return query if middle is None else replace(query, seen=centred(query.data, middle))


def _rounded(number: int) -> int:
    """Round a number down to its four highest bits."""
    dropped = max(0, number.bit_length() - 4)
    return number >> dropped << dropped


def nearest(database: Database, query: QueryVector, condition: Condition) -> Nearest:
    """Return the nearest of the memories that meet a condition. Must run inside ``read()``.

    The condition holds before the nearest are chosen: those that it leaves out take nobody's place.
    """
    has_extension = database.load_vectors()
    degraded = None if has_extension else f"{database.vectors_problem()}; vectors were scanned"
    # The index has no archived memories: where they may be found, each of them is compared.
    archived: list[int] = []
    if not condition.leaves_out_archived:
        archived = vectors.meeting(database, condition.of_archived(archived=True))
        condition = condition.of_archived(archived=False)
    found = archived + _named(database, query, condition)
    cosines = vectors.cosines(database, query.model.model_id, found, query.asked)
    return Nearest(_best(cosines), degraded)


def _named(database: Database, query: QueryVector, condition: Condition) -> list[int]:
    """Return the rows to compare: all that meet the condition, or those of the nearest codes."""
    model_id = query.model.model_id
    passing: list[int] | None = None
    is_everything = condition.sql == NOT_ARCHIVED.sql
    if not is_everything or vectors.count_up_to(database, model_id, _MANY) < _MANY:
        passing = vectors.meeting(database, condition)
        if len(passing) < _MANY:
            return passing
    return _namer(database, query)(passing)


def _namer(database: Database, query: QueryVector) -> Namer:
    """Return what names the rows of the nearest codes: the index, or a scan that does the same."""
    model = query.model
    is_indexed = model.is_indexed and database.load_vectors()
    if is_indexed and vector_index.exists(database, model.model_id):
        return lambda within: _without_ties(
            vector_index.nearest(
                database, model.model_id, query.direction, limit=NEAREST, within=within
            )
        )
    code = code_of(query.direction)
    rows = vectors.to_index(database, model, after=0, limit=-1)
    distances = [(seq, distance(code_of(data), code)) for seq, data in rows]

    def scan(within: Sequence[int] | None) -> list[int]:
        allowed = None if within is None else set(within)
        asked = (entry for entry in distances if allowed is None or entry[0] in allowed)
        return _without_ties(heapq.nsmallest(NEAREST, asked, key=lambda entry: entry[1]))

    return scan


def _without_ties(found: Sequence[tuple[int, int]]) -> list[int]:
    """Leave out those as far away as the last: of these the index names some, a scan others."""
    last = found[-1][1] if found else 0
    return [seq for seq, far in found if far < last] or [seq for seq, _ in found]


def _best(cosines: dict[int, float]) -> dict[int, float]:
    rows = heapq.nsmallest(NEAREST, cosines, key=lambda seq: (-cosines[seq], seq))
    return {seq: cosines[seq] for seq in rows}
