"""Erasing in PostgreSQL.

What it keeps beside its tables (dead rows until a vacuum, its write-ahead log, replicas, copies) is
beyond the reach of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from agent_memory.storage.postgres.postings import key_of
from agent_memory.storage.sql import erasure

_SELECT_EMBEDDINGS: Final = """
SELECT model_id, seq, text_hash, vector FROM embeddings
WHERE (model_id, seq) > (%s, %s) ORDER BY model_id, seq LIMIT %s"""


class ErasureQueries(erasure.ErasureQueries):
    """Queries that erase memories permanently, and find what is left of them."""

    _SELECT_COLUMNS = """
SELECT quote_ident(attname) FROM pg_attribute
WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
    _OTHERS = ("agent", "embedding_models", "events", "operations", "recalls", "scratchpad")

    def unused_words(self, words: Iterable[str]) -> list[str]:
        asked = {word: key_of(word) for word in words}
        sql = "SELECT word FROM memory_words WHERE word = ANY (%s::text[])"
        used = {key for (key,) in self._db.rows(sql, (list(asked.values()),))}
        return [word for word, key in asked.items() if key not in used]

    def places_beyond(self) -> list[str]:
        is_archived = self._db.value("SELECT current_setting('archive_mode') <> 'off'")
        return [
            "the pages of its tables, until they are vacuumed and reused",
            "its write-ahead log" + (", and the archive of that" if is_archived else ""),
            "its replicas, and backups that were made before",
        ]

    def remaining_vectors(self) -> Iterator[bytes]:
        last: tuple[int, ...] = (0, 0)
        while rows := self._db.rows(_SELECT_EMBEDDINGS, (*last, erasure.PAGE)):
            for _, _, text_hash, vector in rows:
                yield text_hash + vector
            last = rows[-1][:2]
