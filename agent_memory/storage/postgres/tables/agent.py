"""The table ``agent``, with a single row: the agent's id, its settings, its counters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ConfigurationError, StorageCorrupt
from agent_memory.models.agent import AgentConfig, AgentMetadata, MigrationInfo, Problem
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.agent_rows import (
    EXPORTED_COLUMNS,
    METADATA_COLUMNS,
    exported_row,
    imported_row,
    metadata_of_row,
    read_migration,
    read_settings,
    right_settings,
)
from agent_memory.storage.postgres.tables import Table

_INSERT: Final = """
INSERT INTO agent (agent_id, created_at, last_accessed) VALUES (%s, %s, %s)
ON CONFLICT (agent_id) DO NOTHING"""
_INSERT_NAME: Final = "INSERT INTO agent_names VALUES (%s) ON CONFLICT DO NOTHING"
_SELECT: Final = f"SELECT {', '.join(METADATA_COLUMNS)} FROM agent"
_COUNT: Final = """
UPDATE agent SET total_queries = least(total_queries + %s, 9007199254740991),
  total_query_ms = total_query_ms + %s,
  last_accessed = greatest(last_accessed, %s)"""
# All agents share the tables: this agent's share of their bytes is that of its memories.
_SIZE: Final = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) * least(1,
  (SELECT count(*) FROM memories) / greatest(1, max(c.reltuples)
    FILTER (WHERE c.relname = 'memories'))::float8)
FROM pg_class AS c WHERE c.relnamespace = current_schema::regnamespace AND c.relkind = 'r'"""


class AgentTable(Table):
    """The table with the agent's single row."""

    def create(self, agent_id: str, *, now: datetime) -> None:
        """Insert the agent's row unless it exists."""
        moment = format_time(now)
        self._db.run(_INSERT, (agent_id, moment, moment))
        self._db.run(_INSERT_NAME, (agent_id,))

    @property
    def agent_id(self) -> str:
        """The agent whose memories these are, according to the address."""
        return self._db.agent_id

    def identity(self) -> str | None:
        agent_id = self._db.value("SELECT agent_id FROM agent")
        return None if agent_id is None else str(agent_id)

    def config(self) -> AgentConfig:
        return read_settings(self.settings(), self._db.location)

    def readable_config(self) -> AgentConfig:
        return right_settings(self.settings())

    def settings(self) -> str:
        return self._db.value("SELECT config FROM agent") or "{}"

    def set_config(self, settings: AgentConfig) -> None:
        text = to_json(settings.model_dump(exclude_unset=True, mode="json"))
        self._db.run("UPDATE agent SET config = %s", (text,))

    def merge_config(self, settings: Mapping[str, Any]) -> None:
        current = self.config().model_dump(exclude_unset=True, mode="json")
        self.set_config(AgentConfig.model_validate({**current, **settings}))

    def find_problems(self) -> list[Problem]:
        """Return what is wrong with the agent's row."""
        try:
            self.config()
        except ConfigurationError as error:
            return [Problem(kind="wrong_settings", detail=str(error))]
        return []

    def repair(self) -> None:
        """Replace invalid settings with defaults."""
        if self.find_problems():
            self.set_config(self.readable_config())

    def count_queries(self, *, queries: int, total_ms: float, now: datetime) -> None:
        self._db.run(_COUNT, (queries, total_ms, format_time(now)))

    def queries(self) -> int:
        return int(self._db.value("SELECT total_queries FROM agent") or 0)

    def count_promotions(self, promotions: int) -> None:
        if promotions:
            self._db.run(
                "UPDATE agent SET scratchpad_promotions = scratchpad_promotions + %s", (promotions,)
            )

    def count_embeddings(self, embeddings: int) -> None:
        if embeddings:
            self._db.run(
                "UPDATE agent SET embeddings_generated = embeddings_generated + %s", (embeddings,)
            )

    def set_backend(
        self,
        backend: Literal["file", "vector"],
        *,
        migration: MigrationInfo,
        now: datetime,
    ) -> None:
        moved = format_time(now) if backend == "vector" else None
        self._db.run(
            "UPDATE agent SET storage_backend = %s, migration_date = %s, migration = %s",
            (backend, moved, to_json(migration.model_dump(mode="json", exclude_none=True))),
        )

    def migration(self) -> MigrationInfo:
        return read_migration(self._db.value("SELECT migration FROM agent")) or MigrationInfo()

    def was_rolled_back(self) -> bool:
        sql = "SELECT storage_backend = 'file' AND migration IS NOT NULL FROM agent"
        return bool(self._db.value(sql))

    def metadata(self, *, memory_count: int) -> AgentMetadata:
        row = self._db.row(_SELECT)
        if row is None:
            raise ConfigurationError(f"{self._db.location} has no such agent")
        try:
            return metadata_of_row(
                row,
                memory_count=memory_count,
                size=int(self._db.value(_SIZE)),
                config=self.readable_config(),
            )
        except (PydanticValidationError, TypeError) as error:
            raise StorageCorrupt(
                f"{self._db.location} is damaged: the row of its agent cannot be read:"
                " restore a backup"
            ) from error

    def row(self) -> dict[str, Any]:
        values = self._db.row(f"SELECT {', '.join(EXPORTED_COLUMNS)} FROM agent")
        if values is None:
            raise ConfigurationError(f"{self._db.location} has no such agent")
        return exported_row(values)

    def set_row(self, values: Mapping[str, Any]) -> None:
        written = imported_row(values)
        if written:
            settings = ", ".join(f"{name} = %s" for name in written)
            self._db.run(f"UPDATE agent SET {settings}", tuple(written.values()))
