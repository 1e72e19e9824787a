"""Finds tables with row numbers at the ends of the range, and renumbers those rows.

SQLite gives each new row a higher number than any before it. If another program inserts a row with
the highest possible number, nothing can be stored any more: "database or disk is full". A row with
the lowest number comes before the start of reading by the page, and is in no export.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.models.agent import Problem
from agent_memory.storage.sqlite.connection import Database

_NUMBERS: Final = {
    "memories": "seq",
    "history": "change_id",
    "operations": "operation_id",
    "rejections": "rejection_id",
    "reviews": "review_id",
    "embedding_models": "model_id",
    "entities": "seq",
    "relationships": "seq",
}
_HIGHEST: Final = 2**53
"""No program gets there by counting, nor as far below the first row."""
_SELECT_CHILDREN: Final = """
SELECT DISTINCT t.name FROM sqlite_schema AS t, pragma_foreign_key_list(t.name) AS k
WHERE t.type = 'table' AND k."table" = ?1 AND k."to" = ?2
UNION SELECT 'embedding_queue' WHERE ?1 = 'memories'"""
_CLAMP_OPERATIONS: Final = """
UPDATE operations SET first_change = min(first_change, ?1 + 1), last_change = min(last_change, ?1)
WHERE last_change > ?1"""


def find_problems(database: Database) -> Iterator[Problem]:
    """Yield the tables with such numbers. Must run inside a transaction."""
    for table, lowest, highest in _used_up(database):
        detail = (
            f"the row numbers of {table} reach from {lowest} to {highest}: `check --repair`"
            " renumbers the outermost"
        )
        yield Problem(kind="wrong_number", detail=detail)


def repair(database: Database) -> bool:
    """Renumber the rows that are far from all others; return whether there were any.

    No trigger may run meanwhile: numbers cannot be changed otherwise. What is derived from the
    memories is rebuilt by other repairs. Must run inside ``write(vetted=False)``.
    """
    tables = [table for table, *_ in _used_up(database)]
    database.run("PRAGMA defer_foreign_keys = 1")  # until all references are updated
    for table in tables:
        last = _number_anew(database, table)
        database.run("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (last, table))
        if table == "history":
            database.run(_CLAMP_OPERATIONS, (last,))
    return bool(tables)


def _used_up(database: Database) -> Iterator[tuple[str, int, int]]:
    for table, column in _NUMBERS.items():
        sql = f"""SELECT coalesce((SELECT min({column}) FROM {table}), 0),
  max(coalesce((SELECT max({column}) FROM {table}), 0),
    coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = ?), 0))"""
        (ends,) = database.rows(sql, (table,))
        lowest, highest = ends
        if lowest < -_HIGHEST or not isinstance(highest, int) or highest > _HIGHEST:
            yield table, lowest, highest


def _number_anew(database: Database, table: str) -> int:
    """Give the rows far from all others the next numbers, and return the resulting last number."""
    column = _NUMBERS[table]
    tables = [table, *(name for (name,) in database.rows(_SELECT_CHILDREN, (table, column)))]
    near = f"{column} BETWEEN {-_HIGHEST} AND {_HIGHEST}"
    sql = f"SELECT coalesce(min({column}), 1), coalesce(max({column}), 0) FROM {table} WHERE {near}"
    ((first, last),) = database.rows(sql)
    far = [number for (number,) in database.rows(f"SELECT {column} FROM {table} WHERE NOT {near}")]
    below = sorted((number for number in far if number < 0), reverse=True)
    above = sorted(number for number in far if number > 0)
    moves = [(number, min(first, 1) - n) for n, number in enumerate(below, 1)]
    moves += [(number, max(last, 0) + n) for n, number in enumerate(above, 1)]
    for number, new in moves:
        for name in tables:
            database.run(f"UPDATE {name} SET {column} = ? WHERE {column} = ?", (new, number))
    return int(max(last, 0) + len(above))
