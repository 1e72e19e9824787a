"""Finds invalid ids, which no verb can name, and gives such rows new ones.

The schema refuses them, unless another program switched its checks off, or a disk damaged them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from agent_memory.models.agent import Problem
from agent_memory.storage.sqlite.connection import Database
from agent_memory.text.encoding import decode_text

_MEMORY_IDS: Final[dict[str, tuple[str, ...]]] = {
    "memories": ("id",),
    "history": ("memory_id",),
    "reviews": ("replaced_by",),
    "entity_aliases": ("memory_id",),
    "entity_sources": ("memory_id",),
    "relationship_sources": ("memory_id", "closed_by"),
    "relationships": ("closed_by",),
}
_ENTITY_IDS: Final[dict[str, tuple[str, ...]]] = {
    "entities": ("id",),
    "entity_aliases": ("entity_id",),
    "entity_sources": ("entity_id",),
    "relationships": ("source_id", "target_id"),
}
_RELATIONSHIP_IDS: Final[dict[str, tuple[str, ...]]] = {
    "relationships": ("id",),
    "relationship_sources": ("relationship_id",),
}
_COLUMNS: Final = {"mem": _MEMORY_IDS, "ent": _ENTITY_IDS, "rel": _RELATIONSHIP_IDS}
"""The columns that hold ids, by table: those of memories, of entities and of relationships."""
# length() and GLOB ignore text after a NUL, but then it has more bytes than characters.
_IS_WRONG: Final = (
    "{0} IS NOT NULL AND (length({0}) NOT BETWEEN 1 AND 128 OR {0} GLOB '*[^A-Za-z0-9_.:-]*'"
    " OR length(CAST({0} AS BLOB)) > length({0}))"
)
_KEPT_AS: Final = "original_id"


def find_problems(database: Database) -> Iterator[Problem]:
    """Yield the invalid ids. Must run inside a transaction."""
    for _, table, column, data in _wrong_ids(database):
        detail = f"{column} of {table} is not a valid id: {decode_text(data)!r:.80}"
        yield Problem(kind="wrong_id", detail=detail)


def repair(database: Database) -> None:
    """Replace each invalid id, everywhere, with one derived from it, and keep the original.

    No trigger may run meanwhile: ids cannot be changed otherwise. Must run inside
    ``write(vetted=False)``.
    """
    database.run("PRAGMA defer_foreign_keys = 1")  # until all references are updated
    for prefix, table, column, data in list(_wrong_ids(database)):
        new_id = f"{prefix}-{hashlib.sha256(data).hexdigest()[:12]}"
        where = f"{column} = CAST(? AS TEXT)"
        if table == "memories":
            database.run(
                f"UPDATE memories SET metadata = json_set(metadata, '$.{_KEPT_AS}', ?)"
                f" WHERE {where} AND json_valid(metadata)",
                (decode_text(data), data),
            )
        database.run(f"UPDATE {table} SET {column} = ? WHERE {where}", (new_id, data))


def _wrong_ids(database: Database) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield the invalid ids: prefix of the new one, table, column, and the bytes."""
    for prefix, columns_by_table in _COLUMNS.items():
        for table, columns in columns_by_table.items():
            for column in columns:
                sql = f"SELECT DISTINCT CAST({column} AS BLOB) FROM {table} WHERE"
                for (data,) in database.rows(f"{sql} {_IS_WRONG.format(column)}"):
                    yield prefix, table, column, data
