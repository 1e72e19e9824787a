"""The tables of the graph in SQLite: its relationships at a moment, and how they are closed.

Queries about a time in the past use ``_PAST``, where a memory deleted later still counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agent_memory.models.fields import to_json
from agent_memory.models.graph import EdgeView
from agent_memory.storage import graph_tables
from agent_memory.storage.change_records import Closing, GraphMoment
from agent_memory.storage.graph_rows import (
    EDGE_VIEW,
    edge_of_row,
    without_twins,
)
from agent_memory.storage.sql import graph
from agent_memory.storage.sqlite.connection import Database
from agent_memory.storage.sqlite.tables.agent import AgentTable
from agent_memory.storage.sqlite.tables.run_graph import (
    HOLDS_IN_RUN,
    SOURCE_NAME,
    TARGET_NAME,
    RunGraph,
    edges_of_run,
)

_EDGE: Final = ", ".join(EDGE_VIEW)
_EXISTED: Final = """(EXISTS (SELECT 1 FROM memories AS m WHERE m.id = {0})
  OR EXISTS (SELECT 1 FROM history AS h
    WHERE h.memory_id = {0} AND h.event = 'DELETE' AND h.changed_at > ?1))"""
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
_EDGE_OF_RUN: Final = _EDGE.replace("source, ", f"{SOURCE_NAME}, ", 1).replace(
    "target, ", f"{TARGET_NAME}, ", 1
)
_AT_ANY: Final = """({0}.source_id IN (SELECT value FROM json_each(?3))
  OR {0}.target_id IN (SELECT value FROM json_each(?3)))"""
_SAME_ENDS: Final = """r.source_id IN (
  SELECT source_id FROM relationships WHERE id IN (SELECT value FROM json_each(?3)))"""
_CHOSEN: Final = "g.id IN (SELECT value FROM json_each(?3))"
_CHOSEN_OF_RUN: Final = """EXISTS (SELECT 1 FROM json_each(g.row_ids) AS w
  WHERE w.value IN (SELECT value FROM json_each(?3)))"""
_HOLDS: Final = "g.valid_from <= ?1 AND (g.valid_to IS NULL OR g.valid_to > ?1)"
_IN_SCOPE: Final = "(?2 IS NULL OR g.user_id = ?2)"
_RUN_OF: Final = "(SELECT run_id FROM memories WHERE id = {0})"
_IS_OPEN: Final = f"""(valid_to IS NULL OR closing_is_undone = 1 OR (closed_by IS NOT NULL
  AND (NOT EXISTS (SELECT 1 FROM memories WHERE id = closed_by)
    OR {_RUN_OF.format("closed_by")} IS NOT {_RUN_OF.format("memory_id")})))"""
"""Whether a memory's statement holds according to its own run."""


_TWINS: Final = """(SELECT o.id FROM relationships AS r JOIN relationships AS o
  ON o.source_id = r.source_id AND o.relationship = r.relationship AND o.target_id = r.target_id
  WHERE r.id = ?5)"""
"""The rows that say the same as a relationship: one was hidden when another was added."""
_SAID_AGAIN: Final = {
    "entity": """type = coalesce(excluded.type, iif(is_undone, NULL, type)),
  confidence = coalesce(excluded.confidence, iif(is_undone, NULL, confidence)),
  updated_at = iif(coalesce(excluded.type, type) IS type
    AND coalesce(excluded.confidence, confidence) IS confidence,
    updated_at, excluded.updated_at),""",
    "relationship": """
  confidence = iif(is_undone, excluded.confidence, max(confidence, excluded.confidence)),
  temporal_context = coalesce(
    excluded.temporal_context, iif(is_undone, NULL, temporal_context)),
  valid_from = iif(is_undone, excluded.valid_from, min(valid_from, excluded.valid_from)),
  valid_to = excluded.valid_to, closed_by = NULL, closing_change_id = NULL, closing_is_undone = 0,
  updated_at = excluded.updated_at,""",
}
"""How a memory's statement changes when it is repeated; one that was undone is made afresh."""


class GraphTable(graph.GraphTable):
    """The tables of the graph: entities, relationships, and their sources."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._agent = AgentTable(database)
        self._runs = RunGraph(database)

    @property
    def _agent_id(self) -> str:
        return self._agent.agent_id

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
        time = (
            "?1 IS NOT NULL" if at_any_time else "g.valid_from <= ?1" if include_closed else _HOLDS
        )
        begin, columns = "", _EDGE
        if is_of_run:
            narrowing = _SAME_ENDS if ids is not None else _AT_ANY.format("r") if among else "1"
            begin, columns = f"WITH {edges_of_run(narrowing)}", f"{_EDGE_OF_RUN}, memory_ids"
        sql = f"""{begin} SELECT {columns} FROM {"run_edges" if is_of_run else _edges(when)} AS g
WHERE {_IN_SCOPE} AND {time} {chosen}
ORDER BY g.seq LIMIT ?4"""
        wanted = to_json(list(among if ids is None and among is not None else ids or ()))
        rows = self._db.rows(sql, _values(when, wanted, limit))
        # A relationship of a missing entity, as another program can leave it, is up to `check`.
        rows = [row for row in rows if row[1] is not None and row[3] is not None]
        own = self._agent_id
        if is_of_run:
            return [
                edge_of_row(row[:-1], agent_id=own, sources=json.loads(row[-1])) for row in rows
            ]
        sources = self._sources("relationship", [row[0] for row in rows])
        views = [edge_of_row(row, agent_id=own, sources=sources.get(row[0], ())) for row in rows]
        return views if include_closed or at_any_time else without_twins(views)

    def reached(
        self, when: GraphMoment, start: Sequence[str], depth: int
    ) -> tuple[dict[str, int], bool]:
        step = f"r.depth < ?4 AND {_IN_SCOPE} AND {_condition(when)}"
        sql = f"""
WITH RECURSIVE reached (id, depth) AS (
  SELECT value, 0 FROM json_each(?3)
  UNION SELECT g.target_id, r.depth + 1 FROM reached AS r
    JOIN {_edges(when)} AS g ON g.source_id = r.id WHERE {step}
  UNION SELECT g.source_id, r.depth + 1 FROM reached AS r
    JOIN {_edges(when)} AS g ON g.target_id = r.id WHERE {step}
  LIMIT {graph_tables.MOST_REACHED + 1})
SELECT id, depth FROM reached ORDER BY depth"""
        rows = self._db.rows(sql, _values(when, to_json(list(start)), depth))
        distances: dict[str, int] = {}
        for entity_id, distance in rows:
            distances.setdefault(entity_id, distance)
        return distances, len(rows) > graph_tables.MOST_REACHED

    def edge_between(
        self, when: GraphMoment, entity_id: str, others: Sequence[str]
    ) -> tuple[str, str] | None:
        condition = _condition(when)
        sql = f"""
SELECT id, other FROM (
  SELECT g.seq, g.id, g.target_id AS other FROM {_edges(when)} AS g
  WHERE g.source_id = ?3 AND g.target_id IN (SELECT value FROM json_each(?4))
    AND {_IN_SCOPE} AND {condition}
  UNION ALL SELECT g.seq, g.id, g.source_id FROM {_edges(when)} AS g
  WHERE g.target_id = ?3 AND g.source_id IN (SELECT value FROM json_each(?4))
    AND {_IN_SCOPE} AND {condition})
ORDER BY seq LIMIT 1"""
        row = self._db.row(sql, _values(when, entity_id, to_json(list(others))))
        return None if row is None else (str(row[0]), str(row[1]))

    def close_edge(self, edge_id: str, closing: Closing, *, but_in_runs: Sequence[str]) -> None:
        sql = f"""UPDATE relationships SET valid_to = max(valid_from, ?1), closed_by = ?2,
closing_change_id = ?3, closing_is_undone = 0, updated_at = ?4
WHERE id IN (SELECT id FROM graph_edges WHERE id IN {_TWINS} AND valid_to IS NULL)"""
        self._db.run(sql, (*closing, edge_id))
        run = _RUN_OF.format("memory_id")
        others = f"{run} IS NULL OR {run} NOT IN (SELECT value FROM json_each(?6))"
        self._close_statements(edge_id, closing, others, to_json(list(but_in_runs)))

    def close_in_run(self, edge_id: str, closing: Closing, run_id: str) -> None:
        self._close_statements(edge_id, closing, f"{_RUN_OF.format('memory_id')} = ?6", run_id)

    def _close_statements(self, edge_id: str, closing: Closing, which: str, value: str) -> None:
        of_same = f"{_RUN_OF.format('memory_id')} IS {_RUN_OF.format('?2')}"
        sql = f"""UPDATE relationship_sources SET valid_to = max(valid_from, ?1), closed_by = ?2,
closing_change_id = ?3, closing_is_undone = 0,
updated_at = iif(?2 IS NULL OR {of_same}, ?4, updated_at)
WHERE relationship_id IN {_TWINS} AND {_IS_OPEN} AND ({which})"""
        self._db.run(sql, (*closing, edge_id, value))

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
        sql = f"""INSERT INTO {kind}_sources ({", ".join(columns)})
VALUES ({", ".join("?" * len(columns))})
ON CONFLICT ({kind}_id, memory_id) DO UPDATE SET {_SAID_AGAIN[kind] if values else ""}
  change_id = iif(is_undone, excluded.change_id, change_id), is_undone = 0"""
        self._db.run(sql, tuple(columns.values()))


def _edges(when: GraphMoment) -> str:
    """Return the table to read relationships from; for a run all, which ``_condition`` narrows."""
    if when.run_id is not None:
        return "relationships"
    return _PAST if when.is_past else "graph_edges"


def _condition(when: GraphMoment) -> str:
    """Return the condition that a row of ``_edges`` holds at the moment."""
    return _HOLDS if when.run_id is None else HOLDS_IN_RUN


def _values(when: GraphMoment, third: object, fourth: object) -> tuple[Any, ...]:
    """Return the parameters of a statement on relationships; for a run there is one more."""
    values = (when.stamp, when.user_id, third, fourth)
    return values if when.run_id is None else (*values, when.run_id)
