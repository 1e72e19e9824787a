"""Erasing in SQLite: FTS5 and the free pages keep what is deleted, and so here they go too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_memory.storage.change_records import RemovedRows
from agent_memory.storage.sql import erasure
from agent_memory.storage.sqlite.connection import REBUILD_INDEX

# Their rows are deleted with a memory. Another program may have left some behind.
_FOLLOWING: Final = ("memory_tags", "scratchpad", "recalls", "fingerprints", "embeddings")
_SELECT_EMBEDDINGS: Final = """
SELECT embedding_id, text_hash, vector FROM embeddings
WHERE embedding_id > :after ORDER BY embedding_id LIMIT :page"""


class ErasureQueries(erasure.ErasureQueries):
    """Queries that erase memories permanently, and find what is left of them."""

    _SELECT_COLUMNS = """
SELECT '"' || replace(name, '"', '""') || '"' FROM pragma_table_info(?)"""
    _OTHERS = (
        "agent", "embedding_models", "memory_words", "operations", "recalls", "schema_migrations",
        "scratchpad", "sqlite_schema",
    )  # fmt: skip

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        """Delete every row of these memories except those of the vector indexes.

        From now on, SQLite overwrites what it frees with zeros on this connection. The rows left in
        ``embedding_queue`` are those that the indexes must drop: ``deleted_row_ids``.
        """
        self._db.rows("PRAGMA secure_delete = ON")
        removed = super().remove(memory_ids)
        for table in _FOLLOWING:
            self._db.run(f"DELETE FROM {table} WHERE seq NOT IN (SELECT seq FROM memories)")
        # Samples of tags and names, for the query planner.
        if self._db.row("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat4'"):
            self._db.run("DELETE FROM sqlite_stat4")
        # FTS5 keeps deleted words, with a marker that they are deleted.
        self._db.run(REBUILD_INDEX)
        return removed

    def deleted_row_ids(self) -> list[int]:
        """Return the rows of deleted memories that the vector indexes may still hold."""
        sql = "SELECT seq FROM embedding_queue WHERE seq NOT IN (SELECT seq FROM memories)"
        return [row_id for (row_id,) in self._db.rows(sql)]

    def empty_index(self, name: str) -> None:
        """Empty a vector index although sqlite-vec, which maintains it, is missing."""
        tables = self._db.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ? || '_*'"
            " AND name NOT GLOB '*_info'",
            (name,),
        )
        for (table,) in tables:
            self._db.run(f'DELETE FROM "{table}"')

    def unused_words(self, words: Iterable[str]) -> list[str]:
        sql = "SELECT 1 FROM memory_words WHERE term = ?"
        return [word for word in words if self._db.row(sql, (word,)) is None]

    def places_beyond(self) -> list[str]:
        return []  # the whole file is searched

    def remaining_vectors(self) -> Iterator[bytes]:
        for _, text_hash, vector in self._paged(_SELECT_EMBEDDINGS):
            yield text_hash + vector
