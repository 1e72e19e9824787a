"""Queries on the databases of other programs on a server; nothing is written to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from agent_memory.errors import ValidationError
from agent_memory.runtime.addresses import ServerAddress
from agent_memory.storage.postgres.connection.foreign_database import foreign_database

_TABLE: Final = "store"
_MARKS: Final = frozenset({"prefix", "key", "value"})


@contextlib.contextmanager
def peer_rows(server: ServerAddress) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    """Give the body the rows of LangGraph's PostgresStore, each with its table's name.

    Raises ``ValidationError`` if there is no such table.
    """
    with foreign_database(server) as database:
        missing = _MARKS - database.columns(_TABLE)
        if missing:
            raise ValidationError(
                f"{server.location}: is not a LangGraph store: its table {_TABLE} has no"
                f" {', '.join(sorted(missing))}. If its schema is not in the search path, put"
                " options=-csearch_path%3DSCHEMA after the ?"
            )
        rows = database.rows(f"SELECT * FROM {_TABLE} ORDER BY prefix, key")
        yield ((_TABLE, _as_file_tells(row)) for row in rows)


def _as_file_tells(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its times in the text form that a file has."""
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in row.items()
    }
