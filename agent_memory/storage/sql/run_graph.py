"""The graph as the memories of one run state it, whatever other runs say about the same.

The rows of ``entities`` and ``relationships`` sum up what all memories say. A reader restricted to
one run sees what its memories say: how sure they are, in what words, since when and until when, and
what they call an entity. What other runs say changes none of it.

The queries take the values ``stamp``, ``user_id`` (NULL for all users) and ``run_id``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.graph import EntityView
from agent_memory.storage.graph_rows import EDGE_VIEW, entities_of_run, grouped
from agent_memory.storage.records import NO_LIMIT, Row
from agent_memory.storage.sql import Table

_CLOSING_COUNTS: Final = """({0}.closed_by IS NULL OR ({0}.closing_is_undone = 0 AND EXISTS (
  SELECT 1 FROM memories AS c WHERE c.id = {0}.closed_by AND c.run_id = :run_id)))"""
_SAID_ELSEWHERE: Final = """EXISTS (
  SELECT 1 FROM {0}_sources AS o LEFT JOIN memories AS om ON om.id = o.memory_id
  WHERE o.{0}_id = {1}.id AND om.run_id IS DISTINCT FROM :run_id)"""
_OF_USER: Final = "(CAST(:user_id AS TEXT) IS NULL OR {0}.user_id = :user_id)"
_OF_RUN: Final = f"m.run_id = :run_id AND {_OF_USER.format('m')} AND x.is_undone = 0"
_NAME: Final = f"""coalesce((SELECT x.name FROM entity_sources AS x
  JOIN memories AS m ON m.id = x.memory_id WHERE x.entity_id = g.{{end}}_id AND {_OF_RUN}
  ORDER BY x.{{number}} LIMIT 1), (SELECT name FROM entities WHERE id = g.{{end}}_id))"""
"""What the run calls an end of a relationship ``g``."""
_ENDED: Final = f"""({{0}}.valid_to IS NOT NULL AND {{0}}.valid_to <= :stamp
  AND {_CLOSING_COUNTS})"""
HOLDS_IN_RUN: Final = f"""(EXISTS (
  SELECT 1 FROM relationship_sources AS x JOIN memories AS m ON m.id = x.memory_id
  WHERE x.relationship_id = g.id AND {_OF_RUN} AND x.valid_from <= :stamp
    AND NOT {_ENDED.format("x")})
  OR (g.by_hand = 1 AND g.run_id = :run_id AND g.valid_from <= :stamp
    AND NOT {_ENDED.format("g")} AND NOT {_SAID_ELSEWHERE.format("relationship", "g")}))"""
"""Whether a row ``g`` of ``relationships`` holds at the moment, according to the run."""
_ENDS: Final = f"""
  UNION ALL SELECT r.{{0}}, NULL, {NO_LIMIT}, NULL, NULL, NULL, x.created_at, x.created_at
  FROM relationships AS r JOIN relationship_sources AS x ON x.relationship_id = r.id
    JOIN memories AS m ON m.id = x.memory_id WHERE {_OF_RUN} AND r.{{0}} {{1}}
  UNION ALL SELECT r.{{0}}, NULL, {NO_LIMIT}, NULL, NULL, NULL, r.created_at, r.created_at
  FROM relationships AS r WHERE r.by_hand = 1 AND r.run_id = :run_id AND r.{{0}} {{1}}
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")}"""
_SELECT_ENTITIES: Final = f"""
WITH statements AS (
  SELECT x.entity_id AS id, x.memory_id, x.{{number}} AS place, x.name, x.type, x.confidence,
    x.created_at, x.updated_at
  FROM entity_sources AS x JOIN memories AS m ON m.id = x.memory_id
  WHERE {_OF_RUN} AND x.entity_id {{among}}
  UNION ALL SELECT b.id, NULL, b.seq, b.name, b.type, b.confidence, b.created_at, b.updated_at
  FROM entities AS b WHERE b.by_hand = 1 AND b.run_id = :run_id AND b.id {{among}}
    AND NOT {_SAID_ELSEWHERE.format("entity", "b")}
  UNION ALL SELECT b.id, NULL, b.seq, b.name, NULL, NULL, b.created_at, b.created_at
  FROM entities AS b WHERE b.by_hand = 1 AND b.run_id = :run_id AND b.id {{among}}
  {_ENDS.format("source_id", "{among}")} {_ENDS.format("target_id", "{among}")})
SELECT e.id, e.name, e.user_id, s.memory_id, s.name, s.type, s.confidence,
  coalesce(s.created_at, e.created_at), coalesce(s.updated_at, e.updated_at), s.place
FROM statements AS s JOIN entities AS e ON e.id = s.id WHERE {_OF_USER.format("e")}
ORDER BY s.place, e.seq"""
_SELECT_ALIASES: Final = """
SELECT a.entity_id, a.alias FROM entity_aliases AS a JOIN memories AS m ON m.id = a.memory_id
WHERE a.entity_id {among} AND m.run_id = :run_id ORDER BY a.alias_id"""
_SELECT_OPEN: Final = f"""
SELECT {{list}}(id ORDER BY seq) ->> 0, target_id, min(valid_from), NULL FROM (
  SELECT r.seq, r.id, r.target_id, coalesce(x.valid_from, r.valid_from) AS valid_from
  FROM relationships AS r JOIN relationship_sources AS x ON x.relationship_id = r.id
    JOIN memories AS m ON m.id = x.memory_id
  WHERE r.source_id = :source_id AND r.relationship = :relationship AND {_OF_RUN}
    AND (x.valid_to IS NULL OR NOT {_CLOSING_COUNTS.format("x")})
  UNION ALL SELECT r.seq, r.id, r.target_id, r.valid_from FROM relationships AS r
  WHERE r.source_id = :source_id AND r.relationship = :relationship AND r.by_hand = 1
    AND r.run_id = :run_id AND (r.valid_to IS NULL OR NOT {_CLOSING_COUNTS.format("r")})
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")}
  ORDER BY 1) AS said
WHERE CAST(:target_id AS TEXT) IS NULL OR target_id = :target_id
GROUP BY target_id ORDER BY min(seq)"""


class RunGraph(Table):
    """Queries on the graph as the memories of one run state it."""

    def edge_columns(self) -> str:
        """Return the columns of a row ``g`` of ``run_edges``: ``EDGE_VIEW``, then its memories."""
        names = {
            end: _NAME.format(end=end, number=self._db.SOURCE_NUMBER)
            for end in ("source", "target")
        }
        return ", ".join(names.get(column, column) for column in (*EDGE_VIEW, "memory_ids"))

    def edges(self, among: str) -> str:
        """Return the table ``run_edges``, for a ``WITH`` clause: relationships as the run has them.

        ``among`` restricts the rows ``r`` of ``relationships`` to all or none of those that say the
        same. Several such rows make one edge: ``row_ids`` and ``memory_ids`` are JSON lists.
        """
        as_list = self._db.LIST
        return f"""
run_statements AS (
  SELECT x.relationship_id, x.memory_id, x.{self._db.SOURCE_NUMBER} AS place, x.confidence,
    x.temporal_context, x.valid_from,
    CASE WHEN {_CLOSING_COUNTS.format("x")} THEN x.valid_to END AS valid_to,
    x.created_at, x.updated_at
  FROM relationships AS r JOIN relationship_sources AS x ON x.relationship_id = r.id
    JOIN memories AS m ON m.id = x.memory_id WHERE {_OF_RUN} AND {among}
  UNION ALL SELECT r.id, NULL, r.seq, r.confidence, r.temporal_context, r.valid_from,
    CASE WHEN {_CLOSING_COUNTS.format("r")} THEN r.valid_to END, r.created_at, r.updated_at
  FROM relationships AS r WHERE r.by_hand = 1 AND r.run_id = :run_id AND {_OF_USER.format("r")}
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")} AND {among}),
run_edges AS MATERIALIZED (
  SELECT min(coalesce(t.created_at, r.created_at) || ' ' || {self._db.PADDED.format("t.place")})
      AS seq,
    {as_list}(r.id ORDER BY r.seq) ->> 0 AS id, r.relationship,
    coalesce(max(t.confidence), 1.0) AS confidence,
    {as_list}(t.temporal_context ORDER BY t.updated_at DESC NULLS LAST, t.place DESC)
      FILTER (WHERE t.temporal_context IS NOT NULL) ->> 0 AS temporal_context,
    min(coalesce(t.valid_from, r.valid_from)) AS valid_from, t.valid_to,
    min(r.user_id) AS user_id, CAST(:run_id AS TEXT) AS run_id,
    min(coalesce(t.created_at, r.created_at)) AS created_at,
    max(coalesce(t.updated_at, r.updated_at)) AS updated_at, r.source_id, r.target_id,
    {as_list}(r.id) AS row_ids,
    CAST({as_list}(t.memory_id ORDER BY t.place) FILTER (WHERE t.memory_id IS NOT NULL) AS TEXT)
      AS memory_ids
  FROM run_statements AS t JOIN relationships AS r ON r.id = t.relationship_id
  GROUP BY r.source_id, r.relationship, r.target_id, t.valid_to)"""

    def open_edges(
        self, run_id: str, source_id: str, relationship: str, target_id: str | None
    ) -> list[Row]:
        """Return the run's open relationships of an entity: id, target and ``valid_from``."""
        values = {
            "run_id": run_id,
            "user_id": None,
            "source_id": source_id,
            "relationship": relationship,
            "target_id": target_id,
        }
        return self._db.rows(_SELECT_OPEN.format(list=self._db.LIST), values)

    def entities(
        self, run_id: str, *, user_id: str | None, ids: Sequence[str] | None, agent_id: str
    ) -> list[EntityView]:
        """Return the entities that the run mentions, in the order of their first mention.

        The first name that its memories use for an entity is its name, the others are its aliases.
        """
        among = "<> ''" if ids is None else self._among("ids")
        sql = _SELECT_ENTITIES.format(number=self._db.SOURCE_NUMBER, among=among)
        values = {"run_id": run_id, "user_id": user_id, "ids": self._db.listed(ids or ())}
        rows = self._db.rows(sql, values)
        values = {"run_id": run_id, "ids": self._db.listed(row[0] for row in rows)}
        aliases = grouped(self._db.rows(_SELECT_ALIASES.format(among=self._among("ids")), values))
        return entities_of_run(rows, aliases, run_id=run_id, agent_id=agent_id)
