"""Rows of the table ``memories`` as stored, by column: for undo, import and export.

``records`` turns them into models. Here the columns are read and written unchanged, so that what
another program wrote stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from agent_memory.models.columns import HISTORIC, USAGE
from agent_memory.models.times import format_time
from agent_memory.storage.history_rows import kept_reviews
from agent_memory.storage.memory_values import NEW_ROW
from agent_memory.storage.records import BEFORE_ALL, RowValues, page_end
from agent_memory.storage.sql import Table
from agent_memory.storage.sql.history import HistoryTable
from agent_memory.storage.sql.reviews import renew

_COLUMNS: Final = ("seq", "id", *HISTORIC, *USAGE)
_SEARCHED: Final = (
    "m.id", "m.content", "m.tags", "m.metadata", "coalesce(m.task_metadata, '{}')",
)  # fmt: skip
_PAGE: Final = 1_000
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM memories"
_SELECT_REVIEWS: Final = """
SELECT m.id, r.replaced_by, r.confidence, r.reasoning, r.proposed_at, r.session_id
FROM reviews AS r JOIN memories AS m ON m.seq = r.seq AND m.version = r.version
WHERE r.dismissed_at IS NULL
AND (r.seq IN (SELECT seq FROM memories WHERE id {among}) OR r.replaced_by {among})
ORDER BY r.review_id"""


class MemoryRowTable(Table):
    """Stored rows of the table of memories, by column."""

    _SELECT_TEXTS: ClassVar[str]
    """The query for the ``{texts}`` of a page of the rows that may contain a word."""
    _HISTORY: ClassVar[type[HistoryTable]]

    def get(self, memory_id: str) -> RowValues | None:
        row = self._db.row(f"{_SELECT} WHERE id = ?", (memory_id,))
        return None if row is None else dict(zip(_COLUMNS, row, strict=True))

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, RowValues]:
        sql = f"{_SELECT} WHERE id {self._db.AMONG}"
        rows = self._db.rows(sql, (self._db.listed(memory_ids),))
        return {row[1]: dict(zip(_COLUMNS, row, strict=True)) for row in rows}

    def iterate(self, *, page: int = 1_000) -> Iterator[RowValues]:
        after = BEFORE_ALL
        while rows := self._db.rows(f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?", (after, page)):
            yield from (dict(zip(_COLUMNS, row, strict=True)) for row in rows)
            after = page_end(rows[-1][0], after=after)

    def insert(self, values: Mapping[str, Any]) -> int:
        # Values from the history may have been written by anyone: only known columns get into SQL.
        written = {name: values[name] for name in _COLUMNS if name in values}
        placeholders = ", ".join("?" * len(written))
        sql = f"""INSERT INTO memories ({", ".join(written)}) VALUES ({placeholders})
RETURNING seq"""
        with self._db.savepoint():  # undo continues if a row is refused
            return int(self._db.rows(sql, tuple(written.values()))[0][0])

    def insert_many(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        # In one statement: with each, FTS5 flushes its data, which takes longest.
        # Without spaces: APSW keeps a statement compiled if it is of less than 16 kB.
        placeholders = f"({','.join('?' * len(NEW_ROW))})"
        sql = f"""INSERT INTO memories ({", ".join(NEW_ROW)})
VALUES {",".join([placeholders] * len(rows))} RETURNING id, seq"""
        values = [value for row in rows for value in {**NEW_ROW, **row}.values()]
        return dict(self._db.rows(sql, values))

    def update(self, memory_id: str, values: Mapping[str, Any], *, updated_at: str) -> None:
        written = {name: values[name] for name in HISTORIC if name in values}
        settings = "".join(f"{name} = ?, " for name in written)
        sql = f"UPDATE memories SET {settings}updated_at = ?, version = version + 1 WHERE id = ?"
        with self._db.savepoint():
            self._db.run(sql, (*written.values(), updated_at, memory_id))
        if "content" not in written:
            renew(self._db, [memory_id])

    def set_values(self, memory_id: str, row: Mapping[str, Any]) -> None:
        names = (*HISTORIC, *USAGE)
        settings = ", ".join(f"{name} = ?" for name in names)
        sql = f"UPDATE memories SET {settings} WHERE id = ?"
        self._db.run(sql, (*(row[name] for name in names), memory_id))

    def delete(self, memory_id: str) -> None:
        self.delete_many([memory_id])

    def delete_many(self, memory_ids: Sequence[str]) -> None:
        among, ids = self._db.AMONG, (self._db.listed(memory_ids),)
        rows = self._db.rows(_SELECT_REVIEWS.format(among=among), ids * 2)
        reviews = kept_reviews(rows, set(memory_ids))  # deleting either memory deletes the rows
        self._db.run(f"DELETE FROM memories WHERE id {among}", ids)
        self._HISTORY(self._db).keep_reviews(reviews)

    def is_free(self, row_id: int) -> bool:
        return self._db.row("SELECT 1 FROM memories WHERE seq = ?", (row_id,)) is None

    def archive(self, memory_ids: Sequence[str], *, archived: bool, now: datetime) -> int:
        sql = f"""UPDATE memories SET archived = ?, updated_at = ?, version = version + 1
WHERE archived IS DISTINCT FROM ? AND id {self._db.AMONG} RETURNING id"""
        values = (int(archived), format_time(now), int(archived), self._db.listed(memory_ids))
        changed = [memory_id for (memory_id,) in self._db.rows(sql, values)]
        renew(self._db, changed)
        return len(changed)

    def last_use(self) -> str | None:
        sql = f"""SELECT {self._db.GREATEST}(
  max(updated_at), coalesce(max(last_accessed), max(updated_at))) FROM memories"""
        moment = self._db.value(sql)
        return None if moment is None else str(moment)

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word.

        The word is in lower case; ``""`` yields all rows, including archived memories. JSON columns
        are yielded as text; bytes that are not UTF-8 are replaced.
        """
        sql = self._SELECT_TEXTS.format(texts=self._bytes(*_SEARCHED))
        after = BEFORE_ALL
        while rows := self._db.rows(sql, {"after": after, "word": word, "page": _PAGE}):
            for _, *columns in rows:
                yield [column.decode(errors="replace") for column in columns]
            if len(rows) < _PAGE:
                return
            after = page_end(rows[-1][0], after=after)
