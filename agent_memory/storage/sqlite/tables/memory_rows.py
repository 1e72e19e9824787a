"""Rows of the table of memories in SQLite, where another program may have stored any bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import memory_rows
from agent_memory.storage.sqlite.tables.history import HistoryTable

_PAGE: Final = 1_000
# The rows that may contain a word: an ASCII-only row has it literally, except for case, unless it
# was escaped in JSON. The keyword index would not find them all: it has no metadata, its words
# differ ("straße" is not "strasse" there), and it may be damaged. Texts are read as bytes, since
# another program can store one that is not UTF-8.
_SELECT_TEXTS: Final = r"""
SELECT m.seq, CAST(m.id AS BLOB), CAST(m.content AS BLOB), CAST(m.tags AS BLOB),
  CAST(m.metadata AS BLOB), CAST(coalesce(m.task_metadata, '{}') AS BLOB)
FROM memories AS m
WHERE m.seq > ?1 AND (
  instr(lower(m.content), ?2)
  OR octet_length(m.content) <> length(m.content)
  OR EXISTS (
    SELECT 1 FROM (SELECT m.tags || m.metadata || coalesce(m.task_metadata, '') AS json)
    WHERE instr(lower(json), ?2) OR instr(json, '\') OR octet_length(json) <> length(json)))
ORDER BY m.seq LIMIT ?3"""


class MemoryRowTable(memory_rows.MemoryRowTable):
    """Stored rows of the table of memories, by column."""

    _SELECT_NAMES = "SELECT name FROM pragma_table_info('memories')"
    _HISTORY = HistoryTable

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word.

        The word is in lower case; ``""`` yields all rows, including archived memories. JSON columns
        are yielded as text; bytes that are not UTF-8 are replaced.
        """
        last = BEFORE_ALL
        while True:
            rows = self._db.rows(_SELECT_TEXTS, (last, word, _PAGE))
            for _, *columns in rows:
                yield [column.decode(errors="replace") for column in columns]
            if len(rows) < _PAGE:
                return
            last = page_end(rows[-1][0], after=last)
