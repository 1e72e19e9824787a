"""The vector index: finds the vectors nearest to a query, and follows the memories.

If a query concerns few memories, every vector is compared. Otherwise a table of short codes names
the nearest candidates, and their vectors decide. Without sqlite-vec the same two steps are taken in
Python.

Many codes are sorted into cells of similar ones, and only the nearest cells are searched. New cells
are made each time the number of vectors has doubled; the codes then move into them gradually, a few
with each change, and remain searchable throughout.

The table is one of sqlite-vec, or an ordinary one if the setting ``vector_index`` says ``table`` or
sqlite-vec cannot be loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.errors import StorageError
from agent_memory.models.agent import Problem
from agent_memory.models.embedding_rows import EmbeddingModel
from agent_memory.storage import code_search
from agent_memory.storage.cells import CellSample, centres_of
from agent_memory.storage.centering import Centred
from agent_memory.storage.code_search import (
    NAMED,
    UNSORTED,
    Cell,
    Namer,
    best,
    coded,
    in_cells,
    placed,
    reach,
    rounded,
    rows_to_compare,
    scan,
)
from agent_memory.storage.filters import EVERYTHING, Equals, Filter
from agent_memory.storage.quantization import as_number, code_bits, code_of
from agent_memory.storage.records import BEFORE_ALL, NearestVectors, QueryVector, page_end
from agent_memory.storage.sql import Condition
from agent_memory.storage.sqlite import compared_vectors
from agent_memory.storage.sqlite.compared_vectors import (
    MOST_KEPT,
    MOST_VECTORS_KEPT,
    ComparedVectors,
)
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.filters import compiled, users_of
from agent_memory.storage.sqlite.kept_rows import KeptRows
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.sqlite.tables.embeddings import EmbeddingTable
from agent_memory.storage.sqlite.tables.erasure import ErasureQueries
from agent_memory.storage.sqlite.tables.memories import MemoryTable
from agent_memory.storage.sqlite.tables.vector_cells import Build, Kind
from agent_memory.storage.sqlite.tables.vector_codes import CodeTable, CodeTables
from agent_memory.storage.vector_samples import Middles, cell_sample, spread_sample
from agent_memory.text.counts import counted

MOST_MODELS: Final = 4
"""Models whose cells are cached."""


class VectorIndex(Table):
    """The vector index of one open file: nearest vectors, kept in step with the memories."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._tables = CodeTables(database)
        self._agent = AgentTable(database)
        self._embeddings = EmbeddingTable(database)
        self._memories = MemoryTable(database)
        self._middles = Middles(self._memories, self._embeddings)
        self._sampled: tuple[EmbeddingModel | None, int, list[int]] = (None, 0, [])
        self._cells: KeptRows[int, list[Cell]] = KeptRows(MOST_MODELS)
        self._vectors: KeptRows[int, bytes] = KeptRows(MOST_VECTORS_KEPT)
        self._compared: KeptRows[tuple[int, Condition], ComparedVectors] = KeptRows(MOST_KEPT)

    # Searching --------------------------------------------------------------------------------

    def center(self, query: QueryVector, filters: Filter = EVERYTHING) -> QueryVector:
        return self._middles.center(query, filters)

    def nearest(self, query: QueryVector, filters: Filter) -> NearestVectors:
        degraded = None
        if not self._db.load_vectors() and self._agent.vector_index() != "table":
            degraded = f"{self._db.vectors_problem()}; vectors were scanned"
        row_ids = self._nearest_of_user(query, filters)
        if row_ids is None:
            row_ids = rows_to_compare(
                self._memories,
                filters,
                lambda: self._namer(query),
                is_small=self._is_small(query.model),
            )
        return NearestVectors(
            best(self.cosines(query.model.model_id, row_ids, query.asked)), degraded
        )

    def _nearest_of_user(self, query: QueryVector, filters: Filter) -> list[int] | None:
        """Return the nearest of a user's vectors, if comparing all of them is the quickest way."""
        users = users_of(filters)
        if not users or not self._db.load_vectors():
            return None
        vectors = min(self._memories.count(Equals("user_id", user)) for user in users)
        if vectors <= code_search.EXACT_UP_TO:
            return None
        named = code_search.NAMED_PASSING * self._memories.last_row_id() / vectors
        if vectors * query.model.dimensions > code_search.NUMBERS_FOR_NAMED * named:
            return None
        model, condition = query.model, compiled(filters)
        if compared_vectors.can_compare():
            kept = self._compared.current(self._db.stamp())
            key = (model.model_id, condition)
            if key not in kept:
                entries = self._embeddings.passing(*key, model.dimensions)
                kept[key] = ComparedVectors(*entries, model.dimensions)
            return kept[key].nearest(query.direction, NAMED)
        return self._embeddings.nearest_passing(
            model.model_id, condition, query.direction, limit=NAMED
        )

    def cosines(
        self, model_id: int, row_ids: Sequence[int], query: bytes | Centred
    ) -> dict[int, float]:
        if not compared_vectors.can_compare():
            return self._embeddings.cosines(model_id, row_ids, query)
        stamp = self._db.stamp()
        kept = self._vectors.current(None if stamp is None else (stamp, model_id))
        unread = [row_id for row_id in row_ids if row_id not in kept]
        if unread:
            stored = dict(self._embeddings.current(model_id, unread))
            # At once: to another thread a row is either unread or complete.
            kept.update({row_id: stored.get(row_id, b"") for row_id in unread})
        size = len(query if isinstance(query, bytes) else query.data)
        compared = [row_id for row_id in row_ids if len(kept[row_id]) == size]
        vectors = [kept[row_id] for row_id in compared]
        return dict(zip(compared, compared_vectors.cosines_of(vectors, query), strict=True))

    def _is_small(self, model: EmbeddingModel) -> bool:
        many = code_search.EXACT_UP_TO + 1
        return self._embeddings.count_up_to(model.model_id, many) < many

    def _namer(self, query: QueryVector) -> Namer:
        """Return a namer of the nearest codes, from their table or a scan with the same result."""
        model, code = query.model, code_of(query.direction)
        if (table := self._usable_table(model)) is None:
            return scan(self._embeddings.to_index(model, after=BEFORE_ALL, limit=-1), code)

        def nearest(cells: Sequence[int], limit: int, within: int) -> list[tuple[int, int]]:
            within = min(within, self._reach(model, code, limit))
            return table.nearest(model.model_id, code, cells=cells, limit=limit, within=within)

        return in_cells(self._kept_cells(model.model_id), code, nearest)

    def _kept_cells(self, model_id: int) -> list[Cell]:
        """Return a model's cells, cached while nothing changes: reading 1,333 takes 1.5 ms."""
        kept = self._cells.current(self._db.stamp())
        if model_id not in kept:
            kept[model_id] = self._tables.cells.all(model_id)
        return kept[model_id]

    def _reach(self, model: EmbeddingModel, code: bytes, limit: int) -> int:
        """Return the most bits in which the wanted codes may differ, if they are many."""
        if limit <= NAMED:
            return 8 * len(code)
        bound = rounded(self._memories.last_row_id())
        sampled = self._sampled
        if sampled[:2] != (model, bound):
            vectors = spread_sample(
                self._embeddings, model, last_row_id=bound, size=code_search.CODES_SAMPLED
            )
            sampled = (model, bound, [as_number(code_of(data)) for data in vectors])
            self._sampled = sampled  # in one assignment: other threads search too
        return reach(sampled[2], code, limit, of=bound)

    # Following the memories -------------------------------------------------------------------

    def is_missing(self, model: EmbeddingModel) -> bool:
        if self._db.read_only:
            return False
        kind = self._tables.of(model.model_id).kind if model.is_indexed else None
        if kind == "vec0":
            # Without sqlite-vec it is left for those who have it, as long as nothing is written.
            return self._agent.vector_index() == "table"
        return kind is None or kind != self._kind_to_build()

    def _kind_to_build(self) -> Kind:
        wants_table = self._agent.vector_index() == "table" or not self._db.load_vectors()
        return "table" if wants_table else "vec0"

    def _usable_table(self, model: EmbeddingModel) -> CodeTable | None:
        """Return the table of codes that follows the memories, if it can be used here."""
        return self._table(self._tables.of(model.model_id).kind) if model.is_indexed else None

    def _table(self, kind: Kind | None) -> CodeTable | None:
        if kind is None or (kind == "vec0" and not self._db.load_vectors()):
            return None
        return self._tables.kinds[kind]

    def begin(self, model: EmbeddingModel) -> None:
        """Begin the index of a model unless it has been begun. Must run inside ``write()``.

        A table of the other kind serves searches until this one is complete: both use the same
        cells.
        """
        kind = self._kind_to_build()
        build = self._tables.of(model.model_id).build
        if build is not None and build.kind == kind:
            return
        if self._usable_table(model) is None:
            self.drop(model)
            self._tables.cells.create(model.model_id)
        self._tables.kinds[kind].create(model.model_id, model.dimensions)
        self._tables.cells.set_build(model.model_id, Build(kind, BEFORE_ALL))

    def build(self, model: EmbeddingModel, limit: int) -> bool:
        self.begin(model)  # in case another program deleted what was begun
        build = self._tables.of(model.model_id).build
        kind, last = build or Build(self._kind_to_build(), BEFORE_ALL)
        rows = self._embeddings.to_index(model, after=last, limit=limit)
        self._put([self._tables.kinds[kind]], model, coded(rows))
        if len(rows) == limit:
            last = page_end(rows[-1][0], after=last)
            self._tables.cells.set_build(model.model_id, Build(kind, last))
            return True
        self._tables.cells.end_build(model.model_id)
        for other, table in self._tables.kinds.items():
            if other != kind:
                self._drop_table(table.name(model.model_id), other)
        self._embeddings.set_indexed(model.model_id, is_indexed=True)
        return False

    def enter(self, model: EmbeddingModel, entries: Sequence[tuple[int, bytes]]) -> None:
        if entries and (tables := self._tables_to_follow(model)):
            self._put(tables, model, coded(entries))

    def _put(
        self,
        tables: Sequence[CodeTable],
        model: EmbeddingModel,
        coded: Sequence[tuple[int, bytes]],
    ) -> None:
        """Put codes into the nearest of the cells that still accept codes."""
        rows = placed(coded, self._tables.cells.all(model.model_id))
        for table in tables:
            table.put(model.model_id, rows)

    def is_unsorted(self, model: EmbeddingModel) -> bool:
        if self._db.read_only or self._table_to_sort(model) is None:
            return False
        return self._tables.cells.is_unsorted(model.model_id)

    def _table_to_sort(self, model: EmbeddingModel) -> CodeTable | None:
        """Return the only table that uses the cells; while there are two, the cells stay."""
        kind, build = self._tables.of(model.model_id)
        usable = self._table(kind if model.is_indexed else None)
        building = self._table(build and build.kind)
        return None if usable and building else usable or building

    def sort(self, model: EmbeddingModel, limit: int) -> None:
        if (table := self._table_to_sort(model)) is None:
            return
        size = code_bits(model.dimensions) // 8
        for cell in self._tables.cells.all(model.model_id):
            if cell.is_retired:
                rows = table.some_of(model.model_id, cell.number, limit=limit, size=size)
                self._put([table], model, rows)
                limit -= len(rows)
                if limit <= 0:
                    return
                self._tables.cells.remove(model.model_id, cell.number)

    def cells_due(self, model: EmbeddingModel) -> CellSample | None:
        if self._db.read_only or self._table_to_sort(model) is None:
            return None
        made_of = self._tables.cells.made_of(model.model_id)
        least = max(code_search.SORTED_FROM, 2 * made_of)
        return cell_sample(self._memories, self._embeddings, model, least=least)

    def make_cells(self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int) -> None:
        if self._table_to_sort(model) is None:
            return
        if 2 * self._tables.cells.made_of(model.model_id) <= vectors:  # else someone was faster
            self._replace_cells(model, centres, vectors=vectors)
            build = self._tables.of(model.model_id).build
            if build is not None and build.last_row_id == BEFORE_ALL:
                # All codes are still to be put into the new cells.
                self._tables.cells.remove(model.model_id, UNSORTED)

    def _replace_cells(
        self, model: EmbeddingModel, centres: Sequence[int], *, vectors: int
    ) -> None:
        size = code_bits(model.dimensions) // 8
        codes = [centre.to_bytes(size, "big") for centre in centres]
        self._tables.cells.replace(model.model_id, codes, made_of=vectors)

    def leave(self, model: EmbeddingModel, row_ids: Sequence[int]) -> None:
        for table in self._tables_to_follow(model) if row_ids else []:
            table.remove(model.model_id, row_ids)

    def _tables_to_follow(self, model: EmbeddingModel) -> list[CodeTable]:
        """Return the tables of codes; if one cannot follow, record that it must be rebuilt."""
        kind, build = self._tables.of(model.model_id)
        usable = self._table(kind if model.is_indexed else None)
        building = self._table(build and build.kind)
        if usable is None and model.is_indexed:
            self._embeddings.set_indexed(model.model_id, is_indexed=False)
        if building is None and build is not None:
            self._tables.cells.end_build(model.model_id)
        return [table for table in (usable, building) if table is not None]

    def drop(self, model: EmbeddingModel) -> None:
        """Drop the index of a model.

        Without sqlite-vec, a table of its own cannot be dropped: it stays, unused, until an index
        is built or ``check --repair`` is run with sqlite-vec installed.
        """
        for kind, table in self._tables.kinds.items():
            self._drop_table(table.name(model.model_id), kind)
        self._drop_table(self._tables.cells.name(model.model_id), "table")

    def _drop_table(self, name: str, kind: Kind) -> None:
        if kind == "table" or self._db.load_vectors():
            self._tables.kinds[kind].drop(name)

    def forget_deleted(self) -> None:
        """Remove the memories whose rows were erased.

        Without sqlite-vec, single rows of its tables cannot be removed: the codes are emptied and
        must be rebuilt. Until then searches do without them.
        """
        erasure = ErasureQueries(self._db)
        row_ids = erasure.deleted_row_ids()
        unused = self._unused_tables(self._embeddings.models())
        for model in self._embeddings.models():
            self.leave(model, row_ids)
        for name, kind in self._tables.names().items():
            if kind == "vec0" and not self._db.load_vectors():
                erasure.empty_index(name)
            elif name in unused:
                self._drop_table(name, kind)
        self._embeddings.dequeue(row_ids)

    # Checking ---------------------------------------------------------------------------------

    def find_problems(self) -> list[Problem]:
        """Read every vector, and compare the indexes with them. Must run inside a transaction."""
        models = self._embeddings.models()
        problems = [problem for model in models for problem in self.problems_of(model)]
        if wrong := self._embeddings.count_wrong_models():
            kinds = ("row of embedding_models describes", "rows of embedding_models describe")
            detail = f"{counted(wrong, *kinds)} no valid model"
            problems.append(Problem(kind="wrong_row", detail=detail))
        problems += self._embeddings.find_forgotten(models)
        if orphans := self._embeddings.count_orphans():
            noun = counted(orphans, "embedding is", "embeddings are")
            detail = f"{noun} of a model that is not in embedding_models"
            problems.append(Problem(kind="orphan", detail=detail))
        older = self.older_tables()
        return problems + [
            Problem(kind="stale_vector_index", detail=f"the table {name} belongs to no model")
            for name, kind in self._unused_tables(models).items()
            if name not in older and (kind == "table" or self._db.load_vectors())
        ]

    def older_tables(self) -> list[str]:
        """Return the index tables of an earlier version, which the next search rebuilds."""
        older = (self._tables.older_of(model.model_id) for model in self._embeddings.models())
        return [name for name in older if name is not None]

    def problems_of(self, model: EmbeddingModel) -> list[Problem]:
        problems = [
            Problem(kind="wrong_embedding", detail=fault)
            for _, fault in self._embeddings.faults(model)
        ]
        if not model.is_indexed:
            return problems
        kind = self._tables.of(model.model_id).kind
        if kind == "vec0" and not self._db.load_vectors():
            return problems
        name = self._tables.kinds[kind or self._kind_to_build()].name(model.model_id)
        if kind is None and self._tables.older_of(model.model_id):
            return problems
        if kind is None:
            detail = f"the table {name} is missing"
            return [*problems, Problem(kind="stale_vector_index", detail=detail)]
        try:
            problems += self._compare(model, name, self._tables.kinds[kind])
        except StorageError as error:  # sqlite-vec raises its own errors for a damaged table
            detail = f"{name} cannot be read: {error}"
            problems.append(Problem(kind="stale_vector_index", detail=detail))
        return problems

    def repair_model(self, model: EmbeddingModel) -> None:
        wrong = [row_id for row_id, _ in self._embeddings.faults(model)]
        self._embeddings.drop(model.model_id, wrong)
        self.drop(model)
        self._embeddings.set_indexed(model.model_id, is_indexed=False)
        begun = model._replace(is_indexed=False)
        self.begin(begun)
        if (sample := self.cells_due(begun)) is not None:
            centres = centres_of(sample.codes, sample.cells)
            self.make_cells(begun, centres, vectors=sample.vectors)
        while self.build(begun, code_search.CHUNK):
            pass

    def _compare(self, model: EmbeddingModel, name: str, table: CodeTable) -> list[Problem]:
        codes, cells = table.codes(model.model_id), self._tables.cells.all(model.model_id)
        wrong = self._embeddings.count_wrong_codes(model, codes, cells)
        noun = counted(wrong, f"row of {name} does", f"rows of {name} do")
        detail = f"{noun} not match the embeddings"
        return [Problem(kind="stale_vector_index", detail=detail)] if wrong else []

    def _unused_tables(self, models: list[EmbeddingModel]) -> dict[str, Kind]:
        """Return the code tables of no model, or beside the one in use, with their kinds."""
        in_use: set[str] = set()
        for model_id in [model.model_id for model in models]:
            kind, build = self._tables.of(model_id)
            for used in ([kind] if kind else []) + ([build.kind] if build else []):
                in_use |= {
                    self._tables.kinds[used].name(model_id),
                    self._tables.cells.name(model_id),
                }
        return {name: kind for name, kind in self._tables.names().items() if name not in in_use}

    def repair(self) -> None:
        """Drop wrong vectors, queue missing ones, build indexes. Must run inside ``write()``."""
        self._embeddings.mend_models()
        self._embeddings.drop_orphans()
        models = self._embeddings.models()
        for model in models:
            self.repair_model(model)
        if models:
            self._embeddings.queue_missing(models[0].model_id)
        else:
            self._embeddings.clear_queue()
            self._agent.forget_migration()
        for name, kind in self._unused_tables(models).items():
            self._drop_table(name, kind)
