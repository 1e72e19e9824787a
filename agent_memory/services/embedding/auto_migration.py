"""Migrations to search by meaning and back: on request, or automatic past the threshold."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Final

from agent_memory.embeddings.registry import EmbedderSpec
from agent_memory.errors import (
    AgentMemoryError,
    ConfigurationError,
    EmbeddingError,
    MigrationError,
)
from agent_memory.models.agent import AgentConfig
from agent_memory.models.config import MemoryToolConfig
from agent_memory.models.embedding import MigrationPlan, MigrationProgress
from agent_memory.models.search import SearchFilters
from agent_memory.runtime import fork_safety
from agent_memory.runtime.logs import logger
from agent_memory.services.embedding.migration import Progress, VectorMigration, plan_of
from agent_memory.services.embedding.service import EmbeddingService
from agent_memory.services.events import Events
from agent_memory.services.store import Store
from agent_memory.text.counts import counted

_TRY_AGAIN_SECONDS: Final = 600.0
_STOPPING_SECONDS: Final = 30.0


class AutoMigration:
    """Migrates one open memory. ``config`` says whether that may be automatic."""

    def __init__(
        self, store: Store, embedding: EmbeddingService, config: MemoryToolConfig, events: Events
    ) -> None:
        self._store = store
        self._events = events
        self._has_suggested = False
        self._embedding = embedding
        self._config = config
        self._thread: threading.Thread | None = None
        self._is_stopping = threading.Event()
        self._next_try = 0.0
        self._starting = fork_safety.Lock()

    def plan(self, spec: EmbedderSpec) -> MigrationPlan:
        """Estimate what a migration would take."""
        embedder = self._embedding.embedder_for_migration(spec)
        return plan_of(self._store, embedder, batch_size=self._config.migration_batch_size)

    def migrate(self, spec: EmbedderSpec, *, report: Progress | None = None) -> MigrationProgress:
        """Migrate now, and return how it went."""
        self._store.refuse_read_only()
        try:  # an embedder may have to ask its service for the model's name or dimensions
            embedder = self._embedding.embedder_for_migration(spec)
            plan = plan_of(self._store, embedder, batch_size=self._config.migration_batch_size)
        except EmbeddingError as error:
            message = f"the migration has not begun: {error}. Run migrate again to try once more"
            raise MigrationError(message) from error
        migration = VectorMigration(
            self._store, embedder, plan, should_stop=self._is_stopping.is_set
        )
        if report is not None:
            migration.report = report
        progress = (
            self._run_with_events(migration) if self._events.has_listeners() else migration.run()
        )
        if progress.status == "completed":
            self._embedding.use(embedder)
        return progress

    def _run_with_events(self, migration: VectorMigration) -> MigrationProgress:
        report, started = migration.report, time.monotonic()

        def publish(progress: MigrationProgress) -> None:
            self._events.migration_progressed(progress)
            report(progress)

        migration.report = publish
        self._events.migration_started(migration.plan)
        try:
            progress = migration.run()
        except AgentMemoryError as error:
            self._events.migration_failed(error, migration.progress)
            raise
        if progress.status == "completed":
            usd = migration.embedder.usage.cost_usd
            self._events.migration_completed(progress, seconds=time.monotonic() - started, usd=usd)
        return progress

    def roll_back(self) -> bool:
        """Return to keyword search; return whether there were vectors."""
        self._store.refuse_read_only()
        with self._store.alone(busy="this memory is being migrated: stop that first"):
            dropped = self._store.vectors.roll_back()
        self._embedding.use(None)
        return bool(dropped)

    def suggestion(self, count: int | None = None) -> str | None:
        """Suggest a migration if there are enough memories, or another model is configured.

        ``count`` is the number of memories, if it is known.
        """
        if message := self._embedding.difference():
            return message
        if not self._store.should_migrate(self._threshold(), count=count):
            return None
        if count is None:
            count = self._store.count(SearchFilters.defaults())
        return f"{counted(count)}: run `agent-memory migrate` to find them by meaning too"

    # Automatic --------------------------------------------------------------------------------

    def follow(self, stored: int = 1, settings: AgentConfig | None = None) -> None:
        """After a store or a change, embed it, or migrate if enabled and due. Never fails."""
        self._embedding.follow(stored)
        self._suggest(settings)
        with self._starting.bare:
            if not self._is_due(settings):
                return
            self._next_try = time.monotonic() + _TRY_AGAIN_SECONDS
            if self._setting("migration_strategy").migration_strategy == "background":
                thread = threading.Thread(
                    target=self._migrate_quietly, name="agent-memory-migration", daemon=True
                )
                with contextlib.suppress(RuntimeError):  # no thread can be started: another time
                    thread.start()
                    self._thread = thread
                return
        self._migrate_quietly()

    def _suggest(self, settings: AgentConfig | None) -> None:
        """Publish, once per open memory, that there are enough memories to migrate."""
        if self._has_suggested:
            return
        if not self._events.has_listeners(None if settings is None else settings.event_log):
            return
        with contextlib.suppress(AgentMemoryError):
            threshold = self._threshold()
            if self._store.should_migrate(threshold):
                self._has_suggested = True
                info = self._store.info()
                plan = MigrationPlan.create(self._store.agent_id, info)
                self._events.migration_suggested(info, plan, threshold=threshold)

    def _is_due(self, settings: AgentConfig | None) -> bool:
        if time.monotonic() < self._next_try or (self._thread and self._thread.is_alive()):
            return False
        return (
            self._setting("auto_migrate", settings).auto_migrate
            and self._store.should_migrate(self._threshold())
            # After a rollback the user wants keyword search, until `migrate` is run.
            and not self._store.vectors.was_rolled_back()
        )

    def _threshold(self) -> int:
        return self._setting("migration_threshold").migration_threshold

    def _setting(
        self, name: str, settings: AgentConfig | None = None
    ) -> MemoryToolConfig | AgentConfig:
        """Return the source of a setting: our configuration if it is set there, else the file's."""
        if name in self._config.model_fields_set:
            return self._config
        return settings or self._store.readable_config()

    def _migrate_quietly(self) -> None:
        try:
            progress = self.migrate("auto")
            logger().info("migrated to search by meaning: %s", progress.status)
        except ConfigurationError as error:
            logger().warning("not migrated to search by meaning: %s", error)
        except AgentMemoryError as error:
            logger().warning("%s", error)

    def stop(self) -> None:
        """Let a background migration end after its batch: a later store continues it."""
        self._is_stopping.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_STOPPING_SECONDS)
