"""The graph's rows in merging, undo, erasure, import and export."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from agent_memory.models.graph import name_key
from agent_memory.models.times import format_time
from agent_memory.storage.graph_rows import (
    EDGE_COLUMNS,
    ENTITY_COLUMNS,
    STATEMENT_COLUMNS,
    exported_entity,
    exported_row,
    exported_sources,
    imported_row,
    imported_sources,
)
from agent_memory.storage.memory_values import column_value
from agent_memory.storage.records import BEFORE_ALL, page_end
from agent_memory.storage.sql import Table

_PAGE: Final = 1_000
_IS_LOST: Final = """NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = {0})
AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.memory_id = {0})"""
"""Whether nothing is left of a memory, not even a history."""
_CLOSED: Final = ("relationships", "relationship_sources")
"""The tables of what can be closed."""
_SOURCE: Final = ("memory_id", "change_id", "is_undone")
_MERGE_ENTITY: Final = """
UPDATE entities AS kept SET by_hand = {greatest}(kept.by_hand, other.by_hand),
  type = coalesce(kept.type, other.type),
  confidence = {greatest}(kept.confidence, other.confidence)
FROM entities AS other WHERE kept.id = ? AND other.id = ?"""
_SAY_THE_SAME: Final = """{0}.source_id = {1}.source_id
  AND {0}.relationship = {1}.relationship AND {0}.target_id = {1}.target_id"""
_SELECT_TWINS: Final = f"""
SELECT r.id, o.id FROM relationships AS r JOIN relationships AS o
  ON {_SAY_THE_SAME.format("o", "r")} AND o.seq < r.seq
WHERE (r.source_id = ? OR r.target_id = ?) AND r.valid_to IS NULL AND o.valid_to IS NULL
ORDER BY r.seq, o.seq"""
"""Each open relationship that repeats older ones, with those older ones, oldest first."""
_MERGE_EDGE: Final = """
UPDATE relationships AS kept SET by_hand = {greatest}(kept.by_hand, twin.by_hand),
  confidence = {greatest}(kept.confidence, twin.confidence),
  valid_from = {least}(kept.valid_from, twin.valid_from)
FROM relationships AS twin WHERE kept.id = ? AND twin.id = ?"""
_FOLLOW_UNDO: Final = """
UPDATE {table} SET {flag} = 1 - {flag},
  {change} = (SELECT max(h.change_id) FROM history AS h WHERE h.memory_id = {table}.{memory})
WHERE {memory} {among} AND {change} IN (
  SELECT h.change_id FROM history AS h WHERE h.event = 'UPDATE' AND h.change_id {among})"""
_HOLD_STATEMENTS: Final = """
UPDATE relationship_sources SET closing_is_undone = ? WHERE closed_by = ? AND memory_id = ?"""
_HOLD_EDGES: Final = """
UPDATE relationships SET closing_is_undone = CASE WHEN EXISTS (
  SELECT 1 FROM relationship_sources AS x JOIN memories AS m ON m.id = x.memory_id
  WHERE x.relationship_id = relationships.id AND x.closed_by = relationships.closed_by
    AND x.is_undone = 0 AND x.closing_is_undone = 1) THEN 1 ELSE ? END
WHERE closed_by = ? AND id IN (
  SELECT relationship_id FROM relationship_sources WHERE memory_id = ? AND is_undone = 0)"""
"""Another memory that states a relationship too may be kept when one no longer is."""
_FORGET_CONTEXTS: Final = """
UPDATE relationships SET temporal_context = NULL WHERE by_hand = 0
AND id IN (SELECT relationship_id FROM relationship_sources WHERE memory_id {among})"""
_FORGET_TYPES: Final = """
UPDATE entities AS e SET type = (
  SELECT x.type FROM entity_sources AS x
  WHERE x.entity_id = e.id AND x.type IS NOT NULL AND NOT x.memory_id {among}
  ORDER BY x.updated_at DESC NULLS LAST, x.{number} DESC LIMIT 1)
WHERE e.by_hand = 0 AND e.type IS NOT NULL AND EXISTS (
  SELECT 1 FROM entity_sources AS x
  WHERE x.entity_id = e.id AND x.type = e.type AND x.memory_id {among})"""
_SELECT_HELD: Final = """
SELECT name FROM entities UNION SELECT type FROM entities UNION SELECT alias FROM entity_aliases
UNION SELECT relationship FROM relationships UNION SELECT temporal_context FROM relationships
UNION SELECT name FROM entity_sources UNION SELECT type FROM entity_sources
UNION SELECT temporal_context FROM relationship_sources"""
_COUNT_BY_HAND: Final = """
SELECT (SELECT count(*) FROM entities WHERE by_hand = 1 AND user_id = ?)
  + (SELECT count(*) FROM relationships WHERE by_hand = 1 AND user_id = ?)"""
_SWEEP_EDGES: Final = """
DELETE FROM relationships AS r WHERE r.by_hand = 0
AND NOT EXISTS (SELECT 1 FROM relationship_sources AS x WHERE x.relationship_id = r.id)"""
_IS_NO_END: Final = """NOT EXISTS (SELECT 1 FROM relationships AS r WHERE r.source_id = e.id)
AND NOT EXISTS (SELECT 1 FROM relationships AS r WHERE r.target_id = e.id)"""
_SWEEP_ENTITIES: Final = f"""
DELETE FROM entities AS e WHERE e.by_hand = 0
AND NOT EXISTS (SELECT 1 FROM entity_sources AS x WHERE x.entity_id = e.id)
AND {_IS_NO_END}"""
_IS_EDGE_SAID: Final = """({0}.by_hand = 1
  OR EXISTS (SELECT 1 FROM relationship_sources AS x WHERE x.relationship_id = {0}.id))"""
_IS_SAID: Final = {
    "relationships": _IS_EDGE_SAID.format("t"),
    "entities": f"""(t.by_hand = 1
  OR EXISTS (SELECT 1 FROM entity_sources AS x WHERE x.entity_id = t.id)
  OR EXISTS (SELECT 1 FROM relationships AS e WHERE e.source_id = t.id
    AND {_IS_EDGE_SAID.format("e")})
  OR EXISTS (SELECT 1 FROM relationships AS e WHERE e.target_id = t.id
    AND {_IS_EDGE_SAID.format("e")}))""",
}
"""The rows ``t`` that an export writes, by table; no memory mentions the others any more."""
_SELECT_SAME_ENTITY: Final = """
SELECT id FROM entities WHERE (id = ? AND user_id IS NOT DISTINCT FROM ?)
  OR (name_key = ? AND user_id IS NOT DISTINCT FROM ?)
ORDER BY id = ? DESC LIMIT 1"""
_SELECT_SAME_EDGE: Final = """
SELECT id FROM relationships
WHERE source_id = ? AND target_id = ? AND (id = ?
  OR (relationship = ? AND valid_from = ? AND valid_to IS NOT DISTINCT FROM ?))
ORDER BY id = ? DESC, seq LIMIT 1"""


class GraphMaintenance(Table):
    """Queries on the graph for merging, undo, erasure, import and export."""

    # Merging -------------------------------------------------------------------------------------
    def merge(self, keep: str, other: str) -> None:
        for kind in ("source", "target"):
            sql = f"UPDATE relationships SET {kind}_id = ? WHERE {kind}_id = ?"
            self._db.run(sql, (keep, other))
        self._db.run("UPDATE entity_aliases SET entity_id = ? WHERE entity_id = ?", (keep, other))
        self._copy_sources("entity", other, keep)
        self._db.run(_MERGE_ENTITY.format(greatest=self._db.GREATEST), (keep, other))
        self._db.run("DELETE FROM entities WHERE id = ?", (other,))
        self._merge_duplicates(keep)

    def _merge_duplicates(self, entity_id: str) -> None:
        """Merge the open relationships of an entity that say the same."""
        merge = _MERGE_EDGE.format(greatest=self._db.GREATEST, least=self._db.LEAST)
        oldest: dict[str, str] = {}
        for twin, kept in self._db.rows(_SELECT_TWINS, (entity_id, entity_id)):
            oldest.setdefault(twin, kept)
        for twin, kept in oldest.items():
            self._copy_sources("relationship", twin, kept)
            self._db.run(merge, (kept, twin))
            self._db.run("DELETE FROM relationships WHERE id = ?", (twin,))

    def _copy_sources(self, kind: str, source_id: str, target_id: str) -> None:
        closing = ("closing_change_id",) if kind == "relationship" else ()
        columns = ", ".join((*_SOURCE, *STATEMENT_COLUMNS[kind], *closing))
        sql = f"""INSERT INTO {kind}_sources ({kind}_id, {columns})
SELECT ?, {columns} FROM {kind}_sources WHERE {kind}_id = ?
ORDER BY {self._db.SOURCE_NUMBER} ON CONFLICT DO NOTHING"""
        self._db.run(sql, (target_id, source_id))

    # Undoing -------------------------------------------------------------------------------------
    def follow_undo(self, memory_ids: Sequence[str], change_ids: Sequence[int]) -> None:
        values = (self._db.listed(memory_ids), self._db.listed(change_ids))
        of_source = {"flag": "is_undone", "change": "change_id", "memory": "memory_id"}
        of_closing = {
            "flag": "closing_is_undone",
            "change": "closing_change_id",
            "memory": "closed_by",
        }
        for table, columns in (
            ("entity_sources", of_source),
            ("relationship_sources", of_source),
            *((table, of_closing) for table in _CLOSED),
        ):
            sql = _FOLLOW_UNDO.format(table=table, among=self._db.AMONG, **columns)
            self._db.run(sql, values)

    def hold(self, memory_id: str, closed_by: str, *, is_held: bool) -> None:
        for sql in (_HOLD_STATEMENTS, _HOLD_EDGES):
            self._db.run(sql, (int(is_held), closed_by, memory_id))

    def restore_to(self, moment: datetime) -> None:
        stamp = format_time(moment)
        self._db.run("DELETE FROM relationships WHERE created_at > ?", (stamp,))
        for table in _CLOSED:
            sql = f"UPDATE {table} SET valid_to = NULL, closed_by = NULL WHERE valid_to > ?"
            self._db.run(sql, (stamp,))
        for kind in STATEMENT_COLUMNS:
            self._db.run(f"DELETE FROM {kind}_sources WHERE created_at > ?", (stamp,))
        # A relationship that stays may join entities created when the clock was ahead.
        sql = f"DELETE FROM entities AS e WHERE e.created_at > ? AND {_IS_NO_END}"
        self._db.run(sql, (stamp,))

    # Erasing -------------------------------------------------------------------------------------
    def texts(self) -> set[str]:
        return {text for (text,) in self._db.rows(_SELECT_HELD) if isinstance(text, str)}

    def count_by_hand(self, user_id: str) -> int:
        return int(self._db.value(_COUNT_BY_HAND, (user_id, user_id)))

    def disown(self, user_id: str) -> None:
        for table in ("relationships", "entities"):
            sql = f"UPDATE {table} SET by_hand = 0 WHERE by_hand = 1 AND user_id = ?"
            self._db.run(sql, (user_id,))

    def erase(self, memory_ids: Sequence[str]) -> None:
        ids, among = self._db.listed(memory_ids), self._db.AMONG
        self._db.run(_FORGET_CONTEXTS.format(among=among), (ids,))
        types = _FORGET_TYPES.format(among=among, number=self._db.SOURCE_NUMBER)
        self._db.run(types, (ids, ids))
        self.sweep()

    def sweep(self) -> None:
        for table in ("relationship_sources", "entity_sources", "entity_aliases"):
            is_lost = _IS_LOST.format(f"{table}.memory_id")
            self._db.run(f"DELETE FROM {table} WHERE memory_id IS NOT NULL AND {is_lost}")
        for table in _CLOSED:
            is_lost = _IS_LOST.format(f"{table}.closed_by")
            self._db.run(
                f"""UPDATE {table} SET valid_to = NULL, closed_by = NULL, closing_change_id = NULL,
closing_is_undone = 0 WHERE closed_by IS NOT NULL AND {is_lost}"""
            )
        self._db.run(_SWEEP_EDGES)
        self._db.run(_SWEEP_ENTITIES)

    # Export and import ---------------------------------------------------------------------------
    def iterate_entities(self) -> Iterator[dict[str, Any]]:
        for row in self._paged("entities", ENTITY_COLUMNS):
            aliases = self._db.rows(
                "SELECT alias, memory_id FROM entity_aliases WHERE entity_id = ? ORDER BY alias_id",
                (row["id"],),
            )
            yield {**exported_entity(row, aliases), **self._exported_sources("entity", row)}

    def iterate_edges(self) -> Iterator[dict[str, Any]]:
        for row in self._paged("relationships", EDGE_COLUMNS):
            yield {**exported_row(row), **self._exported_sources("relationship", row)}

    def _paged(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        sql = f"""SELECT {", ".join(columns)}, seq FROM {table} AS t
WHERE seq > ? AND {_IS_SAID[table]} ORDER BY seq LIMIT ?"""
        after = BEFORE_ALL
        while rows := self._db.rows(sql, (after, _PAGE)):
            for row in rows:
                yield dict(zip(columns, row, strict=False))
            after = page_end(rows[-1][-1], after=after)

    def _exported_sources(self, kind: str, summary: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memories behind a row, and where each says something other than the row."""
        names = ", ".join(("memory_id", "is_undone", *STATEMENT_COLUMNS[kind]))
        sql = f"SELECT {names} FROM {kind}_sources WHERE {kind}_id = ?"
        sql += f" ORDER BY {self._db.SOURCE_NUMBER}"
        return exported_sources(kind, summary, self._db.rows(sql, (summary["id"],)))

    def import_entity(self, values: Mapping[str, Any], moment: str) -> str:
        user_id = values.get("user_id")
        key = name_key(values["name"], user_id)
        asked = (values["id"], user_id, key, user_id, values["id"])
        entity_id = self._db.value(_SELECT_SAME_ENTITY, asked)
        if entity_id is None:
            columns = imported_row(ENTITY_COLUMNS, values, moment)
            if self._is_taken("entities", values["id"]):  # another user's
                del columns["id"]
            entity_id = self._insert("entities", {**columns, "name_key": key})
        self._import_aliases(str(entity_id), values)
        self._import_sources("entity", str(entity_id), values, moment)
        return str(entity_id)

    def _import_aliases(self, entity_id: str, values: Mapping[str, Any]) -> None:
        learned = values.get("alias_sources", {})
        for alias in values.get("aliases", ()):
            select_alias = "SELECT 1 FROM entity_aliases WHERE entity_id = ? AND alias = ?"
            if self._db.row(select_alias, (entity_id, alias)) is None:
                self._db.run(
                    "INSERT INTO entity_aliases (entity_id, alias, alias_key, memory_id)"
                    " VALUES (?, ?, ?, ?)",
                    (entity_id, alias, name_key(alias, values.get("user_id")), learned.get(alias)),
                )

    def import_edge(self, values: Mapping[str, Any], moment: str) -> bool:
        names = ("source_id", "target_id", "id", "relationship", "valid_from", "valid_to", "id")
        existing_id = self._db.value(_SELECT_SAME_EDGE, tuple(map(values.get, names)))
        edge_id = existing_id
        if existing_id is None:
            columns = imported_row(EDGE_COLUMNS, values, moment)
            if self._is_taken("relationships", values["id"]):
                del columns["id"]
            edge_id = self._insert("relationships", columns)
        self._import_sources("relationship", str(edge_id), values, moment)
        return existing_id is None

    def has_both_entities(self, values: Mapping[str, Any]) -> bool:
        sql = f"""SELECT count(*) FROM entities
WHERE id {self._db.AMONG} AND user_id IS NOT DISTINCT FROM ?"""
        ends = {values["source_id"], values["target_id"]}
        count = self._db.value(sql, (self._db.listed(ends), values.get("user_id")))
        return bool(count == len(ends))

    def _is_taken(self, table: str, graph_id: str) -> bool:
        return self._db.row(f"SELECT 1 FROM {table} WHERE id = ?", (graph_id,)) is not None

    def _insert(self, table: str, values: Mapping[str, Any]) -> str:
        placeholders = ", ".join("?" * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders}) RETURNING id"
        return str(self._db.value(sql, tuple(map(column_value, values.values()))))

    def _import_sources(
        self, kind: str, graph_id: str, values: Mapping[str, Any], moment: str
    ) -> None:
        """Import the memories behind a row, with what each says."""
        names = ("memory_id", "is_undone", *STATEMENT_COLUMNS[kind])
        sql = f"""INSERT INTO {kind}_sources ({kind}_id, {", ".join(names)})
VALUES (?{", ?" * len(names)}) ON CONFLICT DO NOTHING"""
        rows = imported_sources(kind, values, moment)
        if rows:
            self._db.run_many(sql, [(graph_id, *row) for row in rows])
