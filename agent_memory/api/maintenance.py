"""The verbs of maintenance: search by meaning, statistics, settings, events, checks, backups."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.api.arguments import Time, parse_moment
from agent_memory.api.opening import OpenMemory
from agent_memory.api.plain_arguments import check_whole_number
from agent_memory.embeddings.registry import EmbedderSpec
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.models.agent import AgentConfig, AgentInfo, CheckReport
from agent_memory.models.embedding import MigrationPlan, MigrationProgress
from agent_memory.models.enums import StorageBackend
from agent_memory.models.event import MemoryEvent
from agent_memory.models.record import validate_model
from agent_memory.models.reports import BackupFile
from agent_memory.runtime import paths

if TYPE_CHECKING:
    from agent_memory.models.statistics import MemoryStatistics
    from agent_memory.storage.event_log import EventLog


class MaintenanceVerbs(OpenMemory):
    """Maintenance. ``AgentMemory`` has these verbs."""

    # Meaning ----------------------------------------------------------------------------------

    def migration_plan(self, *, embedder: EmbedderSpec = "auto") -> MigrationPlan:
        """Describe what a migration to an embedder's model would take, without changing anything.

        Raises ``ConfigurationError`` if there is no such embedder, and ``EmbeddingError`` if it
        must ask a service for its model or dimensions, and that fails.
        """
        self._refuse_unshared()
        return self._auto_migration.plan(embedder)

    def migrate(
        self,
        *,
        embedder: EmbedderSpec = "auto",
        progress: Callable[[MigrationProgress], None] | None = None,
    ) -> MigrationProgress:
        """Switch to search by meaning, or from one model to another, and return how it went.

        All memories are first exported to ``scratchpad.yaml.backup`` beside the file, then embedded
        in batches. Each finished batch is kept: a migration that was interrupted continues where it
        stopped when it is run again. Until everything is done and verified, searches work as
        before; memories stored meanwhile are included. ``progress`` is called after each batch.

        Raises ``MigrationError`` if the embedder fails or the new vectors do not find their
        memories, ``StorageLocked`` if this memory is being migrated already, and
        ``ConfigurationError`` if there is no such embedder.
        """
        self._refuse_unshared()
        return self._auto_migration.migrate(embedder, report=progress)

    def rollback(self) -> bool:
        """Return to search by keyword, and say whether there was anything to return from.

        The vectors are dropped. Every memory stays, including those stored since the migration.
        """
        self._refuse_unshared()
        return self._auto_migration.roll_back()

    def embed(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed the memories that are waiting for it, and return how many there were.

        Memories wait after the embedder failed, or when another program wrote them. Searches and
        stores catch up by themselves, one batch at a time. ``progress`` is called with the number
        done and the total. Raises ``EmbeddingError``.
        """
        self._refuse_unshared()
        return self._embedding.catch_up(progress=progress)

    def suggestion(self) -> str | None:
        """Return the suggestion to migrate, once there are ``migration_threshold`` memories."""
        self._refuse_unshared()
        return self._auto_migration.suggestion()

    # Upkeep -----------------------------------------------------------------------------------

    @property
    def backend(self) -> StorageBackend:
        """How memories are searched: by keyword, or also by meaning."""
        return self._store.backend()

    @property
    def on_duplicate(self) -> str | None:
        """What the file's settings do with duplicates when a call does not say."""
        return self._store.config().on_duplicate

    def info(self) -> AgentInfo:
        """Return the agent's metadata, with current figures of the agent and its file."""
        info = self._store.info()
        suggestion = self._auto_migration.suggestion(info.memory_count)
        if not info.memory_count + info.archived_count:
            suggestion = paths.import_advice(self._address) or suggestion
        try:
            self._store.config()
            warning = info.warning
        except ConfigurationError as error:
            warning = " ".join(filter(None, [str(error), info.warning]))
        return info.model_copy(update={"suggestion": suggestion, "warning": warning})

    def statistics(self, *, since: Time | None = None, limit: int = 10) -> MemoryStatistics:
        """Return figures of the memory over time, its use, its gaps, and what deserves a look.

        They consist of numbers and ids. The only texts are questions, and those only if the setting
        ``event_log`` is ``full``. ``since`` leaves out anything dated earlier. Each list has the
        first ``limit`` entries (1 to 1,000). Nothing is changed and no writer has to wait; 100,000
        memories take one to two seconds. Raises ``ValidationError`` if ``since`` is not a time or
        lies in the future.
        """
        limit = check_whole_number("limit", limit, lowest=1, highest=1000)
        moment = None if since is None else parse_moment("since", since, now=self._now())
        if moment is not None and moment > self._now():
            raise ValidationError.of("since", "is in the future: nothing is counted yet", since)
        return self._store.statistics.statistics(
            self._store.event_log.read(), since=moment, limit=limit
        )

    def configure(self, **settings: Any) -> AgentConfig:  # noqa: ANN401 - AgentConfig's fields
        """Change settings kept in the file (the fields of ``AgentConfig``) and return them all.

        A value replaces the whole setting: a ``retention`` with one rule switches off the rules
        that were set before.

        ``vector_index`` takes effect at once. The index is rebuilt one part per transaction, while
        the old one goes on serving searches.
        """
        unknown = settings.keys() - AgentConfig.model_fields.keys()
        if unknown:
            names = ", ".join(AgentConfig.model_fields)
            raise ConfigurationError(
                f"unknown settings {sorted(unknown)}: the settings are {names}"
            )
        if not settings:
            return self._store.config()
        config = self._store.change_config(
            lambda config: validate_model(
                AgentConfig, {**config.model_dump(exclude_unset=True), **settings}
            )
        )
        if "vector_index" in settings:
            self._store.vectors.finish_index()
        return config

    def events(self, *, memory_id: str | None = None) -> Iterator[MemoryEvent]:
        """Yield the events that the event log has of this memory, oldest first.

        With ``memory_id``, only the events that name this memory: who stored and recalled it, and
        when.

        The log is written if the setting ``event_log`` says so, by every process that uses the
        memory: to ``events.jsonl`` beside the file, of which the latest four files of 5 MB each are
        kept; in a database to the table ``events``, of which the latest 20 MB are kept.
        """
        return self._while_shared(self._own_log().read(memory_id=memory_id))

    def follow_events(self, *, until: Callable[[], bool] = lambda: False) -> Iterator[MemoryEvent]:
        """Yield events from now on, as the event log records them, waiting for each.

        ``until`` is called four times a second and ends the iteration when it returns true. Once
        the memory is closed, ``StorageClosed`` is raised.
        """
        return self._while_shared(self._own_log().follow(until=until))  # from this call on

    def _own_log(self) -> EventLog:
        """Return the event log, unless another agent's file was put in the place of this one."""
        self._store.readable_config()
        return self._store.event_log

    def check(self, *, repair: bool = False) -> CheckReport:
        """Look for damage and inconsistencies. ``repair`` mends what it can, losing nothing."""
        return self._store.check(repair=repair)

    def backup(
        self, destination: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> Path:
        """Copy the file in its present state, while others may write, and return the copy's path.

        By default the copy goes to ``backups/`` beside the file. An existing file is refused unless
        ``overwrite``.
        """
        place = None
        if destination is not None:
            place = self.check_destination(destination, overwrite=overwrite, field="destination")
        return self._store.backup(place)

    def backups(self) -> list[BackupFile]:
        """List the existing backups of this file, newest first.

        Backups made by hand have no ``reason``; of the others the newest ``backups_kept`` are kept.
        ``AgentMemory.backups_of`` lists those of a file that cannot be opened.
        """
        return self._store.lifecycle.backups()
