"""The verbs of upkeep: search by meaning and back, figures and settings, checks, backups."""

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
    """Meaning, settings and backups. ``AgentMemory`` has these verbs."""

    # Meaning ----------------------------------------------------------------------------------

    def migration_plan(self, *, embedder: EmbedderSpec = "auto") -> MigrationPlan:
        """Say what a move to an embedder's model would take; nothing is changed.

        Raises ``ConfigurationError`` when there is no such embedder.
        """
        self._refuse_unshared()
        return self._auto_migration.plan(embedder)

    def migrate(
        self,
        *,
        embedder: EmbedderSpec = "auto",
        progress: Callable[[MigrationProgress], None] | None = None,
    ) -> MigrationProgress:
        """Move to search by meaning, or from one model to another, and return how it went.

        All memories are first written into ``scratchpad.yaml.backup`` beside the file, then
        embedded in batches, of which each is kept: a move that was stopped, by whatever, goes on
        where it was when it is run again. Until all is done and checked, searches go on as before;
        memories stored meanwhile are included. ``progress`` is called after each batch.

        Raises ``MigrationError`` when the embedder fails or the new vectors do not find their
        memories, ``StorageLocked`` when this memory is being moved already, ``ConfigurationError``
        when there is no such embedder.
        """
        self._refuse_unshared()
        return self._auto_migration.migrate(embedder, report=progress)

    def rollback(self) -> bool:
        """Go back to search by keyword; return whether there was anything to go back from.

        The vectors are dropped. Every memory stays, those stored since the move too.
        """
        self._refuse_unshared()
        return self._auto_migration.roll_back()

    def embed(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Embed the memories that wait for it and return how many that were.

        They do so after the embedder failed, or another program wrote them; searches and stores
        catch up by themselves, a batch at a time. ``progress`` is called with how many are done,
        of how many. Raises ``EmbeddingError``.
        """
        self._refuse_unshared()
        return self._embedding.catch_up(progress=progress)

    def suggestion(self) -> str | None:
        """Return what is suggested from ``migration_threshold`` memories on: to migrate."""
        self._refuse_unshared()
        return self._auto_migration.suggestion()

    # Upkeep -----------------------------------------------------------------------------------

    @property
    def backend(self) -> StorageBackend:
        """How memories are searched: by keyword, or by meaning too."""
        return self._store.backend()

    @property
    def on_duplicate(self) -> str | None:
        """The file's setting of what is done with duplicates where a call does not say."""
        return self._store.config().on_duplicate

    def info(self) -> AgentInfo:
        """Return the agent's metadata with live figures, and its file's."""
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
        """Return figures of the memory over time, its use, its gaps, and what to look at.

        They have numbers and ids, and no texts but questions, where the setting ``event_log`` is
        ``full``. ``since`` leaves out what is dated before. Each list has the first ``limit``, 1 to
        1,000. Nothing is changed, and no writer waits; 100,000 memories take one to two seconds.
        Raises ``ValidationError`` for a ``since`` that is no time or lies in the future.
        """
        limit = check_whole_number("limit", limit, lowest=1, highest=1000)
        moment = None if since is None else parse_moment("since", since)
        if moment is not None and moment > self._now():
            raise ValidationError.of("since", "is in the future: nothing is counted yet", since)
        return self._store.statistics.statistics(
            self._store.event_log.read(), since=moment, limit=limit
        )

    def configure(self, **settings: Any) -> AgentConfig:  # noqa: ANN401 - AgentConfig's fields
        """Change settings that live in the file (``AgentConfig``'s fields) and return them all.

        A value takes the place of the whole setting: a ``retention`` of one rule switches off those
        of the policy before.

        ``vector_index`` is followed at once: the index is built anew, a part a
        transaction; the old one serves meanwhile.
        """
        unknown = settings.keys() - AgentConfig.model_fields.keys()
        if unknown:
            names = ", ".join(AgentConfig.model_fields)
            raise ConfigurationError(f"unknown settings {sorted(unknown)}: there are {names}")
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
        """Yield what the event log tells of this memory, the oldest first.

        ``memory_id`` leaves out what does not name this memory: who stored and recalled it, when.

        It is written where the setting ``event_log`` says so, by every process that uses the
        memory: into ``events.jsonl`` beside the file, of which the youngest four are kept, of 5 MB
        each; in a database into the table ``events``, of which the youngest 20 MB are kept.
        """
        return self._while_shared(self._own_log().read(memory_id=memory_id))

    def follow_events(self, *, until: Callable[[], bool] = lambda: False) -> Iterator[MemoryEvent]:
        """Yield what happens from now on, waiting for it, as the event log tells it.

        ``until`` is asked four times a second whether to end. Once the memory is closed, this
        raises ``StorageClosed``.
        """
        return self._while_shared(self._own_log().follow(until=until))  # from this call on

    def _own_log(self) -> EventLog:
        """Return the event log, unless another agent's file was put in the place of this one."""
        self._store.readable_config()
        return self._store.event_log

    def check(self, *, repair: bool = False) -> CheckReport:
        """Look for damage and drift; with ``repair``, repair what can be, losing nothing."""
        return self._store.check(repair=repair)

    def backup(
        self, destination: str | os.PathLike[str] | None = None, *, overwrite: bool = False
    ) -> Path:
        """Copy the file as it stands, while others may write, and return the copy's path.

        Without a destination it goes into ``backups/`` beside the file. A file that exists there
        is refused unless ``overwrite``.
        """
        place = None
        if destination is not None:
            place = self.check_destination(destination, overwrite=overwrite, field="destination")
        return self._store.backup(place)

    def backups(self) -> list[BackupFile]:
        """List the backups that there are of this file, newest first.

        Those made by hand have no ``reason``; of the others the newest ``backups_kept`` are kept.
        """
        return self._store.lifecycle.backups()
