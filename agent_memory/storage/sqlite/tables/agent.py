"""The table ``agent``, with a single row: the agent's id, its settings, its counters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.errors import ConfigurationError, StorageCorrupt
from agent_memory.models.fields import to_json, validate_agent_id
from agent_memory.models.times import format_time
from agent_memory.storage.sqlite.tables import Table

if TYPE_CHECKING:
    from agent_memory.models.agent import AgentConfig, AgentMetadata, MigrationInfo, Problem

_INSERT: Final = """
INSERT INTO agent (only_row, agent_id, created_at, last_accessed) VALUES (1, ?, ?, ?)
ON CONFLICT (only_row) DO NOTHING"""
_COUNT: Final = """
UPDATE agent SET total_queries = min(total_queries + ?, 9007199254740991),
  total_query_ms = total_query_ms + ?,
  last_accessed = max(last_accessed, ?)"""

_MEND: Final = (
    "UPDATE agent SET config = '{}' WHERE config = ''",
    "UPDATE agent SET migration = NULL WHERE NOT json_valid(migration)",
    "UPDATE agent SET only_row = 1 WHERE only_row <> 1 AND (SELECT count(*) FROM agent) = 1",
)
_IS_MISNAMED: Final = """
WHERE octet_length(agent_id) NOT BETWEEN 1 AND 64 OR instr(agent_id, char(0))
  OR agent_id GLOB '*[^A-Za-z0-9_-]*'"""


class AgentTable(Table):
    """The table with the agent's single row.

    Methods that read settings and figures import the models when called: a search updates its
    counters here, and in a hook's process it starts before Pydantic could be imported.
    """

    def create(self, agent_id: str, *, now: datetime) -> None:
        """Insert the agent's row unless it exists."""
        moment = format_time(now)
        self._db.run(_INSERT, (agent_id, moment, moment))

    @property
    def agent_id(self) -> str:
        """The agent whose memories these are, read once: another agent's file is then refused."""
        self._db.agent_id = self._db.agent_id or self.identity()
        return self._db.agent_id or ""

    def identity(self) -> str | None:
        agent_id = self._db.value("SELECT agent_id FROM agent")
        return None if agent_id is None else str(agent_id)

    def config(self) -> AgentConfig:
        from agent_memory.storage.agent_rows import read_settings  # noqa: PLC0415 - see the class

        return read_settings(self.settings(), self._db.path)

    def readable_config(self) -> AgentConfig:
        from agent_memory.storage.agent_rows import right_settings  # noqa: PLC0415 - see the class

        return right_settings(self.settings())

    def settings(self) -> str:
        return self._db.value("SELECT config FROM agent") or "{}"

    def vector_index(self) -> str | None:
        """Return the setting ``vector_index``, if it is set; every search reads it."""
        sql = "SELECT CASE WHEN json_valid(config) THEN config ->> '$.vector_index' END FROM agent"
        setting = self._db.value(sql)
        return None if setting is None else str(setting)

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
        if self._db.value(f"SELECT count(*) FROM agent {_IS_MISNAMED}"):
            return [
                Problem(kind="wrong_id", detail="the agent's id is invalid: others cannot name it")
            ]
        return []

    def repair(self) -> None:
        """Replace invalid settings with defaults, and give an agent without a valid id a new one.

        It gets the name of the folder, since a file lies in its agent's folder.
        """
        if any(problem.kind == "wrong_settings" for problem in self.find_problems()):
            self.set_config(self.readable_config())
        for sql in _MEND:
            self._db.run(sql)
        folder = self._db.path.parent.name
        name = f"UPDATE agent SET agent_id = ? {_IS_MISNAMED}"
        if self._db.run(name, (folder if validate_agent_id(folder) else "agent",)):
            self._db.agent_id = None

    def count_queries(self, *, queries: int, total_ms: float, now: datetime) -> None:
        with self._db.counting():
            self._db.run(_COUNT, (queries, total_ms, format_time(now)))

    def queries(self) -> int:
        return int(self._db.value("SELECT total_queries FROM agent") or 0)

    def count_promotions(self, promotions: int) -> None:
        if promotions:
            with self._db.counting():
                self._db.run(
                    "UPDATE agent SET scratchpad_promotions = scratchpad_promotions + ?",
                    (promotions,),
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

    def forget_migration(self) -> None:
        """Reset the migration record: nobody rolled back, so ``auto_migrate`` may migrate."""
        self._db.run(
            "UPDATE agent SET storage_backend = 'file', migration_date = NULL, migration = NULL"
            " WHERE storage_backend = 'vector'"
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

        row = self._db.row(f"SELECT {', '.join(METADATA_COLUMNS)} FROM agent")
        if row is None:
            raise ConfigurationError(f"{self._db.path} does not name its agent: run `check`")
        try:
            return metadata_of_row(
                row, memory_count=memory_count, size=self._db.size(), config=self.readable_config()
            )
        except (PydanticValidationError, TypeError) as error:
            raise StorageCorrupt(
                f"{self._db.path} is damaged: the row of its agent cannot be read: `check"
                " --repair` repairs it"
            ) from error

    def row(self) -> dict[str, Any]:
        from agent_memory.storage.agent_rows import (  # noqa: PLC0415 - see the class
            EXPORTED_COLUMNS,
            exported_row,
        )

        values = self._db.row(f"SELECT {', '.join(EXPORTED_COLUMNS)} FROM agent")
        if values is None:
            raise ConfigurationError(f"{self._db.path} does not name its agent: run `check`")
        return exported_row(values)

    def set_row(self, values: Mapping[str, Any]) -> None:
        from agent_memory.storage.agent_rows import imported_row  # noqa: PLC0415 - see the class

        written = imported_row(values)
        if written:
            settings = ", ".join(f"{name} = ?" for name in written)
            self._db.run(f"UPDATE agent SET {settings}", tuple(written.values()))
