"""Rows of the table ``memories`` as stored, by column: for undo, import and export.

``records`` makes models of them. Here nothing is read or written but what the columns hold, so that
what another program wrote stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.models.columns import HISTORIC, USAGE
from agent_memory.models.fields import to_json
from agent_memory.models.times import format_time
from agent_memory.storage.changes import kept_reviews
from agent_memory.storage.memory_values import NEW_ROW
from agent_memory.storage.records import BEFORE_ALL, RowValues, page_end
from agent_memory.storage.sqlite.tables import Table
from agent_memory.storage.sqlite.tables.history import HistoryTable

_COLUMNS: Final = ("seq", "id", *HISTORIC, *USAGE)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM memories"
_PAGE: Final = 1_000
# The rows that may hold a word: in one of ASCII alone it stands as it is, but for case, unless it
# was escaped in JSON. The keyword index would find no more: it has no metadata, its words are other
# words ("straße" is not "strasse" there), and it may be damaged. Texts are read as bytes, since
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

_SELECT_REVIEWS: Final = """
SELECT m.id, r.replaced_by, r.confidence, r.reasoning, r.proposed_at, r.session_id
FROM reviews AS r JOIN memories AS m ON m.seq = r.seq AND m.version = r.version
WHERE r.dismissed_at IS NULL AND m.id IN (SELECT value FROM json_each(?)) ORDER BY r.review_id"""


class MemoryRowTable(Table):
    """Rows of the table of memories as they are, by column."""

    def foreign_columns(self) -> list[str]:
        names = [
            name for (name,) in self._db.rows("SELECT name FROM pragma_table_info('memories')")
        ]
        return [name for name in names if name not in _COLUMNS]

    def get(self, memory_id: str) -> RowValues | None:
        row = self._db.row(f"{_SELECT} WHERE id = ?", (memory_id,))
        return None if row is None else dict(zip(_COLUMNS, row, strict=True))

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, RowValues]:
        sql = f"{_SELECT} WHERE id IN (SELECT value FROM json_each(?))"
        rows = self._db.rows(sql, (to_json(list(memory_ids)),))
        return {row[1]: dict(zip(_COLUMNS, row, strict=True)) for row in rows}

    def iterate(self, *, page: int = 1_000) -> Iterator[RowValues]:
        after = -(2**63)  # another program may number its rows as it likes
        while rows := self._db.rows(f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?", (after, page)):
            yield from (dict(zip(_COLUMNS, row, strict=True)) for row in rows)
            after = page_end(rows[-1][0], after=after)

    def insert(self, values: Mapping[str, Any]) -> int:
        # What comes from the history is only as sound as who wrote it: nothing but columns is SQL
        # here.
        written = {name: values[name] for name in _COLUMNS if name in values}
        placeholders = ", ".join("?" * len(written))
        sql = f"INSERT INTO memories ({', '.join(written)}) VALUES ({placeholders})"
        self._db.run(sql, tuple(written.values()))
        return int(self._db.value("SELECT last_insert_rowid()"))

    def insert_many(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        """Add rows by one statement: with each FTS5 writes out what it holds, the longest part."""
        placeholders = f"({', '.join('?' * len(NEW_ROW))})"
        sql = f"""INSERT INTO memories ({", ".join(NEW_ROW)})
VALUES {", ".join([placeholders] * len(rows))} RETURNING id, seq"""
        values = [value for row in rows for value in {**NEW_ROW, **row}.values()]
        return dict(self._db.rows(sql, values))

    def update(self, memory_id: str, values: Mapping[str, Any], *, updated_at: str) -> None:
        written = {name: values[name] for name in HISTORIC if name in values}
        settings = "".join(f"{name} = ?, " for name in written)
        sql = f"UPDATE memories SET {settings}updated_at = ?, version = version + 1 WHERE id = ?"
        self._db.run(sql, (*written.values(), updated_at, memory_id))

    def set_values(self, memory_id: str, row: Mapping[str, Any]) -> None:
        names = (*HISTORIC, *USAGE)
        settings = ", ".join(f"{name} = ?" for name in names)
        sql = f"UPDATE memories SET {settings} WHERE id = ?"
        self._db.run(sql, (*(row[name] for name in names), memory_id))

    def delete(self, memory_id: str) -> None:
        self.delete_many([memory_id])

    def delete_many(self, memory_ids: Sequence[str]) -> None:
        ids = (to_json(list(memory_ids)),)
        reviews = kept_reviews(self._db.rows(_SELECT_REVIEWS, ids))  # the rows go with their memory
        self._db.run("DELETE FROM memories WHERE id IN (SELECT value FROM json_each(?))", ids)
        HistoryTable(self._db).keep_reviews(reviews)

    def is_free(self, row_id: int) -> bool:
        return self._db.row("SELECT 1 FROM memories WHERE seq = ?", (row_id,)) is None

    def archive(self, memory_ids: Sequence[str], *, archived: bool, now: datetime) -> int:
        sql = """UPDATE memories SET archived = ?, updated_at = ?, version = version + 1
WHERE archived IS NOT ? AND id IN (SELECT value FROM json_each(?))"""
        values = (int(archived), format_time(now), int(archived), to_json(list(memory_ids)))
        return self._db.run(sql, values)

    def last_use(self) -> str | None:
        sql = "SELECT max(max(updated_at), coalesce(max(last_accessed), '')) FROM memories"
        moment = self._db.value(sql)
        return None if moment is None else str(moment)

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word.

        The word is of lower case; ``""`` yields all rows. Archived memories too. JSON columns are
        their text; bytes that are not UTF-8 are replaced.
        """
        last = BEFORE_ALL
        while True:
            rows = self._db.rows(_SELECT_TEXTS, (last, word, _PAGE))
            for _, *columns in rows:
                yield [column.decode(errors="replace") for column in columns]
            if len(rows) < _PAGE:
                return
            last = page_end(rows[-1][0], after=last)
