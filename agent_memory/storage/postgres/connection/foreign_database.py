"""Another program's database, read in one transaction that cannot write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import psycopg
from psycopg.rows import dict_row

from agent_memory.runtime.addresses import ServerAddress
from agent_memory.storage.postgres.connection.error_translation import translated

_AT_ONCE: Final = 1_000


class ForeignDatabase:
    """Queries on it, all of one snapshot. Tables are those on the user's search path."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def columns(self, table: str) -> set[str]:
        """Return the columns of a table, or none if it does not exist."""
        rows = self._connection.execute(
            "SELECT attname::text FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            (table,),
        )
        return {name for (name,) in rows}

    def rows(self, sql: str) -> Iterator[dict[str, Any]]:
        """Yield rows by column name, fetched in batches."""
        with self._connection.cursor("foreign", row_factory=dict_row) as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(sql)
            yield from cursor


@contextlib.contextmanager
def foreign_database(server: ServerAddress) -> Iterator[ForeignDatabase]:
    """Connect to it for the duration of the body."""
    with (
        translated(server.location),
        psycopg.connect(server.conninfo, application_name="agent-memory") as connection,
    ):
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        yield ForeignDatabase(connection)
