"""What SQLite itself can be asked, without a file of ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import apsw

from agent_memory.errors import StorageCorrupt

Row = tuple[Any, ...]

SELECT_OBJECTS: Final = """
SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL
AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT IN
  ('memory_index_config', 'memory_index_data', 'memory_index_docsize', 'memory_index_idx')
ORDER BY rowid"""
"""All objects of a schema but SQLite's own and the tables that FTS5 keeps for its index."""


def statement_is_complete(sql: str) -> bool:
    """Tell whether SQL ends with the end of a statement, not inside a trigger or a text."""
    return bool(apsw.complete(sql))


def objects_made_by(sql: Iterable[str]) -> list[Row]:
    """Return what SQL statements make in an empty database: type, name and SQL of each object."""
    connection = apsw.Connection(":memory:")
    try:
        for statement in sql:
            connection.execute(statement)
        return list(connection.execute(SELECT_OBJECTS))
    finally:
        connection.close()


def further(row: int, *, than: int) -> int:
    """Return the number of the last row of a page, after which the next page is to begin.

    In a damaged file the rows can be out of order: reading them by the page would never end. That
    is ``StorageCorrupt``.
    """
    if row <= than:
        raise StorageCorrupt(f"the file is damaged: row {row} comes after row {than}")
    return row


def library_version() -> str:
    """Return the version of SQLite in use."""
    return str(apsw.sqlite_lib_version())
