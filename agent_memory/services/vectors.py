"""The vectors of one agent's file: one transaction per method, as in ``Store``.

It handles vectors and texts, but no embedder: nothing here waits for a service while the file is
locked. Texts to embed are returned to the caller, which supplies the vectors later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from agent_memory.models.agent import MigrationInfo
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText, QueuedMemory
from agent_memory.storage.cells import CellSample, centres_of
from agent_memory.storage.engine import Engine
from agent_memory.storage.filters import NOT_ARCHIVED
from agent_memory.storage.quantization import Quantized
from agent_memory.storage.records import QueryVector, page_end

_CHUNK: Final = 1_000
"""Queued memories per transaction, and vectors that are read at a time."""
_SORTED_AT_ONCE: Final = 250
"""The minimum number of codes that move to new cells along with a change: in 3 to 10 ms."""
_BUILT_AT_ONCE: Final = 4_000
"""Vectors added to an index in one transaction, while others wait for a fifth of a second."""
_SPOT_CHECKS: Final = 20
_SAME_MEANING: Final = 0.99


class VectorState(NamedTuple):
    """The model that searches use, the one being built, and whether the embeddings are behind.

    They are behind if memories changed that were not processed yet, if an index is missing
    (``lacks_index``), or if its codes are moving to new cells (``is_unsorted``).
    """

    active: EmbeddingModel | None
    building: EmbeddingModel | None
    is_behind: bool
    lacks_index: bool
    is_unsorted: bool


class VectorService:
    """The embeddings in a file. Threads may share it. ``clock`` returns the time, in UTC."""

    def __init__(self, engine: Engine, clock: Callable[[], datetime]) -> None:
        self._engine = engine
        self._clock = clock

    @property
    def read_only(self) -> bool:
        """Return whether nothing can be written."""
        return self._engine.read_only

    # Reading ----------------------------------------------------------------------------------

    def state(self) -> VectorState:
        """Return the models, and whether anything is behind."""
        with self._engine.read():
            return self._state()

    def _state(self) -> VectorState:
        by_state = {model.state: model for model in self._engine.embeddings.models()}
        active, building = by_state.get("active"), by_state.get("building")
        lacks_index = any(self._engine.vectors.is_missing(model) for model in by_state.values())
        is_unsorted = any(self._engine.vectors.is_unsorted(model) for model in by_state.values())
        is_behind = (
            lacks_index
            or is_unsorted
            or (bool(by_state) and not self._engine.embeddings.is_queue_empty())
        )
        return VectorState(active, building, is_behind, lacks_index, is_unsorted)

    def active(self) -> EmbeddingModel | None:
        """Return the model that searches use."""
        return next((model for model in self._models() if model.state == "active"), None)

    def _models(self) -> list[EmbeddingModel]:
        """Return the active model and the one being built, those that exist.

        The vectors of the first take memories off the queue.
        """
        by_state = {model.state: model for model in self._engine.embeddings.models()}
        return [by_state[state] for state in ("active", "building") if state in by_state]

    def missing(self, model_id: int, *, after: int, limit: int) -> list[PendingText]:
        """Return memories that have no vector of a model, starting after a row."""
        return self._engine.embeddings.texts_without_vector(model_id, after=after, limit=limit)

    def count_missing(self, model_id: int) -> tuple[int, int]:
        """Return how many memories have no vector of a model, and the bytes of their texts."""
        return self._engine.embeddings.count_texts_without_vector(model_id)

    def last_row_id(self) -> int:
        """Return the highest row id of a memory."""
        return self._engine.memories.last_row_id()

    def count(self, model_id: int) -> int:
        """Count the vectors of a model."""
        return self._engine.embeddings.count(model_id)

    def count_pending(self) -> int:
        """Count the memories in the queue."""
        return self._engine.embeddings.count_queued()

    # Keeping up -------------------------------------------------------------------------------

    def drain_queue(self, limit: int | None, *, patient: bool = True) -> list[PendingText]:
        """Process the queue of changed memories, as far as possible without embedding.

        Vectors of deleted memories and of old texts are removed, archived memories leave the index,
        and a text that another memory also has takes over its vector. Returns at most ``limit``
        (``None``: all) memories that need a vector of the serving model. If not ``patient``, it
        raises ``StorageLocked`` instead of waiting for another process that writes.
        """
        pending: list[PendingText] = []
        after, size = 0, limit or _CHUNK
        while limit is None or len(pending) < limit:
            with self._writing(patient=patient):
                rows = self._engine.embeddings.queued_memories(after=after, limit=size)
                pending += self._drain(rows, self._models())
            if len(rows) < size:
                break
            after, size = page_end(rows[-1].row_id, after=after), _CHUNK
        return pending[:limit]

    def _drain(
        self, rows: Sequence[QueuedMemory], models: Sequence[EmbeddingModel]
    ) -> list[PendingText]:
        done: list[int] = []
        pending: list[PendingText] = []
        for row in rows:
            if row.text is None:
                for model in models:
                    self._engine.vectors.leave(model, [row.row_id])
                done.append(row.row_id)
                continue
            dropped = self._engine.embeddings.drop_other_texts(row.row_id, row.text)
            for model in models:
                if model.model_id in dropped:
                    self._engine.vectors.leave(model, [row.row_id])
            text = PendingText(row.row_id, row.text)
            has_vector = [self._follow(model, text, archived=row.is_archived) for model in models]
            if has_vector[1:] == [False]:
                # A memory that was deleted and brought back before the queue was processed is still
                # in its index, and waits for a vector of the first model only.
                self._engine.vectors.leave(models[1], [row.row_id])
            if not has_vector or has_vector[0]:
                done.append(row.row_id)
            elif not row.is_refused:
                pending.append(text)
        if done:
            self._engine.embeddings.dequeue(done)
        return pending

    def _follow(self, model: EmbeddingModel, pending: PendingText, *, archived: bool) -> bool:
        """Update the index for a memory, and return whether it has a vector."""
        vector = self._engine.embeddings.get(model, pending.row_id)
        if vector is None:
            vector = self._engine.embeddings.of_same_text(model.model_id, pending.text)
            if vector is None:
                return False
            self._engine.embeddings.put(model.model_id, pending, vector)
        if archived:
            self._engine.vectors.leave(model, [pending.row_id])
        else:
            self._engine.vectors.enter(model, [(pending.row_id, vector.data)])
        return True

    def restore_indexes(self, *, patient: bool = True) -> None:
        """Build the indexes that are missing.

        This is done in parts, between which others can write; a process after a kill continues.
        """
        if not self.state().lacks_index:
            return
        with self._writing(durable=False, patient=patient):
            for model in self._without_index():
                self._engine.vectors.begin(model)
        with self._engine.read():
            due = self._cells_due()
        self._make_cells(due, patient=patient)
        is_left = True
        while is_left:
            with self._writing(durable=False, patient=patient):
                parts = [
                    self._engine.vectors.build(model, _BUILT_AT_ONCE)
                    for model in self._without_index()
                ]
            is_left = any(parts)

    def _without_index(self) -> list[EmbeddingModel]:
        models = self._engine.embeddings.models()
        return [model for model in models if self._engine.vectors.is_missing(model)]

    def finish_index(self) -> None:
        """Build the indexes that are missing, and sort all their codes."""
        self.restore_indexes()
        while self.sort_index(_CHUNK).is_unsorted:
            pass

    def sort_index(self, changed: int = 0, *, patient: bool = True) -> VectorState:
        """Build missing indexes, or move codes to their cells; return the state afterwards.

        Four are moved for each that was ``changed``, so that all are done long before the next
        time. New cells are made when the number of vectors has doubled. For a million that takes
        seconds, in which nobody waits: the file is not locked.
        """
        with self._engine.read():
            state, due = self._state(), self._cells_due()
        if state.lacks_index:
            self.restore_indexes(patient=patient)
            return self.state()
        self._make_cells(due, patient=patient)
        if not (due or state.is_unsorted):
            return state
        with self._writing(durable=False, patient=patient):
            for model in self._engine.embeddings.models():
                self._engine.vectors.sort(model, max(_SORTED_AT_ONCE, 4 * changed))
            return self._state()

    def _cells_due(self) -> list[tuple[EmbeddingModel, CellSample]]:
        """Return the models whose indexes have outgrown their cells, with samples for new ones."""
        models = self._engine.embeddings.models()
        samples = [(model, self._engine.vectors.cells_due(model)) for model in models]
        return [(model, sample) for model, sample in samples if sample is not None]

    def _make_cells(
        self, due: Sequence[tuple[EmbeddingModel, CellSample]], *, patient: bool
    ) -> None:
        for model, sample in due:
            centres = centres_of(sample.codes, sample.cells)
            with self._writing(durable=False, patient=patient):
                self._engine.vectors.make_cells(model, centres, vectors=sample.vectors)

    def put(
        self,
        model_id: int,
        embedded: Sequence[tuple[PendingText, Quantized]],
        *,
        durable: bool = True,
        patient: bool = True,
    ) -> int:
        """Store vectors with the texts that they were made from, and return how many were stored.

        A text that was changed or deleted meanwhile is left out: it is queued. For a model that was
        removed meanwhile, nothing is stored. If not ``durable``, a power cut may lose them: they
        are then made again.
        """
        with self._writing(durable=durable, patient=patient):
            models = self._models()
            model = next((m for m in models if m.model_id == model_id), None)
            if model is None:
                return 0
            kept = [
                (pending.row_id, vector.data)
                for pending, vector in embedded
                if self._engine.embeddings.put(model_id, pending, vector)
            ]
            archived = self._engine.embeddings.archived_among([row_id for row_id, _ in kept])
            self._engine.vectors.enter(model, [entry for entry in kept if entry[0] not in archived])
            # A memory that was deleted, brought back and archived before the queue was processed is
            # still in it.
            self._engine.vectors.leave(model, sorted(archived))
            if model is models[0]:
                self._engine.embeddings.dequeue([row_id for row_id, _ in kept])
            self._engine.agent.count_embeddings(len(kept))
            return len(kept)

    def of_same_text(self, model_id: int, texts: Collection[str]) -> dict[str, Quantized]:
        """Return the existing vectors of a model for these texts."""
        with self._engine.read():
            vectors = {text: self._engine.embeddings.of_same_text(model_id, text) for text in texts}
        return {text: vector for text, vector in vectors.items() if vector is not None}

    @contextlib.contextmanager
    def _writing(self, *, durable: bool = True, patient: bool = True) -> Iterator[None]:
        waiting = contextlib.nullcontext() if patient else self._engine.nowait()
        with waiting, self._engine.write(durable=durable):
            yield

    def refuse(self, refused: Sequence[PendingText]) -> None:
        """Record that the embedder refused these texts: they stay pending and are not retried."""
        if refused:
            with self._engine.write():
                self._engine.embeddings.refuse(refused)

    def queue_missing(self) -> int:
        """Queue all memories without a vector of the serving model, including refused texts.

        Returns how many were not queued before.
        """
        with self._engine.write():
            self._engine.embeddings.forget_refusals()
            models = self._models()
            return self._engine.embeddings.queue_missing(models[0].model_id) if models else 0

    # Migrating --------------------------------------------------------------------------------

    def begin(self, model: EmbeddingModel) -> EmbeddingModel:
        """Start building vectors of a model beside those in use, or continue.

        A half-built model of another kind is dropped. ``model.model_id`` is ignored.
        """
        with self._engine.write():
            building = self._state().building
            if building and building.is_same(model):
                return building
            if building:
                self._drop(building)
            self._engine.embeddings.add_model(model, now=self._clock())
            begun = self._state().building
            if begun is not None:  # it has no vectors yet, so its index is complete
                self._engine.vectors.begin(begun)
                self._engine.vectors.build(begun, _BUILT_AT_ONCE)
            begun = self._state().building
        assert begun is not None  # noqa: S101 - added above
        return begun

    def abandon(self) -> None:
        """Drop a half-built model."""
        with self._engine.write():
            building = self._state().building
            if building is not None:
                self._drop(building)

    def activate(
        self, model_id: int, info: MigrationInfo, *, skipped: Collection[int], until: int
    ) -> bool:
        """Let searches use the model that was built, and drop the old one.

        Returns false, and changes nothing, while one of the rows up to ``until`` has no vector,
        except for those ``skipped``, whose texts the embedder refused. Later rows without a vector
        are queued.
        """
        with self._engine.write():
            models = self._models()
            self._drain(self._engine.embeddings.queued_memories(after=0, limit=-1), models)
            left = self._engine.embeddings.texts_without_vector(
                model_id, after=0, limit=len(skipped) + 1
            )
            if any(pending.row_id not in skipped and pending.row_id <= until for pending in left):
                return False
            for model in models:
                if model.state == "active":
                    self._drop(model)
            self._engine.embeddings.activate(model_id)
            self._engine.embeddings.forget_refusals()
            self._engine.embeddings.queue_missing(model_id)
            self._engine.embeddings.refuse([text for text in left if text.row_id in skipped])
            self._engine.agent.set_backend("vector", migration=info, now=self._clock())
            return True

    def was_rolled_back(self) -> bool:
        """Return whether the last such change was a return to search by keyword."""
        return self._engine.agent.was_rolled_back()

    def roll_back(self) -> list[EmbeddingModel]:
        """Return to search by keyword: drop all vectors. Returns the models that existed.

        Without models nothing changes: a memory that was never migrated was not rolled back, and
        ``auto_migrate`` continues to apply.
        """
        with self._engine.write():
            models = self._engine.embeddings.models()
            if not models and self._engine.agent.metadata(memory_count=0).storage_backend == "file":
                return []
            for model in models:
                self._drop(model)
            self._engine.embeddings.clear_queue()
            now = self._clock()
            info = self._engine.agent.migration().model_copy(update={"can_rollback": False})
            self._engine.agent.set_backend("file", migration=info, now=now)
            return models

    def _drop(self, model: EmbeddingModel) -> None:
        self._engine.embeddings.drop_model(model.model_id)
        self._engine.vectors.drop(model)

    def validate(self, model_id: int) -> list[str]:
        """Return the problems of a model's vectors.

        They are damaged vectors, an index that does not match them, and memories that a search with
        their own vector does not find.
        """
        with self._engine.read():
            model = next(m for m in self._engine.embeddings.models() if m.model_id == model_id)
            problems = [problem.detail for problem in self._engine.vectors.problems_of(model)]
            for row_id, memory_id in self._engine.embeddings.sample(model_id, _SPOT_CHECKS):
                vector = self._engine.embeddings.get(model, row_id)
                if vector is not None and not self._is_found_by(model, row_id, vector):
                    problems.append(
                        f"a search with the vector of memory {memory_id} does not find it"
                    )
            return problems

    def repair_model(self, model_id: int) -> None:
        """Drop the wrong vectors of a model, and rebuild its index."""
        with self._engine.write():
            for model in self._engine.embeddings.models():
                if model.model_id == model_id:
                    self._engine.vectors.repair_model(model)

    def sample(self, model_id: int, size: int) -> list[tuple[PendingText, Quantized]]:
        """Return some memories with their vectors."""
        with self._engine.read():
            return self._engine.embeddings.sample_with_texts(model_id, size)

    def _is_found_by(self, model: EmbeddingModel, row_id: int, vector: Quantized) -> bool:
        query = QueryVector(model, vector.data)
        cosines = self._engine.vectors.nearest(query, NOT_ARCHIVED).cosines
        # Many memories may say the same.
        return row_id in cosines or max(cosines.values(), default=0.0) > _SAME_MEANING
