"""Reads the row of the table ``agent``, as any program may have written it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError as PydanticValidationError

from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.models.agent import AgentConfig, AgentMetadata, AgentStats, MigrationInfo
from agent_memory.models.fields import to_json
from agent_memory.models.times import read_stored_time
from agent_memory.storage.change_records import VECTOR_COLUMNS

METADATA_COLUMNS: Final = (
    "agent_id", "created_at", "last_accessed", "storage_backend", "migration_date",
    "total_queries", "total_query_ms", "embeddings_generated", "scratchpad_promotions", "migration",
)  # fmt: skip
"""The columns that the agent's metadata are built from."""
EXPORTED_COLUMNS: Final = (
    "created_at", "last_accessed", "total_queries", "total_query_ms", "scratchpad_promotions",
    "config", *VECTOR_COLUMNS,
)  # fmt: skip
"""The columns that an export carries."""


def read_settings(text: str, location: object) -> AgentConfig:
    """Parse the settings of the store at a location. Raises ``ConfigurationError`` if invalid."""
    if text == "{}":
        return AgentConfig.defaults()
    try:
        return AgentConfig.model_validate_json(text)
    except PydanticValidationError as error:
        faults = ValidationError.from_pydantic(error)
        raise ConfigurationError(
            f"the settings in {location} are invalid: {faults}. `check --repair` sets them aside"
        ) from error


def right_settings(text: str) -> AgentConfig:
    """Parse the valid settings; each invalid one gets its default."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    while isinstance(values, dict):
        try:
            return AgentConfig.model_validate(values)
        except PydanticValidationError as error:
            for fault in reversed(error.errors()):  # last first, as later items of a list move up
                _take_out(values, fault["loc"])
    return AgentConfig.defaults()


def _take_out(values: dict[str, Any], place: Sequence[int | str]) -> None:
    """Remove an invalid setting; of a list, only the invalid item."""
    name = str(place[0])
    if len(place) > 1 and isinstance(values.get(name), list):
        del values[name][int(place[1])]
    else:
        values.pop(name, None)


def metadata_of_row(
    row: Sequence[Any], *, memory_count: int, size: int, config: AgentConfig
) -> AgentMetadata:
    """Build the metadata from a row of ``METADATA_COLUMNS``; ``size`` is the store's, in bytes."""
    values = dict(zip(METADATA_COLUMNS, row, strict=True))
    queries, query_ms = values["total_queries"], values["total_query_ms"]
    return AgentMetadata(
        agent_id=values["agent_id"],
        created_at=read_stored_time(values["created_at"]),
        memory_count=memory_count,
        storage_backend=values["storage_backend"],
        migration_date=(
            read_stored_time(values["migration_date"]) if values["migration_date"] else None
        ),
        last_accessed=read_stored_time(values["last_accessed"]),
        stats=AgentStats(
            # Another program may have written any number.
            total_queries=max(0, queries),
            avg_query_latency_ms=max(0.0, round(query_ms / queries, 3)) if queries else 0.0,
            storage_size_mb=round(size / 1e6, 3),
            embeddings_generated=max(0, values["embeddings_generated"]),
            scratchpad_promotions=max(0, values["scratchpad_promotions"]),
        ),
        config=config,
        migration=read_migration(values["migration"]),
    )


def exported_row(values: Sequence[Any]) -> dict[str, Any]:
    """Return a row of ``EXPORTED_COLUMNS`` by column, with JSON parsed and NULLs left out."""
    columns = dict(zip(EXPORTED_COLUMNS, values, strict=True))
    for name in ("config", "migration"):
        try:
            columns[name] = json.loads(columns[name]) if columns[name] else None
        except (ValueError, RecursionError):  # another program's: no import would accept it
            columns[name] = None
    return {name: value for name, value in columns.items() if value is not None}


def imported_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given columns in stored form."""
    return {
        name: to_json(values[name]) if isinstance(values[name], dict) else values[name]
        for name in EXPORTED_COLUMNS
        if name in values
    }


def read_migration(text: str | None) -> MigrationInfo | None:
    """Parse the record of a vector migration; return ``None`` if it is invalid."""
    try:
        return None if text is None else MigrationInfo.model_validate(json.loads(text))
    except (ValueError, RecursionError):
        return None
