"""The graph as the memories of one run state it, whatever other runs say of the same.

The rows of ``entities`` and ``relationships`` sum up what all memories say. Whoever may read one
run alone is told what its memories say: how sure they are, in what words, since when and until
when, and what they call an entity. What other runs say changes none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_memory.models.fields import to_json
from agent_memory.models.graph import EntityView, name_key
from agent_memory.models.times import read_stored_time
from agent_memory.storage.sqlite.connection import Row
from agent_memory.storage.sqlite.tables import Table

_LAST: Final = 2**63 - 1
_CLOSING_COUNTS: Final = """({0}.closed_by IS NULL OR ({0}.closing_is_undone = 0 AND EXISTS (
  SELECT 1 FROM memories AS c WHERE c.id = {0}.closed_by AND c.run_id = ?5)))"""
_SAID_ELSEWHERE: Final = """EXISTS (
  SELECT 1 FROM {0}_sources AS o LEFT JOIN memories AS om ON om.id = o.memory_id
  WHERE o.{0}_id = {1}.id AND om.run_id IS NOT ?5)"""
_OF_RUN: Final = "m.run_id = ?5 AND (?2 IS NULL OR m.user_id = ?2) AND x.is_undone = 0"
_NAME: Final = f"""coalesce((SELECT x.name FROM entity_sources AS x
  JOIN memories AS m ON m.id = x.memory_id WHERE x.entity_id = r.{{0}} AND {_OF_RUN}
  ORDER BY x.rowid LIMIT 1), (SELECT name FROM entities WHERE id = r.{{0}}))"""

EDGES_OF_RUN: Final = f"""
run_statements AS (
  SELECT x.relationship_id, x.memory_id, x.rowid AS place, x.confidence, x.temporal_context,
    x.valid_from, CASE WHEN {_CLOSING_COUNTS.format("x")} THEN x.valid_to END AS valid_to,
    x.created_at, x.updated_at
  FROM memories AS m JOIN relationship_sources AS x ON x.memory_id = m.id WHERE {_OF_RUN}
  UNION ALL SELECT r.id, NULL, r.seq, r.confidence, r.temporal_context, r.valid_from,
    CASE WHEN {_CLOSING_COUNTS.format("r")} THEN r.valid_to END, r.created_at, r.updated_at
  FROM relationships AS r WHERE r.by_hand = 1 AND r.run_id = ?5 AND (?2 IS NULL OR r.user_id = ?2)
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")}),
run_edges AS MATERIALIZED (
  SELECT s.place AS seq, r.id, {_NAME.format("source_id")} AS source, r.relationship,
    {_NAME.format("target_id")} AS target, s.confidence, s.temporal_context, s.valid_from,
    s.valid_to, r.user_id, ?5 AS run_id, s.created_at, s.updated_at, r.source_id, r.target_id,
    s.row_ids, s.memory_ids
  FROM (SELECT min(r.seq) AS seq, json_group_array(r.id) AS row_ids, t.valid_to,
      min(coalesce(t.created_at, r.created_at) || printf(' %020d', t.place)) AS place,
      coalesce(max(t.confidence), 1.0) AS confidence,
      json_group_array(t.temporal_context ORDER BY t.updated_at DESC, t.place DESC)
        FILTER (WHERE t.temporal_context IS NOT NULL) ->> 0 AS temporal_context,
      min(coalesce(t.valid_from, r.valid_from)) AS valid_from,
      min(coalesce(t.created_at, r.created_at)) AS created_at,
      max(coalesce(t.updated_at, r.updated_at)) AS updated_at,
      json_group_array(t.memory_id ORDER BY t.place) FILTER (WHERE t.memory_id IS NOT NULL)
        AS memory_ids
    FROM run_statements AS t JOIN relationships AS r ON r.id = t.relationship_id
    GROUP BY r.source_id, r.relationship, r.target_id, t.valid_to) AS s
  JOIN relationships AS r ON r.seq = s.seq)"""
"""The tables ``run_statements`` and ``run_edges``, for a ``WITH``.

``?2`` is the user, or NULL for all, and ``?5`` the run. What holds by several rows is one edge;
``row_ids`` and ``memory_ids`` are JSON lists.
"""

_COLUMNS: Final = (
    "id", "entity_name", "user_id", "memory_id", "name", "type", "confidence", "created_at",
    "updated_at", "place",
)  # fmt: skip
_SELECT_ENTITIES: Final = f"""
WITH {EDGES_OF_RUN},
statements AS (
  SELECT x.entity_id AS id, x.memory_id, x.rowid AS place, x.name, x.type, x.confidence,
    x.created_at, x.updated_at
  FROM memories AS m JOIN entity_sources AS x ON x.memory_id = m.id WHERE {_OF_RUN}
  UNION ALL SELECT b.id, NULL, b.seq, b.name, b.type, b.confidence, b.created_at, b.updated_at
  FROM entities AS b WHERE b.by_hand = 1 AND b.run_id = ?5
    AND NOT {_SAID_ELSEWHERE.format("entity", "b")}
  UNION ALL SELECT b.id, NULL, b.seq, b.name, NULL, NULL, b.created_at, b.created_at
  FROM entities AS b WHERE b.by_hand = 1 AND b.run_id = ?5
  UNION ALL SELECT source_id, NULL, {_LAST}, NULL, NULL, NULL, created_at, created_at
  FROM run_edges
  UNION ALL SELECT target_id, NULL, {_LAST}, NULL, NULL, NULL, created_at, created_at
  FROM run_edges)
SELECT e.id, e.name, e.user_id, s.memory_id, s.name, s.type, s.confidence,
  coalesce(s.created_at, e.created_at), coalesce(s.updated_at, e.updated_at), s.place
FROM statements AS s JOIN entities AS e ON e.id = s.id
WHERE (?2 IS NULL OR e.user_id = ?2)
AND (?1 IS NULL OR e.id IN (SELECT value FROM json_each(?1)))
ORDER BY s.place"""
_SELECT_ALIASES: Final = """
SELECT a.entity_id, a.alias FROM entity_aliases AS a JOIN memories AS m ON m.id = a.memory_id
WHERE a.entity_id IN (SELECT value FROM json_each(?1)) AND m.run_id = ?2 ORDER BY a.alias_id"""
_SELECT_OPEN: Final = f"""
WITH {EDGES_OF_RUN}
SELECT id, target_id, valid_from, NULL FROM run_edges
WHERE source_id = ?1 AND relationship = ?3 AND valid_to IS NULL AND (?4 IS NULL OR target_id = ?4)
ORDER BY seq"""


class RunGraph(Table):
    """Reads the graph of one run."""

    def open_edges(
        self, run_id: str, source_id: str, relationship: str, target_id: str | None
    ) -> list[Row]:
        """Return what the run says an entity has now: id, target and ``valid_from``."""
        values = (source_id, None, relationship, target_id, run_id)
        return self._db.rows(_SELECT_OPEN, values)

    def entities(
        self, run_id: str, *, user_id: str | None, ids: Sequence[str] | None, agent_id: str
    ) -> list[EntityView]:
        """Return the entities that the run speaks of, in the order in which it did first.

        What its memories call an entity is its name, the first, and its aliases.
        """
        wanted = None if ids is None else to_json(list(ids))
        statements: dict[str, list[dict[str, Any]]] = {}
        for row in self._db.rows(_SELECT_ENTITIES, (wanted, user_id, None, None, run_id)):
            statement = dict(zip(_COLUMNS, row, strict=True))
            statements.setdefault(statement["id"], []).append(statement)
        aliases = self._aliases(list(statements), run_id)
        views = [
            _entity(of_entity, aliases.get(entity_id, []), run_id, agent_id)
            for entity_id, of_entity in statements.items()
        ]
        return sorted(views, key=lambda view: view.created_at)

    def _aliases(self, ids: Sequence[str], run_id: str) -> dict[str, list[str]]:
        aliases: dict[str, list[str]] = {}
        for entity_id, alias in self._db.rows(_SELECT_ALIASES, (to_json(list(ids)), run_id)):
            aliases.setdefault(entity_id, []).append(alias)
        return aliases


def _entity(
    statements: Sequence[dict[str, Any]], aliases: Sequence[str], run_id: str, agent_id: str
) -> EntityView:
    """Make one entity of what is stated of it, given in the order in which it was first."""
    first = statements[0]
    names: dict[str, str] = {}
    for called in (*(row["name"] for row in statements if row["name"]), *aliases):
        names.setdefault(name_key(called, first["user_id"]), called)
    name, *others = names.values() or [first["entity_name"]]
    newest = sorted(statements, key=lambda row: (row["updated_at"], row["place"]), reverse=True)
    latest = {
        column: next((row[column] for row in newest if row[column] is not None), None)
        for column in ("type", "confidence")
    }
    return EntityView.model_construct(
        id=first["id"],
        name=name,
        type=latest["type"],
        aliases=others,
        confidence=1.0 if latest["confidence"] is None else latest["confidence"],
        user_id=first["user_id"],
        agent_id=agent_id,
        run_id=run_id,
        created_at=read_stored_time(min(row["created_at"] for row in statements)),
        updated_at=read_stored_time(newest[0]["updated_at"]),
        source_memory_ids=[row["memory_id"] for row in statements if row["memory_id"]],
    )
