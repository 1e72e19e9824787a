"""The vector index: finds the vectors nearest to a query, and follows the memories.

The server compares codes, with the functions for bits that every PostgreSQL has; the vectors that
decide are compared here, as those of a file are, to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.models.agent import Problem
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.storage import code_search
from agent_memory.storage.cells import CellSample, centres_of, nearest_cells_of
from agent_memory.storage.centering import Centred, Middle, centred, middle_of
from agent_memory.storage.code_search import (
    UNSORTED,
    Cell,
    Namer,
    best,
    coded,
    in_cells,
    rounded,
    rows_to_compare,
    scan,
)
from agent_memory.storage.filters import EVERYTHING, Filter
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.postgres.tables.embeddings import EmbeddingTable
from agent_memory.storage.postgres.tables.memories import MemoryTable
from agent_memory.storage.postgres.tables.vector_cells import CellTable
from agent_memory.storage.postgres.tables.vector_codes import CodeTable
from agent_memory.storage.quantization import as_number, code_bits, code_of
from agent_memory.storage.records import BEFORE_ALL, NearestVectors, QueryVector, page_end


class VectorIndex(Table):
    """The vector index of one agent: nearest vectors, kept in step with the memories.

    The mean of each model's vectors is cached. It is computed from the rows up to a bound that
    grows with them by an eighth or less, so that processes that began at different times have the
    same mean.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._codes = CodeTable(database)
        self._cells = CellTable(database)
        self._embeddings = EmbeddingTable(database)
        self._memories = MemoryTable(database)
        self._middles: dict[tuple[EmbeddingModel, Filter, int], Middle | None] = {}

    # Searching --------------------------------------------------------------------------------

    def center(self, query: QueryVector, filters: Filter = EVERYTHING) -> QueryVector:
        is_whole = filters == EVERYTHING
        size = self._memories.last_row_id() if is_whole else self._memories.count(filters)
        bound = rounded(size)
        key = (query.model, filters, bound)
        if key not in self._middles:
            own = None if is_whole else sorted(self._memories.row_ids(filters))
            sample = self._embeddings.spread_sample(
                query.model, last_row_id=bound, size=code_search.SAMPLE, among=own
            )
            # Each once: among many copies of one text, that would be what all have in common.
            middle = middle_of(dict.fromkeys(sample), query.model.dimensions)
            if len(sample) >= min(bound, code_search.SAMPLE) or self._embeddings.is_queue_empty():
                # else vectors are still to come
                kept = list(self._middles.items())[1 - code_search.MIDDLES :]
                self._middles = {**dict(kept), key: middle}
        else:
            middle = self._middles[key]
        return query if middle is None else query._replace(seen=centred(query.data, middle))

    def nearest(self, query: QueryVector, filters: Filter) -> NearestVectors:
        """Return the nearest of the memories that pass the filters. Must run inside ``read()``.

        The filters hold before the nearest are chosen: what they leave out takes nobody's place.
        """
        problem = self._embeddings.problem_of_cosines()
        row_ids = rows_to_compare(
            self._memories,
            filters,
            lambda: self._namer(query),
            is_small=self._is_small(query.model),
        )
        cosines = best(self.cosines(query.model.model_id, row_ids, query.asked))
        return NearestVectors(cosines, problem and f"{problem}; vectors were compared in Python")

    def cosines(
        self, model_id: int, row_ids: Sequence[int], query: bytes | Centred
    ) -> dict[int, float]:
        return self._embeddings.cosines(model_id, row_ids, query)

    def _is_small(self, model: EmbeddingModel) -> bool:
        many = code_search.EXACT_UP_TO + 1
        return self._embeddings.count_up_to(model.model_id, many) < many

    def _namer(self, query: QueryVector) -> Namer:
        """Return what names the nearest codes: a scan where none were written yet."""
        model, code = query.model, code_of(query.direction)
        if not model.is_indexed:
            return scan(self._embeddings.to_index(model, after=BEFORE_ALL, limit=None), code)
        nearest = self._codes.nearest
        return in_cells(
            self._cells.all(model.model_id),
            code,
            lambda cells, limit, within: nearest(
                model.model_id, code, cells=cells, limit=limit, within=within
            ),
        )

    # Following the memories -------------------------------------------------------------------

    def is_missing(self, model: EmbeddingModel) -> bool:
        return not (self._db.read_only or model.is_indexed)

    def begin(self, model: EmbeddingModel) -> None:
        """Do nothing yet: the index is built at once, and nobody waits for it."""

    def build(self, model: EmbeddingModel, limit: int) -> bool:  # noqa: ARG002 - all at once
        self.drop(model)
        self._cells.create(model.model_id)
        if (sample := self._sample(model, least=code_search.SORTED_FROM)) is not None:
            centres = centres_of(sample.codes, sample.cells)
            self._replace_cells(model, centres, vectors=sample.vectors)
            self._cells.remove(model.model_id, UNSORTED)
        after = BEFORE_ALL
        while rows := self._embeddings.to_index(model, after=after, limit=code_search.CHUNK):
            self._put(model, coded(rows))
            after = page_end(rows[-1][0], after=after)
        self._embeddings.set_indexed(model.model_id, is_indexed=True)
        return False

    def enter(self, model: EmbeddingModel, entries: Sequence[tuple[int, bytes]]) -> None:
        if model.is_indexed:
            self._put(model, coded(entries))

    def _put(self, model: EmbeddingModel, codes: Sequence[tuple[int, bytes]]) -> None:
        """Put codes into the cells that take in new ones, each into the nearest."""
        cells = [cell for cell in self._cells.all(model.model_id) if not cell.is_retired]
        cells = cells or [Cell(UNSORTED, 0, is_retired=False)]  # another program took them out
        centres = [cell.centre for cell in cells]
        places = nearest_cells_of([as_number(code) for _, code in codes], centres)
        self._codes.put(
            model.model_id,
            [
                (row_id, cells[place].number, code)
                for (row_id, code), place in zip(codes, places, strict=True)
            ],
        )

    def is_unsorted(self, model: EmbeddingModel) -> bool:
        return self._follows(model) and self._cells.is_unsorted(model.model_id)

    def _follows(self, model: EmbeddingModel) -> bool:
        return bool(model.is_indexed) and not self._db.read_only

    def sort(self, model: EmbeddingModel, limit: int) -> None:
        if not model.is_indexed:
            return
        for cell in self._cells.all(model.model_id):
            if cell.is_retired:
                rows = self._codes.some_of(model.model_id, cell.number, limit=limit)
                self._put(model, rows)
                limit -= len(rows)
                if limit <= 0:
                    return
                self._cells.remove(model.model_id, cell.number)

    def cells_due(self, model: EmbeddingModel) -> CellSample | None:
        if not self._follows(model):
            return None
        made_of = self._cells.made_of(model.model_id)
        return self._sample(model, least=max(code_search.SORTED_FROM, 2 * made_of))

    def _sample(self, model: EmbeddingModel, *, least: int) -> CellSample | None:
        """Return what cells are made from, if there are so many vectors."""
        last = self._memories.last_row_id()
        if last < least or self._embeddings.count_up_to(model.model_id, least) < least:
            return None
        vectors = self._embeddings.count(model.model_id)
        cells = vectors // code_search.CELL_SIZE
        size = cells * code_search.SAMPLE_OF_CELL
        sample = self._embeddings.spread_sample(model, last_row_id=last, size=size)
        codes = [as_number(code_of(data)) for data in sample]
        return CellSample(codes, cells, vectors) if codes else None

    def make_cells(self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int) -> None:
        # Else somebody was faster.
        if model.is_indexed and 2 * self._cells.made_of(model.model_id) <= vectors:
            self._replace_cells(model, centres, vectors=vectors)

    def _replace_cells(
        self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int
    ) -> None:
        size = code_bits(model.dimensions) // 8
        codes = [centre.to_bytes(size, "big") for centre in centres]
        self._cells.replace(model.model_id, codes, made_of=vectors)

    def leave(self, model: EmbeddingModel, row_ids: Sequence[int]) -> None:
        if row_ids and model.is_indexed:
            self._codes.remove(model.model_id, row_ids)

    def drop(self, model: EmbeddingModel) -> None:
        self._codes.drop(model.model_id)
        self._cells.drop(model.model_id)
        self._embeddings.set_indexed(model.model_id, is_indexed=False)

    def forget_deleted(self) -> None:
        """Remove the memories whose rows were erased: their codes went with them."""
        self._embeddings.dequeue_erased()

    # Checking ---------------------------------------------------------------------------------

    def models(self) -> list[EmbeddingModel]:
        """Return the models, with an index or without."""
        return self._embeddings.models()

    def find_problems(self) -> list[Problem]:
        """Read every vector, and compare the indexes with them. Must run inside a transaction."""
        models = self._embeddings.models()
        problems = [problem for model in models for problem in self.problems_of(model)]
        for model in models:
            forgotten = self._embeddings.count_forgotten(model.model_id)
            if model.state == "active" and forgotten:
                detail = f"{forgotten} memories have no embedding and do not wait for one"
                problems.append(Problem(kind="missing_embedding", detail=detail))
        return problems

    def problems_of(self, model: EmbeddingModel) -> list[Problem]:
        problems = [
            Problem(kind="wrong_embedding", detail=fault)
            for _, fault in self._embeddings.faults(model)
        ]
        wrong = self._count_wrong_codes(model) if model.is_indexed else 0
        if wrong:
            detail = f"{wrong} codes of the vector index do not match the embeddings"
            problems.append(Problem(kind="stale_vector_index", detail=detail))
        return problems

    def _count_wrong_codes(self, model: EmbeddingModel) -> int:
        cells = {cell.number for cell in self._cells.all(model.model_id)}
        # What is in no cell is never looked at.
        codes = {
            row_id: code if cell in cells else b""
            for row_id, (cell, code) in self._codes.codes(model.model_id).items()
        }
        wrong = 0
        after = BEFORE_ALL
        while rows := self._embeddings.to_index(model, after=after, limit=code_search.CHUNK):
            wrong += sum(codes.pop(row_id, None) != code_of(data) for row_id, data in rows)
            after = page_end(rows[-1][0], after=after)
        # What waits to be looked at may still be there.
        return wrong + len(codes.keys() - self._embeddings.all_queued())

    def repair_model(self, model: EmbeddingModel) -> None:
        wrong = [row_id for row_id, _ in self._embeddings.faults(model)]
        self._embeddings.drop(model.model_id, wrong)
        self.build(model, code_search.CHUNK)
