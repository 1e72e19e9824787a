"""Queries that erase memories permanently from all tables, and find what is left in them.

Deleting keeps the history; here it goes too. Texts are read as bytes, since in a file another
program can store one that is not UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from agent_memory.errors import StorageCorrupt
from agent_memory.storage.change_records import ErasedText, RemainingText, RemovedRows, Statement
from agent_memory.storage.erased_texts import (
    ChangedText,
    add_change,
    add_row,
    statements_before,
)
from agent_memory.storage.records import BEFORE_ALL, Row, page_end
from agent_memory.storage.sql import Table

PAGE: Final = 1_000
_IS_CHOSEN: Final = "(CAST(:is_any AS INTEGER) = 1 OR {0} {among})"
_SELECT_KNOWN: Final = """
SELECT id FROM memories WHERE id {among}
UNION SELECT memory_id FROM history WHERE memory_id {among}"""
_SELECT_VECTORS: Final = """
SELECT e.text_hash, e.vector FROM embeddings AS e JOIN memories AS m ON m.seq = e.seq
WHERE m.id {among}"""
_COUNT: Final = """
SELECT (SELECT count(*) FROM memories WHERE id {among}),
  (SELECT count(*) FROM history WHERE memory_id {among}),
  (SELECT count(*) FROM embeddings AS e JOIN memories AS m ON m.seq = e.seq WHERE m.id {among})"""


class ErasureQueries(Table):
    """Queries that erase memories permanently, and find what is left of them."""

    _SELECT_COLUMNS: ClassVar[str]
    """The query for the names of a table's columns, quoted for SQL."""
    _OTHERS: ClassVar[Sequence[str]]
    """The tables with texts, except those of memories, their history and the graph."""

    # Erasing -------------------------------------------------------------------------------------
    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        return {memory_id for (memory_id,) in self._chosen(_SELECT_KNOWN, memory_ids)}

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        erased = ErasedText(statements=list(self.statements(memory_ids)))
        now = self._bytes("content", "tags", "metadata", "task_metadata")
        for row in self._chosen(f"SELECT {now} FROM memories WHERE id {{among}}", memory_ids):
            content, *objects = map(_text, row)
            add_row(erased, content or "", objects)
        changes = self._bytes("old_values", "new_values")
        sql = f"SELECT {changes} FROM history WHERE memory_id {{among}}"
        for row in self._chosen(sql, memory_ids):
            for values in map(_text, row):
                add_change(erased, values)
        for row in self._chosen(_SELECT_VECTORS, memory_ids):
            erased.vectors.update(row)
        return erased

    def statements(self, memory_ids: Sequence[str] | None = None) -> Iterator[Statement]:
        ids = {"is_any": int(memory_ids is None), "ids": self._db.listed(memory_ids or ())}
        sql = f"""SELECT seq, id, {self._bytes("content", "user_id")} FROM memories
WHERE seq > :after AND {_IS_CHOSEN.format("id", among=self._among("ids"))}
ORDER BY seq LIMIT :page"""
        for _, memory_id, content, user_id in self._paged(sql, **ids):
            about = frozenset({_text(user_id)})
            yield Statement(memory_id, frozenset({_text(content) or ""}), about)
        yield from statements_before(
            ChangedText(memory_id, event, *map(_text, texts))
            for memory_id, _, event, *texts in self._stated_before(ids)
        )

    def _stated_before(self, ids: dict[str, object]) -> Iterator[Row]:
        """Yield all changes, grouped by memory, reading one page at a time."""
        # The user of a memory whose known history has only updates is in its row.
        texts = self._bytes("h.old_values", "h.new_values", "m.user_id")
        sql = f"""SELECT h.memory_id, h.change_id, h.event, {texts}
FROM history AS h LEFT JOIN memories AS m ON m.id = h.memory_id
WHERE (h.memory_id, h.change_id) > (:after_id, :after)
AND {_IS_CHOSEN.format("h.memory_id", among=self._among("ids"))}
ORDER BY h.memory_id, h.change_id LIMIT :page"""
        last: tuple[str, int] = ("", 0)
        while True:
            values = {"after_id": last[0], "after": last[1], "page": PAGE, **ids}
            rows = self._db.rows(sql, values)
            yield from rows
            if len(rows) < PAGE:  # an id that is not UTF-8 is decoded differently, and comes last
                return
            if rows[-1][:2] <= last:
                raise StorageCorrupt(f"{self._db.location} is damaged: restore a backup")
            last = rows[-1][:2]

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        ids = {"ids": self._db.listed(memory_ids)}
        counts = self._chosen(_COUNT, memory_ids)[0]
        self._db.run(f"DELETE FROM memories WHERE id {self._among('ids')}", ids)
        # Including that of the deletion.
        self._db.run(f"DELETE FROM history WHERE memory_id {self._among('ids')}", ids)
        return RemovedRows(*counts)

    # What is left --------------------------------------------------------------------------------
    def remaining_texts(self) -> Iterator[RemainingText]:
        for table, key, name in (("memories", "seq", "id"), ("history", "change_id", "memory_id")):
            sql = f"""SELECT {key}, {self._bytes(name)}, {self._row(table)} FROM {table}
WHERE {key} > :after ORDER BY {key} LIMIT :page"""
            for _, memory_id, text in self._paged(sql):
                yield RemainingText("memory", memory_id.decode(errors="replace"), text)
        yield from self._remaining_graph()
        settings, reason = self._bytes("concat(config, migration)"), self._bytes("concat(reason)")
        sql = f"""SELECT 'the settings of the agent', {settings} FROM agent
UNION ALL SELECT 'the reason of rejection ' || rejection_id, {reason} FROM rejections"""
        for place, text in self._db.rows(sql):
            yield RemainingText("place", place, text)
        for table in self._OTHERS:
            rows = self._db.rows(f"SELECT {self._row(table)} FROM {table}")
            for start in range(0, len(rows), PAGE):
                text = b"\x00".join(text for (text,) in rows[start : start + PAGE])
                yield RemainingText("other", table, text)

    def _remaining_graph(self) -> Iterator[RemainingText]:
        """Yield the texts of the graph: as of the memory that says so, or as written by hand."""
        number = self._db.SOURCE_NUMBER
        for table, kind in (("entities", "entity"), ("relationships", "relationship")):
            sources = f"{kind}_sources"
            sql = f"""SELECT g.seq, g.id, CASE WHEN g.by_hand = 0 THEN (SELECT x.memory_id
  FROM {sources} AS x WHERE x.{kind}_id = g.id ORDER BY x.{number} LIMIT 1) END, {self._row(table)}
FROM {table} AS g WHERE g.seq > :after ORDER BY g.seq LIMIT :page"""
            for _, graph_id, memory_id, text in self._paged(sql):
                yield _of_graph(memory_id, f"the {kind} {graph_id} of the graph", text)
            sql = f"""SELECT {number}, memory_id, {self._row(sources)} FROM {sources}
WHERE {number} > :after ORDER BY {number} LIMIT :page"""
            for _, memory_id, text in self._paged(sql):
                yield RemainingText("memory", memory_id, text)
        sql = f"""SELECT alias_id, entity_id, memory_id, {self._row("entity_aliases")}
FROM entity_aliases WHERE alias_id > :after ORDER BY alias_id LIMIT :page"""
        for _, graph_id, memory_id, text in self._paged(sql):
            yield _of_graph(memory_id, f"an alias of the entity {graph_id} of the graph", text)

    def _row(self, table: str) -> str:
        """Return the SQL of a row in the form of the file: all columns, with nothing in between."""
        names = self._db.rows(self._SELECT_COLUMNS, (table,))
        return self._bytes(f"concat({', '.join(name for (name,) in names)})")

    def _chosen(self, sql: str, memory_ids: Sequence[str]) -> list[Row]:
        """Return the rows of a query for those ``{among}`` these memories."""
        values = {"ids": self._db.listed(memory_ids)}
        return self._db.rows(sql.format(among=self._among("ids")), values)

    def _paged(self, sql: str, **values: Any) -> Iterator[Row]:  # noqa: ANN401 - of any column
        after = BEFORE_ALL
        while rows := self._db.rows(sql, {"after": after, "page": PAGE, **values}):
            yield from rows
            after = page_end(rows[-1][0], after=after)


def _of_graph(memory_id: str | None, place: str, text: bytes) -> RemainingText:
    if memory_id is None:
        return RemainingText("place", place, text)
    return RemainingText("memory", memory_id, text)


def _text(data: bytes | None) -> str | None:
    """Return a text, perhaps written by another program and not UTF-8."""
    return None if data is None else data.decode(errors="surrogateescape")
