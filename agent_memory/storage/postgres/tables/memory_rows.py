"""Rows of the table of memories in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.tables.history import HistoryTable
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import memory_rows

_PAGE: Final = 1_000
# The rows that may contain a word: an ASCII-only row has it literally, except for case, unless it
# was escaped in JSON.
_SELECT_TEXTS: Final = r"""
SELECT m.seq, m.id, m.content, m.tags, m.metadata, coalesce(m.task_metadata, '{}')
FROM memories AS m
CROSS JOIN LATERAL (SELECT m.tags || m.metadata || coalesce(m.task_metadata, '') AS text) AS json
WHERE m.seq > %(after)s AND (
  strpos(lower(m.content), %(word)s) > 0
  OR octet_length(m.content) <> length(m.content)
  OR strpos(lower(json.text), %(word)s) > 0 OR strpos(json.text, '\') > 0
  OR octet_length(json.text) <> length(json.text))
ORDER BY m.seq LIMIT %(limit)s"""


class MemoryRowTable(memory_rows.MemoryRowTable):
    """Stored rows of the table of memories, by column."""

    _db: Database
    _HISTORY = HistoryTable
    _SELECT_NAMES = """
SELECT attname FROM pg_attribute
WHERE attrelid = 'memories'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'agent_id'
ORDER BY attnum"""

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word.

        The word is in lower case; ``""`` yields all rows, including archived memories. JSON columns
        are yielded as text.
        """
        last = BEFORE_ALL
        while True:
            rows = self._db.rows(_SELECT_TEXTS, {"after": last, "word": word, "limit": _PAGE})
            for _, *columns in rows:
                yield list(columns)
            if len(rows) < _PAGE:
                return
            last = page_end(rows[-1][0], after=last)
