"""The graph as the memories of one run state it, whatever other runs say about the same.

The rows of ``entities`` and ``relationships`` sum up what all memories say. A reader restricted to
one run sees what its memories say: how sure they are, in what words, since when and until when, and
what they call an entity. What other runs say changes none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent_memory.models.fields import to_json
from agent_memory.models.graph import EntityView
from agent_memory.storage.graph_rows import entities_of_run
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
  JOIN memories AS m ON m.id = x.memory_id WHERE x.entity_id = g.{{0}} AND {_OF_RUN}
  ORDER BY x.rowid LIMIT 1), (SELECT name FROM entities WHERE id = g.{{0}}))"""
SOURCE_NAME: Final = _NAME.format("source_id")
TARGET_NAME: Final = _NAME.format("target_id")
"""What the run calls the ends of a relationship ``g``."""
_ENDED: Final = f"""({{0}}.valid_to IS NOT NULL AND {{0}}.valid_to <= ?1
  AND {_CLOSING_COUNTS})"""
HOLDS_IN_RUN: Final = f"""(EXISTS (
  SELECT 1 FROM relationship_sources AS x JOIN memories AS m ON m.id = x.memory_id
  WHERE x.relationship_id = g.id AND {_OF_RUN} AND x.valid_from <= ?1
    AND NOT {_ENDED.format("x")})
  OR (g.by_hand = 1 AND g.run_id = ?5 AND g.valid_from <= ?1 AND NOT {_ENDED.format("g")}
    AND NOT {_SAID_ELSEWHERE.format("relationship", "g")}))"""
"""Whether a row ``g`` of ``relationships`` holds at ``?1``, according to the run."""


def edges_of_run(among: str = "1") -> str:
    """Return the table ``run_edges``, for a ``WITH`` clause: relationships as the run states them.

    ``?2`` is the user, or NULL for all, and ``?5`` the run; ``among`` restricts the rows ``r`` of
    ``relationships`` to all or none of those that say the same. Several such rows make one edge:
    ``row_ids`` and ``memory_ids`` are JSON lists.
    """
    return f"""
run_statements AS (
  SELECT x.relationship_id, x.memory_id, x.rowid AS place, x.confidence, x.temporal_context,
    x.valid_from, CASE WHEN {_CLOSING_COUNTS.format("x")} THEN x.valid_to END AS valid_to,
    x.created_at, x.updated_at
  FROM relationships AS r JOIN relationship_sources AS x ON x.relationship_id = r.id
    JOIN memories AS m ON m.id = x.memory_id WHERE {_OF_RUN} AND {among}
  UNION ALL SELECT r.id, NULL, r.seq, r.confidence, r.temporal_context, r.valid_from,
    CASE WHEN {_CLOSING_COUNTS.format("r")} THEN r.valid_to END, r.created_at, r.updated_at
  FROM relationships AS r WHERE r.by_hand = 1 AND r.run_id = ?5 AND (?2 IS NULL OR r.user_id = ?2)
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")} AND {among}),
run_edges AS MATERIALIZED (
  SELECT min(coalesce(t.created_at, r.created_at) || printf(' %020d', t.place)) AS seq,
    json_group_array(r.id ORDER BY r.seq) ->> 0 AS id, r.relationship,
    coalesce(max(t.confidence), 1.0) AS confidence,
    json_group_array(t.temporal_context ORDER BY t.updated_at DESC, t.place DESC)
      FILTER (WHERE t.temporal_context IS NOT NULL) ->> 0 AS temporal_context,
    min(coalesce(t.valid_from, r.valid_from)) AS valid_from, t.valid_to, r.user_id,
    ?5 AS run_id, min(coalesce(t.created_at, r.created_at)) AS created_at,
    max(coalesce(t.updated_at, r.updated_at)) AS updated_at, r.source_id, r.target_id,
    json_group_array(r.id) AS row_ids,
    json_group_array(t.memory_id ORDER BY t.place) FILTER (WHERE t.memory_id IS NOT NULL)
      AS memory_ids
  FROM run_statements AS t JOIN relationships AS r ON r.id = t.relationship_id
  GROUP BY r.source_id, r.relationship, r.target_id, t.valid_to)"""


_ENDS: Final = f"""
  UNION ALL SELECT r.{{0}}, NULL, {_LAST}, NULL, NULL, NULL, x.created_at, x.created_at
  FROM relationships AS r JOIN relationship_sources AS x ON x.relationship_id = r.id
    JOIN memories AS m ON m.id = x.memory_id WHERE {_OF_RUN} AND r.{{0}} {{1}}
  UNION ALL SELECT r.{{0}}, NULL, {_LAST}, NULL, NULL, NULL, r.created_at, r.created_at
  FROM relationships AS r WHERE r.by_hand = 1 AND r.run_id = ?5 AND r.{{0}} {{1}}
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")}"""
_SELECT_ENTITIES: Final = f"""
WITH statements AS (
  SELECT x.entity_id AS id, x.memory_id, x.rowid AS place, x.name, x.type, x.confidence,
    x.created_at, x.updated_at
  FROM entity_sources AS x JOIN memories AS m ON m.id = x.memory_id
  WHERE {_OF_RUN} AND x.entity_id {{0}}
  UNION ALL SELECT b.id, NULL, b.seq, b.name, b.type, b.confidence, b.created_at, b.updated_at
  FROM entities AS b WHERE b.by_hand = 1 AND b.run_id = ?5 AND b.id {{0}}
    AND NOT {_SAID_ELSEWHERE.format("entity", "b")}
  UNION ALL SELECT b.id, NULL, b.seq, b.name, NULL, NULL, b.created_at, b.created_at
  FROM entities AS b WHERE b.by_hand = 1 AND b.run_id = ?5 AND b.id {{0}}
  {_ENDS.format("source_id", "{0}")} {_ENDS.format("target_id", "{0}")})
SELECT e.id, e.name, e.user_id, s.memory_id, s.name, s.type, s.confidence,
  coalesce(s.created_at, e.created_at), coalesce(s.updated_at, e.updated_at), s.place
FROM statements AS s JOIN entities AS e ON e.id = s.id WHERE ?2 IS NULL OR e.user_id = ?2
ORDER BY s.place"""
_AMONG: Final = "IN (SELECT value FROM json_each(?1))"
_ANY: Final = "<> ?1"
_SELECT_ALIASES: Final = """
SELECT a.entity_id, a.alias FROM entity_aliases AS a JOIN memories AS m ON m.id = a.memory_id
WHERE a.entity_id IN (SELECT value FROM json_each(?1)) AND m.run_id = ?2 ORDER BY a.alias_id"""
_SELECT_OPEN: Final = f"""
SELECT json_group_array(id ORDER BY seq) ->> 0, target_id, min(valid_from), NULL FROM (
  SELECT r.seq, r.id, r.target_id, coalesce(x.valid_from, r.valid_from) AS valid_from
  FROM relationships AS r JOIN relationship_sources AS x ON x.relationship_id = r.id
    JOIN memories AS m ON m.id = x.memory_id
  WHERE r.source_id = ?1 AND r.relationship = ?3 AND {_OF_RUN}
    AND (x.valid_to IS NULL OR NOT {_CLOSING_COUNTS.format("x")})
  UNION ALL SELECT r.seq, r.id, r.target_id, r.valid_from FROM relationships AS r
  WHERE r.source_id = ?1 AND r.relationship = ?3 AND r.by_hand = 1 AND r.run_id = ?5
    AND (r.valid_to IS NULL OR NOT {_CLOSING_COUNTS.format("r")})
    AND NOT {_SAID_ELSEWHERE.format("relationship", "r")}
  ORDER BY 1)
WHERE ?4 IS NULL OR target_id = ?4 GROUP BY target_id ORDER BY min(seq)"""


class RunGraph(Table):
    """Reads the graph of one run."""

    def open_edges(
        self, run_id: str, source_id: str, relationship: str, target_id: str | None
    ) -> list[Row]:
        """Return the run's open relationships of an entity: id, target and ``valid_from``."""
        values = (source_id, None, relationship, target_id, run_id)
        return self._db.rows(_SELECT_OPEN, values)

    def entities(
        self, run_id: str, *, user_id: str | None, ids: Sequence[str] | None, agent_id: str
    ) -> list[EntityView]:
        """Return the entities that the run mentions, in the order of their first mention.

        The first name that its memories use for an entity is its name, the others are its aliases.
        """
        sql = _SELECT_ENTITIES.format(_ANY if ids is None else _AMONG)
        wanted = "" if ids is None else to_json(list(ids))
        rows = self._db.rows(sql, (wanted, user_id, None, None, run_id))
        aliases = self._aliases([row[0] for row in rows], run_id)
        return entities_of_run(rows, aliases, run_id=run_id, agent_id=agent_id)

    def _aliases(self, ids: Sequence[str], run_id: str) -> dict[str, list[str]]:
        aliases: dict[str, list[str]] = {}
        for entity_id, alias in self._db.rows(_SELECT_ALIASES, (to_json(list(ids)), run_id)):
            aliases.setdefault(entity_id, []).append(alias)
        return aliases
