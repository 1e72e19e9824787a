"""The tables of the graph in PostgreSQL: its relationships at a moment, and how they are closed.

Queries about a time in the past use ``_PAST``, where a memory deleted later still counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_memory.models.graph import EdgeView
from agent_memory.storage import graph_tables
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.graph_rows import (
    EDGE_VIEW,
    edge_of_row,
    without_twins,
)
from agent_memory.storage.postgres.connection import Database
from agent_memory.storage.postgres.tables.run_graph import (
    HOLDS_IN_RUN,
    SOURCE_NAME,
    TARGET_NAME,
    RunGraph,
    edges_of_run,
)
from agent_memory.storage.sql import graph

_EDGE: Final = ", ".join(EDGE_VIEW)
_EXISTED: Final = """(EXISTS (SELECT 1 FROM memories AS m WHERE m.id = {0})
  OR EXISTS (SELECT 1 FROM history AS h
    WHERE h.memory_id = {0} AND h.event = 'DELETE' AND h.changed_at > %(stamp)s))"""
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
_EDGE_OF_RUN: Final = ", ".join(
    {"source": SOURCE_NAME, "target": TARGET_NAME}.get(name, name) for name in EDGE_VIEW
)
_AT_ANY: Final = (
    "({0}.source_id = ANY (%(among)s::text[]) OR {0}.target_id = ANY (%(among)s::text[]))"
)
_SAME_ENDS: Final = """r.source_id IN (
  SELECT source_id FROM relationships WHERE id = ANY (%(among)s::text[]))"""
_CHOSEN: Final = "g.id = ANY (%(among)s::text[])"
_CHOSEN_OF_RUN: Final = "g.row_ids && %(among)s::text[]"
_HOLDS: Final = "g.valid_from <= %(stamp)s AND (g.valid_to IS NULL OR g.valid_to > %(stamp)s::text)"
_IN_SCOPE: Final = "(%(user_id)s::text IS NULL OR g.user_id = %(user_id)s::text)"
_RUN_OF: Final = "(SELECT run_id FROM memories WHERE id = {0})"
_IS_OPEN: Final = f"""(valid_to IS NULL OR closing_is_undone = 1 OR (closed_by IS NOT NULL
  AND (NOT EXISTS (SELECT 1 FROM memories WHERE id = closed_by)
    OR {_RUN_OF.format("closed_by")} IS DISTINCT FROM {_RUN_OF.format("memory_id")})))"""
"""Whether a memory's statement holds according to its own run."""
_TWINS: Final = """(SELECT o.id FROM relationships AS r JOIN relationships AS o
  ON o.source_id = r.source_id AND o.relationship = r.relationship AND o.target_id = r.target_id
  WHERE r.id = %(edge_id)s)"""
"""The rows that say the same as a relationship: one was hidden when another was added."""
_SAID_AGAIN: Final = {
    "entity": """
  type = coalesce(excluded.type, CASE x.is_undone WHEN 0 THEN x.type END),
  confidence = coalesce(excluded.confidence, CASE x.is_undone WHEN 0 THEN x.confidence END),
  updated_at = CASE WHEN coalesce(excluded.type, x.type) IS NOT DISTINCT FROM x.type
    AND coalesce(excluded.confidence, x.confidence) IS NOT DISTINCT FROM x.confidence
    THEN x.updated_at ELSE excluded.updated_at END,""",
    "relationship": """
  confidence = CASE x.is_undone WHEN 0 THEN greatest(x.confidence, excluded.confidence)
    ELSE excluded.confidence END,
  temporal_context = coalesce(
    excluded.temporal_context, CASE x.is_undone WHEN 0 THEN x.temporal_context END),
  valid_from = CASE x.is_undone WHEN 0 THEN least(x.valid_from, excluded.valid_from)
    ELSE excluded.valid_from END,
  valid_to = excluded.valid_to, closed_by = NULL, closing_change_id = NULL, closing_is_undone = 0,
  updated_at = excluded.updated_at,""",
}
"""How a memory's statement changes when it is repeated; one that was undone is made afresh."""


class GraphTable(graph.GraphTable):
    """The tables of the graph: entities, relationships, and their sources."""

    _db: Database

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._runs = RunGraph(database)

    @property
    def _agent_id(self) -> str:
        return self._db.agent_id

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
        chosen = "" if among is None else f"AND {_AT_ANY.format('g')}"
        is_of_run = when.run_id is not None
        if ids is not None:
            chosen = f"AND {_CHOSEN_OF_RUN if is_of_run else _CHOSEN}"
        time = "true" if at_any_time else "g.valid_from <= %(stamp)s" if include_closed else _HOLDS
        begin, columns = "", _EDGE
        if is_of_run:
            narrowing = _SAME_ENDS if ids is not None else _AT_ANY.format("r") if among else "true"
            begin, columns = f"WITH {edges_of_run(narrowing)}", f"{_EDGE_OF_RUN}, memory_ids"
        sql = f"""{begin} SELECT {columns} FROM {"run_edges" if is_of_run else _edges(when)} AS g
WHERE {_IN_SCOPE} AND {time} {chosen}
ORDER BY g.seq LIMIT %(limit)s"""
        wanted = list(among if ids is None and among is not None else ids or ())
        rows = self._db.rows(
            sql, {**_values(when), "among": wanted, "limit": None if limit < 0 else limit}
        )
        own = self._agent_id
        if is_of_run:
            return [edge_of_row(row[:-1], agent_id=own, sources=row[-1] or ()) for row in rows]
        sources = self._sources("relationship", [row[0] for row in rows])
        views = [edge_of_row(row, agent_id=own, sources=sources.get(row[0], ())) for row in rows]
        return views if include_closed or at_any_time else without_twins(views)

    def reached(
        self, when: GraphMoment, start: Sequence[str], depth: int
    ) -> tuple[dict[str, int], bool]:
        edges, condition = _edges(when), f"{_IN_SCOPE} AND {_condition(when)}"
        # The rows of a recursion come as they are reached, nearest first: the limit ends it.
        sql = f"""
WITH RECURSIVE reached (id, depth) AS (
  SELECT entity_id COLLATE "C", 0 FROM unnest(%(start)s::text[]) AS entity_id
  UNION SELECT next.id, r.depth + 1 FROM reached AS r CROSS JOIN LATERAL (
    SELECT g.target_id AS id FROM {edges} AS g WHERE g.source_id = r.id AND {condition}
    UNION ALL SELECT g.source_id FROM {edges} AS g WHERE g.target_id = r.id AND {condition}) AS next
  WHERE r.depth < %(depth)s)
SELECT id, depth FROM reached LIMIT {graph_tables.MOST_REACHED + 1}"""
        rows = self._db.rows(sql, {**_values(when), "start": list(start), "depth": depth})
        distances: dict[str, int] = {}
        for entity_id, distance in rows:
            distances.setdefault(entity_id, distance)
        return distances, len(rows) > graph_tables.MOST_REACHED

    def edge_between(
        self, when: GraphMoment, entity_id: str, others: Sequence[str]
    ) -> tuple[str, str] | None:
        edges, condition = _edges(when), f"{_IN_SCOPE} AND {_condition(when)}"
        sql = f"""
SELECT id, other FROM (
  SELECT g.seq, g.id, g.target_id AS other FROM {edges} AS g
  WHERE g.source_id = %(entity_id)s AND g.target_id = ANY (%(others)s::text[]) AND {condition}
  UNION ALL SELECT g.seq, g.id, g.source_id FROM {edges} AS g
  WHERE g.target_id = %(entity_id)s AND g.source_id = ANY (%(others)s::text[]) AND {condition})
  AS joining
ORDER BY seq LIMIT 1"""
        values = {**_values(when), "entity_id": entity_id, "others": list(others)}
        row = self._db.row(sql, values)
        return None if row is None else (str(row[0]), str(row[1]))

    def close_edge(self, edge_id: str, closing: Closing, *, but_in_runs: Sequence[str]) -> None:
        sql = f"""UPDATE relationships SET valid_to = greatest(valid_from, %(at)s),
closed_by = %(memory_id)s, closing_change_id = %(change_id)s, closing_is_undone = 0,
updated_at = %(now)s
WHERE id IN (SELECT id FROM graph_edges WHERE id IN {_TWINS} AND valid_to IS NULL)"""
        self._db.run(sql, {**closing._asdict(), "edge_id": edge_id})
        run = _RUN_OF.format("memory_id")
        others = f"({run} IS NULL OR {run} <> ALL (%(runs)s::text[]))"
        self._close_statements(edge_id, closing, others, list(but_in_runs))

    def close_in_run(self, edge_id: str, closing: Closing, run_id: str) -> None:
        of_run = f"{_RUN_OF.format('memory_id')} = ANY (%(runs)s::text[])"
        self._close_statements(edge_id, closing, of_run, [run_id])

    def _close_statements(
        self, edge_id: str, closing: Closing, which: str, runs: list[str]
    ) -> None:
        run, run_of_closing = _RUN_OF.format("memory_id"), _RUN_OF.format("%(memory_id)s")
        sql = f"""UPDATE relationship_sources SET valid_to = greatest(valid_from, %(at)s),
closed_by = %(memory_id)s, closing_change_id = %(change_id)s, closing_is_undone = 0,
updated_at = CASE WHEN %(memory_id)s::text IS NULL
  OR {run} IS NOT DISTINCT FROM {run_of_closing} THEN %(now)s ELSE updated_at END
WHERE relationship_id IN {_TWINS} AND {_IS_OPEN} AND {which}"""
        self._db.run(sql, {**closing._asdict(), "edge_id": edge_id, "runs": runs})

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
        sql = f"""INSERT INTO {kind}_sources AS x ({", ".join(columns)})
VALUES ({", ".join(["%s"] * len(columns))})
ON CONFLICT (agent_id, {kind}_id, memory_id) DO UPDATE SET {_SAID_AGAIN[kind] if values else ""}
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
