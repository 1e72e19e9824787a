"""Rows of the table ``memories`` as stored, by column: for undo, import and export.

``records`` makes models of them. Here nothing is read or written but what the columns hold, so that
what another program wrote stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.models.columns import HISTORIC, USAGE
from agent_memory.models.times import format_time
from agent_memory.storage.changes import kept_reviews
from agent_memory.storage.memory_values import NEW_ROW
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.postgres.tables.history import HistoryTable
from agent_memory.storage.records import BEFORE_ALL, RowValues, page_end

_COLUMNS: Final = ("seq", "id", *HISTORIC, *USAGE)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM memories"
_SELECT_NAMES: Final = """
SELECT attname FROM pg_attribute
WHERE attrelid = 'memories'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_PAGE: Final = 1_000
# The rows that may hold a word: in one of ASCII alone it stands as it is, but for case, unless it
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

_SELECT_REVIEWS: Final = """
SELECT m.id, r.replaced_by, r.confidence, r.reasoning, r.proposed_at, r.session_id
FROM reviews AS r JOIN memories AS m USING (agent_id, seq, version)
WHERE r.dismissed_at IS NULL AND m.id = ANY(%s) ORDER BY r.review_id"""


class MemoryRowTable(Table):
    """Rows of the table of memories as they are, by column."""

    def foreign_columns(self) -> list[str]:
        names = [name for (name,) in self._db.rows(_SELECT_NAMES)]
        return [name for name in names if name not in ("agent_id", *_COLUMNS)]

    def get(self, memory_id: str) -> RowValues | None:
        row = self._db.row(f"{_SELECT} WHERE id = %s", (memory_id,))
        return None if row is None else dict(zip(_COLUMNS, row, strict=True))

    def get_many(self, memory_ids: Sequence[str]) -> dict[str, RowValues]:
        sql = f"{_SELECT} WHERE id = ANY(%s)"
        rows = self._db.rows(sql, (list(memory_ids),))
        return {row[1]: dict(zip(_COLUMNS, row, strict=True)) for row in rows}

    def iterate(self, *, page: int = 1_000) -> Iterator[RowValues]:
        after = -(2**63)  # another program may number its rows as it likes
        while rows := self._db.rows(
            f"{_SELECT} WHERE seq > %s ORDER BY seq LIMIT %s", (after, page)
        ):
            yield from (dict(zip(_COLUMNS, row, strict=True)) for row in rows)
            after = page_end(rows[-1][0], after=after)

    def insert(self, values: Mapping[str, Any]) -> int:
        # What comes from the history is only as sound as who wrote it: nothing but columns is SQL
        # here.
        written = {name: values[name] for name in _COLUMNS if name in values}
        placeholders = ", ".join(["%s"] * len(written))
        sql = f"INSERT INTO memories ({', '.join(written)}) VALUES ({placeholders})"
        with self._db.savepoint():  # undo goes on where a row is refused
            return int(self._db.value(f"{sql} RETURNING seq", tuple(written.values())))

    def insert_many(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
        placeholders = f"({', '.join(['%s'] * len(NEW_ROW))})"
        sql = f"""INSERT INTO memories ({", ".join(NEW_ROW)})
VALUES {", ".join([placeholders] * len(rows))} RETURNING id, seq"""
        values = [row.get(name, usual) for row in rows for name, usual in NEW_ROW.items()]
        return dict(self._db.rows(sql, values))

    def update(self, memory_id: str, values: Mapping[str, Any], *, updated_at: str) -> None:
        written = {name: values[name] for name in HISTORIC if name in values}
        settings = "".join(f"{name} = %s, " for name in written)
        sql = f"UPDATE memories SET {settings}updated_at = %s, version = version + 1 WHERE id = %s"
        with self._db.savepoint():
            self._db.run(sql, (*written.values(), updated_at, memory_id))

    def set_values(self, memory_id: str, row: Mapping[str, Any]) -> None:
        names = (*HISTORIC, *USAGE)
        settings = ", ".join(f"{name} = %s" for name in names)
        sql = f"UPDATE memories SET {settings} WHERE id = %s"
        self._db.run(sql, (*(row[name] for name in names), memory_id))

    def delete(self, memory_id: str) -> None:
        self.delete_many([memory_id])

    def delete_many(self, memory_ids: Sequence[str]) -> None:
        ids = (list(memory_ids),)
        reviews = kept_reviews(self._db.rows(_SELECT_REVIEWS, ids))  # the rows go with their memory
        self._db.run("DELETE FROM memories WHERE id = ANY(%s)", ids)
        HistoryTable(self._db).keep_reviews(reviews)

    def is_free(self, row_id: int) -> bool:
        return self._db.row("SELECT 1 FROM memories WHERE seq = %s", (row_id,)) is None

    def archive(self, memory_ids: Sequence[str], *, archived: bool, now: datetime) -> int:
        sql = """UPDATE memories SET archived = %s, updated_at = %s, version = version + 1
WHERE archived <> %s AND id = ANY(%s)"""
        values = (int(archived), format_time(now), int(archived), list(memory_ids))
        return self._db.run(sql, values)

    def last_use(self) -> str | None:
        sql = "SELECT greatest(max(updated_at), max(last_accessed)) FROM memories"
        moment = self._db.value(sql)
        return None if moment is None else str(moment)

    def texts_with(self, word: str) -> Iterator[list[str]]:
        """Yield id, content, tags, metadata and task metadata of the rows that may hold a word.

        The word is of lower case; ``""`` yields all rows. Archived memories too. JSON columns are
        their text.
        """
        last = BEFORE_ALL
        while True:
            rows = self._db.rows(_SELECT_TEXTS, {"after": last, "word": word, "limit": _PAGE})
            for _, *columns in rows:
                yield list(columns)
            if len(rows) < _PAGE:
                return
            last = page_end(rows[-1][0], after=last)
