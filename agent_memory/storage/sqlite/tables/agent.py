"""The table ``agent``, of one row: the agent's id, its settings, its counters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ConfigurationError, StorageCorrupt, ValidationError
from agent_memory.models.agent import (
    AgentConfig,
    AgentMetadata,
    AgentStats,
    MigrationInfo,
    Problem,
)
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time, read_stored_time
from agent_memory.storage.records import VECTOR_COLUMNS
from agent_memory.storage.sqlite.connection import Database, Row
from agent_memory.storage.sqlite.tables import Table

_INSERT: Final = """
INSERT INTO agent (only_row, agent_id, created_at, last_accessed) VALUES (1, ?, ?, ?)
ON CONFLICT (only_row) DO NOTHING"""
_SELECT: Final = """
SELECT agent_id, created_at, last_accessed, storage_backend, migration_date, total_queries,
  total_query_ms, embeddings_generated, scratchpad_promotions, config, migration FROM agent"""
_COUNT: Final = """
UPDATE agent SET total_queries = min(total_queries + ?, 9007199254740991),
  total_query_ms = total_query_ms + ?,
  last_accessed = max(last_accessed, ?)"""


class AgentTable(Table):
    """The table with the one row of the agent."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._agent_id = ""

    def create(self, agent_id: str, *, now: datetime) -> None:
        """Insert the agent's row, unless there is one."""
        moment = format_time(now)
        self._db.run(_INSERT, (agent_id, moment, moment))

    @property
    def agent_id(self) -> str:
        """Whose memories these are. It is read once: no verb changes it."""
        self._agent_id = self._agent_id or self.identity() or ""
        return self._agent_id

    def identity(self) -> str | None:
        agent_id = self._db.value("SELECT agent_id FROM agent")
        return None if agent_id is None else str(agent_id)

    def config(self) -> AgentConfig:
        text = self._db.value("SELECT config FROM agent") or "{}"
        if text == "{}":
            return AgentConfig.defaults()
        try:
            return AgentConfig.model_validate_json(text)
        except PydanticValidationError as error:
            faults = ValidationError.from_pydantic(error)
            raise ConfigurationError(
                f"the settings in {self._db.path} are wrong: {faults}."
                " `check --repair` sets them aside"
            ) from error

    def vector_index(self) -> str | None:
        """Return the setting ``vector_index``, if it is set: asked with each search."""
        sql = "SELECT CASE WHEN json_valid(config) THEN config ->> '$.vector_index' END FROM agent"
        setting = self._db.value(sql)
        return None if setting is None else str(setting)

    def set_config(self, settings: AgentConfig) -> None:
        text = to_json(settings.model_dump(exclude_unset=True, mode="json"))
        self._db.run("UPDATE agent SET config = ?", (text,))

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
        """Restore the default settings where those in the file are wrong."""
        if self.find_problems():
            self._db.run("UPDATE agent SET config = '{}'")

    def count_queries(self, *, queries: int, total_ms: float, now: datetime) -> None:
        self._db.run(_COUNT, (queries, total_ms, format_time(now)))

    def queries(self) -> int:
        return int(self._db.value("SELECT total_queries FROM agent") or 0)

    def count_promotions(self, promotions: int) -> None:
        if promotions:
            self._db.run(
                "UPDATE agent SET scratchpad_promotions = scratchpad_promotions + ?", (promotions,)
            )

    def count_embeddings(self, embeddings: int) -> None:
        if embeddings:
            self._db.run(
                "UPDATE agent SET embeddings_generated = embeddings_generated + ?", (embeddings,)
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
            "UPDATE agent SET storage_backend = ?, migration_date = ?, migration = ?",
            (backend, moved, to_json(migration.model_dump(mode="json", exclude_none=True))),
        )

    def migration(self) -> MigrationInfo:
        return _read_migration(self._db.value("SELECT migration FROM agent")) or MigrationInfo()

    def was_rolled_back(self) -> bool:
        sql = "SELECT storage_backend = 'file' AND migration IS NOT NULL FROM agent"
        return bool(self._db.value(sql))

    def metadata(self, *, memory_count: int) -> AgentMetadata:
        row = self._db.row(_SELECT)
        if row is None:
            raise ConfigurationError(f"{self._db.path} does not say whose it is: run `check`")
        try:
            return self._metadata(row, memory_count=memory_count)
        except (PydanticValidationError, TypeError) as error:
            raise StorageCorrupt(
                f"{self._db.path} is damaged: what it says of its agent cannot be read:"
                " restore a backup"
            ) from error

    def _metadata(self, row: Row, *, memory_count: int) -> AgentMetadata:
        queries, query_ms = row[5], row[6]
        return AgentMetadata(
            agent_id=row[0],
            created_at=read_stored_time(row[1]),
            memory_count=memory_count,
            storage_backend=row[3],
            migration_date=read_stored_time(row[4]) if row[4] else None,
            last_accessed=read_stored_time(row[2]),
            stats=AgentStats(
                # Another program may have written any figure.
                total_queries=max(0, queries),
                avg_query_latency_ms=max(0.0, round(query_ms / queries, 3)) if queries else 0.0,
                storage_size_mb=round(self._db.size() / 1e6, 3),
                embeddings_generated=max(0, row[7]),
                scratchpad_promotions=max(0, row[8]),
            ),
            config=self.config(),
            migration=_read_migration(row[10]),
        )

    def row(self) -> dict[str, Any]:
        values = self._db.row(f"SELECT {', '.join(_WRITTEN_OUT)} FROM agent")
        if values is None:
            raise ConfigurationError(f"{self._db.path} does not say whose it is: run `check`")
        columns = dict(zip(_WRITTEN_OUT, values, strict=True))
        for name in ("config", "migration"):
            try:
                columns[name] = json.loads(columns[name]) if columns[name] else None
            except (ValueError, RecursionError):  # of another program: no import could take it
                columns[name] = None
        return {name: value for name, value in columns.items() if value is not None}

    def set_row(self, values: Mapping[str, Any]) -> None:
        written = {name: values[name] for name in _WRITTEN_OUT if name in values}
        if written:
            settings = ", ".join(f"{name} = ?" for name in written)
            plain = [
                to_json(value) if isinstance(value, dict) else value for value in written.values()
            ]
            self._db.run(f"UPDATE agent SET {settings}", plain)


_WRITTEN_OUT: Final = (
    "created_at", "last_accessed", "total_queries", "total_query_ms", "scratchpad_promotions",
    "config", *VECTOR_COLUMNS,
)  # fmt: skip


def _read_migration(text: str | None) -> MigrationInfo | None:
    try:
        return None if text is None else MigrationInfo.model_validate(json.loads(text))
    except (ValueError, RecursionError):  # of another program: of no use
        return None
