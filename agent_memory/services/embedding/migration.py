"""The migration to semantic search, or from one model to another, with its lock and its files.

Its steps are B's: a backup of all memories, vectors in batches, the index, checks, the switch. Each
batch is committed with its vectors and index entries, so an interrupted migration continues where
it stopped; until the switch, searches work as before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent_memory.embeddings.checked import CheckedEmbedder
from agent_memory.errors import ConfigurationError, EmbeddingError, MigrationError
from agent_memory.models.agent import MigrationInfo
from agent_memory.models.embedding import MigrationPlan, MigrationProgress
from agent_memory.models.embedding_rows import EmbeddingModel, PendingText
from agent_memory.models.embedding_traits import MODEL_TRAITS
from agent_memory.models.enums import StorageBackend
from agent_memory.models.times import now_utc
from agent_memory.services.embedding.service import embed_texts, model_of
from agent_memory.services.store import Store
from agent_memory.storage.quantization import cosine, quantize
from agent_memory.text.counts import counted

Progress = Callable[[MigrationProgress], None]

BYTES_PER_TOKEN: Final = 4
_MOST_ROUNDS: Final = 10
"""Maximum tries to switch with nothing left to embed, while memories are being changed."""
_FEW_REFUSED: Final = 20
"""The number of refused texts that does not yet mean that the embedder refuses everything."""
_SAME: Final = 0.99
"""The minimum cosine of two vectors that a consistent embedder returns for the same text."""
TEXTS_PER_SECOND: Final = 20
"""A's estimate for a service: 5 s per batch of 100."""


def plan_of(store: Store, embedder: CheckedEmbedder, *, batch_size: int) -> MigrationPlan:
    """Estimate a migration: how many memories and tokens, seconds, dollars."""
    state = store.vectors.state()
    target = model_of(embedder)
    existing = next(
        (model for model in (state.active, state.building) if model and model.is_same(target)),
        None,
    )
    texts, size = store.vectors.count_missing(existing.model_id if existing else 0)
    tokens = -(-size // BYTES_PER_TOKEN)
    traits = MODEL_TRAITS.get(target.model)
    backup = store.rollback_file()
    pace = traits["texts_per_second"] if traits else TEXTS_PER_SECOND
    return MigrationPlan(
        agent_id=store.agent_id,
        current_backend=StorageBackend.VECTOR if state.active else StorageBackend.FILE,
        target_backend=StorageBackend.VECTOR,
        memory_count=store.count_all(),
        to_embed=texts,
        embedder=embedder.name,
        model=target.model,
        dimensions=target.dimensions,
        estimated_tokens=tokens,
        estimated_duration_seconds=round(texts / pace, 1),
        estimated_cost_usd=tokens / 1000 * embedder.cost_per_1k_tokens,
        batch_size=batch_size,
        backup_path=None if backup is None else str(backup),
    )


@dataclass
class VectorMigration:
    """One migration of one memory to an embedder's model. Call ``run`` once.

    ``should_stop`` is checked between batches; the next migration continues a stopped one.
    """

    store: Store
    embedder: CheckedEmbedder
    plan: MigrationPlan
    report: Progress = lambda _progress: None
    should_stop: Callable[[], bool] = lambda: False
    progress: MigrationProgress = field(init=False)
    _refused: set[int] = field(default_factory=set)

    def run(self) -> MigrationProgress:
        """Migrate, and return how it went.

        Raises ``MigrationError`` if the embedder or the checks fail, or if another process is
        migrating this memory, and ``ConfigurationError`` if the embedder turns out to be
        misconfigured. The memory and its searches are then unchanged.
        """
        self.progress = MigrationProgress(plan=self.plan, status="running", started_at=now_utc())
        started = time.monotonic()
        try:
            with self.store.alone(busy="another process is already migrating this memory"):
                self._run(started)
        except ConfigurationError as error:
            self._report(status="failed", errors=[*self.progress.errors, str(error)])
            raise
        except (EmbeddingError, MigrationError) as error:
            self._report(status="failed", errors=[*self.progress.errors, str(error)])
            raise MigrationError(
                f"the migration stopped after {self.progress.memories_processed:,} of"
                f" {counted(self.plan.memory_count)}: {error}. Nothing was lost, and"
                " searches work as before; run migrate again to continue"
            ) from error
        return self.progress

    def _run(self, started: float) -> None:
        target = model_of(self.embedder)
        state = self.store.vectors.state()
        if state.active is not None and state.active.is_same(target):
            self.store.vectors.abandon()
            self._embed_missing(state.active)
            self.store.vectors.finish_index()
            self._report(status="completed", completed_at=now_utc())
            return
        is_begun = state.building is not None and state.building.is_same(target)
        backup = None if self.plan.backup_path is None else Path(self.plan.backup_path)
        if backup is not None and not (is_begun and backup.exists()):
            self.store.lifecycle.back_up_before("migration")
            self.store.write_scratchpad(backup)
        building = self.store.vectors.begin(target)
        until = self._embed_missing(building)
        if until is None:
            self._report(status="pending")
            return
        self._validate(building)
        self._switch(building, backup, started, until)
        self.store.vectors.finish_index()
        self._report(status="completed", completed_at=now_utc())

    def _switch(
        self, building: EmbeddingModel, backup: Path | None, started: float, until: int | None
    ) -> None:
        """Let searches use the new vectors; memories stored meanwhile are embedded at the next use.

        Memories changed meanwhile are embedded first, unless that never ends.
        """
        for attempt in range(1, _MOST_ROUNDS + 1):
            info = MigrationInfo(
                backup_path=None if backup is None else backup.name,
                can_rollback=True,
                migration_duration_seconds=round(time.monotonic() - started, 3),
            )
            waited_for = 0 if attempt == _MOST_ROUNDS else until or 0
            if self.store.vectors.activate(
                building.model_id, info, skipped=self._refused, until=waited_for
            ):
                return
            until = self._embed_missing(building)

    def _embed_missing(self, building: EmbeddingModel) -> int | None:
        """Embed every memory that exists now and has no vector of the model.

        Returns the row id of the last one, or ``None`` if it was stopped before.
        """
        vectors = self.store.vectors
        after, until = 0, vectors.last_row_id()
        # One request per step: its results must not be lost if another request fails.
        step = min(self.plan.batch_size, self.embedder.batch_size)
        stored = vectors.count(building.model_id)
        vectors.drain_queue(None)  # drop vectors of old texts
        self._count(stored=stored, embedded=0)
        while batch := vectors.missing(building.model_id, after=after, limit=step):
            if after >= until:
                break
            after = batch[-1].row_id
            stored += self._embed_batch(building, batch, stored=stored)
            self._refuse_useless(stored)
            # Only now: a process that stores just once must make progress by a batch too.
            is_done = after >= until or not vectors.missing(building.model_id, after=after, limit=1)
            if self.should_stop() and not is_done:
                return None
        return until

    def _refuse_useless(self, stored: int) -> None:
        """Stop if the embedder refuses most texts, as something that is no embedder does."""
        if len(self._refused) > _FEW_REFUSED and len(self._refused) > stored:
            raise EmbeddingError(
                f"{self.embedder.name} refused {len(self._refused)} of the first"
                f" {len(self._refused) + stored} texts: check its model and its settings"
            )

    def _embed_batch(
        self, building: EmbeddingModel, batch: list[PendingText], *, stored: int
    ) -> int:
        """Embed texts that no memory has a vector of yet, store all vectors, return how many."""
        vectors = self.store.vectors
        same_texts = vectors.of_same_text(building.model_id, {pending.text for pending in batch})
        new = [pending for pending in batch if pending.text not in same_texts]
        pairs, refused = embed_texts(self.embedder, new) if new else ([], [])
        embedded = len({pending.text for pending, _ in pairs})
        pairs += [
            (pending, same_texts[pending.text]) for pending in batch if pending.text in same_texts
        ]
        kept = vectors.put(building.model_id, pairs)
        vectors.sort_index(kept)
        self._refused.update(pending.row_id for pending in refused)
        self._count(stored=stored + kept, embedded=embedded)
        return kept

    def _count(self, *, stored: int, embedded: int) -> None:
        self._report(
            memories_processed=min(stored + len(self._refused), self.plan.memory_count),
            vectors_stored=stored,
            embeddings_generated=self.progress.embeddings_generated + embedded,
        )

    def _validate(self, building: EmbeddingModel) -> None:
        """Check every vector and the index, and that searches find what they were made from."""
        problems = self.store.vectors.validate(building.model_id)
        if self._refused and not self.progress.vectors_stored:
            problems.append(f"{self.embedder.name} refused every text")
        if problems:
            self.store.vectors.repair_model(building.model_id)
        problems += self._unsteady(building)
        if problems:
            raise MigrationError(f"the new vectors are wrong: {'; '.join(problems[:3])}")

    def _unsteady(self, building: EmbeddingModel) -> list[str]:
        """Report whether the embedder returns different vectors each time, if checking is free.

        Searches would find random results, and no other check would notice. One text is enough,
        since an embedder may cost something without saying so.
        """
        if self.embedder.base_url is not None or self.embedder.cost_per_1k_tokens > 0:
            return []
        kept = self.store.vectors.sample(building.model_id, 1)
        again = self.embedder.embed([text.text for text, _ in kept], from_cache=False)
        return [
            f"{self.embedder.name} returns a different vector for the same text each time"
            for (_, vector), new in zip(kept, again, strict=True)
            if cosine(vector.data, quantize(new).data) < _SAME
        ]

    def _report(self, **changes: object) -> None:
        self.progress = self.progress.model_copy(update=changes)
        if self._refused:
            refused = (
                f"the embedder refused {counted(len(self._refused), 'text', 'texts')}, found by"
                " keyword only"
            )
            others = [error for error in self.progress.errors if "refused" not in error]
            self.progress = self.progress.model_copy(update={"errors": [*others, refused]})
        self.report(self.progress)
