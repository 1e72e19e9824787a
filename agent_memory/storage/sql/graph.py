"""The tables of the graph: entities, relationships, and the memories each was read from.

A row is hidden while no memory that says so exists: ``graph_edges`` and ``graph_entities`` are the
views of what is visible.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from agent_memory.models.graph import EdgeView, EntityView
from agent_memory.storage import graph_tables
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.graph_rows import (
    EDGE_VIEW,
    ENTITY_VIEW,
    edge_of_row,
    entities_of_rows,
    grouped,
    without_twins,
)
from agent_memory.storage.records import NO_LIMIT, Row
from agent_memory.storage.sql import Table
from agent_memory.storage.sql.database import SQLDatabase
from agent_memory.storage.sql.run_graph import HOLDS_IN_RUN, RunGraph

_IN_SCOPE: Final = "(CAST(:user_id AS TEXT) IS NULL OR g.user_id = :user_id)"
_SELECT_BY_KEY: Final = """
SELECT id FROM (
  SELECT 0 AS place, seq, id FROM entities
  WHERE name_key = ? AND coalesce(user_id, '') = coalesce(?, '')
  UNION ALL SELECT 1, e.seq, e.id FROM entity_aliases AS a JOIN entities AS e ON e.id = a.entity_id
  WHERE a.alias_key = ? AND e.user_id IS NOT DISTINCT FROM ?) AS known
ORDER BY place, seq LIMIT 1"""
_SELECT_BY_KEYS: Final = f"""
SELECT g.id, g.name_key FROM entities AS g WHERE g.name_key {{among}} AND {_IN_SCOPE}
UNION ALL SELECT g.id, a.alias_key
FROM entity_aliases AS a JOIN entities AS g ON g.id = a.entity_id
WHERE a.alias_key {{among}} AND {_IN_SCOPE}
UNION ALL SELECT g.id, lower(trim(g.name)) FROM entities AS g WHERE g.name_key IS NULL
AND lower(trim(g.name)) {{among}} AND {_IN_SCOPE}"""
_SELECT_BY_HAND: Final = """
SELECT 1 FROM relationships AS r
JOIN graph_edges AS g ON g.source_id = r.source_id AND g.relationship = r.relationship
  AND g.target_id = r.target_id AND g.valid_to IS NULL
JOIN relationships AS o ON o.id = g.id AND o.by_hand = 1
WHERE r.id = ? LIMIT 1"""
_EXISTED: Final = """(EXISTS (SELECT 1 FROM memories AS m WHERE m.id = {0})
  OR EXISTS (SELECT 1 FROM history AS h
    WHERE h.memory_id = {0} AND h.event = 'DELETE' AND h.changed_at > :stamp))"""
_PAST: Final = f"""(SELECT r.seq, r.id, r.relationship, r.confidence, r.temporal_context,
  r.valid_from,
  (SELECT name FROM entities WHERE id = r.source_id) AS source,
  (SELECT name FROM entities WHERE id = r.target_id) AS target,
  CASE WHEN r.closed_by IS NULL OR (r.closing_is_undone = 0 AND {_EXISTED.format("r.closed_by")})
    THEN r.valid_to END AS valid_to,
  r.user_id, r.run_id, r.created_at, r.updated_at, r.source_id, r.target_id
  FROM relationships AS r
  WHERE r.by_hand = 1 OR EXISTS (SELECT 1 FROM relationship_sources AS x
    WHERE x.relationship_id = r.id AND x.is_undone = 0 AND {_EXISTED.format("x.memory_id")}))"""
"""The relationships at a time in the past, where a memory deleted later still counts."""
_AT_ANY: Final = "({0}.source_id {among} OR {0}.target_id {among})"
_SAME_ENDS: Final = """r.source_id IN (
  SELECT source_id FROM relationships WHERE id {among})"""
_CHOSEN_OF_RUN: Final = "EXISTS (SELECT 1 FROM {items}(g.row_ids) AS w WHERE w.value {among})"
_HOLDS: Final = "g.valid_from <= :stamp AND (g.valid_to IS NULL OR g.valid_to > :stamp)"
_SELECT_BETWEEN: Final = f"""
SELECT id, other FROM (
  SELECT g.seq, g.id, g.target_id AS other FROM {{edges}} AS g
  WHERE g.source_id = :entity_id AND g.target_id {{among}} AND {_IN_SCOPE} AND {{condition}}
  UNION ALL SELECT g.seq, g.id, g.source_id FROM {{edges}} AS g
  WHERE g.target_id = :entity_id AND g.source_id {{among}} AND {_IN_SCOPE} AND {{condition}})
  AS joining
ORDER BY seq LIMIT 1"""
_RUN: Final = "(SELECT run_id FROM memories WHERE id = {0})"
_RUN_OF_STATEMENT: Final = _RUN.format("memory_id")
_TWINS: Final = """(SELECT o.id FROM relationships AS r JOIN relationships AS o
  ON o.source_id = r.source_id AND o.relationship = r.relationship AND o.target_id = r.target_id
  WHERE r.id = :edge_id)"""
"""The rows that say the same as a relationship: one was hidden when another was added."""
_CLOSE_EDGE: Final = f"""
UPDATE relationships SET valid_to = {{greatest}}(valid_from, :at), closed_by = :memory_id,
  closing_change_id = :change_id, closing_is_undone = 0, updated_at = :now
WHERE id IN (SELECT id FROM graph_edges WHERE id IN {_TWINS} AND valid_to IS NULL)"""
# Only statements that hold according to their own run.
_CLOSE_STATEMENTS: Final = f"""
UPDATE relationship_sources SET valid_to = {{greatest}}(valid_from, :at), closed_by = :memory_id,
  closing_change_id = :change_id, closing_is_undone = 0,
  updated_at = CASE WHEN CAST(:memory_id AS TEXT) IS NULL
    OR {_RUN_OF_STATEMENT} IS NOT DISTINCT FROM {_RUN.format(":memory_id")}
    THEN :now ELSE updated_at END
WHERE relationship_id IN {_TWINS} AND (valid_to IS NULL OR closing_is_undone = 1
  OR (closed_by IS NOT NULL AND (NOT EXISTS (SELECT 1 FROM memories WHERE id = closed_by)
    OR {_RUN.format("closed_by")} IS DISTINCT FROM {_RUN_OF_STATEMENT})))
AND ({{which}})"""
_SAID_AGAIN: Final = {
    "entity": """
  type = coalesce(excluded.type, CASE x.is_undone WHEN 0 THEN x.type END),
  confidence = coalesce(excluded.confidence, CASE x.is_undone WHEN 0 THEN x.confidence END),
  updated_at = CASE WHEN coalesce(excluded.type, x.type) IS NOT DISTINCT FROM x.type
    AND coalesce(excluded.confidence, x.confidence) IS NOT DISTINCT FROM x.confidence
    THEN x.updated_at ELSE excluded.updated_at END,""",
    "relationship": """
  confidence = CASE x.is_undone WHEN 0 THEN {greatest}(x.confidence, excluded.confidence)
    ELSE excluded.confidence END,
  temporal_context = coalesce(
    excluded.temporal_context, CASE x.is_undone WHEN 0 THEN x.temporal_context END),
  valid_from = CASE x.is_undone WHEN 0 THEN {least}(x.valid_from, excluded.valid_from)
    ELSE excluded.valid_from END,
  valid_to = excluded.valid_to, closed_by = NULL, closing_change_id = NULL, closing_is_undone = 0,
  updated_at = excluded.updated_at,""",
}
"""How a memory's statement changes when it is repeated; one that was undone is made afresh."""


class GraphTable(Table):
    """The tables of the graph: entities, relationships, and their sources."""

    _REACHED: ClassVar[str]
    """The query for entities and their distances, of the relationships ``{edges}``."""
    _SOURCE_KEY: ClassVar[str]
    """The unique columns of the table of the sources of a ``{kind}``."""

    def __init__(self, database: SQLDatabase) -> None:
        super().__init__(database)
        self._runs = RunGraph(database)

    @property
    @abstractmethod
    def _agent_id(self) -> str:
        """The agent whose memories these are."""

    # Names ---------------------------------------------------------------------------------------
    def rows_without_key(self) -> list[Row]:
        return self._db.rows("""
SELECT 'entity' AS kind, seq AS place, CAST(name AS TEXT), user_id
FROM entities WHERE name_key IS NULL
UNION ALL SELECT 'alias', a.alias_id, CAST(a.alias AS TEXT), e.user_id
FROM entity_aliases AS a JOIN entities AS e ON e.id = a.entity_id WHERE a.alias_key IS NULL
ORDER BY kind DESC, place""")

    def id_of_row(self, row_id: int) -> str:
        return str(self._db.value("SELECT id FROM entities WHERE seq = ?", (row_id,)))

    def set_key(self, kind: str, row: int, key: str) -> None:
        if kind == "entity":
            self._db.run("UPDATE entities SET name_key = ? WHERE seq = ?", (key, row))
        else:
            self._db.run("UPDATE entity_aliases SET alias_key = ? WHERE alias_id = ?", (key, row))

    def find(self, key: str, user_id: str | None) -> str | None:
        entity_id = self._db.value(_SELECT_BY_KEY, (key, user_id) * 2)
        return None if entity_id is None else str(entity_id)

    def find_all(self, keys: Sequence[str], user_id: str | None) -> dict[str, str]:
        key_of_id: dict[str, str] = {}
        sql = _SELECT_BY_KEYS.format(among=self._among("keys"))
        values = {"keys": self._db.listed(keys), "user_id": user_id}
        for entity_id, key in self._db.rows(sql, values):
            key_of_id.setdefault(entity_id, key)
        return key_of_id

    def names(self, ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        sql = f"SELECT id, name, type FROM entities WHERE id {self._db.AMONG}"
        return {row[0]: (row[1], row[2]) for row in self._db.rows(sql, (self._db.listed(ids),))}

    def unarchived_ids(self, memory_ids: Sequence[str]) -> set[str]:
        sql = f"SELECT id FROM memories WHERE archived = 0 AND id {self._db.AMONG}"
        return {memory_id for (memory_id,) in self._db.rows(sql, (self._db.listed(memory_ids),))}

    # Entities ------------------------------------------------------------------------------------
    def insert_entity(self, values: Mapping[str, Any]) -> str:
        return self._insert("entities", values)

    def insert_edge(self, values: Mapping[str, Any]) -> str:
        return self._insert("relationships", values)

    def _insert(self, table: str, values: Mapping[str, Any]) -> str:
        columns = {name: value for name, value in values.items() if value is not None}
        placeholders = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders}) RETURNING id"
        return str(self._db.value(sql, tuple(columns.values())))

    def update_entity(self, entity_id: str, values: Mapping[str, Any], now: str) -> None:
        settings = "".join(f"{name} = ?, " for name in values)
        sql = f"UPDATE entities SET {settings}updated_at = ? WHERE id = ?"
        self._db.run(sql, (*values.values(), now, entity_id))

    def entity_row(self, entity_id: str) -> dict[str, Any]:
        names = ("id", "name", "name_key", "type", "confidence", "user_id", "by_hand")
        row = self._db.row(f"SELECT {', '.join(names)} FROM entities WHERE id = ?", (entity_id,))
        return dict(zip(names, row or (), strict=False))

    def add_alias(self, entity_id: str, alias: str, key: str, memory_id: str | None) -> None:
        sql = """INSERT INTO entity_aliases (entity_id, alias, alias_key, memory_id)
VALUES (?, ?, ?, ?)"""
        self._db.run(sql, (entity_id, alias, key, memory_id))

    def entities(
        self,
        *,
        user_id: str | None,
        run_id: str | None = None,
        ids: Sequence[str] | None = None,
        out_of_sight: bool = False,
        after: str | None = None,
        limit: int = -1,
    ) -> list[EntityView]:
        if run_id is not None:
            of_run = self._runs.entities(run_id, user_id=user_id, ids=ids, agent_id=self._agent_id)
            known = [view.id for view in of_run]
            of_run = of_run[known.index(after) + 1 if after in known else 0 :]
            return of_run if limit < 0 else of_run[:limit]
        conditions = [_IN_SCOPE]
        if ids is not None:
            conditions.append(f"g.id {self._among('ids')}")
        if after is not None:
            conditions.append("g.seq > (SELECT seq FROM entities WHERE id = :after)")
        sql = f"""SELECT {", ".join(ENTITY_VIEW)}
FROM {"entities" if out_of_sight else "graph_entities"} AS g
WHERE {" AND ".join(conditions)} ORDER BY g.seq LIMIT :limit"""
        values = {
            "user_id": user_id,
            "ids": self._db.listed(ids or ()),
            "after": after,
            "limit": NO_LIMIT if limit < 0 else limit,
        }
        rows = self._db.rows(sql, values)
        entity_ids = [row[0] for row in rows]
        return entities_of_rows(
            rows,
            agent_id=self._agent_id,
            aliases=self._aliases(entity_ids),
            sources=self._sources("entity", entity_ids),
        )

    def ids_read_from(self, memory_id: str, *, kind: str) -> list[str]:
        sql = f"""SELECT {kind}_id FROM {kind}_sources
WHERE memory_id = ? AND is_undone = 0 ORDER BY {self._db.SOURCE_NUMBER}"""
        return [graph_id for (graph_id,) in self._db.rows(sql, (memory_id,))]

    def _aliases(self, ids: list[str]) -> dict[str, list[str]]:
        sql = f"""SELECT a.entity_id, a.alias FROM entity_aliases AS a
WHERE a.entity_id {self._db.AMONG} ORDER BY a.alias_id"""
        return grouped(self._db.rows(sql, (self._db.listed(ids),)) if ids else ())

    def _sources(self, kind: str, ids: list[str]) -> dict[str, list[str]]:
        sql = f"""SELECT x.{kind}_id, x.memory_id FROM {kind}_sources AS x
JOIN memories AS m ON m.id = x.memory_id WHERE x.is_undone = 0
AND x.{kind}_id {self._db.AMONG} ORDER BY x.{self._db.SOURCE_NUMBER}"""
        return grouped(self._db.rows(sql, (self._db.listed(ids),)) if ids else ())

    # Relationships -------------------------------------------------------------------------------
    def edges(
        self,
        when: GraphMoment,
        *,
        among: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        include_closed: bool = False,
        at_any_time: bool = False,
        limit: int = -1,
    ) -> list[EdgeView]:
        is_of_run, is_one_of = when.run_id is not None, self._among("listed")
        conditions = [_IN_SCOPE]
        if not at_any_time:
            conditions.append("g.valid_from <= :stamp" if include_closed else _HOLDS)
        if ids is not None:
            of_run = _CHOSEN_OF_RUN.format(items=self._db.LIST_ITEMS, among=is_one_of)
            conditions.append(of_run if is_of_run else f"g.id {is_one_of}")
        elif among is not None:
            conditions.append(_AT_ANY.format("g", among=is_one_of))
        begin, columns, edges = "", ", ".join(EDGE_VIEW), _edges(when)
        if is_of_run:
            narrowing = _SAME_ENDS if ids is not None else _AT_ANY if among else "true"
            begin = f"WITH {self._runs.edges(narrowing.format('r', among=is_one_of))}"
            columns, edges = self._runs.edge_columns(), "run_edges"
        sql = f"""{begin} SELECT {columns} FROM {edges} AS g
WHERE {" AND ".join(conditions)} ORDER BY g.seq LIMIT :limit"""
        values = {
            **_values(when),
            "listed": self._db.listed((among if ids is None else ids) or ()),
            "limit": NO_LIMIT if limit < 0 else limit,
        }
        # A relationship of a missing entity, as another program can leave it, is up to `check`.
        rows = [row for row in self._db.rows(sql, values) if None not in (row[1], row[3])]
        own = self._agent_id
        if is_of_run:
            return [
                edge_of_row(row[:-1], agent_id=own, sources=json.loads(row[-1] or "[]"))
                for row in rows
            ]
        sources = self._sources("relationship", [row[0] for row in rows])
        views = [edge_of_row(row, agent_id=own, sources=sources.get(row[0], ())) for row in rows]
        return views if include_closed or at_any_time else without_twins(views)

    def reached(
        self, when: GraphMoment, start: Sequence[str], depth: int
    ) -> tuple[dict[str, int], bool]:
        sql = self._REACHED.format(
            edges=_edges(when),
            condition=f"{_IN_SCOPE} AND {_condition(when)}",
            limit=graph_tables.MOST_REACHED + 1,
        )
        values = {**_values(when), "start": self._db.listed(start), "depth": depth}
        rows = self._db.rows(sql, values)
        distances: dict[str, int] = {}
        for entity_id, distance in rows:
            distances.setdefault(entity_id, distance)
        return distances, len(rows) > graph_tables.MOST_REACHED

    def edge_between(
        self, when: GraphMoment, entity_id: str, others: Sequence[str]
    ) -> tuple[str, str] | None:
        sql = _SELECT_BETWEEN.format(
            edges=_edges(when), among=self._among("others"), condition=_condition(when)
        )
        values = {**_values(when), "entity_id": entity_id, "others": self._db.listed(others)}
        row = self._db.row(sql, values)
        return None if row is None else (str(row[0]), str(row[1]))

    def open_edges(
        self,
        source_id: str,
        relationship: str,
        target_id: str | None = None,
        *,
        run_id: str | None = None,
    ) -> list[Row]:
        if run_id is not None:
            return self._runs.open_edges(run_id, source_id, relationship, target_id)
        sql = """SELECT id, target_id, valid_from,
  (SELECT r.run_id FROM relationships AS r WHERE r.id = g.id AND r.by_hand = 1)
FROM graph_edges AS g WHERE source_id = ? AND relationship = ? AND valid_to IS NULL
AND (CAST(? AS TEXT) IS NULL OR target_id = ?) ORDER BY seq"""
        return self._db.rows(sql, (source_id, relationship, target_id, target_id))

    def confirm_edge(
        self,
        edge_id: str,
        *,
        confidence: float,
        context: str | None,
        start: str,
        now: str,
    ) -> None:
        sql = f"""UPDATE relationships SET confidence = {self._db.GREATEST}(confidence, ?),
updated_at = ?, valid_from = {self._db.LEAST}(valid_from, ?),
temporal_context = coalesce(?, temporal_context) WHERE id = ?"""
        self._db.run(sql, (confidence, now, start, context, edge_id))

    def mark_by_hand(self, kind: str, graph_id: str) -> None:
        table = "entities" if kind == "entity" else "relationships"
        self._db.run(f"UPDATE {table} SET by_hand = 1 WHERE id = ? AND by_hand = 0", (graph_id,))

    def is_by_hand(self, edge_id: str) -> bool:
        return self._db.row(_SELECT_BY_HAND, (edge_id,)) is not None

    def memories(self, memory_ids: Sequence[str]) -> dict[str, Row]:
        sql = f"""SELECT id, user_id,
  (SELECT max(change_id) FROM history WHERE memory_id = memories.id), run_id
FROM memories WHERE id {self._db.AMONG}"""
        rows = self._db.rows(sql, (self._db.listed(memory_ids),))
        return {row[0]: row[1:] for row in rows}

    # Statements of memories ----------------------------------------------------------------------
    def close_edge(self, edge_id: str, closing: Closing, *, but_in_runs: Sequence[str]) -> None:
        sql = _CLOSE_EDGE.format(greatest=self._db.GREATEST)
        self._db.run(sql, {**closing._asdict(), "edge_id": edge_id})
        others = f"{_RUN_OF_STATEMENT} IS NULL OR NOT {_RUN_OF_STATEMENT} {self._among('runs')}"
        self._close_statements(edge_id, closing, others, runs=self._db.listed(but_in_runs))

    def close_in_run(self, edge_id: str, closing: Closing, run_id: str) -> None:
        self._close_statements(edge_id, closing, f"{_RUN_OF_STATEMENT} = :run_id", run_id=run_id)

    def _close_statements(
        self, edge_id: str, closing: Closing, which: str, **values: object
    ) -> None:
        sql = _CLOSE_STATEMENTS.format(greatest=self._db.GREATEST, which=which)
        self._db.run(sql, {**closing._asdict(), "edge_id": edge_id, **values})

    def add_source(
        self,
        kind: str,
        graph_id: str,
        memory_id: str,
        change_id: int | None,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        columns = {
            f"{kind}_id": graph_id,
            "memory_id": memory_id,
            "change_id": change_id,
            **(values or {}),
        }
        again = _SAID_AGAIN[kind].format(greatest=self._db.GREATEST, least=self._db.LEAST)
        sql = f"""INSERT INTO {kind}_sources AS x ({", ".join(columns)})
VALUES ({", ".join("?" * len(columns))})
ON CONFLICT ({self._SOURCE_KEY.format(kind=kind)}) DO UPDATE SET {again if values else ""}
  change_id = CASE x.is_undone WHEN 0 THEN x.change_id ELSE excluded.change_id END, is_undone = 0"""
        self._db.run(sql, tuple(columns.values()))


def _edges(when: GraphMoment) -> str:
    """Return the table to read relationships from; for a run all, which ``_condition`` narrows."""
    if when.run_id is not None:
        return "relationships"
    return _PAST if when.is_past else "graph_edges"


def _condition(when: GraphMoment) -> str:
    """Return the condition that a row of ``_edges`` holds at the moment."""
    return _HOLDS if when.run_id is None else HOLDS_IN_RUN


def _values(when: GraphMoment) -> dict[str, Any]:
    return {"stamp": when.stamp, "user_id": when.user_id, "run_id": when.run_id}
