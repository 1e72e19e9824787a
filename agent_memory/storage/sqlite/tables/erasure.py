"""Queries that erase memories permanently from all tables, and find what is left in them.

Deleting keeps the history, and the keyword index keeps words until it is merged. Here both go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_memory.errors import StorageCorrupt
from agent_memory.models.fields import to_json
from agent_memory.storage.change_records import ErasedText, RemainingText, RemovedRows, Statement
from agent_memory.storage.erased_texts import (
    ChangedText,
    add_change,
    add_row,
    statements_before,
)
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sqlite.connection import Row, quoted
from agent_memory.storage.sqlite.tables import Table

_PAGE: Final = 1_000
_AMONG: Final = "IN (SELECT value FROM json_each(?))"
# Their rows are deleted with a memory. Another program may have left some behind.
_FOLLOWING: Final = ("memory_tags", "scratchpad", "recalls", "fingerprints", "embeddings")
_SELECT_KNOWN: Final = f"""
SELECT id FROM memories WHERE id {_AMONG}
UNION SELECT memory_id FROM history WHERE memory_id {_AMONG}"""
_SELECT_NOW: Final = f"""
SELECT CAST(content AS BLOB), CAST(tags AS BLOB), CAST(metadata AS BLOB),
  CAST(task_metadata AS BLOB) FROM memories WHERE id {_AMONG}"""
_SELECT_CHANGES: Final = f"""
SELECT CAST(old_values AS BLOB), CAST(new_values AS BLOB) FROM history WHERE memory_id {_AMONG}"""
_SELECT_VECTORS: Final = f"""
SELECT e.text_hash, e.vector FROM embeddings AS e JOIN memories AS m USING (seq)
WHERE m.id {_AMONG}"""
_COUNT: Final = f"""
SELECT (SELECT count(*) FROM memories WHERE id {_AMONG}),
  (SELECT count(*) FROM history WHERE memory_id {_AMONG}),
  (SELECT count(*) FROM embeddings AS e JOIN memories AS m USING (seq) WHERE m.id {_AMONG})"""
_SELECT_EMBEDDINGS: Final = """
SELECT embedding_id, text_hash, vector FROM embeddings
WHERE embedding_id > ? ORDER BY embedding_id LIMIT ?"""
_SELECT_SETTINGS: Final = """
SELECT 'the settings of the agent', CAST(concat(config, migration) AS BLOB) FROM agent
UNION ALL SELECT 'the reason of rejection ' || rejection_id, CAST(concat(reason) AS BLOB)
FROM rejections"""
_SELECT_STATED: Final = """
SELECT seq, id, CAST(content AS BLOB), CAST(user_id AS BLOB) FROM memories
WHERE seq > ?1 AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))
ORDER BY seq LIMIT ?2"""
# The user of a memory whose known history has only updates is in its row.
_SELECT_STATED_BEFORE: Final = """
SELECT h.memory_id, h.change_id, h.event, CAST(h.old_values AS BLOB), CAST(h.new_values AS BLOB),
  CAST(m.user_id AS BLOB)
FROM history AS h LEFT JOIN memories AS m ON m.id = h.memory_id
WHERE (h.memory_id, h.change_id) > (?1, ?2)
AND (?4 IS NULL OR h.memory_id IN (SELECT value FROM json_each(?4)))
ORDER BY h.memory_id, h.change_id LIMIT ?3"""
_OTHERS: Final = (
    "agent", "embedding_models", "memory_words", "operations", "recalls", "schema_migrations",
    "scratchpad", "sqlite_schema",
)  # fmt: skip
"""The tables with texts, except those of memories, their history and the graph."""


class ErasureQueries(Table):
    """Queries that erase memories permanently, and find what is left of them."""

    # Erasing -------------------------------------------------------------------------------------
    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        ids = to_json(list(memory_ids))
        return {memory_id for (memory_id,) in self._db.rows(_SELECT_KNOWN, (ids, ids))}

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        ids = (to_json(list(memory_ids)),)
        erased = ErasedText(statements=list(self.statements(memory_ids)))
        for row in self._db.rows(_SELECT_NOW, ids):
            content, *objects = map(_text, row)
            add_row(erased, content or "", objects)
        for row in self._db.rows(_SELECT_CHANGES, ids):
            for values in map(_text, row):
                add_change(erased, values)
        for row in self._db.rows(_SELECT_VECTORS, ids):
            erased.vectors.update(row)
        return erased

    def statements(self, memory_ids: Sequence[str] | None = None) -> Iterator[Statement]:
        ids = None if memory_ids is None else to_json(list(memory_ids))
        for _, memory_id, content, user_id in self._paged(_SELECT_STATED, ids):
            about = frozenset({_text(user_id)})
            yield Statement(memory_id, frozenset({_text(content) or ""}), about)
        yield from statements_before(
            ChangedText(memory_id, event, *map(_text, texts))
            for memory_id, _, event, *texts in self._stated_before(ids)
        )

    def _stated_before(self, ids: str | None) -> Iterator[Row]:
        """Yield all changes, grouped by memory, reading one page at a time."""
        last: tuple[str, int] = ("", 0)
        while rows := self._db.rows(_SELECT_STATED_BEFORE, (*last, _PAGE, ids)):
            yield from rows
            if len(rows) < _PAGE:  # an id that is not UTF-8 is decoded differently, and comes last
                return
            if rows[-1][:2] <= last:
                raise StorageCorrupt(f"{self._db.path} is damaged: restore a backup")
            last = rows[-1][:2]

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        """Delete every row of these memories except those of the vector indexes.

        From now on, SQLite overwrites what it frees with zeros on this connection. The rows left in
        ``embedding_queue`` are those that the indexes must drop: ``deleted_row_ids``.
        """
        ids = to_json(list(memory_ids))
        counts = self._db.row(_COUNT, (ids, ids, ids))
        self._db.rows("PRAGMA secure_delete = ON")
        self._db.run(f"DELETE FROM memories WHERE id {_AMONG}", (ids,))
        self._db.run(
            f"DELETE FROM history WHERE memory_id {_AMONG}", (ids,)
        )  # including that of the deletion
        for table in _FOLLOWING:
            self._db.run(f"DELETE FROM {table} WHERE seq NOT IN (SELECT seq FROM memories)")
        # Samples of tags and names, for the query planner.
        if self._db.row("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat4'"):
            self._db.run("DELETE FROM sqlite_stat4")
        # FTS5 keeps deleted words, with a marker that they are deleted.
        self._db.run("INSERT INTO memory_index (memory_index) VALUES ('rebuild')")
        return RemovedRows(*counts) if counts else RemovedRows(0, 0, 0)

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

    # What is left --------------------------------------------------------------------------------
    def unused_words(self, words: Iterable[str]) -> list[str]:
        sql = "SELECT 1 FROM memory_words WHERE term = ?"
        return [word for word in words if self._db.row(sql, (word,)) is None]

    def remaining_texts(self) -> Iterator[RemainingText]:
        for table, key, name in (("memories", "seq", "id"), ("history", "change_id", "memory_id")):
            sql = f"""SELECT {key}, CAST({name} AS BLOB), {self._row(table)} FROM {table}
WHERE {key} > ? ORDER BY {key} LIMIT ?"""
            for _, memory_id, text in self._paged(sql):
                yield RemainingText("memory", memory_id.decode(errors="replace"), text)
        yield from self._remaining_graph()
        for place, text in self._db.rows(_SELECT_SETTINGS):
            yield RemainingText("place", place, text)
        for table in _OTHERS:
            rows = self._db.rows(f"SELECT {self._row(table)} FROM {table}")
            for start in range(0, len(rows), _PAGE):
                text = b"\x00".join(text for (text,) in rows[start : start + _PAGE])
                yield RemainingText("other", table, text)

    def _remaining_graph(self) -> Iterator[RemainingText]:
        """Yield the texts of the graph: as of the memory that says so, or as written by hand."""
        for table, kind in (("entities", "entity"), ("relationships", "relationship")):
            sql = f"""SELECT g.seq, g.id, CASE WHEN g.by_hand = 0 THEN (SELECT memory_id
  FROM {kind}_sources WHERE {kind}_id = g.id ORDER BY rowid LIMIT 1) END, {self._row(table)}
FROM {table} AS g WHERE g.seq > ? ORDER BY g.seq LIMIT ?"""
            for _, graph_id, memory_id, text in self._paged(sql):
                if memory_id is None:
                    yield RemainingText("place", f"the {kind} {graph_id} of the graph", text)
                else:
                    yield RemainingText("memory", memory_id, text)
            sources = f"{kind}_sources"
            sql = f"""SELECT rowid, memory_id, {self._row(sources)} FROM {sources}
WHERE rowid > ? ORDER BY rowid LIMIT ?"""
            for _, memory_id, text in self._paged(sql):
                yield RemainingText("memory", memory_id, text)
        sql = f"""SELECT alias_id, entity_id, memory_id, {self._row("entity_aliases")}
FROM entity_aliases WHERE alias_id > ? ORDER BY alias_id LIMIT ?"""
        for _, graph_id, memory_id, text in self._paged(sql):
            if memory_id is None:
                yield RemainingText(
                    "place", f"an alias of the entity {graph_id} of the graph", text
                )
            else:
                yield RemainingText("memory", memory_id, text)

    def _row(self, table: str) -> str:
        """Return the SQL of a row in the form of the file: all columns, with nothing in between."""
        names = self._db.rows("SELECT name FROM pragma_table_info(?)", (table,))
        columns = ", ".join(quoted(name) for (name,) in names)
        return f"CAST(concat({columns}) AS BLOB)"

    def places_beyond(self) -> list[str]:
        return []  # the whole file is searched

    def remaining_vectors(self) -> Iterator[bytes]:
        for _, text_hash, vector in self._paged(_SELECT_EMBEDDINGS):
            yield text_hash + vector

    def _paged(self, sql: str, *values: str | None) -> Iterator[Row]:
        after = BEFORE_ALL
        while rows := self._db.rows(sql, (after, _PAGE, *values)):
            yield from rows
            after = page_end(rows[-1][0], after=after)


def _text(data: bytes | None) -> str | None:
    """Return a text, perhaps written by another program and not UTF-8."""
    return None if data is None else data.decode(errors="surrogateescape")
