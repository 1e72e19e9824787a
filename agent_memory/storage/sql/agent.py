"""The table ``agent``: whose memories these are, settings, counters and the migration record."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from agent_memory.errors import ConfigurationError, StorageCorrupt
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.records import Row
from agent_memory.storage.sql import Table

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig, AgentMetadata, MigrationInfo, Problem

_COUNT: Final = """
UPDATE agent SET total_queries = {least}(total_queries + ?, 9007199254740991),
  total_query_ms = total_query_ms + ?,
  last_accessed = {greatest}(last_accessed, ?)"""


class AgentTable(Table):
    """The table with the agent's single row.

    Methods that read settings and figures import the models when called: a search updates its
    counters here, and in a hook's process it starts before Pydantic could be imported.
    """

    _INSERT: ClassVar[str]
    _MISSING: ClassVar[str]
    _DAMAGED: ClassVar[str]
    """What a message says of an agent that has no row, or one that cannot be read."""

    def create(self, agent_id: str, *, now: datetime) -> None:
        """Insert the agent's row unless it exists."""
        moment = format_time(now)
        self._db.run(self._INSERT, (agent_id, moment, moment))

    def identity(self) -> str | None:
        agent_id = self._db.value("SELECT agent_id FROM agent")
        return None if agent_id is None else str(agent_id)

    def config(self) -> AgentConfig:
        from agent_memory.storage.agent_rows import read_settings  # noqa: PLC0415 - see the class

        return read_settings(self.settings(), self._db.location)

    def readable_config(self) -> AgentConfig:
        from agent_memory.storage.agent_rows import right_settings  # noqa: PLC0415 - see the class

        return right_settings(self.settings())

    def settings(self) -> str:
        return self._db.value("SELECT config FROM agent") or "{}"

    def set_config(self, settings: AgentConfig) -> None:
        text = to_json(settings.model_dump(exclude_unset=True, mode="json"))
        self._db.run("UPDATE agent SET config = ?", (text,))

    def merge_config(self, settings: Mapping[str, Any]) -> None:
        from agent_memory.models.agent import AgentConfig  # noqa: PLC0415 - see the class

        current = self.config().model_dump(exclude_unset=True, mode="json")
        self.set_config(AgentConfig.model_validate({**current, **settings}))

    def find_problems(self) -> list[Problem]:
        """Return what is wrong with the agent's row."""
        from agent_memory.models.agent import Problem  # noqa: PLC0415 - see the class

        try:
            self.config()
        except ConfigurationError as error:
            return [Problem(kind="wrong_settings", detail=str(error))]
        return []

    def repair(self) -> None:
        """Replace invalid settings with defaults."""
        if any(problem.kind == "wrong_settings" for problem in self.find_problems()):
            self.set_config(self.readable_config())

    def count_queries(self, *, queries: int, total_ms: float, now: datetime) -> None:
        sql = _COUNT.format(least=self._db.LEAST, greatest=self._db.GREATEST)
        with self._db.counting():
            self._db.run(sql, (queries, total_ms, format_time(now)))

    def queries(self) -> int:
        return int(self._db.value("SELECT total_queries FROM agent") or 0)

    def count_promotions(self, promotions: int) -> None:
        if promotions:
            sql = "UPDATE agent SET scratchpad_promotions = scratchpad_promotions + ?"
            with self._db.counting():
                self._db.run(sql, (promotions,))

    def count_embeddings(self, embeddings: int) -> None:
        if embeddings:
            sql = "UPDATE agent SET embeddings_generated = embeddings_generated + ?"
            self._db.run(sql, (embeddings,))

    def set_backend(
        self,
        backend: Literal["file", "vector"],
        *,
        migration: MigrationInfo,
        now: datetime,
    ) -> None:
        moved = format_time(now) if backend == "vector" else None
        self._db.run(
            "UPDATE agent SET storage_backend = ?, migration_date = ?, migration = ?",
            (backend, moved, to_json(migration.model_dump(mode="json", exclude_none=True))),
        )

    def migration(self) -> MigrationInfo:
        from agent_memory.models.agent import MigrationInfo  # noqa: PLC0415 - see the class
        from agent_memory.storage.agent_rows import read_migration  # noqa: PLC0415

        return read_migration(self._db.value("SELECT migration FROM agent")) or MigrationInfo()

    def was_rolled_back(self) -> bool:
        sql = "SELECT storage_backend = 'file' AND migration IS NOT NULL FROM agent"
        return bool(self._db.value(sql))

    def metadata(self, *, memory_count: int) -> AgentMetadata:
        from pydantic import ValidationError as PydanticValidationError  # noqa: PLC0415

        from agent_memory.storage.agent_rows import (  # noqa: PLC0415 - see the class
            METADATA_COLUMNS,
            metadata_of_row,
        )

        row = self._row(METADATA_COLUMNS)
        try:
            return metadata_of_row(
                row, memory_count=memory_count, size=self._size(), config=self.readable_config()
            )
        except (PydanticValidationError, TypeError) as error:
            raise StorageCorrupt(
                f"{self._db.location} is damaged: the row of its agent cannot be read:"
                f" {self._DAMAGED}"
            ) from error

    @abstractmethod
    def _size(self) -> int:
        """Return the bytes that the agent's memories take."""

    def row(self) -> dict[str, Any]:
        from agent_memory.storage.agent_rows import (  # noqa: PLC0415 - see the class
            EXPORTED_COLUMNS,
            exported_row,
        )

        return exported_row(self._row(EXPORTED_COLUMNS))

    def _row(self, columns: Sequence[str]) -> Row:
        row = self._db.row(f"SELECT {', '.join(columns)} FROM agent")
        if row is None:
            raise ConfigurationError(f"{self._db.location} {self._MISSING}")
        return row

    def set_row(self, values: Mapping[str, Any]) -> None:
        from agent_memory.storage.agent_rows import imported_row  # noqa: PLC0415 - see the class

        written = imported_row(values)
        if written:
            settings = ", ".join(f"{name} = ?" for name in written)
            self._db.run(f"UPDATE agent SET {settings}", tuple(written.values()))
