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
from agent_memory.storage.postgres.tables import Table
from agent_memory.storage.records import BEFORE_ALL, page_end

_PAGE: Final = 1_000
_AMONG: Final = "= ANY (%(ids)s::text[])"
_IS_LOST: Final = """NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.id = {0})
AND NOT EXISTS (SELECT 1 FROM history AS h WHERE h.memory_id = {0})"""
"""Whether nothing is left of a memory, not even a history."""
_CLOSED: Final = ("relationships", "relationship_sources")
"""The tables of what can be closed."""
_SOURCE: Final = ("memory_id", "change_id", "is_undone")
_MERGE_ENTITY: Final = """
UPDATE entities AS kept SET by_hand = greatest(kept.by_hand, other.by_hand),
  type = coalesce(kept.type, other.type), confidence = greatest(kept.confidence, other.confidence)
FROM entities AS other WHERE kept.id = %s AND other.id = %s"""
_SELECT_TWINS: Final = """
SELECT id, first_id FROM (
  SELECT r.id, r.seq, (array_agg(o.id ORDER BY o.seq))[1] AS first_id, min(o.seq) AS first_seq
  FROM relationships AS r JOIN relationships AS o
    ON o.source_id = r.source_id AND o.relationship = r.relationship AND o.target_id = r.target_id
  WHERE (r.source_id = %(id)s OR r.target_id = %(id)s)
    AND r.valid_to IS NULL AND o.valid_to IS NULL
  GROUP BY r.id, r.seq) AS twins
WHERE first_seq < seq ORDER BY seq"""
_MERGE_EDGE: Final = """
UPDATE relationships AS kept SET by_hand = greatest(kept.by_hand, twin.by_hand),
  confidence = greatest(kept.confidence, twin.confidence),
  valid_from = least(kept.valid_from, twin.valid_from)
FROM relationships AS twin WHERE kept.id = %s AND twin.id = %s"""
_FOLLOW_UNDO: Final = """
UPDATE {table} SET {flag} = 1 - {flag},
  {change} = (SELECT max(h.change_id) FROM history AS h WHERE h.memory_id = {table}.{memory})
WHERE {memory} = ANY (%(memory_ids)s::text[]) AND {change} IN (
  SELECT h.change_id FROM history AS h
  WHERE h.event = 'UPDATE' AND h.change_id = ANY (%(change_ids)s::bigint[]))"""
_SELECT_TEXTS: Final = f"""
SELECT e.name, e.type FROM entities AS e JOIN entity_sources AS x ON x.entity_id = e.id
WHERE x.memory_id {_AMONG}
UNION SELECT r.relationship, r.temporal_context FROM relationships AS r
JOIN relationship_sources AS x ON x.relationship_id = r.id WHERE x.memory_id {_AMONG}
UNION SELECT alias, NULL FROM entity_aliases WHERE memory_id {_AMONG}
UNION SELECT name, type FROM entity_sources WHERE memory_id {_AMONG}
UNION SELECT temporal_context, NULL FROM relationship_sources WHERE memory_id {_AMONG}"""
_FORGET_CONTEXTS: Final = f"""
UPDATE relationships SET temporal_context = NULL WHERE by_hand = 0
AND id IN (SELECT relationship_id FROM relationship_sources WHERE memory_id {_AMONG})"""
_FORGET_TYPES: Final = f"""
UPDATE entities AS e SET type = (
  SELECT x.type FROM entity_sources AS x
  WHERE x.entity_id = e.id AND x.type IS NOT NULL AND NOT x.memory_id {_AMONG}
  ORDER BY x.updated_at DESC NULLS LAST, x.seq DESC LIMIT 1)
WHERE e.by_hand = 0 AND e.type IS NOT NULL AND EXISTS (
  SELECT 1 FROM entity_sources AS x
  WHERE x.entity_id = e.id AND x.type = e.type AND x.memory_id {_AMONG})"""
_SELECT_HELD: Final = """
SELECT name FROM entities UNION SELECT type FROM entities UNION SELECT alias FROM entity_aliases
UNION SELECT relationship FROM relationships UNION SELECT temporal_context FROM relationships
UNION SELECT name FROM entity_sources UNION SELECT type FROM entity_sources
UNION SELECT temporal_context FROM relationship_sources"""
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
"""By table what an export tells of rows ``t``: no memory speaks of the others any more."""
_SELECT_SAME_ENTITY: Final = """
SELECT id FROM entities
WHERE (id = %(id)s OR name_key = %(key)s) AND user_id IS NOT DISTINCT FROM %(user_id)s::text
ORDER BY id = %(id)s DESC LIMIT 1"""
_SELECT_SAME_EDGE: Final = """
SELECT id FROM relationships
WHERE source_id = %(source_id)s AND target_id = %(target_id)s AND (id = %(id)s
  OR (relationship = %(relationship)s AND valid_from = %(valid_from)s
    AND valid_to IS NOT DISTINCT FROM %(valid_to)s::text))
ORDER BY id = %(id)s DESC, seq LIMIT 1"""


class GraphMaintenance(Table):
    """Queries on the graph for merging, undo, erasure, import and export."""

    # Merging -------------------------------------------------------------------------------------
    def merge(self, keep: str, other: str) -> None:
        for kind in ("source", "target"):
            sql = f"UPDATE relationships SET {kind}_id = %s WHERE {kind}_id = %s"
            self._db.run(sql, (keep, other))
        self._db.run("UPDATE entity_aliases SET entity_id = %s WHERE entity_id = %s", (keep, other))
        self._copy_sources("entity", other, keep)
        self._db.run(_MERGE_ENTITY, (keep, other))
        self._db.run("DELETE FROM entities WHERE id = %s", (other,))
        self._merge_duplicates(keep)

    def _merge_duplicates(self, entity_id: str) -> None:
        """Merge the open relationships of an entity that say the same."""
        for twin, kept in self._db.rows(_SELECT_TWINS, {"id": entity_id}):
            self._copy_sources("relationship", twin, kept)
            self._db.run(_MERGE_EDGE, (kept, twin))
            self._db.run("DELETE FROM relationships WHERE id = %s", (twin,))

    def _copy_sources(self, kind: str, source_id: str, target_id: str) -> None:
        closing = ("closing_change_id",) if kind == "relationship" else ()
        columns = ", ".join((*_SOURCE, *STATEMENT_COLUMNS[kind], *closing))
        sql = f"""INSERT INTO {kind}_sources ({kind}_id, {columns})
SELECT %s, {columns} FROM {kind}_sources WHERE {kind}_id = %s ORDER BY seq
ON CONFLICT (agent_id, {kind}_id, memory_id) DO NOTHING"""
        self._db.run(sql, (target_id, source_id))

    # Undoing -------------------------------------------------------------------------------------
    def follow_undo(self, memory_ids: Sequence[str], change_ids: Sequence[int]) -> None:
        values = {"memory_ids": list(memory_ids), "change_ids": list(change_ids)}
        of_source = {"flag": "is_undone", "change": "change_id", "memory": "memory_id"}
        of_closing = {
            "flag": "closing_is_undone",
            "change": "closing_change_id",
            "memory": "closed_by",
        }
        for table in ("entity_sources", "relationship_sources"):
            self._db.run(_FOLLOW_UNDO.format(table=table, **of_source), values)
        for table in _CLOSED:
            self._db.run(_FOLLOW_UNDO.format(table=table, **of_closing), values)

    def restore_to(self, moment: datetime) -> None:
        stamp = format_time(moment)
        self._db.run("DELETE FROM relationships WHERE created_at > %s", (stamp,))
        for table in _CLOSED:
            sql = f"UPDATE {table} SET valid_to = NULL, closed_by = NULL WHERE valid_to > %s"
            self._db.run(sql, (stamp,))
        for kind in STATEMENT_COLUMNS:
            self._db.run(f"DELETE FROM {kind}_sources WHERE created_at > %s", (stamp,))
        # A relationship that stays may join entities that a clock that was ahead made.
        sql = f"DELETE FROM entities AS e WHERE e.created_at > %s AND {_IS_NO_END}"
        self._db.run(sql, (stamp,))

    # Erasing -------------------------------------------------------------------------------------
    def texts_of(self, memory_ids: Sequence[str]) -> set[str]:
        rows = self._db.rows(_SELECT_TEXTS, {"ids": list(memory_ids)})
        return {text for row in rows for text in row if text is not None}

    def texts(self) -> set[str]:
        return {text for (text,) in self._db.rows(_SELECT_HELD) if text is not None}

    def erase(self, memory_ids: Sequence[str]) -> None:
        ids = {"ids": list(memory_ids)}
        self._db.run(_FORGET_CONTEXTS, ids)
        self._db.run(_FORGET_TYPES, ids)
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

    # Writing out and taking in -------------------------------------------------------------------
    def iterate_entities(self) -> Iterator[dict[str, Any]]:
        for row in self._paged("entities", ENTITY_COLUMNS):
            aliases = self._db.rows(
                "SELECT alias, memory_id FROM entity_aliases WHERE entity_id = %s"
                " ORDER BY alias_id",
                (row["id"],),
            )
            yield {**exported_entity(row, aliases), **self._exported_sources("entity", row)}

    def iterate_edges(self) -> Iterator[dict[str, Any]]:
        for row in self._paged("relationships", EDGE_COLUMNS):
            yield {**exported_row(row), **self._exported_sources("relationship", row)}

    def _paged(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        sql = f"""SELECT {", ".join(columns)}, seq FROM {table} AS t
WHERE seq > %s AND {_IS_SAID[table]} ORDER BY seq LIMIT %s"""
        after = BEFORE_ALL
        while rows := self._db.rows(sql, (after, _PAGE)):
            for row in rows:
                yield dict(zip(columns, row, strict=False))
            after = page_end(rows[-1][-1], after=after)

    def _exported_sources(self, kind: str, summary: Mapping[str, Any]) -> dict[str, Any]:
        """Return the memories behind a row, and what each says otherwise than the row does."""
        names = ", ".join(("memory_id", "is_undone", *STATEMENT_COLUMNS[kind]))
        sql = f"SELECT {names} FROM {kind}_sources WHERE {kind}_id = %s ORDER BY seq"
        return exported_sources(kind, summary, self._db.rows(sql, (summary["id"],)))

    def import_entity(self, values: Mapping[str, Any], moment: str) -> str:
        user_id = values.get("user_id")
        key = name_key(values["name"], user_id)
        asked = {"id": values["id"], "key": key, "user_id": user_id}
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
            select_alias = "SELECT 1 FROM entity_aliases WHERE entity_id = %s AND alias = %s"
            if self._db.row(select_alias, (entity_id, alias)) is None:
                self._db.run(
                    "INSERT INTO entity_aliases (entity_id, alias, alias_key, memory_id)"
                    " VALUES (%s, %s, %s, %s)",
                    (entity_id, alias, name_key(alias, values.get("user_id")), learned.get(alias)),
                )

    def import_edge(self, values: Mapping[str, Any], moment: str) -> bool:
        names = ("id", "source_id", "relationship", "target_id", "valid_to", "valid_from")
        existing_id = self._db.value(_SELECT_SAME_EDGE, {name: values.get(name) for name in names})
        edge_id = existing_id
        if existing_id is None:
            columns = imported_row(EDGE_COLUMNS, values, moment)
            if self._is_taken("relationships", values["id"]):
                del columns["id"]
            edge_id = self._insert("relationships", columns)
        self._import_sources("relationship", str(edge_id), values, moment)
        return existing_id is None

    def has_both_entities(self, values: Mapping[str, Any]) -> bool:
        sql = """SELECT count(*) FROM entities
WHERE id = ANY (%s::text[]) AND user_id IS NOT DISTINCT FROM %s::text"""
        ends = {values["source_id"], values["target_id"]}
        return bool(self._db.value(sql, (list(ends), values.get("user_id"))) == len(ends))

    def _is_taken(self, table: str, graph_id: str) -> bool:
        return self._db.row(f"SELECT 1 FROM {table} WHERE id = %s", (graph_id,)) is not None

    def _insert(self, table: str, values: Mapping[str, Any]) -> str:
        placeholders = ", ".join(["%s"] * len(values))
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders}) RETURNING id"
        return str(self._db.value(sql, tuple(map(column_value, values.values()))))

    def _import_sources(
        self, kind: str, graph_id: str, values: Mapping[str, Any], moment: str
    ) -> None:
        """Import the memories behind a row, with what each says."""
        names = ("memory_id", "is_undone", *STATEMENT_COLUMNS[kind])
        sql = f"""INSERT INTO {kind}_sources ({kind}_id, {", ".join(names)})
VALUES (%s{", %s" * len(names)}) ON CONFLICT (agent_id, {kind}_id, memory_id) DO NOTHING"""
        rows = imported_sources(kind, values, moment)
        if rows:
            self._db.run_many(sql, [(graph_id, *row) for row in rows])
