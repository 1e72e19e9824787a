"""Queries on SQLite itself: the objects of a schema, its own damage checks, its version."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

import apsw

from agent_memory.storage.records import Row

SELECT_OBJECTS: Final = """
SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL
AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT IN
  ('memory_index_config', 'memory_index_data', 'memory_index_docsize', 'memory_index_idx')
ORDER BY rowid"""
"""All objects of a schema except SQLite's own and the tables that FTS5 keeps for its index."""
SELECT_REFERRING: Final = """
SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
WHERE t.type = 'table' AND k.on_delete NOT IN ('CASCADE', 'SET NULL')
AND lower(k."table") IN ('memories', 'history', 'entities', 'relationships') ORDER BY 1"""
"""Tables whose rows keep ours from being deleted: none of ours does."""
_HAS_INDEX: Final = "SELECT 1 FROM sqlite_schema WHERE name = 'memory_index' AND type = 'table'"


def statement_is_complete(sql: str) -> bool:
    """Return whether SQL ends at the end of a statement, not inside a trigger or a string."""
    return bool(apsw.complete(sql))


def objects_made_by(sql: Iterable[str]) -> list[Row]:
    """Return what SQL statements create in an empty database: type, name and SQL of each object."""
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        for statement in sql:
            connection.execute(statement)
        return list(connection.execute(SELECT_OBJECTS))


def quoted(name: str) -> str:
    """Return a name quoted for SQL, for names that anybody may have chosen."""
    return '"' + name.replace('"', '""') + '"'


def damage(connection: apsw.Connection, check: str, *, most: int) -> list[str]:
    """Return what ``quick_check`` or ``integrity_check`` finds wrong with a memory file.

    FTS5 checks its index against the structure that it read last, unless a cursor was opened on it
    since. After another connection's write it reported damage in a sound file. So a row is read
    first, in the same transaction; from the table, since a view by someone else may never end.
    """
    begins = not connection.in_transaction
    if begins:
        connection.execute("BEGIN")
    try:
        if connection.execute(_HAS_INDEX).get:
            with contextlib.suppress(apsw.Error):  # the check itself reports that
                connection.execute("SELECT rowid FROM memory_index LIMIT 1").fetchall()
        reports = [str(text) for (text,) in connection.execute(f"PRAGMA {check}({most})")]
    finally:
        if begins and connection.in_transaction:
            connection.execute("ROLLBACK")
    return [text for text in reports if text != "ok"]


def library_version() -> str:
    """Return the version of SQLite in use."""
    return str(apsw.sqlite_lib_version())
