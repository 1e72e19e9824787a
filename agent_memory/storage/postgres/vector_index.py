"""The vector index: finds the vectors nearest to a query, and follows the memories.

The server compares codes, with the bit functions that every PostgreSQL has; the vectors that decide
are compared here, exactly as those of a file are, to the last digit.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_memory.models.agent import Problem
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.storage import code_search
from agent_memory.storage.cells import CellSample, centres_of
from agent_memory.storage.centering import Centred
from agent_memory.storage.code_search import (
    UNSORTED,
    Namer,
    best,
    coded,
    in_cells,
    placed,
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
from agent_memory.storage.quantization import code_bits, code_of
from agent_memory.storage.records import BEFORE_ALL, NearestVectors, QueryVector, page_end
from agent_memory.storage.vector_samples import Middles, cell_sample


class VectorIndex(Table):
    """The vector index of one agent: nearest vectors, kept in step with the memories."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._codes = CodeTable(database)
        self._cells = CellTable(database)
        self._embeddings = EmbeddingTable(database)
        self._memories = MemoryTable(database)
        self._middles = Middles(self._memories, self._embeddings)

    # Searching --------------------------------------------------------------------------------

    def center(self, query: QueryVector, filters: Filter = EVERYTHING) -> QueryVector:
        return self._middles.center(query, filters)

    def nearest(self, query: QueryVector, filters: Filter) -> NearestVectors:
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
        """Return a namer of the nearest codes, which scans vectors if no codes were written yet."""
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
        """Do nothing yet: the index is built in one step, and nobody waits for it."""

    def build(self, model: EmbeddingModel, limit: int) -> bool:  # noqa: ARG002 - all at once
        self.drop(model)
        self._cells.create(model.model_id)
        least = code_search.SORTED_FROM
        if sample := cell_sample(self._memories, self._embeddings, model, least=least):
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
        """Put codes into the nearest of the cells that still accept codes."""
        cells = self._cells.all(model.model_id)
        self._codes.put(model.model_id, placed(codes, cells))

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
        least = max(code_search.SORTED_FROM, 2 * made_of)
        return cell_sample(self._memories, self._embeddings, model, least=least)

    def make_cells(self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int) -> None:
        # Otherwise someone was faster.
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
        """Remove the memories whose rows were erased: their codes were deleted with them."""
        self._embeddings.dequeue_erased()

    # Checking ---------------------------------------------------------------------------------

    def models(self) -> list[EmbeddingModel]:
        """Return the models, with or without an index."""
        return self._embeddings.models()

    def find_problems(self) -> list[Problem]:
        """Read every vector, and compare the indexes with them. Must run inside a transaction."""
        models = self._embeddings.models()
        problems = [problem for model in models for problem in self.problems_of(model)]
        return problems + self._embeddings.find_forgotten(models)

    def problems_of(self, model: EmbeddingModel) -> list[Problem]:
        problems = [
            Problem(kind="wrong_embedding", detail=fault)
            for _, fault in self._embeddings.faults(model)
        ]
        if not model.is_indexed:
            return problems
        codes, cells = self._codes.codes(model.model_id), self._cells.all(model.model_id)
        if wrong := self._embeddings.count_wrong_codes(model, codes, cells):
            detail = f"{wrong} codes of the vector index do not match the embeddings"
            problems.append(Problem(kind="stale_vector_index", detail=detail))
        return problems

    def repair_model(self, model: EmbeddingModel) -> None:
        wrong = [row_id for row_id, _ in self._embeddings.faults(model)]
        self._embeddings.drop(model.model_id, wrong)
        self.build(model, code_search.CHUNK)
