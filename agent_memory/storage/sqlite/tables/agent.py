"""The table ``agent`` in SQLite, where another program may have written anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.models.fields import validate_agent_id
from agent_memory.storage.sql import agent
from agent_memory.storage.sqlite.connection import Database

if TYPE_CHECKING:
    from agent_memory.models.agent import Problem

_MEND: Final = (
    "UPDATE agent SET config = '{}' WHERE config = ''",
    "UPDATE agent SET migration = NULL WHERE NOT json_valid(migration)",
    "UPDATE agent SET only_row = 1 WHERE only_row <> 1 AND (SELECT count(*) FROM agent) = 1",
)
_IS_MISNAMED: Final = """
WHERE octet_length(agent_id) NOT BETWEEN 1 AND 64 OR instr(agent_id, char(0))
  OR agent_id GLOB '*[^A-Za-z0-9_-]*'"""


class AgentTable(agent.AgentTable):
    """The table with the agent's single row."""

    _db: Database
    _INSERT = """
INSERT INTO agent (only_row, agent_id, created_at, last_accessed) VALUES (1, ?, ?, ?)
ON CONFLICT (only_row) DO NOTHING"""
    _MISSING = "does not name its agent: run `check`"
    _DAMAGED = "`check --repair` repairs it"

    @property
    def agent_id(self) -> str:
        """The agent whose memories these are, read once: another agent's file is then refused."""
        self._db.agent_id = self._db.agent_id or self.identity()
        return self._db.agent_id or ""

    def _size(self) -> int:
        return self._db.size()

    def vector_index(self) -> str | None:
        """Return the setting ``vector_index``, if it is set; every search reads it."""
        sql = "SELECT CASE WHEN json_valid(config) THEN config ->> '$.vector_index' END FROM agent"
        setting = self._db.value(sql)
        return None if setting is None else str(setting)

    def find_problems(self) -> list[Problem]:
        """Return what is wrong with the agent's row."""
        from agent_memory.models.agent import Problem  # noqa: PLC0415 - see the base class

        problems = super().find_problems()
        if not problems and self._db.value(f"SELECT count(*) FROM agent {_IS_MISNAMED}"):
            detail = "the agent's id is invalid: others cannot name it"
            return [Problem(kind="wrong_id", detail=detail)]
        return problems

    def repair(self) -> None:
        """Replace invalid settings with defaults, and give an agent without a valid id a new one.

        It gets the name of the folder, since a file lies in its agent's folder.
        """
        super().repair()
        for sql in _MEND:
            self._db.run(sql)
        folder = self._db.path.parent.name
        name = f"UPDATE agent SET agent_id = ? {_IS_MISNAMED}"
        if self._db.run(name, (folder if validate_agent_id(folder) else "agent",)):
            self._db.agent_id = None

    def forget_migration(self) -> None:
        """Reset the migration record: nobody rolled back, so ``auto_migrate`` may migrate."""
        self._db.run(
            "UPDATE agent SET storage_backend = 'file', migration_date = NULL, migration = NULL"
            " WHERE storage_backend = 'vector'"
        )
