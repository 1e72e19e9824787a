"""Queries that erase memories permanently from all tables, and find what is left in them.

Deleting keeps the history; here it goes too. What PostgreSQL keeps beside its tables (dead rows
until a vacuum, its write-ahead log, replicas, copies) is beyond the reach of queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_memory.storage.change_records import ErasedText, RemainingText, RemovedRows, Statement
from agent_memory.storage.erased_texts import (
    ChangedText,
    add_change,
    add_row,
    statements_before,
)
from agent_memory.storage.postgres.connection import Row
from agent_memory.storage.postgres.postings import key_of
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.records import BEFORE_ALL, page_end

_PAGE: Final = 1_000
_AMONG: Final = "= ANY (%(ids)s::text[])"
_SELECT_KNOWN: Final = f"""
SELECT id FROM memories WHERE id {_AMONG}
UNION SELECT memory_id FROM history WHERE memory_id {_AMONG}"""
_SELECT_NOW: Final = f"""
SELECT content, tags, metadata, task_metadata FROM memories WHERE id {_AMONG}"""
_SELECT_CHANGES: Final = f"""
SELECT old_values, new_values FROM history WHERE memory_id {_AMONG}"""
_SELECT_VECTORS: Final = f"""
SELECT e.text_hash, e.vector FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
WHERE m.id {_AMONG}"""
_COUNT: Final = f"""
SELECT (SELECT count(*) FROM memories WHERE id {_AMONG}),
  (SELECT count(*) FROM history WHERE memory_id {_AMONG}),
  (SELECT count(*) FROM embeddings AS e JOIN memories AS m USING (agent_id, seq)
    WHERE m.id {_AMONG})"""
_SELECT_EMBEDDINGS: Final = """
SELECT model_id, seq, text_hash, vector FROM embeddings
WHERE (model_id, seq) > (%s, %s) ORDER BY model_id, seq LIMIT %s"""
_SELECT_SETTINGS: Final = """
SELECT 'the settings of the agent', concat(config, migration) FROM agent
UNION ALL SELECT 'the reason of rejection ' || rejection_id, concat(reason) FROM rejections"""
_SELECT_STATED: Final = f"""
SELECT seq, id, content, user_id FROM memories
WHERE seq > %(after)s AND (%(ids)s::text[] IS NULL OR id {_AMONG})
ORDER BY seq LIMIT %(page)s"""
# The user of a memory whose known history has only updates is in its row.
_SELECT_STATED_BEFORE: Final = f"""
SELECT h.memory_id, h.change_id, h.event, h.old_values, h.new_values, m.user_id
FROM history AS h LEFT JOIN memories AS m ON m.agent_id = h.agent_id AND m.id = h.memory_id
WHERE (h.memory_id, h.change_id) > (%(after_id)s, %(after)s)
AND (%(ids)s::text[] IS NULL OR h.memory_id {_AMONG})
ORDER BY h.memory_id, h.change_id LIMIT %(page)s"""
_SELECT_GRAPH_ROWS: Final = """
SELECT g.seq, g.id, CASE WHEN g.by_hand = 0 THEN (SELECT x.memory_id
  FROM {kind}_sources AS x WHERE x.{kind}_id = g.id ORDER BY x.seq LIMIT 1) END, {row}
FROM {table} AS g WHERE g.seq > %(after)s ORDER BY g.seq LIMIT %(page)s"""
_SELECT_SOURCES: Final = """
SELECT x.seq, x.memory_id, {row} FROM {kind}_sources AS x
WHERE x.seq > %(after)s ORDER BY x.seq LIMIT %(page)s"""
_SELECT_ALIASES: Final = """
SELECT a.alias_id, a.entity_id, a.memory_id, {row} FROM entity_aliases AS a
WHERE a.alias_id > %(after)s ORDER BY a.alias_id LIMIT %(page)s"""
_SELECT_COLUMNS: Final = """
SELECT quote_ident(attname) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
_OTHERS: Final = ("agent", "embedding_models", "events", "operations", "recalls", "scratchpad")
"""The tables with texts, except those of memories, their history and the graph."""


class ErasureQueries(Table):
    """Queries that erase memories permanently, and find what is left of them."""

    # Erasing -------------------------------------------------------------------------------------
    def known_ids(self, memory_ids: Sequence[str]) -> set[str]:
        rows = self._db.rows(_SELECT_KNOWN, {"ids": list(memory_ids)})
        return {memory_id for (memory_id,) in rows}

    def texts_of(self, memory_ids: Sequence[str]) -> ErasedText:
        ids = {"ids": list(memory_ids)}
        erased = ErasedText(statements=list(self.statements(memory_ids)))
        for content, *objects in self._db.rows(_SELECT_NOW, ids):
            add_row(erased, content, objects)
        for row in self._db.rows(_SELECT_CHANGES, ids):
            for values in row:
                add_change(erased, values)
        for row in self._db.rows(_SELECT_VECTORS, ids):
            erased.vectors.update(row)
        return erased

    def statements(self, memory_ids: Sequence[str] | None = None) -> Iterator[Statement]:
        ids = None if memory_ids is None else list(memory_ids)
        for _, memory_id, content, user_id in self._paged(_SELECT_STATED, ids=ids):
            yield Statement(memory_id, frozenset({content}), frozenset({user_id}))
        yield from statements_before(
            ChangedText(memory_id, *texts) for memory_id, _, *texts in self._stated_before(ids)
        )

    def _stated_before(self, ids: list[str] | None) -> Iterator[Row]:
        """Yield all changes, grouped by memory, reading one page at a time."""
        memory_id, change_id = "", 0
        while True:
            values = {"after_id": memory_id, "after": change_id, "page": _PAGE, "ids": ids}
            rows = self._db.rows(_SELECT_STATED_BEFORE, values)
            if not rows:
                return
            yield from rows
            memory_id, change_id = rows[-1][:2]

    def remove(self, memory_ids: Sequence[str]) -> RemovedRows:
        ids = {"ids": list(memory_ids)}
        counts = self._db.row(_COUNT, ids)
        self._db.run(f"DELETE FROM memories WHERE id {_AMONG}", ids)
        # Including that of the deletion.
        self._db.run(f"DELETE FROM history WHERE memory_id {_AMONG}", ids)
        return RemovedRows(*counts) if counts else RemovedRows(0, 0, 0)

    # What is left --------------------------------------------------------------------------------
    def unused_words(self, words: Iterable[str]) -> list[str]:
        asked = {word: key_of(word) for word in words}
        sql = "SELECT word FROM memory_words WHERE word = ANY (%s::text[])"
        used = {key for (key,) in self._db.rows(sql, (list(asked.values()),))}
        return [word for word, key in asked.items() if key not in used]

    def remaining_texts(self) -> Iterator[RemainingText]:
        for table, key, name in (("memories", "seq", "id"), ("history", "change_id", "memory_id")):
            sql = f"""SELECT t.{key}, t.{name}, {self._row(table)} FROM {table} AS t
WHERE t.{key} > %(after)s ORDER BY t.{key} LIMIT %(page)s"""
            for _, memory_id, text in self._paged(sql):
                yield RemainingText("memory", memory_id, text.encode())
        yield from self._remaining_graph()
        for place, text in self._db.rows(_SELECT_SETTINGS):
            yield RemainingText("place", place, text.encode())
        for table in _OTHERS:
            for (text,) in self._db.rows(f"SELECT {self._row(table)} FROM {table}"):
                yield RemainingText("other", table, text.encode())

    def _remaining_graph(self) -> Iterator[RemainingText]:
        """Yield the texts of the graph: as of the memory that says so, or as written by hand."""
        for table, kind in (("entities", "entity"), ("relationships", "relationship")):
            sql = _SELECT_GRAPH_ROWS.format(table=table, kind=kind, row=self._row(table))
            for _, graph_id, memory_id, text in self._paged(sql):
                yield _of_graph(memory_id, f"the {kind} {graph_id} of the graph", text)
            sql = _SELECT_SOURCES.format(kind=kind, row=self._row(f"{kind}_sources"))
            for _, memory_id, text in self._paged(sql):
                yield RemainingText("memory", memory_id, text.encode())
        sql = _SELECT_ALIASES.format(row=self._row("entity_aliases"))
        for _, graph_id, memory_id, text in self._paged(sql):
            yield _of_graph(memory_id, f"an alias of the entity {graph_id} of the graph", text)

    def _row(self, table: str) -> str:
        """Return the SQL of all texts and numbers of a row, with nothing in between."""
        names = self._db.rows(_SELECT_COLUMNS, (table,))
        return f"concat({', '.join(name for (name,) in names)})"

    def places_beyond(self) -> list[str]:
        is_archived = self._db.value("SELECT current_setting('archive_mode') <> 'off'")
        return [
            "the pages of its tables, until they are vacuumed and reused",
            "its write-ahead log" + (", and the archive of that" if is_archived else ""),
            "its replicas, and backups that were made before",
        ]

    def remaining_vectors(self) -> Iterator[bytes]:
        last: tuple[int, ...] = (0, 0)
        while rows := self._db.rows(_SELECT_EMBEDDINGS, (*last, _PAGE)):
            for _, _, text_hash, vector in rows:
                yield text_hash + vector
            last = rows[-1][:2]

    def _paged(self, sql: str, *, ids: list[str] | None = None) -> Iterator[Row]:
        after = BEFORE_ALL
        while rows := self._db.rows(sql, {"after": after, "page": _PAGE, "ids": ids}):
            yield from rows
            after = page_end(rows[-1][0], after=after)


def _of_graph(memory_id: str | None, place: str, text: str) -> RemainingText:
    if memory_id is None:
        return RemainingText("place", place, text.encode())
    return RemainingText("memory", memory_id, text.encode())
